"""Truths that need a sampler of this project: by enumeration, by tree decomposition, by long tempering."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.models.enumeration import enumerate_law
from sl_discs.problems.problem import Problem
from sl_discs.sampling.exact import exact
from sl_discs.sampling.sample import sample
from sl_discs.sampling.samples import Samples
from sl_discs.testing.enumeration import all_states
from sl_discs.testing.truth import Truth, dense_spin_problem, weight_of_mode


def spin_glass(
    size: int, glass: float, strength: float, field: float, seed: int
) -> tuple[Problem, Int8[np.ndarray, "N"]]:
    """Sherrington and Kirkpatrick's spin glass with a planted direction u, and a direction to look along.

    f(s) = 1/2 s'(glass G + strength u u'/N)s + field u . s, where G is a symmetric matrix of Gaussian numbers of
    variance 1/N, whose spectrum is [-2, 2] for large N.

    Args:
      size: N.
      glass: of the rest.
      strength: of the direction; where it is 0, the direction has the signs of G's first eigenvector.
      field: favours the direction.
      seed: of everything.
    """
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) / np.sqrt(size), 1)
    couplings = glass * (upper + upper.T)
    direction = rng.choice((-1, 1), size) if strength else np.where(np.linalg.eigh(couplings)[1][:, -1] > 0, 1, -1)
    planted = couplings + strength / size * np.outer(direction, direction)
    return dense_spin_problem("spin-glass", field * direction, planted), direction.astype(np.int8)


def enumerated(problem: Problem, temperature: float, direction: Int8[np.ndarray, "N"]) -> Truth:
    """The truth of a problem with up to 22 variables; InputError for more."""
    law = enumerate_law(problem.terms(), temperature)
    agreeing = (direction > 0) == all_states(problem.num_variables).astype(bool)
    counts = np.bincount(agreeing[:, direction != 0].sum(axis=1), law.probabilities)
    return Truth(
        problem, temperature, law.log_z, law.mean_value, law.marginals.copy(), weight_of_mode(counts), counts,
        direction,
    )  # fmt: skip


def by_tree(problem: Problem, temperature: float) -> Truth:
    """The truth, without a mode, of a problem of small treewidth; InputError otherwise, or without dwave-samplers."""
    found = exact(problem.terms(), temperature, 1, 0)
    return Truth(problem, temperature, found.log_z, found.mean_value, found.marginals)


class Observed(NamedTuple):
    """Estimates from draws of the quantities that a truth contains.

    Attributes:
      mean_value: of f.
      marginals: [N] P(x_i = 1).
      counts: [D + 1] of spins that agree with the direction.
      log_z: None where the method does not give it.
    """

    mean_value: float
    marginals: Float64[np.ndarray, "N"]
    counts: Float64[np.ndarray, "D+1"]
    log_z: float | None


def agreeing(states: Int8[np.ndarray, "S N"], direction: Int8[np.ndarray, "N"] | None) -> np.ndarray:
    """How many spins of each state agree with the direction; a value above 0 is spin 1."""
    up = states > 0
    if direction is None:
        return up.sum(axis=1)
    taken = direction != 0
    return (up[:, taken] == (direction[taken] > 0)).sum(axis=1)


def observe(samples: Samples, direction: Int8[np.ndarray, "N"] | None) -> Observed:
    """Weighted means over draws."""
    states, weights = samples.states, samples.weights
    size = states.shape[1] if direction is None else int(np.count_nonzero(direction))
    counts = np.bincount(agreeing(states, direction), weights, size + 1)
    marginals = weights @ (states > 0)
    log_z = None if samples.log_z is None else samples.log_z.mean
    return Observed(float(samples.values @ weights), marginals, counts, log_z)


def standard_error_of_mode(samples: Samples, direction: Int8[np.ndarray, "N"] | None) -> float:
    """The standard error of `weight_of_mode` estimated from the draws themselves."""
    size = samples.states.shape[1] if direction is None else int(np.count_nonzero(direction))
    return float(samples.expectation(lambda states: 2.0 * agreeing(states, direction) > size).error)


class Reference(NamedTuple):
    """A truth that is known only from long tempering.

    Attributes:
      truth: as it was estimated.
      round_trips: of all ladders.
      mode_error: standard error of the mode weight.
      log_z_error: of log Z.
      value_error: of the mean value.
    """

    truth: Truth
    round_trips: int
    mode_error: float
    log_z_error: float
    value_error: float


def by_long_tempering(
    problem: Problem, temperature: float, direction: Int8[np.ndarray, "N"], draws: int
) -> Reference:
    """A truth estimated from many draws of tempering, with its errors and round trips."""
    samples = sample(problem, temperature, draws, "tempering", seed=2**31)
    found = observe(samples, direction)
    log_z, ladder = samples.log_z, samples.ladder
    assert log_z is not None and ladder is not None
    mode_error = standard_error_of_mode(samples, direction)
    truth = Truth(
        problem, temperature, log_z.mean, found.mean_value, found.marginals, weight_of_mode(found.counts),
        found.counts, direction,
    )  # fmt: skip
    trips = int(np.sum(ladder.round_trips))
    return Reference(truth, trips, mode_error, float(log_z.error), float(samples.mean().error))
