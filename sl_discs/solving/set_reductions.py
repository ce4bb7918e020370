"""Independent sets, vertex covers and cliques of graphs, reduced by exact rules.

Three rules shrink a graph without changing which independent sets are largest.

Clique: where the neighbours of v are all joined to each other, some largest set holds v: v is
taken. Nodes of degree 0 and 1 are the simplest cases.

Funnel: where they are a clique but for u, some largest set holds one of u and v: both are removed
with their common neighbours, and the other neighbours A of v are joined to the other neighbours B
of u. A set of what remains that meets A leaves out B, so u joins it; otherwise v does. Degree 2 is
the simplest case, the fold. The rule is applied where the number of edges does not grow.

Unconfined: v is removed where, if every largest set held v, some set as large would do without it.
With S = {v}: if a node u with exactly one neighbour in S has no neighbour outside S and its
neighbours, v is unconfined; if it has exactly one, that joins S, and so on. S = {v} alone is
domination, N[u] within N[v].

A rule that takes a node adds exactly one to the size of every set that it lifts.

Sources: Akiba and Iwata, "Branch-and-reduce exponential/FPT algorithms in practice: a case study of
vertex cover", 2016; Xiao and Nagamochi, "Confining sets and avoiding bottleneck cases: a simple
maximum independent set algorithm in degree-3 graphs", 2013.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import time

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8

from sl_discs.instances.form import exact_sum
from sl_discs.instances.graph import Graph, Neighbours
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind, weights_of_nodes
from sl_discs.solving.presolved import Presolved, part_of, unreduced

CLIQUE, FUNNEL, UNCONFINED, CORE = "clique", "funnel", "unconfined", "core"
# The most nodes in S, which keeps each test short.
_LARGEST_S = 16
# The least seconds for each edge that all rules take, and the most neighbours that are looked at,
# some two seconds' worth.
_EDGE_S = 7e-6
_MOST_LOOKS = 4 * 10**6


def _neighbour_sets(graph: Graph) -> list[set[int]]:
    near = graph.neighbours
    return [set(row.tolist()) for row in np.split(near.others, near.starts[1:-1])]


class _Rules:
    """A graph from which nodes go, and those that were taken."""

    def __init__(self, graph: Graph):
        size = graph.num_nodes
        self.near = _neighbour_sets(graph)
        self.left = [True] * size
        # Nodes that were taken, or with the other of a funnel: that is taken where the set meets
        # the nodes listed.
        self.taken: list[int] = []
        self.funnels: list[tuple[int, int, list[int]]] = []
        self.removed: collections.Counter[str] = collections.Counter()
        # Nodes to try, in order and each once.
        self._queue = dict.fromkeys(range(size))
        self._confined = dict.fromkeys(range(size))
        self._looks = 0

    def apply(self, end: float) -> None:
        """Applies the rules until none applies, too many neighbours were looked at, or the time is
        `end`.

        Tests for unconfined nodes come last, since what the other rules find is cheap and makes
        them fewer.
        """
        queue = self._queue
        confined = self._confined
        while (queue or confined) and self._looks < _MOST_LOOKS and time.perf_counter() < end:
            if queue:
                node, _ = queue.popitem()
                if self.left[node]:
                    self._take(node)
            else:
                node, _ = confined.popitem()
                if self.left[node] and self._is_unconfined(node):
                    self._remove(node, UNCONFINED)

    def _remove(self, node: int, rule: str) -> None:
        for neighbour in self.near[node]:
            self.near[neighbour].discard(node)
        self._push(self.near[node])
        self.near[node] = set()
        self.left[node] = False
        self.removed[rule] += 1

    def _push(self, nodes: set[int]) -> None:
        self._queue.update(dict.fromkeys(nodes))
        self._confined.update(dict.fromkeys(nodes))

    def _take(self, node: int) -> None:
        """Takes a node whose neighbours are a clique, or one of two where they are but for one of
        them.
        """
        near = self.near
        odd = self._odd_one(node)
        if odd == -1:
            self.taken.append(node)
            for removed in [*near[node], node]:
                self._remove(removed, CLIQUE)
        elif odd >= 0:
            of_node = near[node] - near[odd] - {odd}
            of_odd = near[odd] - near[node] - {node}
            self._looks += len(of_node) * len(of_odd)
            new = sum(len(of_odd - near[removed]) for removed in of_node)
            if new > len(near[node]) + len(near[odd]) - 1:
                return
            for removed in [*(near[node] & near[odd]), node, odd]:
                self._remove(removed, FUNNEL)
            for removed in of_node:
                near[removed] |= of_odd
            for removed in of_odd:
                near[removed] |= of_node
            self.funnels.append((node, odd, list(of_node)))

    def _odd_one(self, node: int) -> int:
        """Returns -1 where all neighbours are joined to each other, the one but for which they are,
        or -2.
        """
        neighbours = self.near[node]
        odd = -1
        most = 0
        second = 0
        total = 0
        for neighbour in neighbours:
            misses = len(neighbours) - 1 - len(neighbours & self.near[neighbour])
            self._looks += len(neighbours)
            total += misses
            _, second, most = sorted((second, most, misses))
            odd = neighbour if misses == most else odd
            if second > 1:
                return -2
        # Whatever pair is not joined must have that one.
        return -1 if most == 0 else odd if total == 2 * most else -2

    def _is_unconfined(self, node: int) -> bool:
        near = self.near
        chosen = {node}
        around = near[node] | chosen
        counts = collections.Counter(near[node])
        while len(chosen) <= _LARGEST_S:
            joins = -1
            for outsider, count in counts.items():
                if count == 1:
                    # Two of its neighbours outside are enough to know.
                    outside = list(
                        itertools.islice(
                            (candidate for candidate in near[outsider] if candidate not in around),
                            2,
                        )
                    )
                    self._looks += 4
                    if not outside:
                        return True
                    if len(outside) == 1:
                        joins = outside[0]
            if joins < 0:
                return False
            chosen.add(joins)
            around |= near[joins] | {joins}
            counts.update(near[joins])
            self._looks += len(near[joins])
        return False

    def lift(self, sets: Int8[np.ndarray, "N B"]) -> None:
        """Adds what was taken to sets of what was left, in place."""
        sets[self.taken] = 1
        for node, partner, decide in reversed(self.funnels):
            meets = sets[decide].any(axis=0)
            sets[node] = ~meets
            sets[partner] = meets


def reduce_sets(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `mis`, or `vertex_cover`, whose nodes that are left out are an independent
    set.

    No rule is for weights of nodes, with which `provers.integer` proves what rules could remove.
    """
    graph = problem.source
    cover = not problem.maximise
    size = graph.num_nodes
    end = time.perf_counter() + seconds
    if graph.node_weights is not None or graph.num_edges * _EDGE_S > seconds:
        return unreduced(problem)
    rules = _Rules(graph)
    rules.apply(end)
    kept = np.flatnonzero(rules.left)
    if len(kept) == size:
        return unreduced(problem)
    taken = len(rules.taken) + len(rules.funnels)

    def lift(states):
        sets = np.zeros((size, len(states)), np.int8)
        sets[kept] = 1 - states.T if cover else states.T
        rules.lift(sets)
        return 1 - sets.T if cover else sets.T.copy()

    edges = [
        (node, neighbour)
        for node in kept.tolist()
        for neighbour in rules.near[node]
        if node < neighbour
    ]
    return dataclasses.replace(
        unreduced(problem),
        problem=_subgraph_problem(problem, kept, np.array(edges, np.int32).reshape(-1, 2)),
        kept=kept,
        constant=float(size - len(kept) - taken if cover else taken),
        removed=dict(rules.removed),
        _lift=lift,
    )


