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

import collections
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Bool, Float64

from sl_discs.samplers.block_gibbs import BlockGibbs
from sl_discs.samplers.langevin import DLMC, DMALA, EULER
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import SEQUENTIAL, Exchange, Gibbs, Metropolis
from sl_discs.testing.conformance import all_states

LogDensity = Float64[np.ndarray, "S"]
Mask = Bool[np.ndarray, "N"]
# Every next state of a state, with the probabilities of proposing it and of the reverse.
Proposals = Callable[[int], Iterable[tuple[int, float, float]]]

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


class Kernel(NamedTuple):
    """One step of a sampler.

    Attributes:
      transitions: [2^N, 2^N] the probability of each next state (column) given the state (row).
      acceptance: [2^N] the expected probability of accepting the proposal.
    """

    transitions: Float64[np.ndarray, "S S"]
    acceptance: Float64[np.ndarray, "S"]


class Step(NamedTuple):
    """What the law of a step depends on besides the sampler.

    Attributes:
      log_density: of the target.
      mask: sites that may flip.
      coupled: [N, N] which sites are, for samplers that ask.
      proposed: log-density whose flip gains weigh the proposals; None: that of the target.
      scale: the adaptive radius or expected number of flips; None: its initial value.
      frozen: whether the step comes after `adapt_until`.
      done: number of earlier steps, which determines the next site of a sequential scan.
    """

    log_density: LogDensity
    mask: Mask
    coupled: Any = None
    proposed: LogDensity | None = None
    scale: float | None = None
    frozen: bool = False
    done: int = 0

    @property
    def proposals_by(self) -> LogDensity:
        return self.log_density if self.proposed is None else self.proposed


