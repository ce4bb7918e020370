"""Targets of the study of laws: families of problems whose law is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.instances.graph import Graph
from sl_discs.models.exact_sums import enumerate_law
from sl_discs.models.terms import Coefficients, to_spin
from sl_discs.problems.problem import Problem
from sl_discs.sampling.directions import outer_eigenvalues
from sl_discs.sampling.draw_samples import sample
from sl_discs.sampling.exact import exact
from sl_discs.sampling.samples import Samples
from sl_discs.support.errors import InputError
from sl_discs.testing.conformance import all_states
from truths import (
    Truth,
    communities,
    curie_weiss,
    dense_spin_problem,
    digits_machine,
    hopfield,
    planted_strip,
    random_field_grid,
    weight_of_mode,
)


def spin_glass(
    size: int, glass: float, strength: float, field: float, seed: int
) -> tuple[Problem, Int8[np.ndarray, "N"]]:
    """Sherrington and Kirkpatrick's spin glass with a planted direction u, and a direction to look
    along.

    f(s) = 1/2 s'(glass G + strength u u'/N)s + field u . s, where G is a symmetric matrix of
    Gaussian numbers of variance 1/N, whose spectrum is [-2, 2] for large N. Without strength, the
    direction has the signs of G's first eigenvector.
    """
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(size, size)) / np.sqrt(size), 1)
    couplings = glass * (upper + upper.T)
    direction = (
        rng.choice((-1, 1), size)
        if strength
        else np.where(np.linalg.eigh(couplings)[1][:, -1] > 0, 1, -1)
    )
    planted = couplings + strength / size * np.outer(direction, direction)
    return dense_spin_problem("spin-glass", field * direction, planted), direction.astype(np.int8)


def enumerated(problem: Problem, temperature: float, direction: Int8[np.ndarray, "N"]) -> Truth:
    """The truth of a problem with up to 20 variables; InputError for more."""
    law, states = enumerate_law(problem.terms(), temperature), all_states(problem.num_variables)
    counts = np.bincount(agreeing(states, direction), law.probabilities)
    marginals = law.probabilities @ states
    return Truth(
        problem,
        temperature,
        law.log_z,
        law.mean_value,
        marginals,
        weight_of_mode(counts),
        counts,
        direction,
    )


def by_tree(problem: Problem, temperature: float) -> Truth:
    """The truth, without a mode, of a problem of small treewidth; InputError otherwise."""
    found = exact(problem.terms(), temperature)
    return Truth(
        problem,
        temperature,
        found.log_z,
        float(found.known.mean_value),
        found.known.marginals[:, 1],
    )


class Observed(NamedTuple):
    """Estimates from draws of the quantities that a truth contains."""

    mean_value: float  # of f
    marginals: Float64[np.ndarray, "N"]  # [N] P(x_i = 1)
    counts: Float64[np.ndarray, "D+1"]  # [D + 1] of spins that agree with the direction
    log_z: float | None  # None where the method does not give it


def agreeing(
    states: Int8[np.ndarray, "S N"], direction: Int8[np.ndarray, "N"] | None
) -> np.ndarray:
    """How many spins of each state agree with the direction; a value above 0 is spin 1."""
    up = states > 0
    if direction is None:
        return up.sum(axis=1)
    taken = direction != 0
    return (up[:, taken] == (direction[taken] > 0)).sum(axis=1)


def observe(samples: Samples, direction: Int8[np.ndarray, "N"] | None) -> Observed:
    states = samples.states
    size = states.shape[1] if direction is None else int(np.count_nonzero(direction))
    counts = np.bincount(agreeing(states, direction), minlength=size + 1) / len(samples)
    log_z = None if samples.log_z is None else samples.log_z.mean
    return Observed(float(samples.values.mean()), (states > 0).mean(axis=0), counts, log_z)


def standard_error_of_mode(samples: Samples, direction: Int8[np.ndarray, "N"] | None) -> float:
    """The standard error of `weight_of_mode` estimated from the draws themselves."""
    size = samples.states.shape[1] if direction is None else int(np.count_nonzero(direction))
    return float(samples.expectation(lambda states: 2.0 * agreeing(states, direction) > size).error)


class Sampled(NamedTuple):
    """A problem whose truth is to be found by long tempering."""

    problem: Problem  # to be maximised
    temperature: float  # of the law
    direction: Int8[np.ndarray, "N"]  # the direction that defines the mode and the order parameter
    draws: int  # number of draws of long tempering


def by_long_tempering(made: Sampled) -> tuple[Truth, dict[str, float]]:
    """A truth estimated from many draws of tempering, with round trips of all ladders and standard
    errors.
    """
    samples = sample(made.problem, made.temperature, made.draws, "tempering", seed=2**31)
    found = observe(samples, made.direction)
    log_z, ladder = samples.log_z, samples.ladder
    assert log_z is not None and ladder is not None
    truth = Truth(
        made.problem, made.temperature, log_z.mean, found.mean_value, found.marginals, weight_of_mode(found.counts),
        found.counts, made.direction,
    )  # fmt: skip
    return truth, {
        "round_trips": int(np.sum(ladder.round_trips)),
        "mode_error": standard_error_of_mode(samples, made.direction),
        "log_z_error": float(log_z.error),
        "value_error": float(samples.mean().error),
    }


class Target(NamedTuple):
    """A family of problems; the study measures one instance and searches settings on another."""

    make: Callable[[int], Truth | Sampled]  # makes a truth from a seed
    rank: int  # number of directions that stand out of the coupling by design


def _curie_weiss(size: int, temperature: float, field: float) -> Target:
    # The family has no random numbers.
    return Target(lambda seed: curie_weiss(size, temperature, field=field), 1)


def _hopfield(size: int, weights: list[float], field: float) -> Target:
    return Target(lambda seed: hopfield(size, weights, 1.0, field=field, seed=seed), len(weights))


def _communities(count: int, size: int, inside: float, between: float, field: float) -> Target:
    make = functools.partial(communities, [size] * count, inside, between, 1.0, field=field)
    return Target(lambda seed: make(seed=seed), count)


def _strip(strength: float, glass: float, length: int = 24) -> Target:
    return Target(lambda seed: planted_strip(5, length, strength, glass, field=0.01, seed=seed), 1)


def _enumerated_glass(glass: float, strength: float, field: float) -> Target:
    def make(seed: int) -> Truth:
        problem, direction = spin_glass(20, glass, strength, field, seed)
        return enumerated(problem, 1.0, direction)

    return Target(make, int(strength > 0))


def _large_glass(glass: float, strength: float, field: float, draws: int) -> Target:
    def make(seed: int) -> Sampled:
        problem, direction = spin_glass(100, glass, strength, field, seed)
        return Sampled(problem, 1.0, direction, draws)

    return Target(make, int(strength > 0))


def _independent_sets(seed: int) -> Truth:
    """A ladder of 2 x 60 nodes with some diagonals, at the fugacity e^2."""
    ladder = nx.convert_node_labels_to_integers(nx.ladder_graph(60))
    diagonals = np.random.default_rng(seed).choice(59, 20, replace=False)
    edges = np.concatenate([np.array(ladder.edges), np.stack([diagonals, diagonals + 61], axis=1)])
    graph = Graph.from_arrays("ladder", 120, edges)
    return by_tree(Problem("mis", graph.name, range(120), graph, 2.5), 0.5)


# The plane of the border: strengths of the direction, and of the rest's couplings.
STRENGTHS, GLASSES = (1.2, 1.6, 2.4, 3.6), (0.05, 0.14, 0.4, 1.0)
PLANE = {
    f"strip-{strength:g}-{glass:g}": (strength, glass)
    for strength in STRENGTHS
    for glass in GLASSES
}

TARGETS: dict[str, Target] = {
    "curie-weiss-200": _curie_weiss(200, 0.7, 1e-3),
    "curie-weiss-500": _curie_weiss(500, 0.8, 5e-4),
    "curie-weiss-1000": _curie_weiss(1_000, 0.8, 5e-4),
    "curie-weiss-3000": _curie_weiss(3_000, 0.9, 3e-4),
    "curie-weiss-10000": _curie_weiss(10_000, 0.95, 1e-4),
    "hopfield-1": _hopfield(200, [1.5], 2e-3),
    "hopfield-2": _hopfield(200, [1.6, 1.3], 2e-3),
    "hopfield-4": _hopfield(160, [1.8, 1.6, 1.4, 1.2], 3e-3),
    "hopfield-8": _hopfield(48, [2.2, 2.1, 2.0, 1.9, 1.8, 1.7, 1.6, 1.5], 1e-2),
    "communities-2": _communities(2, 100, 3.0, 0.2, 4e-3),
    "communities-4": _communities(4, 40, 6.0, 0.2, 8e-3),
    "communities-6": _communities(6, 10, 9.0, 0.2, 2e-2),
    "planted-sk-20-weak": _enumerated_glass(0.2, 2.0, 0.02),
    "planted-sk-20-strong": _enumerated_glass(1.0, 2.0, 0.02),
    "sk-20-0.5": _enumerated_glass(0.5, 0.0, 0.05),
    "sk-20-0.9": _enumerated_glass(0.9, 0.0, 0.05),
    "sk-20-1.5": _enumerated_glass(1.5, 0.0, 0.05),
    "planted-sk-100-0.2": _large_glass(0.2, 2.0, 5e-3, 40_000),
    "planted-sk-100-0.5": _large_glass(0.5, 2.0, 5e-3, 40_000),
    "sk-100-0.9": _large_glass(0.9, 0.0, 1e-2, 40_000),
    "sk-100-1.5": _large_glass(1.5, 0.0, 1e-2, 40_000),
    "random-field-10": Target(lambda seed: random_field_grid(10, 1.5, field=0.3, seed=seed), 0),
    "digits": Target(lambda seed: digits_machine(8, seed), 8),
    "independent-sets": Target(_independent_sets, 0),
    **{name: _strip(*place) for name, place in PLANE.items()},
    "strip-smoke": _strip(1.6, 0.2, 6),
}


def width_of_rest(terms: Coefficients, temperature: float, rank: int) -> float:
    """Length of the spectrum of the spins' coupling over the temperature, without its `rank`
    largest eigenvalues.
    """
    outer = outer_eigenvalues(to_spin(terms, temperature), rank + 1)
    if outer is None:
        raise InputError("the largest eigenvalues of the couplings lie too close to be found")
    return float(outer[0][rank] - outer[2])
