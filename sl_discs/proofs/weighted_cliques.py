"""Heaviest cliques by branch and bound on sets of bits.

The candidates of a clique are covered by independent sets, each with a number: the numbers of the sets that a node is
in add up to its weight. A clique has one node of each set at most, so it weighs no more than all numbers together.
Sets are made one after another of nodes whose weight is not used up, each with the least weight that is left to one
of its nodes. Candidates that are used up by the first sets, as long as the clique with them would not be heavier than
the best one, need not be tried.

Sources: Babel 1994, "A fast algorithm for the maximum weight clique problem"; Tavares, Campelo Neto, Rodrigues and
Michelon 2015, "Um algoritmo de branch and bound para o problema da clique maxima ponderada".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, UInt64

from sl_discs.engines.cpu.jit import called, entered
from sl_discs.proofs.bits import bits_of, degeneracy_order, drop, lowest

# Entries of `state`: the depth in the tree (-1: the search is over), words of bits that were looked at, and how many
# nodes the best clique has that was found.
_DEPTH, _LOOKS, _FOUND = range(3)
_NOT_COVERED = -2
# Depths whose candidates tell how far the search has come.
_TOLD = 3


class _Tree(NamedTuple):
    """A search on n nodes with W words of bits, which can be interrupted; depth d has a clique of d nodes.

    Attributes:
      adjacent: [n, W] the neighbours of each node.
      weights: [n] of nodes.
      candidates: [D, W] of each depth.
      listed: [D, n] candidates to be tried, from the last to the first.
      bounds: [D, n] of cliques of the candidates up to this one.
      width: [D] how many there are.
      last: [D] the place of the next one to be tried; -1: there is none.
      chosen: [D] the clique.
      total: [D] its weight up to each depth.
      found: [n] the best clique found.
      best: [1] the largest weight known.
      sets: [2, W] working memory: nodes whose weight is not used up, and those that fit the present set.
      rest: [n] working memory: the weight that is not used up.
      members: [n] working memory: the present set.
      state: as above.
    """

    adjacent: UInt64[np.ndarray, "n W"]
    weights: Float64[np.ndarray, "n"]
    candidates: UInt64[np.ndarray, "D W"]
    listed: Int32[np.ndarray, "D n"]
    bounds: Float64[np.ndarray, "D n"]
    width: Int64[np.ndarray, "D"]
    last: Int64[np.ndarray, "D"]
    chosen: Int32[np.ndarray, "D"]
    total: Float64[np.ndarray, "D"]
    found: Int32[np.ndarray, "n"]
    best: Float64[np.ndarray, "1"]
    sets: UInt64[np.ndarray, "2 W"]
    rest: Float64[np.ndarray, "n"]
    members: Int64[np.ndarray, "n"]
    state: Int64[np.ndarray, "3"]


def _make_tree(adjacency: Bool[np.ndarray, "n n"], weights: Float64[np.ndarray, "n"], best: float) -> _Tree:
    size, depth = len(adjacency), int(adjacency.sum(axis=1).max(initial=0)) + 2
    candidates = np.zeros((depth, -(-size // 64)), np.uint64)
    # Nodes of weight 0 are of no use.
    candidates[0] = bits_of((weights > 0)[None])[0]
    last = np.zeros(depth, np.int64)
    last[0] = _NOT_COVERED
    return _Tree(
        adjacent=bits_of(adjacency),
        weights=weights,
        candidates=candidates,
        listed=np.zeros((depth, size), np.int32),
        bounds=np.zeros((depth, size)),
        width=np.zeros(depth, np.int64),
        last=last,
        chosen=np.zeros(depth, np.int32),
        total=np.zeros(depth),
        found=np.zeros(size, np.int32),
        best=np.array([best]),
        sets=np.zeros((2, candidates.shape[1]), np.uint64),
        rest=np.zeros(size),
        members=np.zeros(size, np.int64),
        state=np.zeros(3, np.int64),
    )


@called
def _cover(tree, depth):
    """Lists the candidates that must be tried, with the bounds."""
    left, fitting, rest, members = tree.sets[0], tree.sets[1], tree.rest, tree.members
    words, most = left.shape[0], tree.best[0] - tree.total[depth]
    for k in range(words):
        word = left[k] = tree.candidates[depth, k]
        while word:
            node = (k << 6) + np.int64(lowest(word))
            word &= word - np.uint64(1)
            rest[node] = tree.weights[node]
    bound, count, begin = 0.0, 0, 0
    while True:
        while begin < words and not left[begin]:
            begin += 1
        if begin == words:
            break
        for k in range(begin, words):
            fitting[k] = left[k]
        size, least = 0, np.inf
        for k in range(begin, words):
            while fitting[k]:
                node = (k << 6) + np.int64(lowest(fitting[k]))
                drop(fitting, node)
                for j in range(k, words):
                    fitting[j] &= ~tree.adjacent[node, j]
                members[size] = node
                size += 1
                least = min(least, rest[node])
                tree.state[_LOOKS] += words
        bound += least
        for place in range(size):
            node = members[place]
            rest[node] -= least
            if rest[node] == 0:
                drop(left, node)
                if bound > most:
                    tree.listed[depth, count], tree.bounds[depth, count] = node, bound
                    count += 1
    tree.width[depth], tree.last[depth] = count, count - 1


@entered
def _search(tree, most_looks):
    """Goes on until about so many words were looked at, or the search is over."""
    state, words = tree.state, tree.sets.shape[1]
    while state[_DEPTH] >= 0 and state[_LOOKS] < most_looks:
        depth = state[_DEPTH]
        if tree.last[depth] == _NOT_COVERED:
            _cover(tree, depth)
        place = tree.last[depth]
        if place < 0 or tree.total[depth] + tree.bounds[depth, place] <= tree.best[0]:
            state[_DEPTH] -= 1
            continue
        node = tree.listed[depth, place]
        tree.last[depth] -= 1
        tree.chosen[depth] = node
        drop(tree.candidates[depth], node)
        total = tree.total[depth + 1] = tree.total[depth] + tree.weights[node]
        if total > tree.best[0]:
            tree.best[0] = total
            state[_FOUND] = depth + 1
            for k in range(depth + 1):
                tree.found[k] = tree.chosen[k]
        some = False
        for k in range(words):
            tree.candidates[depth + 1, k] = tree.candidates[depth, k] & tree.adjacent[node, k]
            some |= tree.candidates[depth + 1, k] != 0
        state[_LOOKS] += words
        if some:
            tree.last[depth + 1] = _NOT_COVERED
            state[_DEPTH] += 1


class WeightedSearch:
    """A heaviest clique of a graph by branch and bound, in slices; up to rounding where weights are not whole.

    Attributes:
      best: weight of the heaviest clique known, which may have been told.
      found: [k] its nodes, if it was found here.
      over: whether no clique is heavier.
    """

    def __init__(self, adjacency: Bool[np.ndarray, "n n"], weights: Float64[np.ndarray, "n"]):
        self._order = degeneracy_order(adjacency)
        self._adjacency, self._weights = adjacency[self._order][:, self._order], weights[self._order]
        self.best, self.found, self.over = 0.0, np.empty(0, np.int64), False
        self._tree = _make_tree(self._adjacency, self._weights, self.best)

    def know(self, weight: float) -> None:
        """Takes into account that there is a clique of this weight."""
        if weight > self.best and not self.over:
            # Fewer candidates have to be tried from the top on.
            self.best = weight
            self._tree = _make_tree(self._adjacency, self._weights, self.best)

    def advance(self, looks: int) -> None:
        """Goes on until about so many words of bits were looked at."""
        tree = self._tree
        _search(tree, tree.state[_LOOKS] + looks)
        if tree.best[0] > self.best:
            self.best = float(tree.best[0])
            self.found = self._order[tree.found[: tree.state[_FOUND]]]
        self.over = bool(tree.state[_DEPTH] < 0)

    def done(self) -> float:
        """About which part of the tree was searched: of the candidates at the top, below the present one, etc."""
        tree, done, part = self._tree, 0.0, 1.0
        for depth in range(min(_TOLD, int(tree.state[_DEPTH]) + 1)):
            count = int(tree.width[depth])
            if tree.last[depth] == _NOT_COVERED or not count:
                break
            done += part * max(0.0, 1 - (int(tree.last[depth]) + 2) / count)
            part /= count
        return 1.0 if self.over else done
