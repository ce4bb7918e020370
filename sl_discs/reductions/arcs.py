"""A graph that shrinks, for the compiled rules that reduce independent sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from sl_discs.engines.cpu.jit import inlined
from sl_discs.instances.graph import Graph

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
    """Returns a graph with `columns` more numbers for each node, all zero; `link_all` makes its lists."""
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
    """Returns the initial state of a graph."""
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
