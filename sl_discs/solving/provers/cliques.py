"""Heaviest cliques by branch and bound on sets of bits, and independent sets as cliques of the
complement.

A node of the search tree has a clique and its candidates, which are joined to all of it. The
candidates are covered by independent sets, each with a number: the numbers of the sets that a node
is in add up to its weight. A clique has one node of each set at most, so it weighs no more than all
numbers together. Sets are made one after another of nodes whose weight is not used up, each with
the least weight that is left to one of its nodes. Candidates that are used up by the first sets, as
long as the clique with them would not be heavier than the best one, need not be tried. With weights
of 1 the sets are the classes of a greedy colouring.

Sources: Babel 1994, "A fast algorithm for the maximum weight clique problem"; San Segundo,
Rodriguez-Losada and Jimenez 2011, "An exact bit-parallel algorithm for the maximum clique problem";
Tavares, Campelo Neto, Rodrigues and Michelon 2015, "Um algoritmo de branch and bound para o
problema da clique maxima ponderada".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int, Int32, Int64, UInt64
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sl_discs.engines.cpu.jit import called, entered, inlined
from sl_discs.instances.graph import component_of
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import TURN, SetProver, Worker

_ONE = np.uint64(1)


def _bits_of(sets: Bool[np.ndarray, "K n"]) -> UInt64[np.ndarray, "K W"]:
    """Returns sets of n nodes in words of 64 bits."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // 64) * 64), np.bool_)
    padded[:, : sets.shape[1]] = sets
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


