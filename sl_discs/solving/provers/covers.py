"""Bounds on sets and cliques: a set has at most one node of each clique of a cover, a clique one of
each colour.

Nodes are put one after another into the first clique, or colour, that they fit. In an order that
keeps the classes of before together this never needs more of them, and often fewer (iterated
greedy: Culberson 1992, "Iterated greedy graph coloring and the difficulty landscape"). A pass takes
O(edges).

With weights of nodes, each class counts as much as the least of its weights, which is subtracted
from all of them. Nodes that have some weight left are put into classes again, until none has: a set
or clique weighs no more than all classes together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int, Int32

from sl_discs.engines.cpu.jit import entered
from sl_discs.instances.graph import Graph
from sl_discs.problems.graph_kind import weights_of_nodes
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import SetProver

# Ends of edges that a core looks at in a second, and what a node costs in these.
_ENDS_A_SECOND, _PER_NODE = 1e8, 20
# Passes without fewer classes after which it is given up.
_MOST_IN_VAIN = 100


@entered
def _pass(starts, neighbours, order, cliques, home, counts, sizes):
    """Puts each node into the first class that it fits; returns how many there are. `home` has the
    class of each.
    """
    count = 0
    for node in range(home.shape[0]):
        home[node] = -1
    for node in order:
        for index in range(starts[node], starts[node + 1]):
            if home[neighbours[index]] >= 0:
                counts[home[neighbours[index]]] += 1
        fit = count
        if cliques:
            for index in range(starts[node], starts[node + 1]):
                k = home[neighbours[index]]
                if k >= 0 and k < fit and counts[k] == sizes[k]:
                    fit = k
        else:
            fit = 0
            while fit < count and counts[fit]:
                fit += 1
        for index in range(starts[node], starts[node + 1]):
            if home[neighbours[index]] >= 0:
                counts[home[neighbours[index]]] = 0
        if fit == count:
            sizes[fit] = 0
            count += 1
        home[node] = fit
        sizes[fit] += 1
    return count


class Classes:
    """A partition of a graph's nodes into cliques, or into colours.

    Attributes:
      home: [N] the class of each node.
      number: of classes.
      bound: the number of classes, or with weights of nodes the least weight of all classes
        together so far.
      placed: how many nodes the last pass put into classes.
    """

    def __init__(self, graph: Graph, *, cliques: bool):
        """Puts the nodes into classes, those that are heavy, or else hard to place, first."""
        size = graph.num_nodes
        self._near = graph.neighbours
        self._cliques = cliques
        self._counts = np.zeros(size + 1, np.int64)
        self._sizes = np.zeros(size + 1, np.int64)
        self._rng = np.random.default_rng(0)
        self._weights = weights_of_nodes(graph)
        self.home: Int32[np.ndarray, "N"] = np.zeros(size, np.int32)
        self.number = 0
        self.placed = 0
        self.bound = np.inf
        degrees = np.diff(self._near.starts)
        self._place(np.lexsort((degrees if cliques else -degrees, -self._weights)))

    def _place(self, order: Int[np.ndarray, "N"]) -> None:
        near = self._near
        home = self.home
        rest = self._weights.copy()
        bound = 0.0
        self.placed = 0
        while len(order):
            count = _pass(
                near.starts, near.others, order, self._cliques, home, self._counts, self._sizes
            )
            if home is self.home:
                self.number = int(count)
                home = home.copy()
            of_order = home[order]
            least = np.full(count, np.inf)
            np.minimum.at(least, of_order, rest[order])
            rest[order] -= least[of_order]
            bound += math.fsum(least)
            self.placed += len(order)
            order = order[rest[order] > 0]
        self.bound = min(self.bound, bound)

    def improve(self) -> bool:
        """Makes another pass, with the classes at random, by size, or reversed; tells whether the
        bound is better.
        """
        rank = self._rng.permutation(self.number)
        draw = self._rng.random()
        if draw < 0.4:
            rank = np.argsort(
                np.argsort(-np.bincount(self.home, minlength=self.number), kind="stable")
            )
        elif draw < 0.8:
            rank = np.arange(self.number)[::-1]
        before = self.bound
        self._place(np.argsort(rank[self.home], kind="stable"))
        return self.bound < before


class Cover(SetProver):
    """The number of classes, or their weight, as a bound on the reduced problem."""

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        self.by = "a colouring" if self.cliques else "a clique cover"

    def _run(self) -> Iterator[float]:
        graph: Graph = self.problem.source
        node_s = (2 * graph.num_edges / graph.num_nodes + _PER_NODE) / _ENDS_A_SECOND
        yield node_s * graph.num_nodes
        classes = Classes(graph, cliques=not self.cliques)
        in_vain = 0
        self.take_bound(classes.bound)
        while in_vain < _MOST_IN_VAIN:
            yield node_s * classes.placed
            in_vain += 1
            if classes.improve():
                in_vain = 0
                self.take_bound(classes.bound)
