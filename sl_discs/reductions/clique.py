"""Maximum cliques: nodes that are in no clique larger than one that is found at once are removed.

With a clique of k nodes at hand, a larger one lies in the part of the graph where every node has k neighbours (its
k-core). With weights of nodes, a node and its neighbours must be heavier than the clique at hand. That clique is kept
beside what is left, on which branch and bound is fast where the core is small.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64
from scipy import sparse

from sl_discs.instances.form import exact_sum
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reductions.presolve import Presolved, adjacency_of, part_of, unreduced

CORE = "core"
# From how many nodes a clique is grown, those with most neighbours first.
_STARTS = 50
# Seconds for each edge.
_EDGE_S = 1e-6


def core(adjacency: sparse.csr_array, weights: Float64[np.ndarray, "N"], size: float) -> Bool[np.ndarray, "N"]:
    """Returns which nodes are left when those that weigh up to `size` with their neighbours are removed in turn."""
    masses, heavy = (weights + adjacency @ weights).tolist(), weights.tolist()
    others, ends = adjacency.indices.tolist(), adjacency.indptr.tolist()
    queue = [node for node, mass in enumerate(masses) if mass <= size]
    while queue:
        node = queue.pop()
        for other in others[ends[node] : ends[node + 1]]:
            if masses[other] > size:
                masses[other] -= heavy[node]
                if masses[other] <= size:
                    queue.append(other)
    return np.array(masses) > size


def reduce_maxclique(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxclique` to its core; graphs for which that takes more than `seconds` are left as is."""
    graph = problem.source
    size = graph.num_nodes
    if graph.num_edges * _EDGE_S > seconds:
        return unreduced(problem, complete=False)
    weights = np.ones(size) if graph.node_weights is None else graph.node_weights
    adjacency = adjacency_of(graph)
    clique = _grown_clique(adjacency, weights)
    kept = np.flatnonzero(core(adjacency, weights, exact_sum(weights[clique])))
    found = np.zeros((1, size), np.int8)
    found[0, clique] = 1
    if len(kept) == size:
        return dataclasses.replace(unreduced(problem), found=found)
    left = None
    if len(kept):
        place = np.full(size, -1, np.int32)
        place[kept] = np.arange(len(kept))
        ends = place[graph.edges]
        of_nodes = None if graph.node_weights is None else weights[kept]
        source = Graph.from_arrays(graph.name, len(kept), ends[(ends >= 0).all(axis=1)], node_weights=of_nodes)
        left = part_of(problem, kept, graph_kind(problem.kind).counted(source))

    def lift(states):
        lifted = np.zeros((len(states), size), np.int8)
        lifted[:, kept] = states
        return lifted

    return Presolved(
        original=problem,
        problem=left,
        kept=kept,
        constant=0.0,
        found=found,
        removed={CORE: size - len(kept)},
        complete=True,
        _lift=lift,
    )


def _grown_clique(adjacency: sparse.csr_array, weights: Float64[np.ndarray, "N"]) -> Sequence[int]:
    """Returns a large clique: from each start, the candidate with most, or heaviest, neighbours joins."""
    near = [adjacency.indices[begin:end] for begin, end in itertools.pairwise(adjacency.indptr.tolist())]
    ranks = (np.diff(adjacency.indptr) + 1) * weights
    best: list[int] = []
    for start in np.argsort(-ranks, kind="stable")[:_STARTS]:
        clique, candidates = [start], near[start]
        while len(candidates):
            node = candidates[np.argmax(ranks[candidates])]
            clique.append(node)
            candidates = np.intersect1d(candidates, near[node], assume_unique=True)
        best = max(best, clique, key=lambda one: exact_sum(weights[one]))
    return best