def _subgraph_problem(
    problem: Problem[Graph], kept: Int[np.ndarray, "n"], edges: Int[np.ndarray, "E 2"]
) -> Problem | None:
    """Returns the problem on the graph of the nodes `kept`, joined by these edges; None: there are
    no nodes.
    """
    if not len(kept):
        return None
    graph = problem.source
    position = np.zeros(graph.num_nodes, np.int32)
    position[kept] = np.arange(len(kept))
    weights = None if graph.node_weights is None else graph.node_weights[kept]
    source = Graph.from_arrays(problem.name, len(kept), position[edges], node_weights=weights)
    return part_of(problem, kept, graph_kind(problem.kind).counted(source))


# Cliques: with one of k nodes at hand, a larger one lies where every node has k neighbours, in the
# k-core. With weights of nodes, a node and its neighbours must be heavier than the clique at hand.
# That one is kept beside what is left, on which branch and bound is fast where the core is small.

# From how many nodes a clique is grown, those with most neighbours first; and seconds for each
# edge.
_STARTS, _CORE_EDGE_S = 50, 1e-6


def core(near: Neighbours, weights: Float64[np.ndarray, "N"], size: float) -> Bool[np.ndarray, "N"]:
    """Returns which nodes are left when those that weigh up to `size` with their neighbours are
    removed in turn.
    """
    around = near.matrix(np.ones(len(near.ends), np.int8)) @ weights
    masses = (weights + around).tolist()
    heavy = weights.tolist()
    neighbours = near.others.tolist()
    ends = near.starts.tolist()
    queue = [node for node, mass in enumerate(masses) if mass <= size]
    while queue:
        node = queue.pop()
        for neighbour in neighbours[ends[node] : ends[node + 1]]:
            if masses[neighbour] > size:
                masses[neighbour] -= heavy[node]
                if masses[neighbour] <= size:
                    queue.append(neighbour)
    return np.array(masses) > size


