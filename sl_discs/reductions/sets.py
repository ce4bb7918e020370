"""Independent sets, vertex covers and cliques of graphs, reduced by exact rules.

Three rules shrink a graph without changing which independent sets are largest.

Clique: where the neighbours of v are all joined to each other, some largest set holds v: v is taken. Nodes of degree
0 and 1 are the simplest cases.

Funnel: where they are a clique but for u, some largest set holds one of u and v: both are removed with their common
neighbours, and the other neighbours A of v are joined to the other neighbours B of u. A set of what remains that
meets A leaves out B, so u joins it; otherwise v does. Degree 2 is the simplest case, the fold. The rule is applied
where the number of edges does not grow.

Unconfined: v is removed where, if every largest set held v, some set as large would do without it. With S = {v}: if a
node u with exactly one neighbour in S has no neighbour outside S and its neighbours, v is unconfined; if it has
exactly one, that joins S, and so on. S = {v} alone is domination, N[u] within N[v].

A rule that takes a node adds exactly one to the size of every set that it lifts.

Sources: Akiba and Iwata, "Branch-and-reduce exponential/FPT algorithms in practice: a case study of vertex cover",
2016; Xiao and Nagamochi, "Confining sets and avoiding bottleneck cases: a simple maximum independent set algorithm in
degree-3 graphs", 2013.
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
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reductions.presolve import Presolved, ends_at, part_of, unreduced

CLIQUE, FUNNEL, UNCONFINED, COVER, CORE = "clique", "funnel", "unconfined", "clique cover", "core"
# The most nodes in S, which keeps each test short.
_LARGEST_S = 16
# Seconds for each edge to lay the graph out, neighbours that are looked at in a second, and the most.
_EDGE_S, _LOOKS_A_SECOND, _MOST_LOOKS = 4e-7, 2e6, 4 * 10**6


def _neighbour_sets(graph: Graph) -> list[set[int]]:
    others, ends = graph.neighbours.others.tolist(), graph.neighbours.starts.tolist()
    return [set(others[begin:end]) for begin, end in itertools.pairwise(ends)]


class _Rules:
    """A graph from which nodes go, and those that were taken."""

    def __init__(self, graph: Graph):
        size = graph.num_nodes
        self.near = _neighbour_sets(graph)
        self.left = [True] * size
        # Nodes that were taken, or with the other of a funnel: that is taken where the set meets the nodes listed.
        self.taken: list[int] = []
        self.funnels: list[tuple[int, int, list[int]]] = []
        self.removed: collections.Counter[str] = collections.Counter()
        # Nodes to try, in order and each once.
        self._queue, self._confined = dict.fromkeys(range(size)), dict.fromkeys(range(size))
        self._looks = 0

    def apply(self, most_looks: float, end: float) -> bool:
        """Applies the rules until none applies; says whether it ended, or too many neighbours were looked at.

        Tests for unconfined nodes come last, since what the other rules find is cheap and makes them fewer.
        """
        queue, confined = self._queue, self._confined
        while (queue or confined) and self._looks < most_looks and time.perf_counter() < end:
            if queue:
                node, _ = queue.popitem()
                if self.left[node]:
                    self._take(node)
            else:
                node, _ = confined.popitem()
                if self.left[node] and self._is_unconfined(node):
                    self._remove(node, UNCONFINED)
        return not (queue or confined)

    def _remove(self, node: int, rule: str) -> None:
        for other in self.near[node]:
            self.near[other].discard(node)
        self._push(self.near[node])
        self.near[node], self.left[node] = set(), False
        self.removed[rule] += 1

    def _push(self, nodes: set[int]) -> None:
        self._queue.update(dict.fromkeys(nodes))
        self._confined.update(dict.fromkeys(nodes))

    def _take(self, node: int) -> None:
        """Takes a node whose neighbours are a clique, or one of two where they are but for one of them."""
        near = self.near
        odd = self._odd_one(node)
        if odd == -1:
            self.taken.append(node)
            for other in [*near[node], node]:
                self._remove(other, CLIQUE)
        elif odd >= 0:
            of_node, of_odd = near[node] - near[odd] - {odd}, near[odd] - near[node] - {node}
            self._looks += len(of_node) * len(of_odd)
            new = sum(len(of_odd - near[other]) for other in of_node)
            if new > len(near[node]) + len(near[odd]) - 1:
                return
            for other in [*(near[node] & near[odd]), node, odd]:
                self._remove(other, FUNNEL)
            for other in of_node:
                near[other] |= of_odd
            for other in of_odd:
                near[other] |= of_node
            self.funnels.append((node, odd, list(of_node)))

    def _odd_one(self, node: int) -> int:
        """Returns -1 where all neighbours are joined to each other, the one but for which they are, or -2."""
        others, odd, most, second, total = self.near[node], -1, 0, 0, 0
        for other in others:
            misses = len(others) - 1 - len(others & self.near[other])
            self._looks += len(others)
            total += misses
            _, second, most = sorted((second, most, misses))
            odd = other if misses == most else odd
            if second > 1:
                return -2
        # Whatever pair is not joined must have that one.
        return -1 if most == 0 else odd if total == 2 * most else -2

    def _is_unconfined(self, node: int) -> bool:
        near, chosen = self.near, {node}
        around = near[node] | chosen
        counts = collections.Counter(near[node])
        while len(chosen) <= _LARGEST_S:
            joins = -1
            for other, count in counts.items():
                if count == 1:
                    # Two of its neighbours outside are enough to know.
                    outside = list(itertools.islice((one for one in near[other] if one not in around), 2))
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
        for node, other, decide in reversed(self.funnels):
            meets = sets[decide].any(axis=0)
            sets[node], sets[other] = ~meets, meets


def reduce_sets(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `mis`, or `vertex_cover`, whose nodes that are left out are an independent set.

    No rule is for weights of nodes, with which `proofs.integer` proves what rules could remove.
    """
    graph, cover = problem.source, not problem.maximise
    size, seconds_left = graph.num_nodes, seconds - graph.num_edges * _EDGE_S
    if graph.node_weights is not None or seconds_left <= 0:
        return unreduced(problem, complete=graph.node_weights is not None)
    rules = _Rules(graph)
    complete = rules.apply(min(_MOST_LOOKS, seconds_left * _LOOKS_A_SECOND), ends_at(seconds))
    kept = np.flatnonzero(rules.left)
    # The clique cover is that of the graph as it was given: the rules leave graphs where a greedy one is worse.
    best = set_of_a_cover(graph) if len(kept) else None
    if best is not None:
        rules.taken, rules.funnels, rules.removed = best, [], collections.Counter({COVER: size})
        kept, complete = kept[:0], True
    if len(kept) == size:
        return unreduced(problem, complete)
    taken = len(rules.taken) + len(rules.funnels)

    def lift(states):
        sets = np.zeros((size, len(states)), np.int8)
        sets[kept] = 1 - states.T if cover else states.T
        rules.lift(sets)
        return 1 - sets.T if cover else sets.T.copy()

    edges = [(node, other) for node in kept.tolist() for other in rules.near[node] if node < other]
    return dataclasses.replace(
        unreduced(problem, complete),
        problem=_subgraph_problem(problem, kept, np.array(edges, np.int32).reshape(-1, 2)),
        kept=kept,
        constant=float(size - len(kept) - taken if cover else taken),
        removed=dict(rules.removed),
        _lift=lift,
    )


