"""Command: what localization costs inside of DISCS's loop: time a step of sl_NAME over that of NAME, in one run.

python -m sl_discs.discs_overhead --samplers=gwg,path_auxiliary,dmala

DISCS's own model (MIS on drawn er_density graphs), samplers and compiled step, as its experiment calls it: jitted,
mapped over graphs, one call a step. Repetitions of all samplers alternate; times are taken after everything has been
computed, compilation apart. Needs a checkout of DISCS on PYTHONPATH or as the working directory.
"""

from __future__ import annotations

import functools
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.write_discs import write_discs

_SAMPLERS = flags.DEFINE_list("samplers", ["gwg", "path_auxiliary", "dmala"], "Base samplers of DISCS.")
_DENSITY = flags.DEFINE_string("density", "0.10", "Density of the er_density graphs.")
_GRAPHS = flags.DEFINE_integer("graphs", 8, "Number of graphs.")
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains a graph.")
_STEPS = flags.DEFINE_integer("steps", 20, "Steps of a repetition.")
_REPEATS = flags.DEFINE_integer("repeats", 7, "Repetitions of each sampler.")

# Levels end often at first; the budget of so many steps is that of a benchmark run.
_CHAIN_LENGTH = 10_000


class _Loop:
    """A compiled step of one sampler and where its chains are."""

    def __init__(self, name: str, config, model, params: dict[str, Any]):
        config = config.copy_and_resolve_references()
        config.sampler.update(importlib.import_module(f"discs.samplers.configs.{name}_config").get_config())
        sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
        self._step = jax.jit(jax.vmap(functools.partial(sampler.step, model=model)))
        self._params, self._number = params, 0
        graphs, chains = config.experiment.num_models, config.experiment.batch_size
        self._state = jax.vmap(sampler.make_init_state)(jax.random.split(jax.random.PRNGKey(0), graphs))
        x = model.get_init_samples(jax.random.PRNGKey(1), graphs * chains)
        self._x = x.reshape(graphs, chains, *config.model.shape)

    def play(self, steps: int) -> float:
        """Milliseconds a step."""
        graphs = self._x.shape[0]
        keys = [jax.random.split(jax.random.PRNGKey(self._number + k), graphs) for k in range(steps)]
        jax.block_until_ready(keys)
        begin = time.perf_counter()
        for key in keys:
            self._x, self._state, _ = self._step(
                rng=key, x=self._x, model_param=self._params, state=self._state, x_mask=self._params["mask"]
            )
        jax.block_until_ready((self._x, self._state))
        self._number += steps
        return 1e3 * (time.perf_counter() - begin) / steps


class Overhead(NamedTuple):
    """Milliseconds a step of a sampler and of its variant, one entry a repetition."""

    base: np.ndarray
    localized: np.ndarray


def _experiment(folder: Path):
    """DISCS's config, model and parameters for drawn graphs written to a folder."""
    dataset = load_dataset("mis", "er_density", f"r-{_DENSITY.value}", None, num_instances=_GRAPHS.value)
    write_discs(dataset, folder)
    config = importlib.import_module("discs.common.configs").get_config()
    config.model.update(importlib.import_module("discs.models.configs.mis_config").get_config())
    config.model.graph_type, config.model.cfg_str = "er_density", f"r-{_DENSITY.value}"
    config.model.data_root = str(folder)
    family = importlib.import_module("discs.models.configs.mis.er_density")
    config.model.update(family.get_model_config(config.model.cfg_str))
    combinatorial = importlib.import_module("discs.experiment.configs.co_experiment")
    config.experiment.update(combinatorial.get_co_default_config())
    config.model.num_models = config.experiment.num_models = _GRAPHS.value
    config.experiment.batch_size, config.experiment.chain_length = _CHAINS.value, _CHAIN_LENGTH
    model = importlib.import_module("discs.models.mis").build_model(config)
    params = [instance[1] for instance in model.make_init_params(None)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *params)
    return config, model, stacked | {"temperature": jnp.full(_GRAPHS.value, 0.5)}


def measure() -> dict[str, Overhead]:
    """Times of every sampler of --samplers, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        config, model, params = _experiment(Path(folder))
    names = [name for base in _SAMPLERS.value for name in (base, f"sl_{base}")]
    loops = {name: _Loop(name, config, model, params) for name in names}
    for loop in loops.values():
        loop.play(2)
    times = {name: [] for name in names}
    for _ in range(_REPEATS.value):
        for name, loop in loops.items():
            times[name].append(loop.play(_STEPS.value))
    return {base: Overhead(np.array(times[base]), np.array(times[f"sl_{base}"])) for base in _SAMPLERS.value}


def _report(found: dict[str, Overhead]) -> str:
    lines = [
        f"DISCS's loop, mis er_density {_DENSITY.value}, {_GRAPHS.value} graphs x {_CHAINS.value} chains, "
        f"{_REPEATS.value} x {_STEPS.value} steps; {jax.devices()[0].device_kind}",
        f"  {'sampler':<16} {'ms a step':>10} {'sl_':>8}   sl_ / base: median (lowest - highest)",
    ]
    for name, one in found.items():
        ratio = one.localized / one.base
        lines.append(
            f"  {name:<16} {np.median(one.base):>10.2f} {np.median(one.localized):>8.2f}   "
            f"{np.median(ratio):.3f} ({ratio.min():.3f} - {ratio.max():.3f})"
        )
    return "\n".join(lines)


def prepare(argv: list[str]):
    """The main function, after DISCS has been registered and the samplers' names checked."""

    def main(_):
        launch.register_from_flags()
        for name in _SAMPLERS.value:
            if importlib.util.find_spec(f"discs.samplers.sl_{name}") is None:
                raise InputError(f"--samplers: DISCS has no sampler {name!r}")
        sys.stdout.write(_report(measure()) + "\n")
        return 0

    return main, argv


if __name__ == "__main__":
    launch.add_working_directory()
    launch.run_app(prepare)
