"""Sets of nodes of which no two conflict: repair and exact local improvement."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int


def drop_conflicts(
    chosen: Bool[np.ndarray, "N"], pairs: Int[np.ndarray, "P 2"], *, joined: bool = False
) -> Bool[np.ndarray, "N"]:
    """Drops chosen nodes until no two of the rest conflict: most conflicts first, ties to the lowest index.

    Every drop removes at least one of V conflicts, so at least |chosen| - V nodes remain, and never fewer than the
    floor of the penalised objective |chosen| - lambda V when lambda >= 1.

    Args:
      chosen: [N] the set.
      pairs: [P, 2] the pairs that conflict, both ends chosen, each pair once.
      joined: whether `pairs` are instead those that do not conflict, while all others do.

    Returns:
      [N] the remaining set.
    """
    heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
    tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[np.argsort(heads, kind="stable")]
    degrees = np.bincount(heads, minlength=len(chosen))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    remaining = chosen.copy()
    conflicts = np.where(chosen, np.count_nonzero(chosen) - 1 - degrees, 0) if joined else degrees
    while conflicts[node := int(np.argmax(conflicts))] > 0:
        remaining[node] = False
        others = tails[starts[node] : starts[node + 1]]
        if joined:
            conflicts -= remaining
            conflicts[others] += remaining[others]
        else:
            conflicts[others] -= 1
        conflicts[node] = 0
    return remaining


class TwoImprovement:
    """Exact local improvement of independent sets (Andrade, Resende and Werneck 2012, "Fast local search for the
    maximum independent set problem"): one node of the set for two others, while there are such, and free nodes.

    A node outside the set that has one neighbour in it is held by that neighbour alone. A node of the set can be
    exchanged for two where two of the nodes that it alone holds are not joined.

    Sets of one graph are improved: what depends on the graph alone is prepared once. A round looks at all edges at
    once for nodes that can be exchanged, then exchanges them one by one: O(edges) a round, of which there are few,
    and the degrees of what is exchanged.
    """  # fmt: skip

    def __init__(self, num_nodes: int, pairs: Int[np.ndarray, "P 2"]):
        """`pairs` of the graph's nodes are joined, each pair once."""
        heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
        order = np.argsort(heads, kind="stable")
        self._heads = heads[order].astype(np.intp)
        self._tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[order].astype(np.intp)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=num_nodes))])

    def __call__(self, chosen: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
        """An independent set, at least as large as the independent set given, to which no node can be added and in
        which none can be exchanged for two; the same for the same set.
        """  # fmt: skip
        chosen = chosen.copy()
        # Of each node, how many of its neighbours are chosen.
        held = np.bincount(self._tails[chosen[self._heads]], minlength=len(chosen))
        self._add_free(chosen, held, np.flatnonzero(held == 0))
        while len(nodes := self._exchangeable(chosen, held)):
            for node in nodes:
                self._exchange(chosen, held, node)
        return chosen

    def _neighbours(self, node: int) -> Int[np.ndarray, "D"]:
        return self._tails[self._starts[node] : self._starts[node + 1]]

    def _add(self, chosen, held, node) -> None:
        chosen[node] = True
        held[self._neighbours(node)] += 1

    def _add_free(self, chosen, held, nodes) -> None:
        """Adds those of the nodes that no chosen one holds, in their order."""
        for node in nodes:
            if held[node] == 0 and not chosen[node]:
                self._add(chosen, held, node)

    def _exchangeable(self, chosen, held) -> Int[np.ndarray, "K"]:
        """The nodes of the set that can be exchanged for two."""
        alone = ~chosen & (held == 1)
        from_alone = alone[self._heads]
        heads, tails = self._heads[from_alone], self._tails[from_alone]
        holder = np.zeros(len(chosen), np.intp)
        holding = chosen[tails]
        holder[heads[holding]] = tails[holding]
        group = np.bincount(holder[alone], minlength=len(chosen))
        joined = np.bincount(heads[alone[tails] & (holder[heads] == holder[tails])], minlength=len(chosen))
        return np.unique(holder[alone & (joined < group[holder] - 1)])

    def _exchange(self, chosen, held, node) -> None:
        """Exchanges a chosen node for two or more, if that is still possible."""
        neighbours = self._neighbours(node)
        group = neighbours[held[neighbours] == 1]
        for one in group:
            others = np.setdiff1d(group, np.append(self._neighbours(one), one))
            if len(others):
                chosen[node] = False
                held[neighbours] -= 1
                self._add(chosen, held, one)
                self._add_free(chosen, held, others)
                self._add_free(chosen, held, np.sort(neighbours))
                return
