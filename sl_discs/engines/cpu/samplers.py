"""The samplers that this engine runs, and the selection of the kernel by the type of the settings.

The kernel is selected when the loop is compiled, so no sampler pays for the others.
"""

from __future__ import annotations

from sl_discs.engines.cpu import langevin, path, single_site
from sl_discs.engines.cpu.jit import chosen_by_type
from sl_discs.samplers.exchange import Exchange
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis

ENTRIES = {
    GWG: path.ENTRY,
    PathAuxiliary: path.ENTRY,
    DMALA: langevin.ENTRY,
    Gibbs: single_site.ENTRY,
    Metropolis: single_site.ENTRY,
    Exchange: single_site.EXCHANGE,
}
_KERNELS = {settings: kernel for entry in ENTRIES.values() for settings, kernel in entry.kernels.items()}


def play_step(settings, inputs, chain, target, tree, other, pace, steps):
    """`Kernel.step` of the settings."""
    raise NotImplementedError("compiled code only")


def weigh_state(settings, chain, target, rate, tilt_scale, tree):
    """`Kernel.weigh` of the settings."""
    raise NotImplementedError("compiled code only")


def fill_block(settings, pace, key0, key1, first_number, words):
    """`Kernel.fill` of the settings."""
    raise NotImplementedError("compiled code only")


@chosen_by_type(play_step)
def _play_step(settings, inputs, chain, target, tree, other, pace, steps):
    step = _KERNELS[settings.instance_class].step
    return lambda settings, inputs, chain, target, tree, other, pace, steps: step(
        settings, inputs, chain, target, tree, other, pace, steps
    )


@chosen_by_type(weigh_state)
def _weigh_state(settings, chain, target, rate, tilt_scale, tree):
    weigh = _KERNELS[settings.instance_class].weigh
    return lambda settings, chain, target, rate, tilt_scale, tree: weigh(
        settings, chain, target, rate, tilt_scale, tree
    )


@chosen_by_type(fill_block)
def _fill_block(settings, pace, key0, key1, first_number, words):
    fill = _KERNELS[settings.instance_class].fill
    return lambda settings, pace, key0, key1, first_number, words: fill(
        settings, pace, key0, key1, first_number, words
    )
