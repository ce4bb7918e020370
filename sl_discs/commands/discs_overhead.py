"""Command: measures what localization costs in DISCS's loop, as the time per step of sl_NAME divided by that of NAME.

sl-discs discs overhead --samplers=gwg,path_auxiliary,dmala

It uses DISCS's own model (MIS on generated er_density graphs), samplers and compiled step, called as in DISCS's
experiments: jitted, mapped over graphs, one call per step. Repetitions of all samplers alternate. Times are taken
when all results have been computed, and exclude compilation. Needs a checkout of DISCS on PYTHONPATH or as the
working directory.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from absl import flags

from sl_discs.command import run_command
from sl_discs.discs_plugin import launch
from sl_discs.discs_plugin.step_loop import StepLoop, upstream_experiment
from sl_discs.errors import InputError
from sl_discs.instances.dataset import load_dataset

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)
_SAMPLERS = flags.DEFINE_list(
    "samplers", ["gwg", "path_auxiliary", "dmala"], "Base samplers of DISCS.", flag_values=FLAGS
)
_DENSITY = flags.DEFINE_string("density", "0.10", "Density of the er_density graphs.", flag_values=FLAGS)
_GRAPHS = flags.DEFINE_integer("graphs", 8, "Number of graphs.", flag_values=FLAGS)
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains per graph.", flag_values=FLAGS)
_STEPS = flags.DEFINE_integer("steps", 20, "Steps per repetition.", flag_values=FLAGS)
_REPEATS = flags.DEFINE_integer("repeats", 7, "Repetitions per sampler.", flag_values=FLAGS)

# Levels are short at first; the budget is that of a benchmark run with so many steps.
_CHAIN_LENGTH = 10_000


class Overhead(NamedTuple):
    """Milliseconds per step of a sampler and of its variant, one entry per repetition."""

    base: np.ndarray
    localized: np.ndarray


def measure() -> dict[str, Overhead]:
    """Times of every sampler of --samplers, by its name."""
    dataset = load_dataset("mis", "er_density", f"r-{_DENSITY.value}", None, num_instances=_GRAPHS.value)
    experiment = upstream_experiment(dataset, _CHAINS.value, _CHAIN_LENGTH)
    names = [name for base in _SAMPLERS.value for name in (base, f"sl_{base}")]
    loops = {name: StepLoop(name, experiment) for name in names}
    for loop in loops.values():
        loop.play(2)
    times: dict[str, list] = {name: [] for name in names}
    for _ in range(_REPEATS.value):
        for name, loop in loops.items():
            times[name].append(1e3 * loop.play(_STEPS.value) / _STEPS.value)
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


def run(_) -> int:
    """Registers DISCS, checks the samplers' names, measures and prints."""
    launch.register_from_flags(FLAGS)
    for name in _SAMPLERS.value:
        if importlib.util.find_spec(f"discs.samplers.sl_{name}") is None:
            raise InputError(f"--samplers: DISCS has no sampler {name!r}")
    sys.stdout.write(_report(measure()) + "\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    launch.add_working_directory()
    return run_command(argv, "", __doc__, FLAGS, run)
