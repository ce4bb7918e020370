"""The arguments and results of a step of any sampler, and the random words of many steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.arrays import aligned_zeros
from sl_discs.engines.cpu.arithmetic import STEP, threefry, uniform, uniform64
from sl_discs.engines.cpu.chain_state import Changes, set_base, weigh_all
from sl_discs.engines.cpu.jit import called, in_long_vectors, inlined
from sl_discs.engines.cpu.tree import LANES

# Number of steps whose words are made together, since a generator that fills an array is
# vectorised.
BLOCK = 64
# Largest number of draws per step whose words are made in advance; those of later draws are made
# one by one.
MOST_DRAWS = 16


class Words(NamedTuple):
    """Random words of BLOCK steps, or numbers computed from them; a sampler uses what it needs.

    Attributes:
      first: [1 + MOST_DRAWS, BLOCK] first words: of the step itself, then of its draws.
      second: likewise, second words.
      thresholds: [BLOCK + LANES] the least accepted change of log-density at each step, padded with
        infinity.
    """

    first: np.ndarray
    second: np.ndarray
    thresholds: np.ndarray


def make_words():
    """Allocates words."""
    words = aligned_zeros((2, 1 + MOST_DRAWS, BLOCK), np.uint32)
    thresholds = aligned_zeros(BLOCK + LANES, np.float32)
    thresholds[BLOCK:] = np.inf
    return Words(*words, thresholds)


class StepInputs(NamedTuple):
    """The program's values for one step, and its random words.

    Attributes:
      rate: 1/temperature.
      rates: [at least `most`] 1/temperature of this step and of the following ones.
      most: the largest number of steps that may be taken at once; the program treats all of them
        alike.
      tilt_scale: the target's tilt is this times the observation.
      slope: slope of the proposal's logits, see `chain.set_base`.
      key0: first word of the chain's key.
      key1: second word.
      number: number of the step.
      row: the step's column in `words`.
      words: words of the block of steps that contains this one.
      draws: number of draws for which there are words.
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


class StepOutcome(NamedTuple):
    """The outcome of a step, or of several steps of which all but the last one were rejected.

    Attributes:
      acceptance: probability of accepting the proposal; for several steps, whether the last one was
        accepted, which has the same mean.
      accepted: whether the (last) proposal was accepted.
      swapped: whether the weights of the state are now in the other tree.
      flips: number of sites that the proposal flips.
      changes: changes that the proposal makes.
      pace: the adapted quantity, radius or expected number of flips.
      steps: number of steps.
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
    """Returns the change of the logarithm of the target's probability."""
    value = changes.linear + np.float64(target.scale) * changes.pairs
    return value * np.float64(rate) + np.float64(tilt_scale) * changes.observed


@called
def fill_words(key0, key1, first_number, draws, words):
    """Draws the words of BLOCK steps; counters are (number of the step, STEP + number of the draw).

    Returns:
      the number of draws that have words: the requested number, but at most MOST_DRAWS.
    """
    in_long_vectors()
    draws = min(draws, MOST_DRAWS)
    for k in range(1 + draws):
        for row in range(BLOCK):
            first, second = threefry(key0, key1, np.uint32(first_number + row), np.uint32(STEP + k))
            words.first[k, row] = first
            words.second[k, row] = second
    return draws


@inlined
def draw_uniform(inputs, k):
    """Returns the uniform number, in float64, of draw k = 0, 1, ... of a step."""
    if k < inputs.draws:
        return uniform64(
            inputs.words.first[1 + k, inputs.row], inputs.words.second[1 + k, inputs.row]
        )
    first, second = threefry(
        inputs.key0, inputs.key1, np.uint32(inputs.number), np.uint32(STEP + 1 + k)
    )
    return uniform64(first, second)


@inlined
def step_uniform(inputs):
    """Returns the uniform number that decides whether a step is accepted."""
    return uniform(inputs.words.first[0, inputs.row])


@inlined
def other_uniform(inputs):
    """Returns a second uniform number of a step."""
    return uniform(inputs.words.second[0, inputs.row])


@inlined
def adapted(pace, acceptance, target, steps, adapt_until):
    """Returns `BalancedSampler.adapted` for one chain; with `adapt_until` 0, adaptation
    never ends.
    """
    gain = np.float32(1)
    if adapt_until > 0:
        gain = min(
            max(np.float32(1) - np.float32(steps) / np.float32(adapt_until), np.float32(0)),
            np.float32(1),
        )
    return pace + gain * (np.float32(acceptance) - np.float32(target))


# The description of a sampler for the compiled loops; each sampler's module ends with its entry.


class StepKernel(NamedTuple):
    """Compiled functions that belong to one type of settings.

    Attributes:
      step: one step, with the arguments of `weighted.path_step`.
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
        (`proposal_temperatures`), so that weights can be kept; this needs a Metropolis-Hastings
        test.
      steps_per_call: about how many steps to run in a call: well below a second, but long compared
        with its copies.
    """

    settings: Callable[[Any], Any]
    kernels: Mapping[type, StepKernel]
    keeps_weights: Callable[[Any], bool] = lambda sampler: True
    steps_per_call: int = 10_000


@inlined
def weigh_softmax(settings, chain, target, rate, tilt_scale, tree):
    """Computes all weights of a state at a proposal temperature 1/rate; returns the slope, see
    `chain.set_base`.
    """
    slope = set_base(chain, target, rate, tilt_scale)
    weigh_all(chain, target, slope, tree)
    return slope


@inlined
def weigh_nothing(settings, chain, target, rate, tilt_scale, tree):
    """Does nothing, for samplers that do not draw sites by weight."""
    return np.float32(0)


@inlined
def fill_own(settings, pace, key0, key1, first_number, words):
    """Fills what steps need that draw nothing; returns the number of draws that have words."""
    return fill_words(key0, key1, first_number, 0, words)
