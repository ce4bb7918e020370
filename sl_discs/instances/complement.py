"""The complement of a graph: its cliques are the independent sets of the graph, and the other way round."""

from __future__ import annotations

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph

MOST_EDGES = 5 * 10**7


def complement(graph: Graph) -> Graph:
    """The graph on the same nodes with exactly the edges that this one lacks, sorted; it has no reference.

    Raises:
      InputError: the graph has weights other than 1, which its missing edges would lack, or there would be over 50
        million edges.
    """
    n = graph.num_nodes
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(f"{graph.name}: missing edges have no weights; give a graph without weights other than 1")
    count = n * (n - 1) // 2 - graph.num_edges
    if count > MOST_EDGES:
        raise InputError(f"{graph.name}: the complement has {count} edges; at most {MOST_EDGES} are supported")
    order = np.lexsort((graph.edges[:, 1], graph.edges[:, 0]))
    u, v = graph.edges[order].T
    starts = np.searchsorted(u, np.arange(n + 1))
    edges = np.empty((count, 2), np.int32)
    filled = 0
    for node in range(n):
        missing = np.ones(n - node - 1, bool)
        missing[v[starts[node] : starts[node + 1]] - node - 1] = False
        others = np.flatnonzero(missing) + node + 1
        edges[filled : filled + len(others)] = np.stack([np.full(len(others), node), others], axis=1)
        filled += len(others)
    return Graph.from_arrays(graph.name, n, edges)
