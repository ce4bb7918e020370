"""Maximum cliques: nodes that are in no clique larger than one that is found at once are removed.

With a clique of k nodes at hand, a larger one lies in the part of the graph where every node has k neighbours (its
k-core), every edge is in k - 1 triangles, and the neighbours of every node need k colours. The clique at hand is kept
beside what is left.

Source: Rossi, Gleich, Gebremedhin, "Parallel maximum clique algorithms with applications to network analysis", 2015.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse

from sl_discs.engines.cpu.jit import entered
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import Presolved, part_of, unreduced

# Cliques in small graphs, with sets of nodes as the bits of Python's integers.

# Passes over all nodes, of which the first few find most.
_MOST_PASSES = 10
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


def grow(near: list[int], node: int) -> list[int]:
    """A maximal clique with this node: always the candidate with most neighbours among the candidates joins."""
    clique, candidates = [node], near[node]
    while candidates:
        node = max(members(candidates), key=lambda one: (near[one] & candidates).bit_count())
        clique.append(node)
        candidates &= near[node]
    return clique


def in_larger(near: list[int], size: int) -> tuple[int, collections.Counter[str], bool]:
    """The nodes that may be in a clique larger than `size`, how many others each rule removed, and whether it ended.

    `near` loses the edges that are in none.
    """
    left, removed = (1 << len(near)) - 1, collections.Counter[str]()
    for _ in range(_MOST_PASSES):
        before = list(near)
        for node in members(left):
            near[node] &= left
            for other in members(near[node]):
                if (near[node] & near[other]).bit_count() < size - 1:
                    near[node] ^= 1 << other
                    near[other] &= ~(1 << node)
            few = near[node].bit_count() < size
            if few or not _needs_colours(near, near[node], size):
                left ^= 1 << node
                near[node] = 0
                removed[TRIANGLES if few else COLOURS] += 1
        if near == before:
            return left, removed, True
    return left, removed, not left


def _needs_colours(near: list[int], nodes: int, number: int) -> bool:
    """Whether a greedy colouring of some nodes needs at least so many colours."""
    while nodes and number > 0:
        same = nodes
        while same:
            lowest = same & -same
            nodes ^= lowest
            same &= ~(near[lowest.bit_length() - 1] | lowest)
        number -= 1
    return number <= 0


# The part of a graph in which every node has many neighbours.


def core(adjacency: sparse.csr_matrix, least: int) -> Bool[np.ndarray, "N"]:
    """Which nodes [N] are left when nodes with fewer than `least` neighbours are removed until there is none."""
    degrees = np.diff(adjacency.indptr)
    _peel(adjacency.indptr, adjacency.indices, degrees, np.empty_like(degrees), least)
    return degrees >= least


@entered
def _peel(starts, others, degrees, queue, least):
    """Lowers degrees to those in the core; those outside come out below `least`."""
    length = 0
    for node in range(degrees.shape[0]):
        if degrees[node] < least:
            queue[length] = node
            length += 1
    begin = 0
    while begin < length:
        node = queue[begin]
        begin += 1
        for k in range(starts[node], starts[node + 1]):
            other = others[k]
            if degrees[other] >= least:
                degrees[other] -= 1
                if degrees[other] < least:
                    queue[length] = other
                    length += 1


# From how many nodes a clique is grown, those with most neighbours first.
_STARTS = 50
# Above these, rules other than the core would take over a second.
_MOST_NODES, _MOST_EDGES = 5_000, 200_000


def reduce_maxclique(problem: Problem[Graph]) -> Presolved:
    """Reduces a problem `maxclique`."""
    graph = problem.source
    size = graph.num_nodes
    adjacency = _adjacency(size, graph.edges)
    clique = _grown_clique(adjacency)
    kept = np.flatnonzero(core(adjacency, len(clique)))
    removed = {"core": size - len(kept)}
    edges = _inside(size, graph.edges, kept)
    complete = len(kept) <= _MOST_NODES and len(edges) <= _MOST_EDGES
    if complete and len(kept):
        near = neighbour_sets(len(kept), edges)
        starts = sorted(range(len(kept)), key=lambda node: -near[node].bit_count())[:_STARTS]
        grown = max((grow(near, node) for node in starts), key=len)
        if len(grown) > len(clique):
            clique = kept[grown]
        left, others, complete = in_larger(near, len(clique))
        removed |= others
        kept = kept[list(members(left))]
        edges = _inside(size, graph.edges, kept)
    found = np.zeros((1, size), np.int8)
    found[0, clique] = 1
    if len(kept) == size:
        return dataclasses.replace(unreduced(problem, complete), found=found)
    left_over = None
    if len(kept):
        left_over = part_of(problem, kept, Graph.from_arrays(graph.name, len(kept), edges))

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
        constant=0.0 if left_over else float(len(clique)),
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


def _grown_clique(adjacency: sparse.csr_matrix) -> Int[np.ndarray, "k"]:
    """A large clique: from each start, always the candidate with most neighbours joins."""
    starts, others = adjacency.indptr, adjacency.indices
    degrees = np.diff(starts)
    best: list[int] = []
    for node in np.argsort(-degrees, kind="stable")[:_STARTS]:
        clique, candidates = [node], others[starts[node] : starts[node + 1]]
        while len(candidates):
            node = candidates[np.argmax(degrees[candidates])]
            clique.append(node)
            candidates = np.intersect1d(candidates, others[starts[node] : starts[node + 1]], assume_unique=True)
        best = max(best, clique, key=len)
    return np.array(best)
