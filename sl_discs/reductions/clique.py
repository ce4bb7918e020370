"""Maximum cliques: nodes that are in no clique larger than one that is found at once are removed.

With a clique of k nodes at hand, a larger one lies in the part of the graph where every node has k neighbours (its
k-core), every edge is in k - 1 triangles, and the neighbours of every node need k colours. With weights of nodes, a
node and its neighbours must be heavier than the clique at hand, also if only the heaviest neighbour of each colour
counts, and so must the ends of an edge with the nodes joined to both, if each of those is as heavy as the heaviest.
The clique at hand is kept beside what is left.

Source: Rossi, Gleich, Gebremedhin, "Parallel maximum clique algorithms with applications to network analysis", 2015.
"""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int
from scipy import sparse

from sl_discs.engines.cpu.jit import entered
from sl_discs.instances.form import exact_sum
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reductions.presolve import Presolved, ends_at, part_of, unreduced

# Cliques in small graphs, with sets of nodes as the bits of Python's integers.

# Passes over all nodes, of which the first few find most, and seconds for each edge that one looks at.
_MOST_PASSES, _LOOK_S = 10, 5e-7
TRIANGLES, COLOURS = "triangles", "colours"


def neighbour_sets(size: int, edges: Int[np.ndarray, "E 2"]) -> list[int]:
    """The neighbours of each node."""
    near = [0] * size
    for u, v in edges.tolist():
        near[u] |= 1 << v
        near[v] |= 1 << u
    return near


