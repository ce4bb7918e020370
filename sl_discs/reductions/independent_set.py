"""Maximum independent sets and minimum vertex covers, reduced by rules on their graph."""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.jit import entered, inlined
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reductions.arcs import (
    AFTER,
    ALIVE,
    CLIQUE,
    COUNT,
    DEGREE,
    DOMINATED,
    END,
    FIRST,
    FOLD,
    FUNNEL,
    INSTEAD,
    ISOLATED,
    LIST,
    LOOKS,
    MARK,
    NUM_NOTES,
    NUM_TAKEN,
    PENDANT,
    QUEUE_LENGTH,
    RULES,
    TAKEN,
    TO,
    UNCONFINED,
    add_edge,
    edges_of,
    link_all,
    make_work,
    mark_neighbours,
    marked_neighbours,
    new_stamp,
    note_taken,
    pop,
    push,
    remove,
)  # fmt: skip
from sl_discs.reductions.clique_cover import set_of_a_cover
from sl_discs.reductions.presolve import Presolved, none_found, part_of, unreduced

# Exact rules that shrink a graph without changing which independent sets are largest, as compiled loops.
#
# Clique: where the neighbours of v are all joined to each other, some largest set holds v: v is taken. Nodes of
# degree 0 and 1 are the simplest cases.
#
# Funnel: where they are a clique but for u, some largest set holds one of u and v: both are removed with their common
# neighbours, and the other neighbours A of v are joined to the other neighbours B of u. A set of what remains that
# meets A leaves out B, so u joins it; otherwise v does. Degree 2 is the simplest case, the fold. The rule is applied
# where the number of edges does not grow.
#
# Unconfined: v is removed where, if every largest set held v, some set as large would do without it. With S = {v}: if
# a node u with exactly one neighbour in S has no neighbour outside S and its neighbours, v is unconfined; if it has
# exactly one, that joins S, and so on. S = {v} alone is domination, N[u] within N[v].
#
# A rule that takes a node adds exactly one to the size of every set that it lifts.
#
# Sources: Akiba and Iwata, "Branch-and-reduce exponential/FPT algorithms in practice: a case study of vertex cover",
# 2016; Xiao and Nagamochi, "Confining sets and avoiding bottleneck cases: a simple maximum independent set algorithm
# in degree-3 graphs", 2013.

# The most nodes in S, which keeps each test short.
_LARGEST_S = 16
_JOINED, _BUT_ONE, _OTHERWISE = range(3)


