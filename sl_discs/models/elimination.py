"""Orders in which the variables of a sparse problem are eliminated one by one, for exact computations on tables."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee


class Elimination(NamedTuple):
    """An order of the variables of a graph, where eliminating one joins all its neighbours that remain.

    Attributes:
      order: the variables, the first to be eliminated first.
      neighbours: those that remain when a variable is eliminated, in the same order.
    """

    order: list[int]
    neighbours: list[set[int]]

    @property
    def width(self) -> int:
        """An upper bound on the treewidth."""
        return max(map(len, self.neighbours))

    def table_entries(self) -> int:
        """Returns the size of all tables, of an entry for each joint state of a variable and its neighbours."""
        return sum(2 ** (len(near) + 1) for near in self.neighbours)


def narrow_elimination(num_variables: int, edges: Int[np.ndarray, "M 2"], most: int) -> Elimination | None:
    """Returns the better of two orders: min-fill, for irregular sparse graphs, and reverse Cuthill-McKee, for grids.

    On a 16 x 16 grid min-fill has width 22 and Cuthill-McKee 16; on random graphs min-fill is narrower. Edges may
    repeat. None if neither order has a width of at most `most`.
    """
    matrix = sparse.csr_matrix((np.ones(len(edges)), edges.T), (num_variables, num_variables))
    place = np.empty(num_variables, np.int64)
    place[reverse_cuthill_mckee(sparse.csr_matrix(matrix + matrix.T), symmetric_mode=True)] = np.arange(num_variables)
    found = [_eliminate(num_variables, edges, most, cost) for cost in (_missing, lambda near, v: int(place[v]))]
    return min((one for one in found if one), key=Elimination.table_entries, default=None)


def _missing(near: list[set[int]], v: int) -> int:
    """Counts the pairs of neighbours of v that are not joined, in both directions."""
    return sum(len(near[v]) - 1 - len(near[v] & near[u]) for u in near[v])


def _eliminate(
    num_variables: int, edges: np.ndarray, most: int, cost: Callable[[list[set[int]], int], int]
) -> Elimination | None:
    """Eliminates again and again the variable of least cost among those with at most `most` remaining neighbours.

    The cost is that of a variable, given the remaining neighbours of all. It stops as soon as there is none, so a
    dense graph is refused quickly.
    """
    near: list[set[int]] = [set() for _ in range(num_variables)]
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)

    def entry(v: int) -> tuple[int, int, int] | None:
        return (cost(near, v), len(near[v]), v) if len(near[v]) <= most else None

    current = [entry(v) for v in range(num_variables)]
    heap = [one for one in current if one]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        chosen = heapq.heappop(heap)
        v = chosen[2]
        if current[v] is not chosen:
            continue  # outdated
        current[v] = None
        order.append(v)
        clique = _missing(near, v) == 0
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
        # New pairs also change the costs of their common neighbours.
        for u in near[v] if clique else near[v].union(*(near[u] for u in near[v])):
            current[u] = renewed = entry(u)
            if renewed is not None:
                heapq.heappush(heap, renewed)
    return Elimination(order, [near[v] for v in order]) if len(order) == num_variables else None
