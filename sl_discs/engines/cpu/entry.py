"""The description of a sampler for the compiled loops; each sampler's module ends with its entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import inlined
from sl_discs.engines.cpu.step import fill_words
from sl_discs.engines.cpu.walk import set_base, weigh_all


class Kernel(NamedTuple):
    """Compiled functions that belong to one type of settings.

    Attributes:
      step: one step, with the arguments of `path.path_step`.
      weigh: recomputes the tree of a state, with the arguments of `weigh_softmax`.
      fill: makes the random words of BLOCK steps, with the arguments of `fill_own`.
    """

    step: Callable
    weigh: Callable
    fill: Callable


class Entry(NamedTuple):
    """A sampler of this engine.

    Attributes:
      settings: maps a `Sampler` to a NamedTuple of numbers, whose type selects the kernel.
      kernels: by type of settings.
      keeps_weights: whether proposals are weighed at a temperature that is constant over many steps
        (`proposal_temperatures`), so that weights can be kept; this needs a Metropolis-Hastings test.
      steps_per_call: about how many steps to run in a call: well below a second, but long compared with its copies.
    """

    settings: Callable[[Any], Any]
    kernels: Mapping[type, Kernel]
    keeps_weights: Callable[[Any], bool] = lambda sampler: True
    steps_per_call: int = 10_000


@inlined
def weigh_softmax(settings, walk, target, rate, tilt_scale, tree):
    """All weights of a state at a proposal temperature 1/rate; returns the slope, see `walk.set_base`."""
    slope = set_base(walk, target, rate, tilt_scale)
    weigh_all(walk, target, slope, tree)
    return slope


@inlined
def weigh_nothing(settings, walk, target, rate, tilt_scale, tree):
    """For samplers that do not draw sites by weight."""
    return np.float32(0)


@inlined
def fill_own(settings, pace, key0, key1, first_number, words):
    """For steps that only need their own words; returns the number of draws that have words."""
    return fill_words(key0, key1, first_number, 0, words)
