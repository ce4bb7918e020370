"""Targets of the sampling benchmark: problems at a temperature, and the schedule of a plain chain on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Float64, Int

from sl_discs.benchmark.cases import family
from sl_discs.instances.form import QuadraticForm
from sl_discs.models.coefficients import Coefficients
from sl_discs.problems.problem import Problem
from sl_discs.testing.truths import CRITICAL, ising_torus

_SIDE, _SPINS = 64, 200


class Target(NamedTuple):
    """A distribution to draw from.

    Attributes:
      problem: makes the problem.
      temperature: tau.
      warm_up: sweeps of contenders that do not choose it themselves.
      sweeps: between two draws of such contenders, about what method `chain` chooses.
    """

    problem: Callable[[], Problem]
    temperature: float
    warm_up: int
    sweeps: int


class Spins(NamedTuple):
    """A target in the form for peers: exp(sum_i field_i s_i + sum_edges coupling s_u s_v), temperature included.

    Attributes:
      fields: [N].
      edges: [M, 2].
      couplings: [M].
      blocks: sites of each colour of a colouring, none of which are neighbours.
    """

    fields: Float64[np.ndarray, "N"]
    edges: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    blocks: list[np.ndarray]


def _grid(temperature: float) -> Problem:
    return ising_torus(_SIDE, temperature).problem


def _spin_glass() -> Problem:
    """Sherrington and Kirkpatrick's model, couplings with variance 1/N."""
    pairs = np.argwhere(np.triu(np.ones((_SPINS, _SPINS), bool), 1))
    couplings = np.random.default_rng(_SPINS).normal(size=len(pairs)) / np.sqrt(_SPINS)
    form = QuadraticForm.from_arrays("sk", np.zeros(_SPINS), pairs, couplings, spins=True, maximise=True)
    return Problem("ising", "sk", range(_SPINS), form)


def _independent_sets() -> Problem:
    [graph] = family("mis", "er_density", "r-0.05")(1)
    return Problem("mis", graph.name, range(graph.num_nodes), graph)


TARGETS = {
    "ising-critical": Target(functools.partial(_grid, CRITICAL), CRITICAL, 2_048, 64),
    "ising-3": Target(functools.partial(_grid, 3.0), 3.0, 64, 24),
    "spin-glass": Target(_spin_glass, 1 / 0.9, 256, 32),
    "mis-er": Target(_independent_sets, 0.3, 256, 16),
}


def as_spins(terms: Coefficients, temperature: float) -> Spins:
    """The same distribution on spins, with a greedy colouring."""
    terms = terms.listed()
    weights, size = terms.scale * terms.weights / temperature, len(terms.linear)
    fields = terms.linear / temperature / 2
    for end in terms.edges.T:
        fields = fields + np.bincount(end, weights / 4, size)
    graph = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(terms.edges.tolist())
    # Breadth first gives a bipartite graph, such as a grid of even side, its two colours.
    colouring = nx.greedy_color(graph, "connected_sequential_bfs")
    colours = np.array([colouring[site] for site in range(size)])
    blocks = [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]
    return Spins(fields, terms.edges, weights / 4, blocks)
