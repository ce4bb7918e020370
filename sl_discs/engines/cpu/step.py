"""What a step of any sampler is given and gives back, and the random words of many steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.aligned import aligned_zeros
from sl_discs.engines.cpu.arithmetic import STEP, threefry, uniform, uniform64
from sl_discs.engines.cpu.jit import called, in_long_vectors, inlined
from sl_discs.engines.cpu.tree import LANES
from sl_discs.engines.cpu.walk import Changes

# Steps whose words are made together: a generator that fills an array is vectorised.
BLOCK = 64
# Draws a step whose words are made so; those of later draws are made one by one.
MOST_DRAWS = 16


class Words(NamedTuple):
    """Random words of BLOCK steps, or what is made of them; a sampler uses what it needs.

    Attributes:
      first: [1 + MOST_DRAWS, BLOCK] first words: of the step itself, then of its draws.
      second: likewise, second words.
      thresholds: [BLOCK + LANES] least change of log-density that is accepted, then infinity.
    """

    first: np.ndarray
    second: np.ndarray
    thresholds: np.ndarray


def make_words():
    """Room for words."""
    words = aligned_zeros((2, 1 + MOST_DRAWS, BLOCK), np.uint32)
    thresholds = aligned_zeros(BLOCK + LANES, np.float32)
    thresholds[BLOCK:] = np.inf
    return Words(*words, thresholds)


class Moment(NamedTuple):
    """What the program prescribes for one step, and its random words.

    Attributes:
      rate: 1/temperature.
      rates: [at least `most`] that of this step and of those after it.
      most: how many steps may be taken at once: as many as the program treats alike.
      tilt_scale: the target's tilt is this times the observation.
      slope: of the proposal's logits, see `walk.set_base`.
      key0: of the chain, like key1.
      key1: likewise.
      number: of the step.
      row: the step's column in `words`.
      words: of the block of steps that it belongs to.
      draws: for how many draws there are words.
    """

    rate: np.float32
    rates: np.ndarray
    most: int
    tilt_scale: np.float32
    slope: np.float32
    key0: np.uint32
    key1: np.uint32
    number: int
    row: int
    words: Words
    draws: int


class Outcome(NamedTuple):
    """What a step did, or several of which all but the last one were rejected.

    Attributes:
      acceptance: probability of accepting the proposal; of several, whether the last one was accepted, which has the
        same mean.
      accepted: whether it was.
      swapped: whether the weights of the state are now in the other tree.
      flips: number of sites that the proposal flips.
      changes: by the proposal.
      pace: what adapts: the radius, or the expected number of flips.
      steps: how many it was.
    """

    acceptance: float
    accepted: bool
    swapped: bool
    flips: int
    changes: Changes
    pace: np.float32
    steps: int


@inlined
def target_change(rate, tilt_scale, target, changes):
    """The change of the logarithm of the target's probability."""
    value = changes.linear + np.float64(target.scale) * changes.pairs
    return value * np.float64(rate) + np.float64(tilt_scale) * changes.observed


@called
def fill_words(key0, key1, first_number, draws, words):
    """The words of BLOCK steps from `first_number` on: counter (number of the step, STEP + number of the draw).

    Returns:
      for how many draws there are words: those asked for, but at most MOST_DRAWS.
    """
    in_long_vectors()
    draws = min(draws, MOST_DRAWS)
    for k in range(1 + draws):
        for row in range(BLOCK):
            one, other = threefry(key0, key1, np.uint32(first_number + row), np.uint32(STEP + k))
            words.first[k, row] = one
            words.second[k, row] = other
    return draws


@inlined
def draw_uniform(moment, k):
    """The uniform number, in float64, of draw k = 0, 1, ... of a step."""
    if k < moment.draws:
        return uniform64(moment.words.first[1 + k, moment.row], moment.words.second[1 + k, moment.row])
    one, other = threefry(moment.key0, moment.key1, np.uint32(moment.number), np.uint32(STEP + 1 + k))
    return uniform64(one, other)


@inlined
def step_uniform(moment):
    """The uniform number that decides whether a step is accepted."""
    return uniform(moment.words.first[0, moment.row])


@inlined
def other_uniform(moment):
    """A second uniform number of a step."""
    return uniform(moment.words.second[0, moment.row])


@inlined
def adapted(pace, acceptance, target, steps, adapt_until):
    """`sl_discs.samplers.adaptation.adapted` for one chain; `adapt_until` 0 is for ever."""
    gain = np.float32(1)
    if adapt_until > 0:
        gain = min(max(np.float32(1) - np.float32(steps) / np.float32(adapt_until), np.float32(0)), np.float32(1))
    return pace + gain * (np.float32(acceptance) - np.float32(target))
