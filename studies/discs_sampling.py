"""DISCS's sampling experiments: effective draws by its own definition and by ours, base beside
localized.

    python studies/discs_sampling.py [--output=results/discs_sampling] [--models=ising,potts]

DISCS's own `Sampling_Experiment` runs its models in small sizes with `gwg` of one flip a step, and
with `sl_gwg` from the plugin; beside it run this project's `gwg`, on the engine `cpu` where f is
quadratic in the values of two, and in DISCS's loop otherwise. From each run come

- DISCS's effective sample size: of the Hamming distance to one random state, chain by chain, as the
  mean over chains, where a chain that stands still counts 1;
- ours: of f, over all chains, whose differences count as well; of a localized run one draw a chain,
  as its target changes from level to level;
- CPU time of the steps after the burn-in, which is half of the run, without compilation.

It needs a checkout of DISCS on PYTHONPATH, and flax for the machine, whose weights are those with
which DISCS begins to train.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Int
from ml_collections import config_dict

from finished import finished
from sl_discs.commands.command import Command, own_flags
from sl_discs.discs_plugin import register
from sl_discs.discs_plugin.compat import effective_sample_size
from sl_discs.experiment.record import measured_by
from sl_discs.localization.method import build_method
from sl_discs.problems.forms import qubo
from sl_discs.problems.problem import Problem
from sl_discs.reproduction.report import table
from sl_discs.sampling.diagnostics import diagnose
from sl_discs.sampling.drawn import Request
from sl_discs.sampling.plain_chains import RecordedChains
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
QUADRATIC = "ising", "bernoulli", "fhmm"
BASE = {"num_flips": 1, "adaptive": False}
_LEVELS = 64
DISCS, LOCALIZED, OWN, COMPILED = "gwg", "sl_gwg", "sldiscs_gwg", "gwg, engine cpu"


class Run(NamedTuple):
    """What a run of B chains gave in the T steps after its burn-in."""

    ess_discs: tuple[float, float]  # of a chain: mean over chains and its error
    ess: float  # of all chains; of a localized run B
    r_hat: float  # of f
    mean: tuple[float, float]  # of f and its error; of a localized run in its last states
    cpu_s: float
    steps: int  # T
    chains: int  # B


def _summary(
    distances: Float64[np.ndarray, "T B"],
    values: Float64[np.ndarray, "T B"],
    cpu_s: float,
    localized: bool = False,
) -> Run:
    steps, chains = values.shape
    each = np.nan_to_num(np.asarray(effective_sample_size(jnp.asarray(distances))), nan=1.0)
    found = diagnose("f", values.T)
    effective = chains if localized else found.ess_bulk
    counted = values[-1] if localized else values
    return Run(
        (float(each.mean()), float(each.std(ddof=1) / np.sqrt(chains))),
        float(effective),
        found.r_hat,
        (float(counted.mean()), float(counted.std() / np.sqrt(effective))),
        cpu_s,
        steps,
        chains,
    )


def _config(model: str, sampler: str, chains: int, steps: int) -> config_dict.ConfigDict:
    def config(name: str) -> config_dict.ConfigDict:
        return importlib.import_module(f"discs.{name}").get_config()

    found = config("common.configs")
    found.model.update(config(f"models.configs.{model}_config"))
    found.model.update(MODELS[model])
    found.sampler.update(config(f"samplers.configs.{sampler}_config"))
    found.sampler.update(BASE | ({"K": _LEVELS} if sampler == LOCALIZED else {}))
    found.experiment.update({"batch_size": chains, "chain_length": steps, "run_parallel": False})
    return found


def play_discs(model: str, sampler: str, chains: int, steps: int) -> tuple[Run, dict[str, Any]]:
    """Returns what DISCS's experiment gives with a sampler, and its own metrics."""
    config = _config(model, sampler, chains, steps)
    experiments: Any = importlib.import_module("discs.experiment.sampling")
    evaluators = importlib.import_module("discs.evaluators.ess_eval")
    target = importlib.import_module(f"discs.models.{model}").build_model(config)
    states: list[Any] = []
    distances: list[Any] = []
    times: list[float] = []
    metrics: dict[str, Any] = {}

    class Recorded(experiments.Sampling_Experiment):
        def _compute_chain(self, compiled_fns, state, params, *more):
            metrics["params"] = params
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
            [mean, spread], by_steps, *_ = found
            metrics.update(
                ess=float(mean), spread=float(spread), by_steps=float(by_steps[0]),
                running_time=float(running_time),
            )  # fmt: skip

    build = importlib.import_module(f"discs.samplers.{sampler}").build_sampler
    evaluator = evaluators.build_evaluator(config)
    Recorded(config).get_results(target, build(config), evaluator, Saver())
    params = metrics.pop("params")
    # `forward` of integers rounds the couplings of `ising` to integers, and this function does not.
    value = jax.jit(lambda x: target.get_value_and_grad(params, x)[0])
    values = np.array([value(jnp.asarray(x, jnp.int32)) for x in states], np.float64)
    # The first step of the loop is the end of compilation.
    cpu_s = (times[-1] - times[0]) * len(times) / (len(times) - 1)
    found = _summary(np.array(distances, np.float64), values, cpu_s, sampler == LOCALIZED)
    return found, metrics


