"""DISCS's sampling experiments: effective draws of DISCS's own runs beside those of `sl_discs.run`.

    python studies/discs_sampling.py [--output=results/discs_sampling] [--models=ising,potts]

DISCS's own `Sampling_Experiment` runs its models in small sizes with `gwg` of one flip a step, and
with `sl_gwg` from the plugin. `sl_discs.run` draws from the same models, with this project's `gwg`
and `sl_gwg`. Of each run come the numbers of `sl_discs.experiment.distributions.effective_draws`,
in CPU time of the steps after the burn-in, which is half of the run, without compilation.

It needs a checkout of DISCS on PYTHONPATH, and flax for the machine, whose weights are those with
which DISCS begins to train.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import config_dict

import sl_discs
from finished import finished
from sl_discs.commands.command import Command, own_flags
from sl_discs.discs_plugin import register
from sl_discs.experiment.distributions import effective_draws
from sl_discs.experiment.record import measured_by
from sl_discs.reproduction.report import table
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say

# Fields of the models' configs in DISCS, in place of sizes from 900 to 10,000.
MODELS: dict[str, dict[str, Any]] = {
    "ising": {"shape": (10, 10)},
    "bernoulli": {"shape": (100,)},
    "fhmm": {"shape": (20, 5)},
    "rbm": {
        "shape": (36,), "num_visible": 36, "num_hidden": 10, "num_categories": 2, "data_path": "",
    },
    "potts": {"shape": (6, 6)},
    "categorical": {"shape": (40,)},
}  # fmt: skip
BASE = {"num_flips": 1, "adaptive": False}
SAMPLERS = {"gwg": BASE, "sl_gwg": BASE | {"K": 64}}
LOOPS = DISCS, OWN = "DISCS", "sl_discs"


def _config(model: str, sampler: str, chains: int, steps: int) -> config_dict.ConfigDict:
    def config(name: str) -> config_dict.ConfigDict:
        return importlib.import_module(f"discs.{name}").get_config()

    found = config("common.configs")
    found.model.update(config(f"models.configs.{model}_config"))
    found.model.update(MODELS[model])
    found.sampler.update(config(f"samplers.configs.{sampler}_config"))
    found.sampler.update(SAMPLERS[sampler])
    found.experiment.update({"batch_size": chains, "chain_length": steps, "run_parallel": False})
    return found


def play_discs(model: str, sampler: str, chains: int, steps: int) -> dict[str, Any]:
    """Returns what DISCS's experiment gives with a sampler."""
    config = _config(model, sampler, chains, steps)
    experiments: Any = importlib.import_module("discs.experiment.sampling")
    evaluators = importlib.import_module("discs.evaluators.ess_eval")
    target = importlib.import_module(f"discs.models.{model}").build_model(config)
    states: list[Any] = []
    distances: list[Any] = []
    times: list[float] = []
    kept: dict[str, Any] = {}

    class Recorded(experiments.Sampling_Experiment):
        def _compute_chain(self, compiled_fns, state, params, *more):
            kept["params"] = params
            super()._compute_chain(compiled_fns, state, params, *more)

        def _compile_additional_fns(self, evaluator):
            mapped, metric = super()._compile_additional_fns(evaluator)

            def record(x, first):
                found = jax.block_until_ready(mapped(x, first))
                states.append(np.asarray(x, np.int8))
                distances.append(np.asarray(found))
                times.append(time.process_time())
                return found

            return record, metric

    class Saver:
        def save_results(self, acceptance, hops, found, running_time):
            kept["ess"] = float(found[0][0])

    build = importlib.import_module(f"discs.samplers.{sampler}").build_sampler
    evaluator = evaluators.build_evaluator(config)
    Recorded(config).get_results(target, build(config), evaluator, Saver())
    # `forward` of integers rounds the couplings of `ising` to integers, and this function does not.
    value = jax.jit(lambda x: target.get_value_and_grad(kept["params"], x)[0])
    values = np.array([value(jnp.asarray(x, jnp.int32)) for x in states], np.float64)
    # The first step of the loop is the end of compilation.
    cpu_s = (times[-1] - times[0]) * len(times) / (len(times) - 1)
    final = None if sampler == "gwg" else values[-1]
    found = effective_draws(np.array(distances), values, cpu_s, final)
    return found | {"cpu_s": cpu_s, "said": kept["ess"]}


def play(model: str, chains: int, steps: int) -> dict[str, Any]:
    """Returns the numbers of both samplers in both loops, by loop and sampler."""
    cells = {f"{DISCS} {name}": play_discs(model, name, chains, steps) for name in SAMPLERS}
    # Seconds are CPU time, as in DISCS's loop.
    with mock.patch("time.perf_counter", time.process_time):
        found = sl_discs.run(
            [{"name": name, **fields} for name, fields in SAMPLERS.items()],
            model_config={"name": model, **MODELS[model]},
            batch_size=chains,
            chain_length=steps,
            threads=1,
        )
    assert found.record is not None
    for name, record in found.record.samplers.items():
        cpu_s = record.run_s / 2
        cells[f"{OWN} {name}"] = {**record.instances[0].draws, "cpu_s": cpu_s}
    return cells


def page(runs: list[dict[str, Any]]) -> str:
    """Returns a row for each model, loop and sampler."""
    rows = [
        [
            run["model"],
            f"{run['loop']}, `{run['sampler']}`",
            f"{1_000 * run['discs_ess_a_step']:.3g} ± "
            f"{1_000 * run['discs_ess_se'] / run['steps']:.2g}",
            f"{1_000 * run['ess_a_step']:.3g}",
            f"{run['r_hat']:.2f}",
            f"{run['f_mean']:.2f} ± {run['f_mean_se']:.2g}",
            f"{run['ess_a_second']:,.3g}",
        ]
        for run in runs
    ]
    titles = [
        "model", "sampler", "ESS of 1,000 steps, DISCS", "of f", "R-hat", "mean of f", "effective draws a CPU-second",
    ]  # fmt: skip
    return table(titles, rows)


FLAGS, define = own_flags()
define.string("output", "results/discs_sampling", "Folder of the page, the numbers and the runs.")
define.list("models", list(MODELS), "Models.")
define.integer("chains", 32, "Chains of each run.", lower_bound=4)
define.integer("steps", 8_000, "Steps of each chain, half of them for burn-in.", lower_bound=100)


def _main(_) -> int:
    check_choice("models", FLAGS.models, MODELS)
    folder = check_writable(FLAGS.output)
    register(compat=True)
    runs: list[dict[str, Any]] = []
    for model in FLAGS.models:
        identity = {
            "kind": "discs-sampling", "model": model, "chains": FLAGS.chains, "steps": FLAGS.steps,
        }  # fmt: skip
        cells = finished(
            folder / "cells", identity, functools.partial(play, model, FLAGS.chains, FLAGS.steps)
        )
        for name, numbers in cells.items():
            loop, sampler = name.split()
            fields = {"model": model, "loop": loop, "sampler": sampler}
            sizes = {"steps": FLAGS.steps - FLAGS.steps // 2, "chains": FLAGS.chains}
            runs.append(fields | sizes | numbers)
        say(model)
    text = page(runs)
    write_text(folder / "discs_sampling.md", text + "\n")
    write_json(folder / "discs_sampling.json", {"measured": measured_by(), "runs": runs})
    say(f"\n{text}\n\nsaved in {folder}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