@intrinsic
def _lowest(typing_context, word):
    """Returns the place of the lowest bit of a word that is not 0."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@inlined
def _drop(bits, node):
    """Takes a node out of a set."""
    bits[node >> 6] &= ~(_ONE << np.uint64(node & 63))


@entered
def _sort(adjacency, degrees, order):
    """Puts nodes in order: the last one has the least degree, the one before it in what is left,
    and so on.
    """
    size = degrees.shape[0]
    for k in range(size - 1, -1, -1):
        node = 0
        for neighbour in range(size):
            if degrees[neighbour] < degrees[node]:
                node = neighbour
        order[k] = node
        for neighbour in range(size):
            degrees[neighbour] -= adjacency[node, neighbour]
        degrees[node] = 2 * size


# Entries of `state`: the depth in the tree (-1: the search is over), how many nodes the best clique
# has that was found, words of bits that were looked at, and the number of candidates at depth 0.
_DEPTH, _FOUND, _LOOKS, _LISTED = range(4)
_NOT_COVERED = -2


class Tree(NamedTuple):
    """A search on n nodes with W words of bits, which can be interrupted; depth d has a clique of d
    nodes.

    Attributes:
      adjacent: [n, W] the neighbours of each node.
      weights: [n] of nodes, above 0; 1 where there are none.
      candidates: [D, W] of each depth.
      listed: [D, n] candidates to be tried, from the last to the first.
      bounds: [D, n] of cliques of the candidates up to this one: the numbers of their sets.
      last: [D] the place of the next one to be tried; -1: there is none.
      chosen: [D] the clique.
      totals: [D] its weight up to each depth.
      found: [n] the best clique found.
      best: [1] the largest weight known.
      sets: [2, W] working memory: nodes whose weight is not used up, and those that fit the present
        set.
      members: [n] working memory: the nodes of that set.
      rest: [n] working memory: the weight that is not used up.
      state: as above.
    """

    adjacent: UInt64[np.ndarray, "n W"]
    weights: Float64[np.ndarray, "n"]
    candidates: UInt64[np.ndarray, "D W"]
    listed: Int32[np.ndarray, "D n"]
    bounds: Float64[np.ndarray, "D n"]
    last: Int32[np.ndarray, "D"]
    chosen: Int32[np.ndarray, "D"]
    totals: Float64[np.ndarray, "D"]
    found: Int32[np.ndarray, "n"]
    best: Float64[np.ndarray, "1"]
    sets: UInt64[np.ndarray, "2 W"]
    members: Int64[np.ndarray, "n"]
    rest: Float64[np.ndarray, "n"]
    state: Int64[np.ndarray, "4"]


@called
def _cover(tree, depth):
    """Lists the candidates that must be tried, with their bounds; returns how many there are."""
    left = tree.sets[0]
    fitting = tree.sets[1]
    rest = tree.rest
    members = tree.members
    num_words = left.shape[0]
    most = tree.best[0] - tree.totals[depth]
    for k in range(num_words):
        word = left[k] = tree.candidates[depth, k]
        while word:
            node = (k << 6) + np.int64(_lowest(word))
            word &= word - _ONE
            rest[node] = tree.weights[node]
    bound, count, begin = 0.0, 0, 0
    while True:
        while begin < num_words and not left[begin]:
            begin += 1
        if begin == num_words:
            return count
        for k in range(begin, num_words):
            fitting[k] = left[k]
        size = 0
        least = np.inf
        for k in range(begin, num_words):
            while fitting[k]:
                node = (k << 6) + np.int64(_lowest(fitting[k]))
                _drop(fitting, node)
                for j in range(k, num_words):
                    fitting[j] &= ~tree.adjacent[node, j]
                members[size] = node
                size += 1
                least = min(least, rest[node])
                tree.state[_LOOKS] += num_words
        bound += least
        for index in range(size):
            node = members[index]
            rest[node] -= least
            if rest[node] == 0:
                _drop(left, node)
                if bound > most:
                    tree.listed[depth, count] = node
                    tree.bounds[depth, count] = bound
                    count += 1


@entered
def _search(tree, most_looks, deepest):
    """Searches until about `most_looks` words were read, or the search is over.

    True where it stops with the candidates of a clique of `deepest` nodes, which are left to the
    caller.
    """
    state = tree.state
    num_words = tree.sets.shape[1]
    while state[_DEPTH] >= 0 and state[_LOOKS] < most_looks:
        depth = state[_DEPTH]
        if tree.last[depth] == _NOT_COVERED:
            count = _cover(tree, depth)
            tree.last[depth] = count - 1
            if depth == 0:
                state[_LISTED] = count
        position = tree.last[depth]
        if position < 0 or tree.totals[depth] + tree.bounds[depth, position] <= tree.best[0]:
            state[_DEPTH] -= 1
            continue
        node = tree.listed[depth, position]
        tree.last[depth] -= 1
        tree.chosen[depth] = node
        _drop(tree.candidates[depth], node)
        total = tree.totals[depth + 1] = tree.totals[depth] + tree.weights[node]
        if total > tree.best[0]:
            tree.best[0] = total
            state[_FOUND] = depth + 1
            for k in range(depth + 1):
                tree.found[k] = tree.chosen[k]
        some = False
        for k in range(num_words):
            tree.candidates[depth + 1, k] = tree.candidates[depth, k] & tree.adjacent[node, k]
            some |= tree.candidates[depth + 1, k] != 0
        state[_LOOKS] += num_words
        if some and depth + 1 == deepest:
            return True
        if some:
            tree.last[depth + 1] = _NOT_COVERED
            state[_DEPTH] += 1
    return False


class _Level:
    """A tree of the cliques of some nodes of a graph that are heavier than `best`, in the order of
    degeneracy.

    Attributes:
      nodes: [n] their names in the level above.
      adjacency: [n, n] of these nodes.
      sorts: whether candidates of single nodes are worth a level.
      tree: the search.
    """

    def __init__(
        self,
        nodes: Int[np.ndarray, "n"],
        adjacency: Bool[np.ndarray, "N N"],
        weights: Float64[np.ndarray, "N"],
        best: float,
    ):
        inside = adjacency[nodes][:, nodes]
        order = np.empty(len(nodes), np.int64)
        _sort(np.ascontiguousarray(inside), inside.sum(axis=1), order)
        self.nodes = nodes[order]
        self.adjacency = inside[order][:, order]
        size = len(nodes)
        self.sorts = size > _WORTH and self.adjacency.mean() > _DENSE
        depth = int(inside.sum(axis=1).max(initial=0)) + 2
        bits = _bits_of(self.adjacency)
        num_words = bits.shape[1]
        self.tree = Tree(
            adjacent=bits,
            weights=weights[self.nodes],
            candidates=np.zeros((depth, num_words), np.uint64),
            listed=np.zeros((depth, size), np.int32),
            bounds=np.zeros((depth, size)),
            last=np.zeros(depth, np.int32),
            chosen=np.zeros(depth, np.int32),
            totals=np.zeros(depth),
            found=np.zeros(size, np.int32),
            best=np.array([best], np.float64),
            sets=np.zeros((2, num_words), np.uint64),
            members=np.zeros(size, np.int64),
            rest=np.zeros(size),
            state=np.zeros(4, np.int64),
        )
        self.tree.candidates[0] = _bits_of(np.ones((1, size), np.bool_))[0]
        self.tree.last[0] = _NOT_COVERED

    def done(self) -> float:
        """Returns about which part of the candidates was tried, without the one that is."""
        count = self.tree.state[_LISTED]
        left = self.tree.last[0] + 2
        return max(0.0, 1 - left / count) if count else 0.0


# Levels of the search at which the candidates are ordered anew; the least number of nodes, and the
# least part of their pairs that is joined, with which that is worth it. Sets in G(200, .1)
# then take 13 to 17 s instead of 22 to 25, where cliques in G(300, .5) would take .4 s and not .03.
_LEVELS, _WORTH, _DENSE = 2, 128, 0.75


class CliqueSearch:
    """A largest, or heaviest, clique of a graph by branch and bound, in slices; up to rounding of
    weights.

    Attributes:
      best: size or weight of the best clique known, which may have been told.
      found: [k] its nodes, if it was found here.
      over: whether no clique is better.
    """

    def __init__(self, adjacency: Bool[np.ndarray, "n n"], weights: Float64[np.ndarray, "n"]):
        self._adjacency = adjacency
        self._weights = weights
        self.best = 0.0
        self.found = np.empty(0, np.int64)
        self.over = False
        self._begin()

    def _begin(self) -> None:
        # Nodes of weight 0 are of no use.
        self._levels = [
            _Level(np.flatnonzero(self._weights > 0), self._adjacency, self._weights, self.best)
        ]

    def raise_best(self, size: float) -> None:
        """Takes into account that there is a clique of this size or weight."""
        if size > self.best and not self.over:
            # Fewer candidates have to be tried from the top on.
            self.best = float(size)
            self._begin()

    def advance(self, looks: int) -> None:
        """Searches until about `looks` more words of bits were read."""
        while looks > 0 and self._levels:
            depth = len(self._levels) - 1
            deepest = self._levels[-1]
            adjacency = deepest.adjacency
            tree = deepest.tree
            # A clique of this level has a node of each level above as well.
            above = sum(float(level.tree.totals[1]) for level in self._levels[:-1])
            tree.best[0] = max(tree.best[0], self.best - above)
            before = tree.state[_LOOKS]
            best = tree.best[0]
            sorts = depth < _LEVELS and deepest.sorts
            further = _search(tree, before + looks, int(sorts))
            looks -= int(tree.state[_LOOKS] - before)
            if tree.best[0] > best:
                self.best = float(tree.best[0]) + above
                # The names of its nodes in the graph, with those that were chosen above.
                self.found = deepest.nodes[tree.found[: tree.state[_FOUND]]]
                for level in reversed(self._levels[:-1]):
                    self.found = level.nodes[np.append(self.found, level.tree.chosen[0])]
            if further:
                looks -= len(adjacency) ** 2 // 8
                candidates = np.unpackbits(tree.candidates[1].view(np.uint8), bitorder="little")
                rest = max(float(tree.best[0] - tree.totals[1]), 0.0)
                self._levels.append(
                    _Level(np.flatnonzero(candidates), adjacency, tree.weights, rest)
                )
            elif tree.state[_DEPTH] < 0:
                self._levels.pop()
        self.over = not self._levels

    def done(self) -> float:
        """Returns about which part of the tree was searched: of the candidates at the top, of those
        below, etc.
        """
        done, part = 0.0, 1.0
        for level in self._levels[: _LEVELS + 1]:
            done += part * level.done()
            part /= max(int(level.tree.state[_LISTED]), 1)
        return done


# Words of bits that a core looks at in a second, and the most nodes.
_WORDS_A_SECOND = 1e9
# Nominal seconds with the best size known, after which the part that was searched tells how long
# the rest takes.
_MEASURED = 0.3
_MOST_NODES = 2_000
# Nominal seconds for each pair of nodes until the search begins, and of a slice, which is all that
# turns may lose, and enough to lay out a small component.
_PAIR_S = 1e-8
_SLICE_S = 0.02 * TURN


class Cliques(SetProver):
    """The heaviest cliques of a graph, or of its complement, whose cliques are independent sets: of
    each component, one after another.
    """

    by = "branch and bound"

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        graph = self.problem.source
        size = graph.num_nodes
        # A clique is in one component.
        self.component = np.zeros(size, np.int32)
        if not self.cliques:
            self.component = component_of(size, graph.edges)

    def _run(self) -> Iterator[float]:
        graph = self.problem.source
        joined = graph.neighbours.matrix(np.ones(graph.num_edges, np.bool_))
        ends = np.cumsum(np.bincount(self.component))
        order = np.argsort(self.component, kind="stable")
        components = sorted(np.split(order, ends[:-1]), key=len)
        # A bound on the weight in the other components, and the nodes found there.
        others = self.total
        found = np.empty(0, np.int64)
        for nodes in components:
            yield len(nodes) ** 2 * _PAIR_S
            adjacency = joined[nodes][:, nodes].toarray() == self.cliques
            np.fill_diagonal(adjacency, False)
            weights = self.weights[nodes]
            others -= float(weights.sum())
            search = CliqueSearch(adjacency, weights)
            # The best weight, and the work and the part that was searched since when it is known.
            known, worked, done = 0.0, 0.0, 0.0
            while not search.over:
                yield _SLICE_S
                if np.isfinite(self.best):
                    search.raise_best(self.weight_of(self.best) - others)
                if search.best > known:
                    known = search.best
                    worked = 0.0
                    done = search.done()
                search.advance(int(_SLICE_S * _WORDS_A_SECOND))
                worked += _SLICE_S
                if search.best > known and nodes is components[-1]:
                    self.take_nodes(np.append(found, nodes[search.found]))
                elif worked > _MEASURED:
                    self.expected = worked * (1 - search.done()) / max(search.done() - done, 1e-9)
            others += search.best
            found = np.append(found, nodes[search.found])
        self.take_bound(others)


def clique_prover(presolved: Presolved) -> Worker | str:
    """Returns a prover of heaviest sets or cliques, or why there is none."""
    prover = Cliques(presolved)
    if np.bincount(prover.component).max() > _MOST_NODES:
        return f"{Cliques.by} is for up to {_MOST_NODES:,} nodes"
    return prover
