"""Transition matrices of the samplers on a few sites, written from their definitions, which every
engine must match.

A target on {0,1}^N is given by its log-density at all 2^N states, up to a constant and including
temperature and tilt; state k has bit i of k at site i. The code is slow and shares nothing with an
engine: it is float64 NumPy that sums over everything that can happen in a step.

A step at x proposes y with probability q and accepts it with a probability that depends on

    ratio = p(y) q_reverse / (p(x) q)

only. If several sequences of draws lead to the same y, each is a separate proposal with its own
ratio.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from sl_discs.samplers.langevin import DLMC, DMALA, EULER
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import SEQUENTIAL, Exchange, Gibbs, Metropolis
from sl_discs.testing.conformance import all_states

LogDensity = Float64[np.ndarray, "S"]
Mask = Bool[np.ndarray, "N"]

# Locally balanced weights: g(t) = t g(1/t).
BALANCING = {
    "SQRT": lambda t: np.sqrt(t),
    "RATIO": lambda t: t / (1 + t),
    "MAX": lambda t: np.maximum(1, t),
    "MIN": lambda t: np.minimum(1, t),
}


def metropolis_test(ratio: float) -> float:
    """Returns min(1, ratio)."""
    return min(1.0, ratio)


def metropolis_test_with_ties(ratio: float) -> float:
    """Returns the test of a sequential scan, which rejects one in ten changes of 0."""
    return 0.9 if abs(ratio - 1) < 1e-9 else min(1.0, ratio)


def barker_test(ratio: float) -> float:
    """Returns ratio/(1 + ratio), the conditional probability of y given that the state is x
    or y.
    """
    return ratio / (1 + ratio)


def no_test(ratio: float) -> float:
    """Returns 1: every proposal is accepted, so p is not left invariant."""
    return 1.0


class Kernel(NamedTuple):
    """One step of a sampler.

    Attributes:
      transitions: [2^N, 2^N] the probability of each next state (column) given the state (row).
      acceptance: [2^N] the expected probability of accepting the proposal.
    """

    transitions: Float64[np.ndarray, "S S"]
    acceptance: Float64[np.ndarray, "S"]


def kernel_of_proposals(
    log_density: LogDensity,
    proposals: Callable[[int], Iterable[tuple[int, float, float]]],
    test: Callable[[float], float] = metropolis_test,
) -> Kernel:
    """Returns the kernel of `proposals(x)`, which lists every y with the probabilities q and
    q_reverse.
    """
    size = len(log_density)
    kernel = Kernel(np.zeros((size, size)), np.zeros(size))
    for x in range(size):
        for y, forward, backward in proposals(x):
            accepted = forward * test(np.exp(log_density[y] - log_density[x]) * backward / forward)
            kernel.transitions[x, y] += accepted
            kernel.acceptance[x] += accepted
        kernel.transitions[x, x] += 1 - kernel.acceptance[x]
    return kernel


def flip(x: int, sites: Iterable[int]) -> int:
    """Returns state x with each of these sites flipped, once."""
    return functools.reduce(lambda y, site: y ^ (1 << int(site)), set(sites), x)


def balanced_weights(
    log_density: LogDensity, mask: Mask, balancing: str
) -> Float64[np.ndarray, "S N"]:
    """Returns g(p(y)/p(x)) for each state x and the y that differs from it at one site; 0 outside
    the mask.
    """
    states = np.arange(len(log_density))
    gains = np.stack(
        [log_density[states ^ (1 << site)] - log_density for site in range(len(mask))], axis=1
    )
    return np.where(mask, BALANCING[balancing](np.exp(gains)), 0.0)


def single_site(
    log_density: LogDensity, sites: Iterable[int], test: Callable[[float], float]
) -> Kernel:
    """Proposes to flip one of these sites, drawn uniformly."""
    sites = list(sites)

    def proposals(x):
        for site in sites:
            yield flip(x, [site]), 1 / len(sites), 1 / len(sites)

    return kernel_of_proposals(log_density, proposals, test)


def exchange(
    log_density: LogDensity, mask: Mask, coupled: Bool[np.ndarray, "N N"], single: float
) -> Kernel:
    """Flips a uniformly drawn site; or, with probability 1 - single, draws one and then one of its
    partners.

    Partners are coupled sites with different values. Either of the two may be drawn first.
    """
    sites = np.flatnonzero(mask)
    states = all_states(len(mask))

    def number(x, i):
        return sum(coupled[i, j] and states[x, j] != states[x, i] for j in sites)

    def pair(x, i, j):
        return (1 - single) / len(sites) * (1 / number(x, i) + 1 / number(x, j))

    def proposals(x):
        for i in sites:
            yield flip(x, [i]), single / len(sites), single / len(sites)
        for i, j in itertools.combinations(sites, 2):
            if coupled[i, j] and states[x, i] != states[x, j]:
                y = flip(x, [i, j])
                yield y, pair(x, i, j), pair(y, i, j)

    return kernel_of_proposals(log_density, proposals)


def gwg(
    log_density: LogDensity,
    mask: Mask,
    num_flips: int,
    balancing: str = "SQRT",
    proposed: LogDensity | None = None,
) -> Kernel:
    """Draws sites with replacement from the normalized weights at x; the same draws at y are the
    reverse.
    """
    weights = balanced_weights(log_density if proposed is None else proposed, mask, balancing)
    chances = weights / weights.sum(axis=1, keepdims=True)

    def proposals(x):
        for sequence in map(list, itertools.product(np.flatnonzero(mask), repeat=num_flips)):
            y = flip(x, sequence)
            yield y, chances[x, sequence].prod(), chances[y, sequence].prod()

    return kernel_of_proposals(log_density, proposals)


def path_auxiliary(
    log_density: LogDensity,
    mask: Mask,
    num_flips: int,
    balancing: str = "SQRT",
    proposed: LogDensity | None = None,
) -> Kernel:
    """Draws distinct sites in turn at x; the reverse draws them at y in reverse order."""
    weights = balanced_weights(log_density if proposed is None else proposed, mask, balancing)

    def in_turn(weights, sequence):
        chances = (
            weights[site] / np.delete(weights, sequence[:k]).sum()
            for k, site in enumerate(sequence)
        )
        return np.prod(list(chances))

    def proposals(x):
        for sequence in map(list, itertools.permutations(np.flatnonzero(mask), num_flips)):
            y = flip(x, sequence)
            yield y, in_turn(weights[x], sequence), in_turn(weights[y], sequence[::-1])

    return kernel_of_proposals(log_density, proposals)


def independent_flips(
    log_density: LogDensity,
    chances: Float64[np.ndarray, "S N"],
    test: Callable[[float], float] = metropolis_test,
) -> Kernel:
    """Flips every site independently, with these chances at each state."""
    states = all_states(chances.shape[1])

    def moves(x, y):
        return np.where(states[x] != states[y], chances[x], 1 - chances[x]).prod()

    def proposals(x):
        for y in range(len(states)):
            if moves(x, y) > 0:
                yield y, moves(x, y), moves(y, x)

    return kernel_of_proposals(log_density, proposals, test)


def langevin_odds(
    weights: Float64[np.ndarray, "S N"], step_size: float | None, expected_flips: float | None
) -> Float64[np.ndarray, "S N"]:
    """Returns the weights times exp(-1/(2 step_size)), or times expected_flips over their sum at
    the state that is left.
    """
    if step_size is not None:
        return weights * np.exp(-1 / (2 * step_size))
    return weights * expected_flips / weights.sum(axis=1, keepdims=True)


def dmala(odds: Float64[np.ndarray, "S N"]) -> Float64[np.ndarray, "S N"]:
    """Chances of flips with these odds."""
    return odds / (1 + odds)


def dlmc(
    odds: Float64[np.ndarray, "S N"], log_density: LogDensity, solver: str
) -> Float64[np.ndarray, "S N"]:
    """Chances that a site has jumped at the time 1 in a chain of its own with these rates of
    leaving its value.
    """
    other = balanced_weights(log_density, np.ones(odds.shape[1], bool), "RATIO")
    return np.minimum(odds, other) if solver == EULER else other * (1 - np.exp(-odds / other))


def numbers_of_flips(radius: float, most: int, frozen: bool) -> dict[int, float]:
    """Returns the probability of each number of flips R at an adaptive radius, from 1 to `most`.

    R = round(radius) while the radius adapts, and floor(radius - 1/2 + u) for a uniform number u
    once it is frozen.
    """
    lowest = np.floor(radius - 0.5)
    upper = radius - 0.5 - lowest
    chances = {lowest: 1 - upper, lowest + 1: upper} if frozen else {np.round(radius): 1.0}
    found: dict[int, float] = {}
    for number, chance in chances.items():
        clipped = int(np.clip(number, 1, most))
        found[clipped] = found.get(clipped, 0.0) + chance
    return found


def kernel_of(
    sampler: Any,
    log_density: LogDensity,
    mask: Mask,
    *,
    coupled: Bool[np.ndarray, "N N"] | None = None,
    proposed: LogDensity | None = None,
    scale: float | None = None,
    frozen: bool = False,
    done: int = 0,
) -> Kernel:
    """Returns the kernel of one step of one of this project's samplers.

    Args:
      sampler: one whose chains do not depend on each other.
      log_density: of the target.
      mask: sites that may flip.
      coupled: which sites are; every two by default.
      proposed: log-density whose flip gains weigh the proposals; that of the target by default.
      scale: the adaptive radius or expected number of flips; by default its initial value.
      frozen: whether the step comes after `adapt_until`.
      done: number of earlier steps, which determines the next site of a sequential scan.
    """
    if type(sampler) in (Gibbs, Metropolis):
        sites = np.flatnonzero(mask)
        test = metropolis_test
        if sampler.scan == SEQUENTIAL:
            sites = sites[[done % len(sites)]]
            test = metropolis_test_with_ties
        return single_site(log_density, sites, barker_test if type(sampler) is Gibbs else test)
    if type(sampler) is Exchange:
        coupled = ~np.eye(len(mask), dtype=bool) if coupled is None else coupled
        return exchange(log_density, mask, coupled, sampler.single)
    proposed = log_density if proposed is None else proposed
    balancing = sampler.balancing_fn_type
    if type(sampler) in (DMALA, DLMC):
        weights = balanced_weights(proposed, mask, balancing)
        test = metropolis_test if sampler.adjusted else no_test
        fixed = sampler.step_size if sampler.scaling == "fixed" else None
        odds = langevin_odds(weights, fixed, sampler.expected_flips if scale is None else scale)
        chances = dmala(odds) if type(sampler) is DMALA else dlmc(odds, proposed, sampler.solver)
        return independent_flips(log_density, chances, test)
    matrix = {GWG: gwg, PathAuxiliary: path_auxiliary}[type(sampler)]
    most = len(mask) if type(sampler) is GWG else int(mask.sum())
    radius = sampler.num_flips if scale is None else scale
    numbers = numbers_of_flips(radius, most, sampler.adaptive and frozen)
    parts = [
        (chance, matrix(log_density, mask, number, balancing, proposed))
        for number, chance in numbers.items()
    ]
    return Kernel(
        *(
            sum((chance * kernel[field] for chance, kernel in parts), np.zeros(()))
            for field in range(2)
        )
    )


def kernel_of_steps(
    sampler: Sampler,
    log_density: LogDensity,
    mask: Mask,
    number: int,
    *,
    done: int = 0,
    **options: Any,
) -> Kernel:
    """Returns several steps as one kernel, with their mean acceptance; arguments as of
    `kernel_of`.
    """
    transitions = np.eye(len(log_density))
    acceptance = np.zeros(len(log_density))
    for k in range(done, done + number):
        step = kernel_of(sampler, log_density, mask, done=k, **options)
        acceptance += transitions @ step.acceptance / number
        transitions = transitions @ step.transitions
    return Kernel(transitions, acceptance)