def _subgraph_problem(
    problem: Problem[Graph], kept: Int[np.ndarray, "n"], edges: Int[np.ndarray, "E 2"]
) -> Problem | None:
    """Returns the problem on the graph of the nodes `kept`, joined by these edges; None: there are no nodes."""
    if not len(kept):
        return None
    graph = problem.source
    place = np.zeros(graph.num_nodes, np.int32)
    place[kept] = np.arange(len(kept))
    weights = None if graph.node_weights is None else graph.node_weights[kept]
    source = Graph.from_arrays(problem.name, len(kept), place[edges], node_weights=weights)
    return part_of(problem, kept, graph_kind(problem.kind).counted(source))


# Independent sets with a node in every clique of a cover, found by a bounded search.
#
# Where the nodes are covered by K cliques, no independent set has more than K nodes, so one with a node in every
# clique is largest. Graphs made of satisfiable formulas have such a set: a clause is a clique of its literals, and a
# literal is joined to all occurrences of its negation.
#
# The search is that for a satisfying assignment. The last node left of a clique must be chosen, which removes the
# neighbours of that node. Otherwise some node v is tried. Where that fails, every such set that is left holds a
# neighbour of v outside v's clique, because v could otherwise stand in for the node of its clique in the set; so the
# nodes that are joined to all of those neighbours go, v among them.
#
# Source of the search: Davis, Logemann, Loveland, "A machine program for theorem-proving", 1962.

