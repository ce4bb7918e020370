"""Measures what localization costs in DISCS's loop, as the time per step of sl_NAME divided by that
of NAME.

    python benchmarks/discs_overhead.py --samplers=gwg,path_auxiliary,dmala

It uses DISCS's own model (MIS on generated er_density graphs), samplers and compiled step, called
as in DISCS's experiments: jitted, mapped over graphs, one call per step. Repetitions of all
samplers alternate. Times are taken when all results have been computed, and exclude compilation.
Needs a checkout of DISCS on PYTHONPATH or as the working directory.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import config_dict

from sl_discs.commands import launch
from sl_discs.commands.command import Command
from sl_discs.experiment.record import measured_by
from sl_discs.instances.dataset import load_dataset, write_discs
from sl_discs.instances.graph import Dataset
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say

# DISCS's own model and compiled step on given graphs, called as its experiment calls them: for
# measurements.


class Experiment(NamedTuple):
    """DISCS's config, its model, and the parameters of all graphs, leaves [G, ...], at temperature
    0.5.
    """

    config: config_dict.ConfigDict
    model: Any
    params: dict[str, Any]


def upstream_experiment(dataset: Dataset, num_chains: int, chain_length: int) -> Experiment:
    """DISCS's experiment on the graphs of a dataset, which it reads from a temporary folder."""
    problem, count = dataset.problem, len(dataset.graphs)
    # DISCS reads any graphs in this family's format and determines their sizes itself.
    graph_type, cfg_str = graph_kind(problem).discs_family  # type: ignore[misc]  # DISCS poses this problem
    name = f"{problem}/{graph_type}" + (f"/{cfg_str}" if cfg_str != "_" else "")
    carried = dataclasses.replace(dataset, name=name, index=list(range(count)))
    config = importlib.import_module("discs.common.configs").get_config()
    config.model.update(
        importlib.import_module(f"discs.models.configs.{problem}_config").get_config()
    )
    config.model.graph_type, config.model.cfg_str = graph_type, cfg_str
    family = importlib.import_module(f"discs.models.configs.{problem}.{graph_type}")
    config.model.update(family.get_model_config(cfg_str))
    config.model.update(
        {"max_num_nodes": 0, "max_num_edges": 0, "num_instances": 0, "num_models": count}
    )
    combinatorial = importlib.import_module("discs.experiment.configs.co_experiment")
    config.experiment.update(combinatorial.get_co_default_config())
    config.experiment.update(
        {"num_models": count, "batch_size": num_chains, "chain_length": chain_length}
    )
    with tempfile.TemporaryDirectory() as folder:
        write_discs(carried, Path(folder))
        config.model.data_root = folder
        model = importlib.import_module(f"discs.models.{problem}").build_model(config)
        instances = [params for _, params, _ in model.make_init_params(None)]
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *instances
    )
    return Experiment(config, model, stacked | {"temperature": jnp.full(count, 0.5)})


class StepLoop:
    """A sampler's compiled step, jitted and mapped over graphs, with the state of its chains."""

    def __init__(self, name: str, experiment: Experiment):
        config = experiment.config.copy_and_resolve_references()
        config.sampler.update(
            importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()
        )
        sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
        self._step = jax.jit(jax.vmap(functools.partial(sampler.step, model=experiment.model)))
        self._params, self._number = experiment.params, 0
        graphs, chains = config.experiment.num_models, config.experiment.batch_size
        self._state = jax.vmap(sampler.make_init_state)(
            jax.random.split(jax.random.PRNGKey(0), graphs)
        )
        x = experiment.model.get_init_samples(jax.random.PRNGKey(1), graphs * chains)
        self._x = x.reshape(graphs, chains, *config.model.shape)

    def play(self, steps: int) -> float:
        """Runs this many steps of all chains; returns the seconds until all results are
        computed.
        """
        graphs = self._x.shape[0]
        keys = [
            jax.random.split(jax.random.PRNGKey(self._number + k), graphs) for k in range(steps)
        ]
        jax.block_until_ready(keys)
        begin = time.perf_counter()
        for key in keys:
            self._x, self._state, _ = self._step(
                rng=key,
                x=self._x,
                model_param=self._params,
                state=self._state,
                x_mask=self._params["mask"],
            )
        jax.block_until_ready((self._x, self._state))
        self._number += steps
        return time.perf_counter() - begin


FLAGS, define = launch.own_flags()
define.list("samplers", ["gwg", "path_auxiliary", "dmala"], "Base samplers of DISCS.")
define.string("density", "0.10", "Density of the er_density graphs.")
define.integer("graphs", 8, "Number of graphs.")
define.integer("chains", 32, "Chains per graph.")
define.integer("steps", 20, "Steps per repetition.")
define.integer("repeats", 7, "Repetitions per sampler.")
define.string("output", "bench_discs_overhead.json", "File for the results.")

# Levels are short at first; the budget is that of a benchmark run with so many steps.
_CHAIN_LENGTH = 10_000


class Overhead(NamedTuple):
    """Milliseconds per step of a sampler and of its variant, one entry per repetition."""

    base: np.ndarray
    localized: np.ndarray


def measure() -> dict[str, Overhead]:
    """Times of every sampler of --samplers, by its name."""
    dataset = load_dataset(
        "mis", "er_density", f"r-{FLAGS.density}", None, num_instances=FLAGS.graphs
    )
    experiment = upstream_experiment(dataset, FLAGS.chains, _CHAIN_LENGTH)
    names = [name for base in FLAGS.samplers for name in (base, f"sl_{base}")]
    loops = {name: StepLoop(name, experiment) for name in names}
    for loop in loops.values():
        loop.play(2)
    times: dict[str, list] = {name: [] for name in names}
    for _ in range(FLAGS.repeats):
        for name, loop in loops.items():
            times[name].append(1e3 * loop.play(FLAGS.steps) / FLAGS.steps)
    return {
        base: Overhead(np.array(times[base]), np.array(times[f"sl_{base}"]))
        for base in FLAGS.samplers
    }


def _report(found: dict[str, Overhead]) -> str:
    lines = [
        f"DISCS's loop, mis er_density {FLAGS.density}, {FLAGS.graphs} graphs x {FLAGS.chains} "
        "chains, "
        f"{FLAGS.repeats} x {FLAGS.steps} steps; {jax.devices()[0].device_kind}",
        f"  {'sampler':<16} {'ms a step':>10} {'sl_':>8}   sl_ / base: median (lowest - highest)",
    ]
    for name, one in found.items():
        ratio = one.localized / one.base
        lines.append(
            f"  {name:<16} {np.median(one.base):>10.2f} {np.median(one.localized):>8.2f}   "
            f"{np.median(ratio):.3f} ({ratio.min():.3f} - {ratio.max():.3f})"
        )
    return "\n".join(lines)


def _overhead(_) -> int:
    launch.register_from_flags(FLAGS)
    for name in FLAGS.samplers:
        if importlib.util.find_spec(f"discs.samplers.sl_{name}") is None:
            raise InputError(f"--samplers: DISCS has no sampler {name!r}")
    output, found = check_file(FLAGS.output), measure()
    say(_report(found))
    shape = {name: getattr(FLAGS, name) for name in ("density", "graphs", "chains", "steps")}
    times = {
        name: {"base": one.base.tolist(), "localized": one.localized.tolist()}
        for name, one in found.items()
    }
    write_json(output, {"measured": measured_by()} | shape | {"milliseconds": times})
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, _overhead, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
