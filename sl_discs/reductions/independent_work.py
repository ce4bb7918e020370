"""A graph that is being reduced for its largest independent sets, as the compiled rules see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import inlined
from sl_discs.instances.graph import Graph
from sl_discs.reductions.arcs import AFTER, ALIVE, DEGREE, FIRST, FREE_COLUMN, TO, Arcs, make_arcs, remove_edge

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
    """The graph, and what was done to it.

    Attributes:
      graph: what is left.
      lists: [N, 5] as above.
      notes: [L] sets of nodes, one after another; each decides between a node that was taken and another.
      state: [13] as above.
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
