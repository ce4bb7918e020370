"""A graph from which nodes are removed and into which edges are put, in arrays of fixed size, as compiled loops.

Edge e is the arcs 2e and 2e + 1, one in each direction, so the opposite of arc a is a ^ 1. The arcs that leave a node
are linked in both directions, so that an edge is removed without looking for it. Places of removed edges are linked
as well, for later edges. All numbers about a node, or about an arc, stand side by side in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from sl_discs.engines.cpu.jit import inlined
from sl_discs.instances.graph import Graph

# Columns of `nodes`: the first arc that leaves a node (-1: none), how many do, and whether the node is still there.
# Columns from `FREE_COLUMN` on belong to whoever uses the graph.
FIRST, DEGREE, ALIVE, FREE_COLUMN = range(4)
# Columns of `arcs`: where an arc ends (-1: it is not there), the next one that leaves the same node, the one before.
TO, AFTER, BEFORE = range(3)


class Arcs(NamedTuple):
    """The graph.

    Attributes:
      nodes: [N, C] as above.
      arcs: [2E, 3] as above.
      free: [1] the first arc of the first edge that is not there; AFTER has the next, -1 the last.
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