def kernel_of_proposals(
    log_density: LogDensity,
    proposals: Proposals,
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
    return x ^ sum(1 << int(site) for site in set(sites))


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


def single_site(log_density: LogDensity, sites: Any, test: Callable[[float], float]) -> Kernel:
    """Proposes to flip one of these sites, drawn uniformly."""

    def proposals(x):
        for site in sites:
            yield flip(x, [site]), 1 / len(sites), 1 / len(sites)

    return kernel_of_proposals(log_density, proposals, test)


def try_one_site(sampler: Any, step: Step) -> Kernel:
    """Tries a site drawn uniformly, or the next one of a scan, by the sampler's test."""
    sites = np.flatnonzero(step.mask)
    test = metropolis_test
    if sampler.scan == SEQUENTIAL:
        sites = sites[[step.done % len(sites)]]
        test = metropolis_test_with_ties
    if type(sampler) is Gibbs:
        test = barker_test
    return single_site(step.log_density, sites, test)


def try_one_or_two_sites(sampler: Any, step: Step) -> Kernel:
    """Flips a uniformly drawn site; or, with probability 1 - single, draws one and then one of its
    partners.

    Partners are coupled sites with different values. Either of the two may be drawn first.
    """
    single = sampler.single
    sites = np.flatnonzero(step.mask)
    states = all_states(len(step.mask))
    coupled = step.coupled

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

    return kernel_of_proposals(step.log_density, proposals)


def draws_with_replacement(
    weights: Float64[np.ndarray, "S N"], mask: Mask, count: int
) -> Proposals:
    """Draws sites from the normalized weights at x; the same draws at y are the reverse."""
    chances = weights / weights.sum(axis=1, keepdims=True)

    def proposals(x):
        for sequence in map(list, itertools.product(np.flatnonzero(mask), repeat=count)):
            y = flip(x, sequence)
            yield y, chances[x, sequence].prod(), chances[y, sequence].prod()

    return proposals


def distinct_draws(weights: Float64[np.ndarray, "S N"], mask: Mask, count: int) -> Proposals:
    """Draws distinct sites in turn at x; the reverse draws them at y in reverse order."""

    def in_turn(weights, sequence):
        chances = (
            weights[site] / np.delete(weights, sequence[:k]).sum()
            for k, site in enumerate(sequence)
        )
        return np.prod(list(chances))

    def proposals(x):
        for sequence in map(list, itertools.permutations(np.flatnonzero(mask), count)):
            y = flip(x, sequence)
            yield y, in_turn(weights[x], sequence), in_turn(weights[y], sequence[::-1])

    return proposals


def numbers_of_flips(radius: float, most: int, frozen: bool) -> dict[int, float]:
    """Returns the probability of each number of flips R at an adaptive radius, from 1 to `most`.

    R = round(radius) while the radius adapts, and floor(radius - 1/2 + u) for a uniform number u
    once it is frozen.
    """
    lowest = np.floor(radius - 0.5)
    upper = radius - 0.5 - lowest
    chances = {lowest: 1 - upper, lowest + 1: upper} if frozen else {np.round(radius): 1.0}
    by_count: dict[int, float] = collections.defaultdict(float)
    for number, chance in chances.items():
        by_count[int(np.clip(number, 1, most))] += chance
    return by_count


def flip_a_path(sampler: Any, step: Step) -> Kernel:
    """Flips sites drawn by their weights, with or without replacement; their number is random where
    the radius is between two numbers.
    """
    weights = balanced_weights(step.proposals_by, step.mask, sampler.balancing_fn_type)
    draws = draws_with_replacement if sampler.replacement else distinct_draws
    most = len(step.mask) if sampler.replacement else int(step.mask.sum())
    radius = sampler.num_flips if step.scale is None else step.scale
    mean = Kernel(np.zeros(()), np.zeros(()))
    for count, chance in numbers_of_flips(radius, most, sampler.adaptive and step.frozen).items():
        kernel = kernel_of_proposals(step.log_density, draws(weights, step.mask, count))
        mean = Kernel(*(total + chance * part for total, part in zip(mean, kernel, strict=True)))
    return mean


def flip_independently(sampler: Any, step: Step) -> Kernel:
    """Flips each site with the odds exp(-1/(2 step_size)) times its weight, or expected_flips times
    its share of the weights.

    A site of `dlmc` flips if a chain of its own, with these odds as rates, has jumped at time 1.
    """
    states = all_states(len(step.mask))
    weights = balanced_weights(step.proposals_by, step.mask, sampler.balancing_fn_type)
    if sampler.scaling == "fixed":
        odds = weights * np.exp(-1 / (2 * sampler.step_size))
    else:
        flips = sampler.expected_flips if step.scale is None else step.scale
        odds = weights * flips / weights.sum(axis=1, keepdims=True)
    chances = odds / (1 + odds)
    if type(sampler) is DLMC:
        other = balanced_weights(step.proposals_by, np.ones_like(step.mask), "RATIO")
        chances = other * (1 - np.exp(-odds / other))
        if sampler.solver == EULER:
            chances = np.minimum(odds, other)

    def moves(x, y):
        return np.where(states[x] != states[y], chances[x], 1 - chances[x]).prod()

    def proposals(x):
        for y in range(len(states)):
            if moves(x, y) > 0:
                yield y, moves(x, y), moves(y, x)

    # Without its test, every proposal is accepted, and the target is not left invariant.
    test = metropolis_test if sampler.adjusted else lambda ratio: 1.0
    return kernel_of_proposals(step.log_density, proposals, test)


def resample_by_colour(sampler: Any, step: Step) -> Kernel:
    """Resamples every site, in the order of its colours, or of greedy ones of `coupled`."""
    sites = np.flatnonzero(step.mask)
    graph = nx.from_numpy_array(step.coupled).subgraph(sites)
    colours: Any = sampler.colours or nx.greedy_color(graph, lambda *_: sites)
    transitions = np.eye(len(step.log_density))
    for site in sorted(sites, key=colours.__getitem__):
        transitions = transitions @ single_site(step.log_density, [site], barker_test).transitions
    return Kernel(transitions, transitions.sum(axis=1))


# The kernel of each class of samplers.
KERNELS: dict[type[Sampler], Callable[[Any, Step], Kernel]] = {
    Gibbs: try_one_site,
    Metropolis: try_one_site,
    BlockGibbs: resample_by_colour,
    Exchange: try_one_or_two_sites,
    GWG: flip_a_path,
    PathAuxiliary: flip_a_path,
    DMALA: flip_independently,
    DLMC: flip_independently,
}


def kernel_of(sampler: Sampler, log_density: LogDensity, mask: Mask, **options: Any) -> Kernel:
    """Returns the kernel of one step of one of this project's samplers.

    Args:
      sampler: one whose chains do not depend on each other.
      log_density: of the target.
      mask: sites that may flip.
      **options: the other fields of `Step`.
    """
    return KERNELS[type(sampler)](sampler, Step(log_density, mask, **options))


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