def reduce_maxclique(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxclique` to its core; graphs for which that takes more than `seconds`
    are left as is.
    """
    graph = problem.source
    size = problem.num_variables
    if graph.num_edges * _CORE_EDGE_S > seconds:
        return unreduced(problem)
    weights = weights_of_nodes(graph)
    clique = greedy_clique(problem)
    inside = core(graph.neighbours, weights, exact_sum(weights[clique[0] == 1]))
    kept = np.flatnonzero(inside)
    whole = dataclasses.replace(unreduced(problem), found=clique)
    if len(kept) == size:
        return whole

    def lift(states):
        lifted = np.zeros((len(states), size), np.int8)
        lifted[:, kept] = states
        return lifted

    left = _subgraph_problem(problem, kept, graph.edges[inside[graph.edges].all(axis=1)])
    return dataclasses.replace(
        whole, problem=left, kept=kept, removed={CORE: size - len(kept)}, _lift=lift
    )


def greedy_clique(problem: Problem[Graph]) -> Int8[np.ndarray, "1 N"]:
    """Returns an answer to a problem `maxclique`, in time that is linear in its edges: from each
    start, the candidate with most, or heaviest, neighbours joins.
    """
    graph = problem.source
    weights = weights_of_nodes(graph)
    starts = graph.neighbours.starts
    near = np.split(graph.neighbours.others, starts[1:-1])
    ranks = (np.diff(starts) + 1) * weights
    best: list[int] = []
    for start in np.argsort(-ranks, kind="stable")[:_STARTS]:
        clique = [start]
        candidates = near[start]
        while len(candidates):
            node = candidates[np.argmax(ranks[candidates])]
            clique.append(node)
            candidates = np.intersect1d(candidates, near[node], assume_unique=True)
        best = max(best, clique, key=lambda nodes: exact_sum(weights[nodes]))
    state = np.zeros((1, graph.num_nodes), np.int8)
    state[0, best] = 1
    return state
