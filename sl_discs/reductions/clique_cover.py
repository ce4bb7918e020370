"""Independent sets with a node in every clique of a cover, found by a bounded search.

Where the nodes are covered by K cliques, no independent set has more than K nodes, so one with a node in every
clique is largest. Graphs made of satisfiable formulas have such a set: a clause is a clique of its literals, and a
literal is joined to all occurrences of its negation.

The search is that for a satisfying assignment. The last node left of a clique must be chosen, which removes the
neighbours of that node. Otherwise some node v is tried. Where that fails, every such set that is left holds a
neighbour of v outside v's clique, because v could otherwise stand in for the node of its clique in the set; so the
nodes that are joined to all of those neighbours go, v among them.

Source of the search: Davis, Logemann, Loveland, "A machine program for theorem-proving", 1962.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int8

from sl_discs.instances.graph import Graph
from sl_discs.reductions.presolve import neighbours_of

# Larger graphs, and those whose greedy set is much smaller than the cover, are not searched. The last
# number limits the neighbours that are read in vain, to about two seconds.
_MOST_EDGES, _LEAST_SHARE, _MOST_LOOKS = 50_000, 0.9, 5_000_000
# The most nodes that are tried as additions to a clique, those of the smallest degree.
_TRIED = 8


def clique_cover(graph: Graph) -> list[list[int]]:
    """Cliques that have every node in one of them: each node of small degree first, with what joins it."""
    neighbours = neighbours_of(graph)
    free = [True] * graph.num_nodes
    cliques = []
    for node in sorted(range(graph.num_nodes), key=lambda v: len(neighbours[v])):
        if free[node]:
            clique = [node]
            cliques.append(clique)
            free[node] = False
            fitting = {v for v in neighbours[node] if free[v]}
            while fitting:
                # The node that leaves most of the others.
                tried = sorted(fitting, key=lambda v: (len(neighbours[v]), v))[:_TRIED]
                chosen = max(tried, key=lambda v: len(fitting & neighbours[v]))
                clique.append(chosen)
                free[chosen] = False
                fitting &= neighbours[chosen]
    return cliques


def set_of_a_cover(graph: Graph) -> Int8[np.ndarray, "N"] | None:
    """A largest independent set, where a search finds one that meets every clique of a greedy cover."""
    if graph.num_edges > _MOST_EDGES:
        return None
    near, cover = neighbours_of(graph), clique_cover(graph)
    if _greedy_size(near) < _LEAST_SHARE * len(cover):
        return None
    chosen = _Search(near, cover).run()
    if chosen is None:
        return None
    state = np.zeros(graph.num_nodes, np.int8)
    state[chosen] = 1
    return state


def _greedy_size(near: list[set[int]]) -> int:
    chosen: set[int] = set()
    for node in sorted(range(len(near)), key=lambda one: len(near[one])):
        if chosen.isdisjoint(near[node]):
            chosen.add(node)
    return len(chosen)


class _Search:
    """Nodes that may still be chosen, and what was removed since when."""

    def __init__(self, near: list[set[int]], cliques: list[list[int]]):
        self._cliques = cliques
        self._home = [0] * len(near)
        for number, clique in enumerate(cliques):
            for node in clique:
                self._home[node] = number
        self._near = near
        self._outside = [near[node].difference(cliques[self._home[node]]) for node in range(len(near))]
        self._alive = set(range(len(near)))
        self._left = [len(clique) for clique in cliques]
        self._num_outside = list(map(len, self._outside))
        self._trail: list[int] = []
        # Nodes that can be taken: the last of their clique, or without neighbours outside it.
        self._sure = [clique[0] for clique in cliques if len(clique) == 1]
        self._sure += [node for node, number in enumerate(self._num_outside) if not number]
        self._looks = 0

    def run(self) -> list[int] | None:
        """The set; None: there is none, or the search was given up."""
        tried: list[tuple[int, int]] = []  # nodes, with the length of the trail before
        fine = self._propagate()
        while self._looks < _MOST_LOOKS:
            if fine:
                node = self._next()
                if node is None:
                    return sorted(self._alive)
                tried.append((node, len(self._trail)))
                fine = self._remove(self._near[node]) and self._propagate()
            elif tried:
                node, length = tried.pop()
                self._undo(length)
                others = (self._near[one] for one in self._outside[node] & self._alive)
                fine = self._remove(set.intersection(*others)) and self._propagate()
            else:
                return None
        return None

    def _next(self) -> int | None:
        """The node of a smallest clique with a choice that is joined to most; None: there is no choice left."""
        least = min((left for left in self._left if left > 1), default=None)
        if least is None:
            return None
        nodes = (
            node
            for number, left in enumerate(self._left)
            if left == least
            for node in self._cliques[number]
            if node in self._alive
        )
        return max(nodes, key=self._num_outside.__getitem__)

    def _remove(self, nodes: set[int]) -> bool:
        """Removes nodes; says whether every clique still has one."""
        alive, left, fine = self._alive, self._left, True
        for node in nodes & alive:
            alive.remove(node)
            self._trail.append(node)
            home = self._home[node]
            left[home] -= 1
            if left[home] == 1:
                self._sure += (one for one in self._cliques[home] if one in alive)
            elif not left[home]:
                fine = False
            self._looks += len(self._outside[node])
            for one in self._outside[node]:
                self._num_outside[one] -= 1
                if not self._num_outside[one]:
                    self._sure.append(one)
        return fine

    def _propagate(self) -> bool:
        while self._sure:
            node = self._sure.pop()
            if node in self._alive and not self._remove(self._near[node]):
                self._sure.clear()
                return False
        return True

    def _undo(self, length: int) -> None:
        for node in self._trail[length:]:
            self._alive.add(node)
            self._left[self._home[node]] += 1
            for one in self._outside[node]:
                self._num_outside[one] += 1
        del self._trail[length:]
        self._sure.clear()