def problem_of(model: str) -> tuple[Problem, Int[np.ndarray, "N"]]:
    """Returns DISCS's model, with its parameters of an experiment, as a quadratic problem, and the
    state from which that experiment counts the Hamming distance.
    """
    config = _config(model, DISCS, 1, 1)
    target = importlib.import_module(f"discs.models.{model}").build_model(config)
    first, _, _ = jax.random.split(jax.random.PRNGKey(0), num=3)
    of_distance, _ = jax.random.split(jax.random.PRNGKey(0))
    reference = np.asarray(target.get_init_samples(of_distance, 1), np.int64).ravel()
    params = target.make_init_params(jax.random.split(first, 1))
    size = int(np.prod(config.model.shape))
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    states = np.zeros((1 + size + len(pairs), size), np.int32)
    states[1 : 1 + size] = np.eye(size)
    states[1 + size :][np.arange(len(pairs))[:, None], pairs] = 1
    shaped = jnp.asarray(states.reshape(-1, *config.model.shape), jnp.float32)
    values = np.asarray(jax.jit(target.forward)(params, shaped), np.float64)
    linear = values[1 : 1 + size] - values[0]
    couplings = values[1 + size :] - values[0] - linear[pairs].sum(axis=1)
    # Sums in single precision leave rounding.
    couplings[np.abs(couplings) < 1e-5 * np.abs(values).max()] = 0.0
    terms = {(i, i): float(one) for i, one in enumerate(linear)}
    terms |= {
        (i, j): float(one) for (i, j), one in zip(pairs.tolist(), couplings, strict=True) if one
    }
    return qubo(terms, maximise=True, offset=float(values[0])), reference


def play_compiled(model: str, chains: int, steps: int, seed: int) -> Run:
    """Returns what `gwg` on the engine `cpu` gives, with a record after each step."""
    problem, reference = problem_of(model)
    terms = problem.terms()
    method = build_method({"name": "gwg", **BASE})
    request = Request(terms, 1.0, None, chains, method, "cpu", seed)
    played = RecordedChains(request, chains)
    played.sweep = 1
    played.record(1.0, 1, steps // 2)
    played.record(1.0, 1)
    begin = time.process_time()
    records = played.record(1.0, steps - steps // 2)
    cpu_s = time.process_time() - begin
    distances = np.abs(records.states - reference).sum(axis=2).astype(np.float64)
    return _summary(distances, records.values + terms.constant, cpu_s)


def play(model: str, sampler: str, chains: int, steps: int) -> dict[str, Any]:
    """Returns a run in plain values; of DISCS's loop with its own metrics."""
    if sampler == COMPILED:
        return play_compiled(model, chains, steps, 0)._asdict()
    found, metrics = play_discs(model, sampler, chains, steps)
    return found._asdict() | {"discs": metrics}


def page(runs: dict[tuple[str, str], Run]) -> str:
    """Returns a row for each model and sampler."""
    rows = []
    for (model, sampler), run in runs.items():
        per_step = 1_000 / run.steps
        mean, error = run.ess_discs
        # A localized run has one draw a chain, burn-in included.
        of_f = per_step * run.ess / run.chains / (2 if sampler == LOCALIZED else 1)
        seconds = run.cpu_s * (2 if sampler == LOCALIZED else 1)
        rows.append([
            model, f"`{sampler}`", f"{per_step * mean:.3g} ± {per_step * error:.2g}",
            f"{of_f:.3g}", f"{run.r_hat:.2f}", f"{run.mean[0]:.2f} ± {run.mean[1]:.2g}",
            f"{run.ess / seconds:,.3g}",
        ])  # fmt: skip
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
    runs = {}
    for model in FLAGS.models:
        for sampler in (DISCS, LOCALIZED, COMPILED if model in QUADRATIC else OWN):
            identity = {
                "kind": "discs-sampling", "model": model, "sampler": sampler,
                "chains": FLAGS.chains, "steps": FLAGS.steps,
            }  # fmt: skip
            done = finished(
                folder / "cells", identity,
                functools.partial(play, model, sampler, FLAGS.chains, FLAGS.steps),
            )  # fmt: skip
            own = done.get("discs", {})
            runs[model, sampler] = Run(**{name: done[name] for name in Run._fields})
            say(f"{model}, {sampler}: DISCS says {own}" if own else f"{model}, {sampler}")
    text = page(runs)
    write_text(folder / "discs_sampling.md", text + "\n")
    cells = [{"model": m, "sampler": s} | run._asdict() for (m, s), run in runs.items()]
    write_json(folder / "discs_sampling.json", {"measured": measured_by(), "runs": cells})
    say(f"\n{text}\n\nsaved in {folder}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
