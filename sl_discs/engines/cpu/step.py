"""What a step of any sampler is given and gives back, and the random words of many steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import STEP, threefry, uniform, uniform64
from sl_discs.engines.cpu.jit import called, in_long_vectors, inlined
from sl_discs.engines.cpu.walk import Changes

# Steps whose words are made together: a generator that fills an array is vectorised.
BLOCK = 64
# Draws a step whose words are made so; those of later draws are made one by one.
MOST_DRAWS = 16


class Moment(NamedTuple):
    """What the program prescribes for one step, and its random words.

    Attributes:
      rate: 1/temperature.
      tilt_scale: the target's tilt is this times the observation.
      slope: of the proposal's logits, see `walk.set_base`.
      key0: of the chain, like key1.
      key1: likewise.
      number: of the step.
      row: the step's column in `first` and `second`.
      first: [1 + MOST_DRAWS, BLOCK] first words: of the step itself, then of its draws.
      second: likewise, second words.
      draws: for how many draws there are words.
    """

    rate: np.float32
    tilt_scale: np.float32
    slope: np.float32
    key0: np.uint32
    key1: np.uint32
    number: int
    row: int
    first: np.ndarray
    second: np.ndarray
    draws: int


class Outcome(NamedTuple):
    """What a step did.

    Attributes:
      acceptance: probability of accepting the proposal.
      accepted: whether it was.
      swapped: whether the weights of the state are now in the other tree.
      flips: number of sites that the proposal flips.
      changes: by the proposal.
      pace: what adapts: the radius, or the expected number of flips.
    """

    acceptance: float
    accepted: bool
    swapped: bool
    flips: int
    changes: Changes
    pace: np.float32


@inlined
def target_change(moment, target, changes):
    """The change of the logarithm of the target's probability."""
    value = changes.linear + np.float64(target.scale) * changes.pairs
    return value * np.float64(moment.rate) + np.float64(moment.tilt_scale) * changes.observed


@called
def fill_words(key0, key1, first_number, draws, first, second):
    """The words of BLOCK steps from `first_number` on: counter (number of the step, STEP + number of the draw)."""
    in_long_vectors()
    for k in range(1 + draws):
        for row in range(BLOCK):
            one, other = threefry(key0, key1, np.uint32(first_number + row), np.uint32(STEP + k))
            first[k, row] = one
            second[k, row] = other


@inlined
def draw_uniform(moment, k):
    """The uniform number, in float64, of draw k = 0, 1, ... of a step."""
    if k < moment.draws:
        return uniform64(moment.first[1 + k, moment.row], moment.second[1 + k, moment.row])
    one, other = threefry(moment.key0, moment.key1, np.uint32(moment.number), np.uint32(STEP + 1 + k))
    return uniform64(one, other)


@inlined
def step_uniform(moment):
    """The uniform number that decides whether a step is accepted."""
    return uniform(moment.first[0, moment.row])


@inlined
def other_uniform(moment):
    """A second uniform number of a step."""
    return uniform(moment.second[0, moment.row])


@inlined
def adapted(pace, acceptance, target, steps, adapt_until):
    """`sl_discs.samplers.adaptation.adapted` for one chain; `adapt_until` 0 is for ever."""
    gain = np.float32(1)
    if adapt_until > 0:
        gain = min(max(np.float32(1) - np.float32(steps) / np.float32(adapt_until), np.float32(0)), np.float32(1))
    return pace + gain * (np.float32(acceptance) - np.float32(target))
