"""Targets of the study of laws: families of problems whose law is known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Int8

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph
from sl_discs.models.coefficients import Coefficients
from sl_discs.problems.problem import Problem
from sl_discs.sampling.directions import outer_eigenvalues, spin_terms
from sl_discs.studies.digits import digits_machine
from sl_discs.studies.laws_truths import by_tree, enumerated, spin_glass
from sl_discs.testing.truth import Truth
from sl_discs.testing.truths import curie_weiss, random_field_grid
from sl_discs.testing.truths_of_classes import communities, hopfield
from sl_discs.testing.truths_of_strips import planted_strip


class Sampled(NamedTuple):
    """A problem whose truth is to be found by long tempering.

    Attributes:
      problem: to be maximised.
      temperature: of the law.
      direction: the direction that defines the mode and the order parameter.
      draws: number of draws of long tempering.
    """

    problem: Problem
    temperature: float
    direction: Int8[np.ndarray, "N"]
    draws: int


class Target(NamedTuple):
    """A family of problems; the study measures one instance and searches settings on another.

    Attributes:
      make: makes a truth from a seed.
      rank: number of directions that stand out of the coupling by design.
    """

    make: Callable[[int], Truth | Sampled]
    rank: int


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
    return Target(lambda seed: _of_glass(20, glass, strength, field, seed), int(strength > 0))


def _of_glass(size: int, glass: float, strength: float, field: float, seed: int) -> Truth:
    problem, direction = spin_glass(size, glass, strength, field, seed)
    return enumerated(problem, 1.0, direction)


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
PLANE = {f"strip-{strength:g}-{glass:g}": (strength, glass) for strength in STRENGTHS for glass in GLASSES}

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
    """Length of the spectrum of the spins' coupling over the temperature, without its first eigenvalues.

    Args:
      terms: of a problem.
      temperature: above 0.
      rank: how many of the largest eigenvalues are left out.

    Raises:
      InputError: the eigenvalues are not found.
    """
    outer = outer_eigenvalues(spin_terms(terms, temperature), rank + 1)
    if outer is None:
        raise InputError("the largest eigenvalues of the couplings lie too close to be found")
    return float(outer.largest[rank] - outer.least)
