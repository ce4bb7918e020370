"""Edges of a file as a simple graph; every message names the line at fault."""

from __future__ import annotations

from typing import Any

import numpy as np

from sl_discs.instances.graph import Graph, edge_codes, have_repeats


def simple_graph(name: str, num_nodes: int, ends, weights, rows: Any, merge: bool) -> Graph:
    """The graph with edges [E], in the order of the rows that they came from.

    Args:
      name: name of the graph.
      num_nodes: number of nodes.
      ends: two arrays [E] of nodes from 0 on.
      weights: [E] or None.
      rows: the lines of the edges, for messages.
      merge: whether an edge may be repeated, in either direction and with the same weight; otherwise a repetition is
        an error.

    Raises:
      InputError: a self-loop, a repeated edge unless `merge`, or conflicting weights of one edge.
    """
    u, v = ends
    rows.refuse(u == v, "an edge from node {0} to itself; remove the line (in a quadratic model, see format=coo)")
    if have_repeats(u, v, num_nodes):
        codes = edge_codes(u, v, num_nodes)
        order = np.argsort(codes, kind="stable")
        new = np.ones(len(codes), bool)
        new[1:] = np.diff(codes[order]) > 0
        first = order[new][np.cumsum(new) - 1]  # for each sorted row, the row in which its edge first appeared
        again = np.zeros(len(codes), bool)
        again[order] = ~new
        if not merge:
            rows.refuse(again, "edge {0} {1} is listed a second time; give each edge once, in one direction")
        elif weights is not None:
            differs = np.zeros(len(codes), bool)
            differs[order] = weights[order] != weights[first]
            rows.refuse(differs, "edge {0} {1} was given before with another weight than {2}; keep one of them")
        u, v, weights = u[~again], v[~again], None if weights is None else weights[~again]
    return Graph.from_arrays(name, num_nodes, np.stack([u, v], axis=1, dtype=np.int32, casting="unsafe"), weights)
