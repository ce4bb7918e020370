"""Maximum independent sets and minimum vertex covers, reduced by rules on their graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from sl_discs.engines.cpu.jit import entered, inlined
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.reductions.clique_cover import set_of_a_cover
from sl_discs.reductions.presolve import Presolved, none_found, part_of, unreduced

# A graph from which nodes are removed and into which edges are put, in arrays of fixed size, as compiled loops.
#
# Edge e is the arcs 2e and 2e + 1, one in each direction, so the opposite of arc a is a ^ 1. The arcs that leave a
# node are linked in both directions, so that an edge is removed without looking for it. Places of removed edges are
# linked as well, for later edges. All numbers about a node, or about an arc, stand side by side in memory.

# Columns of `nodes`: the first arc that leaves a node (-1: none), how many do, and whether the node is still there.
# Columns from `FREE_COLUMN` on belong to whoever uses the graph.
FIRST, DEGREE, ALIVE, FREE_COLUMN = range(4)
# Columns of `arcs`: where an arc ends (-1: it is not there), the next one that leaves the same node, the one before.
TO, AFTER, BEFORE = range(3)


class Arcs(NamedTuple):
    """The graph: `nodes` [N, C] and `arcs` [2E, 3] as above.

    `free` [1] is the first arc of the first edge that is not there, of which AFTER has the next, -1 the last.
    """

    nodes: np.ndarray
    arcs: np.ndarray
    free: np.ndarray


def make_arcs(graph: Graph, columns: int) -> Arcs:
    """A graph with so many columns more for each node, all zero; `link_all` makes its lists."""
    nodes = np.zeros((graph.num_nodes, FREE_COLUMN + columns), np.int32)
    nodes[:, FIRST], nodes[:, ALIVE] = -1, 1
    arcs = np.empty((2 * graph.num_edges, 3), np.int32)
    arcs[:, TO] = graph.edges[:, ::-1].ravel()
    return Arcs(nodes, arcs, np.full(1, -1, np.int32))


def edges_of(graph: Arcs) -> Int32[np.ndarray, "M 2"]:
    """The edges that are there."""
    ends = graph.arcs[:, TO].reshape(-1, 2)
    return ends[ends[:, 0] >= 0]


@inlined
def _link(graph, arc):
    nodes, arcs = graph.nodes, graph.arcs
    source = arcs[arc ^ 1, TO]
    head = nodes[source, FIRST]
    arcs[arc, AFTER], arcs[arc, BEFORE] = head, -1
    if head >= 0:
        arcs[head, BEFORE] = arc
    nodes[source, FIRST] = arc
    nodes[source, DEGREE] += 1


@inlined
def link_all(graph):
    """Puts every arc into the list of the node that it leaves."""
    for arc in range(graph.arcs.shape[0]):
        _link(graph, arc)


@inlined
def _unlink(graph, arc):
    nodes, arcs = graph.nodes, graph.arcs
    source, before, after = arcs[arc ^ 1, TO], arcs[arc, BEFORE], arcs[arc, AFTER]
    if before >= 0:
        arcs[before, AFTER] = after
    else:
        nodes[source, FIRST] = after
    if after >= 0:
        arcs[after, BEFORE] = before
    nodes[source, DEGREE] -= 1


@inlined
def add_edge(graph, u, v):
    """Joins two nodes in the place of an edge that was removed, of which there must be one."""
    arcs, arc = graph.arcs, graph.free[0]
    graph.free[0] = arcs[arc, AFTER]
    arcs[arc, TO], arcs[arc + 1, TO] = u, v
    _link(graph, arc)
    _link(graph, arc + 1)


@inlined
def remove_edge(graph, arc):
    """Removes an edge, of which one arc is given."""
    arcs = graph.arcs
    _unlink(graph, arc)
    _unlink(graph, arc ^ 1)
    arcs[arc, TO] = arcs[arc ^ 1, TO] = -1
    first = arc & ~1
    arcs[first, AFTER] = graph.free[0]
    graph.free[0] = first


# A graph that is being reduced for its largest independent sets, as the compiled rules see it.

RULES = ("isolated", "pendant", "clique", "fold", "funnel", "dominated", "unconfined")
ISOLATED, PENDANT, CLIQUE, FOLD, FUNNEL, DOMINATED, UNCONFINED = range(len(RULES))

# Columns of nodes: the stamp with which one was marked, a count that is valid where that stamp is, and whether the
# node is in the queue.
MARK, COUNT, _QUEUED = range(FREE_COLUMN, FREE_COLUMN + 3)
# Columns of `lists`: nodes whose neighbourhood has changed, a ring; scratch; and of the nodes that were taken, in
# this order, the node, the one to take instead or -1, and where the set that decides ends in `notes`.
_QUEUE, LIST, TAKEN, INSTEAD, END = range(5)
# Entries of `state`, after the number of nodes that went by each rule.
_STAMP, QUEUE_LENGTH, _QUEUE_BEGIN, NUM_TAKEN, NUM_NOTES, LOOKS, _LENGTH = range(len(RULES), len(RULES) + 7)


class Work(NamedTuple):
    """What is left of the graph, and what was done to it: `lists` [N, 5] and `state` [13] as above.

    `notes` [L] has sets of nodes, one after another; each decides between a node that was taken and another.
    """

    graph: Arcs
    lists: np.ndarray
    notes: np.ndarray
    state: np.ndarray


def make_work(graph: Graph) -> Work:
    """Of a graph to which nothing was done yet."""
    size = graph.num_nodes
    notes = np.zeros(size + 2 * graph.num_edges, np.int32)
    return Work(make_arcs(graph, 3), np.zeros((size, 5), np.int32), notes, np.zeros(_LENGTH, np.int64))


@inlined
def push(work, node):
    """Puts a node into the queue, unless it is there."""
    nodes, state = work.graph.nodes, work.state
    if not nodes[node, _QUEUED]:
        place = (state[_QUEUE_BEGIN] + state[QUEUE_LENGTH]) % nodes.shape[0]
        work.lists[place, _QUEUE] = node
        nodes[node, _QUEUED] = 1
        state[QUEUE_LENGTH] += 1


@inlined
def pop(work):
    """The first node of the queue, which may have been removed meanwhile."""
    state = work.state
    node = work.lists[state[_QUEUE_BEGIN], _QUEUE]
    state[_QUEUE_BEGIN] = (state[_QUEUE_BEGIN] + 1) % work.graph.nodes.shape[0]
    state[QUEUE_LENGTH] -= 1
    work.graph.nodes[node, _QUEUED] = 0
    return node


@inlined
def remove(work, node, rule):
    """Removes a node, and puts its neighbours into the queue."""
    graph = work.graph
    nodes = graph.nodes
    nodes[node, ALIVE] = 0
    work.state[rule] += 1
    while nodes[node, FIRST] >= 0:
        arc = nodes[node, FIRST]
        push(work, graph.arcs[arc, TO])
        remove_edge(graph, arc)


@inlined
def new_stamp(work):
    """A stamp that no node is marked with."""
    work.state[_STAMP] += 1
    return work.state[_STAMP]


@inlined
def mark_neighbours(work, node):
    """Marks the neighbours of a node with a new stamp, which is returned."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    stamp, arc = new_stamp(work), nodes[node, FIRST]
    while arc >= 0:
        nodes[arcs[arc, TO], MARK] = stamp
        arc = arcs[arc, AFTER]
    work.state[LOOKS] += nodes[node, DEGREE]
    return stamp