@inlined
def _kind_of_neighbours(work, node):
    """Whether all neighbours are joined to each other, or all but pairs with one of them, which is returned too."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    stamp, others = mark_neighbours(work, node), nodes[node, DEGREE] - 1
    # Whoever misses several of the others must be that one, and whoever misses one must miss that one.
    odd, misses_of_odd, single, singles = -1, 0, -1, 0
    arc = nodes[node, FIRST]
    while arc >= 0:
        u = arcs[arc, TO]
        misses = others - marked_neighbours(work, u, stamp)
        if misses == 1:
            single = u
            singles += 1
        elif misses > 1:
            if odd >= 0:
                return _OTHERWISE, -1
            odd, misses_of_odd = u, misses
        if odd >= 0 and singles > misses_of_odd:
            return _OTHERWISE, -1
        arc = arcs[arc, AFTER]
    if odd >= 0:
        return (_BUT_ONE, odd) if singles == misses_of_odd else (_OTHERWISE, -1)
    if singles == 0:
        return _JOINED, -1
    return (_BUT_ONE, single) if singles == 2 else (_OTHERWISE, -1)


@inlined
def _take(work, node):
    """Takes a node whose neighbours are a clique, and removes those."""
    graph = work.graph
    degree = graph.nodes[node, DEGREE]
    rule = ISOLATED if degree == 0 else PENDANT if degree == 1 else CLIQUE
    note_taken(work, node, -1, work.state[NUM_NOTES])
    while graph.nodes[node, FIRST] >= 0:
        remove(work, graph.arcs[graph.nodes[node, FIRST], TO], rule)
    remove(work, node, rule)


@inlined
def _funnel(work, v, u):
    """Takes one of v and u, where the neighbours of v are a clique but for u and the edges do not become more."""
    graph, lists, notes = work.graph, work.lists, work.notes
    nodes, arcs = graph.nodes, graph.arcs
    begin = end = work.state[NUM_NOTES]
    if begin + nodes[v, DEGREE] > notes.shape[0]:
        return
    rule = FOLD if nodes[v, DEGREE] == 2 else FUNNEL
    stamp, arc = mark_neighbours(work, u), nodes[v, FIRST]
    while arc >= 0:
        a = arcs[arc, TO]
        if a != u and nodes[a, MARK] != stamp:
            notes[end] = a
            end += 1
        arc = arcs[arc, AFTER]
    # B goes to the front of the scratch list, and the common neighbours to its back.
    stamp, arc = mark_neighbours(work, v), nodes[u, FIRST]
    size, back = 0, lists.shape[0]
    while arc >= 0:
        b = arcs[arc, TO]
        if nodes[b, MARK] == stamp:
            back -= 1
            lists[back, LIST] = b
        elif b != v:
            lists[size, LIST] = b
            size += 1
        arc = arcs[arc, AFTER]
    stamp, new = new_stamp(work), (end - begin) * size
    for k in range(size):
        nodes[lists[k, LIST], MARK] = stamp
    for k in range(begin, end):
        new -= marked_neighbours(work, notes[k], stamp)
    if new > nodes[u, DEGREE] + nodes[v, DEGREE] - 1:
        return
    for k in range(back, lists.shape[0]):
        remove(work, lists[k, LIST], rule)
    remove(work, v, rule)
    remove(work, u, rule)
    for k in range(begin, end):
        stamp = mark_neighbours(work, notes[k])
        for j in range(size):
            if nodes[lists[j, LIST], MARK] != stamp:
                add_edge(graph, notes[k], lists[j, LIST])
    note_taken(work, v, u, end)


@inlined
def _join(work, node, stamp, size):
    """Puts a node into S: its neighbours are counted, and listed with the `size` that are; returns how many are."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    # Nodes of S are marked like their neighbours, but are not listed.
    nodes[node, MARK] = stamp
    arc = nodes[node, FIRST]
    while arc >= 0:
        u = arcs[arc, TO]
        if nodes[u, MARK] == stamp:
            nodes[u, COUNT] += 1
        else:
            nodes[u, MARK], nodes[u, COUNT] = stamp, 1
            work.lists[size, LIST] = u
            size += 1
        arc = arcs[arc, AFTER]
    work.state[LOOKS] += nodes[node, DEGREE]
    return size