def members(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def grow(near: list[int], node: int, weights: Sequence[float]) -> list[int]:
    """A maximal clique with this node: always the candidate with most neighbours among the candidates joins.

    With weights, it is the one with most if its neighbours were as heavy as it is.
    """
    clique, candidates = [node], near[node]
    while candidates:
        node = max(members(candidates), key=lambda one: ((near[one] & candidates).bit_count() + 1) * weights[one])
        clique.append(node)
        candidates &= near[node]
    return clique


def in_larger(
    near: list[int], weights: Sequence[float], size: float, seconds: float
) -> tuple[int, collections.Counter[str], bool]:
    """The nodes that may be in a clique larger than `size`, how many others each rule removed, and whether it ended.

    `near` loses the edges that are in none. Weights do not rise from node to node. Work is for about `seconds`.
    """
    end = ends_at(seconds)
    left, removed, looks = (1 << len(near)) - 1, collections.Counter[str](), 0
    heaviest = weights[0]
    for _ in range(_MOST_PASSES):
        before = list(near)
        for node in members(left):
            near[node] &= left
            looks += near[node].bit_count()
            if looks * _LOOK_S > seconds or time.perf_counter() >= end:
                return left, removed, False
            for other in members(near[node]):
                if (near[node] & near[other]).bit_count() * heaviest + weights[node] + weights[other] <= size:
                    near[node] ^= 1 << other
                    near[other] &= ~(1 << node)
            few = near[node].bit_count() * heaviest + weights[node] <= size
            if few or _colours(near, near[node], weights, size - weights[node]) + weights[node] <= size:
                left ^= 1 << node
                near[node] = 0
                removed[TRIANGLES if few else COLOURS] += 1
        if near == before:
            return left, removed, True
    return left, removed, not left


def _colours(near: list[int], nodes: int, weights: Sequence[float], most: float) -> float:
    """The weight of the first, and heaviest, nodes of all colours of some nodes, or a number above `most`."""
    needed = 0.0
    while nodes and needed <= most:
        same = nodes
        needed += weights[(nodes & -nodes).bit_length() - 1]
        while same:
            lowest = same & -same
            nodes ^= lowest
            same &= ~(near[lowest.bit_length() - 1] | lowest)
    return needed


# The part of a graph in which every node has many neighbours, or heavy ones.


def core(adjacency: sparse.csr_matrix, weights: Float64[np.ndarray, "N"], size: float) -> Bool[np.ndarray, "N"]:
    """Which nodes [N] are left when those that weigh up to `size` with their neighbours are removed in turn."""
    masses = weights + adjacency @ weights
    _peel(adjacency.indptr, adjacency.indices, masses, weights, np.empty(len(masses), np.int64), size)
    return masses > size


@entered
def _peel(starts, others, masses, weights, queue, size):
    """Lowers masses to those in the core; those outside come out as `size` or less."""
    length = 0
    for node in range(masses.shape[0]):
        if masses[node] <= size:
            queue[length] = node
            length += 1
    begin = 0
    while begin < length:
        node = queue[begin]
        begin += 1
        for k in range(starts[node], starts[node + 1]):
            other = others[k]
            if masses[other] > size:
                masses[other] -= weights[node]
                if masses[other] <= size:
                    queue[length] = other
                    length += 1


# From how many nodes a clique is grown, those with most neighbours first.
_STARTS = 50
# Above these, rules other than the core would take over a second; seconds for each edge to prepare them.
_MOST_NODES, _MOST_EDGES, _EDGE_S = 5_000, 200_000, 1.5e-6


def reduce_maxclique(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxclique`; only to its core, which takes little time, where more would take too long."""
    graph = problem.source
    size = graph.num_nodes
    weights = np.ones(size) if graph.node_weights is None else graph.node_weights
    adjacency = _adjacency(size, graph.edges)
    clique = _grown_clique(adjacency, weights)
    kept = np.flatnonzero(core(adjacency, weights, _weight(weights, clique)))
    removed = {"core": size - len(kept)}
    edges = _inside(size, graph.edges, kept)
    seconds -= len(edges) * _EDGE_S
    complete = len(kept) <= _MOST_NODES and len(edges) <= _MOST_EDGES and seconds > 0
    if complete and len(kept):
        order = np.argsort(-weights[kept], kind="stable")
        place = np.argsort(order)
        near = neighbour_sets(len(kept), place[edges])
        ordered = kept[order]
        heavy = weights[ordered].tolist()
        starts = sorted(range(len(kept)), key=lambda node: -(near[node].bit_count() + 1) * heavy[node])[:_STARTS]
        grown = [ordered[grow(near, node, heavy)] for node in starts]
        clique = max([clique, *grown], key=lambda one: _weight(weights, one))
        left, others, complete = in_larger(near, heavy, _weight(weights, clique), seconds)
        removed |= others
        kept = np.sort(ordered[list(members(left))])
        edges = _inside(size, graph.edges, kept)
    found = np.zeros((1, size), np.int8)
    found[0, clique] = 1
    if len(kept) == size:
        return dataclasses.replace(unreduced(problem, complete), found=found)
    left_over = None
    if len(kept):
        of_nodes = None if graph.node_weights is None else weights[kept]
        source = Graph.from_arrays(graph.name, len(kept), edges, node_weights=of_nodes)
        left_over = part_of(problem, kept, graph_kind(problem.kind).counted(source))

    def lift(states):
        if left_over is None:
            return np.repeat(found, len(states), axis=0)
        lifted = np.zeros((len(states), size), np.int8)
        lifted[:, kept] = states
        return lifted

    return Presolved(
        original=problem,
        problem=left_over,
        kept=kept,
        constant=0.0 if left_over else _weight(weights, clique),
        found=found,
        removed={rule: count for rule, count in removed.items() if count},
        complete=complete,
        _lift=lift,
    )


def _adjacency(size: int, edges: Int[np.ndarray, "E 2"]) -> sparse.csr_matrix:
    heads, tails = np.concatenate([edges, edges[:, ::-1]]).T
    return sparse.csr_matrix((np.ones(len(heads), np.int8), (heads, tails)), (size, size))


def _inside(size: int, edges: Int[np.ndarray, "E 2"], kept: Int[np.ndarray, "n"]) -> Int[np.ndarray, "M 2"]:
    """The edges between some nodes, which are numbered in their order."""
    place = np.full(size, -1, np.int32)
    place[kept] = np.arange(len(kept))
    ends = place[edges]
    return ends[(ends >= 0).all(axis=1)]


def _weight(weights: Float64[np.ndarray, "N"], nodes: Sequence[int] | Int[np.ndarray, "k"]) -> float:
    return exact_sum(weights[nodes])


def _grown_clique(adjacency: sparse.csr_matrix, weights: Float64[np.ndarray, "N"]) -> Int[np.ndarray, "k"]:
    """A large clique: from each start, always the candidate with most, or heaviest, neighbours joins."""
    starts, others = adjacency.indptr, adjacency.indices
    ranks = (np.diff(starts) + 1) * weights
    best: list[int] = []
    for node in np.argsort(-ranks, kind="stable")[:_STARTS]:
        clique, candidates = [node], others[starts[node] : starts[node + 1]]
        while len(candidates):
            node = candidates[np.argmax(ranks[candidates])]
            clique.append(node)
            candidates = np.intersect1d(candidates, others[starts[node] : starts[node + 1]], assume_unique=True)
        best = max(best, clique, key=lambda one: _weight(weights, one))
    return np.array(best, np.intp)