@inlined
def marked_neighbours(work, node, stamp):
    """How many neighbours of a node are marked with a stamp."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    count, arc = 0, nodes[node, FIRST]
    while arc >= 0:
        count += nodes[arcs[arc, TO], MARK] == stamp
        arc = arcs[arc, AFTER]
    work.state[LOOKS] += nodes[node, DEGREE]
    return count


@inlined
def note_taken(work, node, instead, end):
    """Notes that `node` is taken, or `instead` where a set meets the notes up to `end` since the last."""
    number = work.state[NUM_TAKEN]
    work.lists[number, TAKEN], work.lists[number, INSTEAD], work.lists[number, END] = node, instead, end
    work.state[NUM_TAKEN] += 1
    work.state[NUM_NOTES] = end


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


# Arcs that are looked at: so many times the size of the graph, and at least the other number. Sparse graphs need some
# tens of times their size; graphs on which rules are tested in vain and at length are given up after a second or so.
_MOST_LOOKS, _LEAST_LOOKS = 200, 10**7
COVER = "clique cover"


def reduce_sets(problem: Problem[Graph]) -> Presolved:
    """Reduces a problem `mis`, or `vertex_cover`, whose nodes that are left out are an independent set."""
    graph, cover = problem.source, not problem.maximise
    size = graph.num_nodes
    work = make_work(graph)
    complete = bool(reduce_graph(work, max(_LEAST_LOOKS, _MOST_LOOKS * (size + 2 * graph.num_edges))))
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
    if len(kept) == size:
        return unreduced(problem, complete)
    lists, notes = work.lists[:taken].copy(), work.notes[: work.state[NUM_NOTES]].copy()
    left = None
    if len(kept):
        place = np.empty(size, np.int32)
        place[kept] = np.arange(len(kept))
        left = part_of(problem, kept, Graph.from_arrays(problem.name, len(kept), place[edges_of(work.graph)]))

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
