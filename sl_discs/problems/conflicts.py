"""Sets of nodes of which no two conflict: repair and exact local improvement, by size or by weight."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float64, Int


def drop_conflicts(
    chosen: Bool[np.ndarray, "N"],
    pairs: Int[np.ndarray, "P 2"],
    weights: Float64[np.ndarray, "N"] | None = None,
    *,
    joined: bool = False,
) -> Bool[np.ndarray, "N"]:
    """Drops chosen nodes until no two of the rest conflict: most conflicts first, ties to the lowest index.

    A conflict counts as much as the lighter of its nodes, and the node that is dropped is the one whose conflicts
    exceed its own weight by most. That of the lighter node of a conflict do, or are equal to it, so no drop costs
    more than the conflicts that it removes: what remains is worth at least the objective with penalties, the weight
    of the set minus lambda >= 1 times its conflicts, up to rounding.

    Args:
      chosen: [N] the set.
      pairs: [P, 2] the pairs that conflict, both ends chosen, each pair once.
      weights: [N] of nodes, at least 0; None: 1.
      joined: whether `pairs` are instead those that do not conflict, while all others do.

    Returns:
      [N] the remaining set.
    """
    weights = np.ones(len(chosen)) if weights is None else weights
    heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
    tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[np.argsort(heads, kind="stable")]
    degrees = np.bincount(heads, minlength=len(chosen))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    remaining = chosen.copy()
    conflicts = np.where(chosen, np.count_nonzero(chosen) - 1 - degrees, 0) if joined else degrees
    listed = np.bincount(heads, np.tile(np.minimum(*weights[pairs.T]), 2), len(chosen))
    gains = (_lighter_sums(chosen, weights) - listed if joined else listed) - weights
    gains[conflicts == 0] = -np.inf
    while gains[node := int(np.argmax(gains))] > -np.inf:
        remaining[node] = False
        others = tails[starts[node] : starts[node + 1]]
        if joined:
            conflicts -= remaining
            conflicts[others] += remaining[others]
            gains -= np.minimum(weights, weights[node])
            gains[others] += np.minimum(weights[others], weights[node])
            gains[conflicts == 0] = -np.inf
        else:
            conflicts[others] -= 1
            gains[others] -= np.minimum(weights[others], weights[node])
            gains[others[conflicts[others] == 0]] = -np.inf
        conflicts[node] = 0
        gains[node] = -np.inf
    return remaining


def _lighter_sums(chosen: Bool[np.ndarray, "N"], weights: Float64[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
    """For each node the sum over the other chosen nodes of the smaller of the two weights; right for chosen ones."""
    sizes = np.sort(weights[chosen])
    below = np.searchsorted(sizes, weights)
    sums = np.concatenate([[0.0], np.cumsum(sizes)])
    return sums[below] + weights * (len(sizes) - below - 1)


class TwoImprovement:
    """Exact local improvement of independent sets (Andrade, Resende and Werneck 2012, "Fast local search for the
    maximum independent set problem"): one node of the set for two others, while there are such, and free nodes.

    A node outside the set that has one neighbour in it is held by that neighbour alone. A node of the set can be
    exchanged for two where two of the nodes that it alone holds are not joined.

    With weights, two nodes must be heavier together than the one that they replace, and a node also replaces all its
    neighbours in the set where it is heavier than they are (Nogueira, Pinheiro and Subramanian 2018, "A hybrid
    iterated local search heuristic for the maximum weight independent set problem").

    Sets of one graph are improved: what depends on the graph alone is prepared once. A round looks at all edges at
    once for nodes that can be exchanged, then exchanges them one by one: O(edges) a round, of which there are few,
    and the degrees of what is exchanged.
    """  # fmt: skip

    def __init__(
        self, num_nodes: int, pairs: Int[np.ndarray, "P 2"], weights: Float64[np.ndarray, "N"] | None = None
    ):
        """`pairs` of the graph's nodes are joined, each pair once; weights are at least 0, None: 1."""
        self._weighted, self._weights = weights is not None, np.ones(num_nodes) if weights is None else weights
        heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
        order = np.argsort(heads, kind="stable")
        self._heads = heads[order].astype(np.intp)
        self._tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[order].astype(np.intp)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=num_nodes))])

    def __call__(self, chosen: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
        """An independent set, at least as large or heavy as the independent set given, to which no node can be added
        and in which none can be exchanged for two, or neighbours for one, with a gain; the same for the same set.
        """  # fmt: skip
        chosen = chosen.copy()
        # Of each node, how many of its neighbours are chosen.
        held = np.bincount(self._tails[chosen[self._heads]], minlength=len(chosen))
        self._add_free(chosen, held, np.flatnonzero(held == 0))
        improved = True
        while improved:
            inserted = [self._insert(chosen, held, node) for node in self._heavier(chosen)]
            exchanged = [self._exchange(chosen, held, node) for node in self._exchangeable(chosen, held)]
            improved = any(inserted) or any(exchanged)
        return chosen

    def _neighbours(self, node: int) -> Int[np.ndarray, "D"]:
        return self._tails[self._starts[node] : self._starts[node + 1]]

    def _add(self, chosen, held, node) -> None:
        chosen[node] = True
        held[self._neighbours(node)] += 1

    def _add_free(self, chosen, held, nodes) -> None:
        """Adds those of the nodes that no chosen one holds, heavy ones first, and otherwise in their order."""
        for node in self._by_weight(nodes):
            if held[node] == 0 and not chosen[node]:
                self._add(chosen, held, node)

    def _by_weight(self, nodes) -> Int[np.ndarray, "K"]:
        return nodes[np.argsort(-self._weights[nodes], kind="stable")]

    def _heavier(self, chosen) -> Int[np.ndarray, "K"]:
        """The nodes that are heavier than their neighbours in the set; none without weights, where those are free."""
        if not self._weighted:
            return np.empty(0, np.intp)
        from_chosen = chosen[self._heads]
        heads, tails = self._heads[from_chosen], self._tails[from_chosen]
        instead_of = np.bincount(tails, self._weights[heads], len(chosen))
        return self._by_weight(np.flatnonzero(~chosen & (self._weights > instead_of)))

    def _insert(self, chosen, held, node) -> bool:
        """Puts a node in the place of its neighbours in the set, if that is still a gain; whether it was."""
        neighbours = self._neighbours(node)
        out = neighbours[chosen[neighbours]]
        # `fsum` is rounded correctly, so a sum that is rounded to less than a weight is less.
        if chosen[node] or math.fsum(self._weights[out].tolist()) >= self._weights[node]:
            return False
        for one in out:
            chosen[one] = False
            held[self._neighbours(one)] -= 1
        self._add(chosen, held, node)
        for one in out:
            self._add_free(chosen, held, self._neighbours(one))
        return True

    def _exchangeable(self, chosen, held) -> Int[np.ndarray, "K"]:
        """The nodes of the set that may be exchanged for two; without weights they can be."""
        alone = ~chosen & (held == 1)
        from_alone = alone[self._heads]
        heads, tails = self._heads[from_alone], self._tails[from_alone]
        holder = np.zeros(len(chosen), np.intp)
        holding = chosen[tails]
        holder[heads[holding]] = tails[holding]
        group = np.bincount(holder[alone], minlength=len(chosen))
        joined = np.bincount(heads[alone[tails] & (holder[heads] == holder[tails])], minlength=len(chosen))
        heavy = np.bincount(holder[alone], self._weights[alone], len(chosen)) > self._weights
        return np.unique(holder[alone & (joined < group[holder] - 1) & heavy[holder]])

    def _exchange(self, chosen, held, node) -> bool:
        """Exchanges a chosen node for two or more, if that is possible still, and a gain; whether it was."""
        if not chosen[node]:
            return False
        neighbours, weights = self._neighbours(node), self._weights
        group = neighbours[held[neighbours] == 1]
        for one in group:
            others = np.setdiff1d(group, np.append(self._neighbours(one), one))
            if weights[others].max(initial=-np.inf) + weights[one] > weights[node]:
                chosen[node] = False
                held[neighbours] -= 1
                self._add(chosen, held, one)
                self._add_free(chosen, held, others)
                self._add_free(chosen, held, np.sort(neighbours))
                return True
        return False