@inlined
def _size_of_s(work, node):
    """How many nodes of S show that a node is unconfined; 0: none do."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    stamp, size, joins = new_stamp(work), 0, node
    for members in range(1, _LARGEST_S + 1):
        size = _join(work, joins, stamp, size)
        joins = -1
        for k in range(size):
            u = work.lists[k, LIST]
            if nodes[u, COUNT] == 1:
                outside, last, arc = 0, -1, nodes[u, FIRST]
                while arc >= 0 and outside < 2:
                    if nodes[arcs[arc, TO], MARK] != stamp:
                        outside += 1
                        last = arcs[arc, TO]
                    arc = arcs[arc, AFTER]
                    work.state[LOOKS] += 1
                if outside == 0:
                    return members
                if outside == 1:
                    joins = last
        if joins < 0:
            return 0
    return 0


@entered
def reduce_graph(work, most_looks):
    """Applies the rules until none applies, or until about `most_looks` arcs were looked at; says whether it ended.

    The queue goes first: what it finds is cheap, and makes the tests for unconfined nodes fewer.
    """
    graph, state = work.graph, work.state
    link_all(graph)
    size = graph.nodes.shape[0]
    for node in range(size):
        push(work, node)
    node, last = 0, 0  # of the nodes in turn, and where the last of a round without success is
    while state[LOOKS] < most_looks:
        if state[QUEUE_LENGTH]:
            v = pop(work)
            if graph.nodes[v, ALIVE]:
                kind, u = _kind_of_neighbours(work, v)
                if kind == _JOINED:
                    _take(work, v)
                elif kind == _BUT_ONE:
                    _funnel(work, v, u)
                last = size
        elif last == 0:
            return True
        else:
            node = (node + 1) % size
            last -= 1
            members = _size_of_s(work, node) if graph.nodes[node, ALIVE] else 0
            if members:
                remove(work, node, DOMINATED if members == 1 else UNCONFINED)
                last = size
    return False


@entered
def lift_sets(lists, notes, sets):
    """Adds what was taken, backwards, to sets [B, N] of what was left, in place."""
    for row in range(sets.shape[0]):
        chosen = sets[row]
        for number in range(lists.shape[0] - 1, -1, -1):
            node = lists[number, TAKEN]
            if lists[number, INSTEAD] >= 0:
                for k in range(lists[number - 1, END] if number else 0, lists[number, END]):
                    if chosen[notes[k]]:
                        node = lists[number, INSTEAD]
            chosen[node] = 1


# The most arcs that are read, as a multiple of the size of the graph, and the least limit. Sparse graphs need some
# tens of times their size; graphs on which rules are tested in vain and at length are given up after a second or so.
_MOST_LOOKS, _LEAST_LOOKS = 200, 10**7
_LOOKS_A_SECOND = 1e8
COVER = "clique cover"


def reduce_sets(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `mis`, or `vertex_cover`, whose nodes that are left out are an independent set.

    No rule is for weights of nodes, with which `proofs.integer` proves what rules could remove.
    """
    graph, cover = problem.source, not problem.maximise
    if graph.node_weights is not None:
        return unreduced(problem)
    size = graph.num_nodes
    most_looks = max(_LEAST_LOOKS, _MOST_LOOKS * (size + 2 * graph.num_edges))
    most_looks = int(min(most_looks, seconds * _LOOKS_A_SECOND))
    work = make_work(graph)
    complete = bool(reduce_graph(work, most_looks))
    taken, kept = int(work.state[NUM_TAKEN]), np.flatnonzero(work.graph.nodes[:, ALIVE])
    # The clique cover is that of the graph as it was given: the rules leave graphs where a greedy one is worse.
    best = set_of_a_cover(graph) if len(kept) else None
    if best is not None:
        return Presolved(
            original=problem,
            problem=None,
            kept=np.arange(0),
            constant=float((1 - best if cover else best).sum()),
            found=none_found(size),
            removed={COVER: size},
            complete=True,
            _lift=lambda states: np.repeat((1 - best if cover else best)[None], len(states), axis=0),
        )
    if len(kept) == size and not taken:
        return unreduced(problem, complete)
    lists, notes = work.lists[:taken].copy(), work.notes[: work.state[NUM_NOTES]].copy()
    left = None
    if len(kept):
        place = np.empty(size, np.int32)
        place[kept] = np.arange(len(kept))
        edges = place[edges_of(work.graph)]
        source = Graph.from_arrays(problem.name, len(kept), edges)
        left = part_of(problem, kept, graph_kind(problem.kind).counted(source))

    def lift(states):
        sets = np.zeros((len(states), size), np.int8)
        sets[:, kept] = 1 - states if cover else states
        lift_sets(lists, notes, sets)
        return 1 - sets if cover else sets

    return Presolved(
        original=problem,
        problem=left,
        kept=kept,
        constant=float(size - len(kept) - taken if cover else taken),
        found=none_found(size),
        removed={rule: int(count) for rule, count in zip(RULES, work.state, strict=False) if count},
        complete=complete,
        _lift=lift,
    )
