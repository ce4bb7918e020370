"""Bounds that no answer can pass, cheap enough to be found for every problem; an answer that meets one is optimal.

An independent set has at most one node of each clique, so that the number of cliques in a partition of the nodes
bounds its size, and a clique has at most one node of each colour of a proper colouring. Both are found greedily. A
cut has at most all positive weights, and a form at most the positive parts of its terms.
"""

from __future__ import annotations

import math

import numpy as np

from sl_discs.instances.form import PottsForm, QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.models.potts import potts_terms

# Edges that are looked at in a second, roughly.
_EDGES_A_SECOND = 250_000
# Nodes that may be added to a clique are so many at most, those of the smallest degree.
_TRIED = 8


def of_cuts(graph: Graph, seconds: float) -> float:
    """All positive weights."""
    return float(graph.num_edges) if graph.weights is None else math.fsum(np.maximum(graph.weights, 0))


def of_sets(graph: Graph, seconds: float) -> float | None:
    """Of independent sets: one node of each clique; None where the graph is too large for so many seconds."""
    return float(clique_cover(graph)) if _fits(graph, seconds) else None


def of_covers(graph: Graph, seconds: float) -> float | None:
    """Of vertex covers: all nodes but one of each clique; None as `of_sets`."""
    return float(graph.num_nodes - clique_cover(graph)) if _fits(graph, seconds) else None


def of_cliques(graph: Graph, seconds: float) -> float | None:
    """Of cliques: one node of each colour; None as `of_sets`."""
    return float(colours(graph)) if _fits(graph, seconds) else None


def _fits(graph: Graph, seconds: float) -> bool:
    return graph.num_edges <= _EDGES_A_SECOND * seconds


def of_form(form: QuadraticForm) -> float:
    """With the best sign of each term of spins, or without the terms of zeros and ones that make it worse.

    Both sums, of the bound and of a value, are exact and rounded once, so that they can be compared.
    """
    terms = np.concatenate([form.linear, form.couplings])
    own = form.pairs[:, 0] == form.pairs[:, 1]
    if form.spins:
        best = np.abs(terms) if form.maximise else -np.abs(terms)
        # s_a s_a is 1, whatever its sign.
        best[len(form.linear) :][own] = form.couplings[own]
    else:
        best = np.maximum(terms, 0) if form.maximise else np.minimum(terms, 0)
    return math.fsum([*form.offsets, *best.tolist()])


def of_potts(form: PottsForm) -> float:
    """With every pair equal or not, and every variable at a value, as is best for it alone."""
    terms = potts_terms(form)
    of_values = np.where(terms.exists, terms.fields, -np.inf).max(axis=1)
    of_pairs = np.maximum(terms.scale * terms.couplings, 0)
    return terms.scale * math.fsum([*of_pairs.tolist(), *of_values.tolist()])


def _neighbours(graph: Graph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(graph.num_nodes)]
    for u, v in graph.edges.tolist():
        found[u].add(v)
        found[v].add(u)
    return found


def clique_cover(graph: Graph) -> int:
    """Number of cliques that have every node in one of them: each node of small degree first, with what joins it."""
    neighbours = _neighbours(graph)
    free = [True] * graph.num_nodes
    cliques = 0
    for node in sorted(range(graph.num_nodes), key=lambda v: len(neighbours[v])):
        if free[node]:
            cliques += 1
            free[node] = False
            fitting = {v for v in neighbours[node] if free[v]}
            while fitting:
                # The node that leaves most of the others.
                tried = sorted(fitting, key=lambda v: (len(neighbours[v]), v))[:_TRIED]
                chosen = max(tried, key=lambda v: len(fitting & neighbours[v]))
                free[chosen] = False
                fitting &= neighbours[chosen]
    return cliques


def colours(graph: Graph) -> int:
    """Number of colours of a proper colouring: each node, of large degree first, has the least that is free."""
    neighbours = _neighbours(graph)
    colour: dict[int, int] = {}
    for node in sorted(range(graph.num_nodes), key=lambda v: -len(neighbours[v])):
        taken = {colour[v] for v in neighbours[node] if v in colour}
        colour[node] = next(one for one in range(len(taken) + 1) if one not in taken)
    return 1 + max(colour.values())