# Larger graphs, and those whose greedy set is much smaller than the cover, are not searched. The last
# number limits the neighbours that are read in vain, to about two seconds.
_MOST_EDGES, _LEAST_SHARE, _MOST_LOOKS_OF_COVERS = 50_000, 0.9, 5_000_000
# The most nodes that are tried as additions to a clique, those of the smallest degree.
_TRIED = 8


def _clique_cover(neighbours: list[set[int]]) -> list[list[int]]:
    """Returns cliques that have every node in one of them: each node of small degree first, with what joins it."""
    free = [True] * len(neighbours)
    cliques = []
    for node in sorted(range(len(free)), key=lambda v: len(neighbours[v])):
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


def set_of_a_cover(graph: Graph) -> list[int] | None:
    """Returns a largest independent set, where a search finds one that meets every clique of a greedy cover."""
    if graph.num_edges > _MOST_EDGES:
        return None
    near = _neighbour_sets(graph)
    cover = _clique_cover(near)
    greedy: set[int] = set()
    for node in sorted(range(len(near)), key=lambda one: len(near[one])):
        if greedy.isdisjoint(near[node]):
            greedy.add(node)
    return None if len(greedy) < _LEAST_SHARE * len(cover) else _Search(near, cover).run()


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
        """Returns the set; None: there is none, or the search was given up."""
        tried: list[tuple[int, int]] = []  # nodes, with the length of the trail before
        fine = self._propagate()
        while self._looks < _MOST_LOOKS_OF_COVERS:
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
        """Returns the node of a smallest clique with a choice that is joined to most; None: there is none left."""
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


# Cliques: with one of k nodes at hand, a larger one lies where every node has k neighbours, in the k-core. With
# weights of nodes, a node and its neighbours must be heavier than the clique at hand. That one is kept beside what is
# left, on which branch and bound is fast where the core is small.

# From how many nodes a clique is grown, those with most neighbours first; and seconds for each edge.
_STARTS, _CORE_EDGE_S = 50, 1e-6


def core(near: Neighbours, weights: Float64[np.ndarray, "N"], size: float) -> Bool[np.ndarray, "N"]:
    """Returns which nodes are left when those that weigh up to `size` with their neighbours are removed in turn."""
    around = near.matrix(np.ones(len(near.ends), np.int8)) @ weights
    masses, heavy = (weights + around).tolist(), weights.tolist()
    others, ends = near.others.tolist(), near.starts.tolist()
    queue = [node for node, mass in enumerate(masses) if mass <= size]
    while queue:
        node = queue.pop()
        for other in others[ends[node] : ends[node + 1]]:
            if masses[other] > size:
                masses[other] -= heavy[node]
                if masses[other] <= size:
                    queue.append(other)
    return np.array(masses) > size


def reduce_maxclique(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxclique` to its core; graphs for which that takes more than `seconds` are left as is."""
    graph, size = problem.source, problem.num_variables
    if graph.num_edges * _CORE_EDGE_S > seconds:
        return unreduced(problem, complete=False)
    weights = np.ones(size) if graph.node_weights is None else graph.node_weights
    clique = _grown_clique(graph.neighbours, weights)
    inside = core(graph.neighbours, weights, exact_sum(weights[clique]))
    kept, found = np.flatnonzero(inside), np.zeros((1, size), np.int8)
    found[0, clique] = 1
    whole = dataclasses.replace(unreduced(problem), found=found)
    if len(kept) == size:
        return whole

    def lift(states):
        lifted = np.zeros((len(states), size), np.int8)
        lifted[:, kept] = states
        return lifted

    left = _subgraph_problem(problem, kept, graph.edges[inside[graph.edges].all(axis=1)])
    return dataclasses.replace(whole, problem=left, kept=kept, removed={CORE: size - len(kept)}, _lift=lift)


def _grown_clique(neighbours: Neighbours, weights: Float64[np.ndarray, "N"]) -> list[int]:
    """Returns a large clique: from each start, the candidate with most, or heaviest, neighbours joins."""
    near = [neighbours.others[begin:end] for begin, end in itertools.pairwise(neighbours.starts.tolist())]
    ranks = (np.diff(neighbours.starts) + 1) * weights
    best: list[int] = []
    for start in np.argsort(-ranks, kind="stable")[:_STARTS]:
        clique, candidates = [start], near[start]
        while len(candidates):
            node = candidates[np.argmax(ranks[candidates])]
            clique.append(node)
            candidates = np.intersect1d(candidates, near[node], assume_unique=True)
        best = max(best, clique, key=lambda one: exact_sum(weights[one]))
    return best
