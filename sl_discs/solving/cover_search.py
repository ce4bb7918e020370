"""Smallest vertex covers by a local search with edge weights; also largest independent sets, and
cliques as those.

Once a cover of k nodes is found, one of k - 1 is looked for: a step takes a node out and puts an
end of an uncovered edge in. The node that goes leaves the least weight uncovered (of equal ones,
that which has been there longest); the edge is drawn at random; and the end that comes covers the
most weight, but not before a neighbour has moved since it went. Edges that are then uncovered gain
weight, so that the search leaves local optima by making them worse, and weights are lowered where
their mean has become large, so that old ones are forgotten.

Where covers are small changes of each other and all have conflicts around them, as in set covering
problems and near-threshold constraint satisfaction problems, this finds what annealing does not.

`greedy_state` is an answer to begin with, where even one annealing of a large graph does not fit
into the time.

Source: Cai, Su, Luo and Sattar 2013, "NuMVC: an efficient local search algorithm for minimum vertex
cover".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8, Int32, Int64, UInt32

from sl_discs.engines.cpu.jit import entered, in_long_vectors, inlined
from sl_discs.instances.graph import Graph, complement
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import LocalSearch

# Entries of `state`: numbers of uncovered edges, of nodes in the cover and in the best one, steps
# so far, the sum of all weights, and the node that came last.
_UNCOVERED, _SIZE, _BEST, _STEP, _TOTAL, _LAST = range(6)
# Added to the scores of nodes outside the cover, which do not go. All weights together stay below.
_FAR = 1 << 30
_NEVER = 1 << 62
# Nodes that are compared at once, with vector instructions.
_BLOCK = 64
# The mean weight, as a part of the number of nodes, at which weights are lowered, and to which part
# of them.
_MOST_MEAN, _KEPT = 0.5, 0.3
# Edges take some 60 bytes each.
_MOST_EDGES = 5_000_000
# Edges that are laid out in a second, of a graph as it is given and of a complement.
_LISTED_A_SECOND = 4e6
# Approximate seconds of a step, for each node and for each of the mean number of neighbours.
_STEP_S, _NODE_S, _NEIGHBOUR_S = 2e-7, 2.5e-10, 3e-9
# Steps for each node that a trial needs.
_LEAST_STEPS = 25


class Links(NamedTuple):
    """A graph of n nodes and E edges as lists of neighbours, whose entries are numbered: each edge
    has two.

    Attributes:
      starts: [n + 1] the first entry of each node.
      others: [2 E] the neighbour.
      edges: [2 E] the edge.
      entries: [E, 2] the entries of an edge: that of its end with the smaller number, and the
        other's.
    """

    starts: Int64[np.ndarray, "n+1"]
    others: UInt32[np.ndarray, "2E"]
    edges: UInt32[np.ndarray, "2E"]
    entries: UInt32[np.ndarray, "E 2"]


def links_of(graph: Graph) -> Links:
    """Returns the lists of a graph."""
    near = graph.neighbours
    entries = np.empty((graph.num_edges, 2), np.uint32)
    second = np.repeat(np.arange(graph.num_nodes), np.diff(near.starts)) > near.others
    entries[near.numbers, second.astype(np.intp)] = np.arange(2 * graph.num_edges)
    return Links(
        near.starts.astype(np.int64),
        near.others.view(np.uint32),
        near.numbers.view(np.uint32),
        entries,
    )


class Covers(NamedTuple):
    """Where a search is; P is n rounded up to blocks, with nodes that are never in the cover.

    Attributes:
      far: [P] `_FAR` of nodes outside the cover, 0 of those inside.
      scores: [P] the weight of each node's edges to nodes outside: what is uncovered if the node
        goes, or covered if it comes.
      free: [n] whether a neighbour has moved since the node went.
      moved: [n] the step in which it came or went last; different and negative before that.
      weights: [2 E] of edges, at both of their entries.
      uncovered: [E] the edges without an end in the cover come first.
      places: [E] where in this list an edge is, if it is uncovered.
      best: [n] the smallest cover so far.
      state: as above.
    """

    far: Int32[np.ndarray, "P"]
    scores: Int32[np.ndarray, "P"]
    free: Bool[np.ndarray, "n"]
    moved: Int64[np.ndarray, "n"]
    weights: Int32[np.ndarray, "2E"]
    uncovered: UInt32[np.ndarray, "E"]
    places: UInt32[np.ndarray, "E"]
    best: Bool[np.ndarray, "n"]
    state: Int64[np.ndarray, "6"]


def empty_cover(links: Links, order: Int[np.ndarray, "n"], first: Bool[np.ndarray, "n"]) -> Covers:
    """Begins with no node in the cover; the first step puts in those of a first cover. Nodes with
    equal scores come in this order, a permutation.
    """
    size = len(links.starts) - 1
    count = len(links.entries)
    padded = -(-size // _BLOCK) * _BLOCK
    return Covers(
        far=np.full(padded, _FAR, np.int32),
        scores=np.pad(np.diff(links.starts), (0, padded - size)).astype(np.int32),
        free=np.ones(size, np.bool_),
        moved=order.astype(np.int64) - size,
        weights=np.ones(2 * count, np.int32),
        uncovered=np.arange(count, dtype=np.uint32),
        places=np.arange(count, dtype=np.uint32),
        best=first.copy(),
        state=np.array([count, 0, size, 0, count, -1], np.int64),
    )


@inlined
def _lightest(covers):
    """Returns the node of the cover that uncovers the least weight if it goes; of equal ones the
    oldest.
    """
    scores = covers.scores
    far = covers.far
    moved = covers.moved
    least = np.int32(2 * _FAR - 1)
    for node in range(scores.shape[0]):
        least = min(least, np.int32(scores[node] + far[node]))
    lightest = -1
    oldest = _NEVER
    for block in range(scores.shape[0] // _BLOCK):
        equal = 0
        for node in range(block * _BLOCK, block * _BLOCK + _BLOCK):
            equal += np.int32(scores[node] + far[node]) == least
        if equal:
            for node in range(block * _BLOCK, block * _BLOCK + _BLOCK):
                if np.int32(scores[node] + far[node]) == least and moved[node] < oldest:
                    lightest = node
                    oldest = moved[node]
    return lightest


@inlined
def _remove(links, covers, node):
    covers.far[node] = _FAR
    covers.free[node] = False
    covers.moved[node] = covers.state[_STEP]
    covers.state[_SIZE] -= 1
    for k in range(links.starts[node], links.starts[node + 1]):
        neighbour = links.others[k]
        covers.scores[neighbour] += covers.weights[k]
        covers.free[neighbour] = True
        if covers.far[neighbour]:
            edge = links.edges[k]
            position = covers.state[_UNCOVERED]
            covers.uncovered[position] = edge
            covers.places[edge] = position
            covers.state[_UNCOVERED] += 1


@inlined
def _add(links, covers, node):
    covers.far[node] = 0
    covers.moved[node] = covers.state[_STEP]
    covers.state[_SIZE] += 1
    covers.state[_LAST] = node
    for k in range(links.starts[node], links.starts[node + 1]):
        neighbour = links.others[k]
        covers.scores[neighbour] -= covers.weights[k]
        covers.free[neighbour] = True
        if covers.far[neighbour]:
            covers.state[_UNCOVERED] -= 1
            last = covers.uncovered[covers.state[_UNCOVERED]]
            position = covers.places[links.edges[k]]
            covers.uncovered[position] = last
            covers.places[last] = position


@inlined
def _weigh(links, covers):
    """Adds weight to uncovered edges."""
    for position in range(covers.state[_UNCOVERED]):
        edge = covers.uncovered[position]
        for side in range(2):
            entry = links.entries[edge, side]
            covers.weights[entry] += 1
            covers.scores[links.others[entry]] += 1
    covers.state[_TOTAL] += covers.state[_UNCOVERED]


@inlined
def _forget(links, covers):
    """Lowers all weights."""
    total = 0
    for node in range(covers.moved.shape[0]):
        score = 0
        for k in range(links.starts[node], links.starts[node + 1]):
            covers.weights[k] = np.int32(_KEPT * covers.weights[k])
            total += covers.weights[k]
            if covers.far[links.others[k]]:
                score += covers.weights[k]
        covers.scores[node] = score
    covers.state[_TOTAL] = total // 2


@entered
def play(links, covers, draws):
    """Makes a step for each of the numbers drawn uniformly from [0, 1), [S]; returns how many it
    made.

    The first step begins with the first cover. A search with nothing left to do makes fewer
    steps.
    """
    in_long_vectors()
    state = covers.state
    far = covers.far
    scores = covers.scores
    moved = covers.moved
    most = min(_MOST_MEAN * moved.shape[0] * links.entries.shape[0], _FAR - 1)
    if state[_SIZE] == 0:
        for node in range(moved.shape[0]):
            if covers.best[node]:
                _add(links, covers, node)
    for done in range(draws.shape[0]):
        state[_STEP] += 1
        while state[_UNCOVERED] == 0:
            state[_BEST] = state[_SIZE]
            for node in range(moved.shape[0]):
                covers.best[node] = far[node] == 0
            # No edge can be covered by fewer nodes.
            if state[_SIZE] <= 1:
                return done
            _remove(links, covers, _lightest(covers))
        last = state[_LAST]
        before = far[last]
        barred = state[_SIZE] > 1
        if barred:
            far[last] = _FAR
        node = _lightest(covers)
        far[last] = before
        _remove(links, covers, node)
        edge = covers.uncovered[np.int64(draws[done] * state[_UNCOVERED])]
        second = links.others[links.entries[edge, 0]]
        first = links.others[links.entries[edge, 1]]
        chosen = first
        if not covers.free[first]:
            chosen = second
        elif covers.free[second]:
            better = np.int64(scores[second]) - scores[first]
            if better > 0 or (better == 0 and moved[second] < moved[first]):
                chosen = second
        _add(links, covers, chosen)
        _weigh(links, covers)
        if state[_TOTAL] > most:
            _forget(links, covers)
    return draws.shape[0]


class CoverSearch(LocalSearch):
    """Searches that differ in their random numbers and share the graph."""

    by = "a local search on vertex covers with edge weights"

    def __init__(self, presolved: Presolved, seed: int, walks: int):
        super().__init__(presolved, seed, walks)
        problem = presolved.left
        graph = problem.source
        if graph_kind(problem.kind).joined:
            graph = complement(graph)
        # Whether ones are the nodes of the cover, and not those of the independent set.
        self._covers = not problem.maximise
        self._links = links_of(graph)
        self.step_s = (
            _STEP_S
            + _NODE_S * graph.num_nodes
            + _NEIGHBOUR_S * 2 * graph.num_edges / graph.num_nodes
        )
        first = ~greedy_set(graph)
        self._searches = [
            empty_cover(self._links, draws.permutation(graph.num_nodes), first)
            for draws in self._draws
        ]

    @property
    def state(self) -> Int8[np.ndarray, "n"]:
        best = min(self._searches, key=lambda search: search.state[_BEST]).best
        return (best == self._covers).astype(np.int8)

    def walk(self, index: int, draws: Float64[np.ndarray, "S"]) -> int:
        return play(self._links, self._searches[index], draws)


def cover_search(presolved: Presolved, seed: int, seconds: float, walks: int) -> CoverSearch | None:
    """Returns a search of a problem of sets, covers or cliques.

    None if its graph has weights or no edges, or is too large for a trial of `seconds`.
    """
    problem = presolved.left
    graph = problem.source
    if graph.node_weights is not None:
        return None
    size = graph.num_nodes
    count = graph.num_edges
    if graph_kind(problem.kind).joined:
        count = size * (size - 1) // 2 - count
    if count > min(_MOST_EDGES, seconds * _LISTED_A_SECOND):
        return None
    search = CoverSearch(presolved, seed, walks)
    return search if seconds >= _LEAST_STEPS * size * search.step_s else None


@entered
def _choose(starts, neighbours, degrees, heads, nodes, after, chosen):
    """Chooses a node with the fewest neighbours that are left, removes these, and so on; a removed
    one has degree -1.

    Each time a node's degree changes it is put into the list of that degree, from `heads` along
    `after`, whose end is -1. Entries of earlier degrees are skipped.
    """
    count = 0
    for node in range(degrees.shape[0]):
        nodes[count] = node
        after[count] = heads[degrees[node]]
        heads[degrees[node]] = count
        count += 1
    least = 0
    while least < heads.shape[0]:
        entry = heads[least]
        if entry < 0:
            least += 1
            continue
        heads[least] = after[entry]
        node = nodes[entry]
        if degrees[node] != least:
            continue
        chosen[node], degrees[node] = True, -1
        # All go before degrees are lowered, so that none is lowered that goes.
        for k in range(starts[node], starts[node + 1]):
            if degrees[neighbours[k]] >= 0:
                degrees[neighbours[k]] = -2
        for k in range(starts[node], starts[node + 1]):
            neighbour = neighbours[k]
            if degrees[neighbour] == -2:
                degrees[neighbour] = -1
                for further in range(starts[neighbour], starts[neighbour + 1]):
                    near = neighbours[further]
                    if degrees[near] >= 0:
                        degrees[near] -= 1
                        nodes[count] = near
                        after[count] = heads[degrees[near]]
                        heads[degrees[near]] = count
                        count += 1
                        least = min(least, degrees[near])


@entered
def _choose_in_order(starts, neighbours, order, chosen):
    """Chooses each node of an order that is joined to none of those before."""
    for node in order:
        free = True
        for entry in range(starts[node], starts[node + 1]):
            free &= not chosen[neighbours[entry]]
        chosen[node] = free


def greedy_set(graph: Graph) -> Bool[np.ndarray, "n"]:
    """Returns an independent set: of nodes of the least degrees left, or with weights of those that
    weigh most for each node that they exclude.

    Source: Halldorsson and Radhakrishnan 1997, "Greed is good: approximating independent sets in
    sparse and bounded-degree graphs".
    """
    near = graph.neighbours
    size = graph.num_nodes
    degrees = np.diff(near.starts).astype(np.int64)
    chosen = np.zeros(size, np.bool_)
    if graph.node_weights is None:
        heads = np.full(degrees.max(initial=0) + 1, -1)
        nodes, after = np.empty((2, size + len(near.others)), np.int64)
        _choose(near.starts, near.others, degrees, heads, nodes, after, chosen)
    else:
        order = np.argsort(-graph.node_weights / (degrees + 1), kind="stable")
        _choose_in_order(near.starts, near.others, order, chosen)
    return chosen


def greedy_state(problem: Problem[Graph]) -> Int8[np.ndarray, "1 n"]:
    """Returns an answer to a problem of sets or covers, by a greedy set."""
    return (greedy_set(problem.source) == problem.maximise).astype(np.int8)[None]
