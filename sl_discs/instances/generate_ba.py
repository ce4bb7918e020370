"""Barabasi-Albert graphs: each new node attaches to m earlier ones, preferring those with many neighbours."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

from sl_discs.instances.graph import Graph


def barabasi_albert_edges(rng: np.random.Generator, num_nodes: int, m: int) -> Int32[np.ndarray, "E 2"]:
    """The (num_nodes - m) m edges of a preferential-attachment graph that grows from a star of m + 1 nodes.

    A new node draws end points of existing edges uniformly until it has m different ones (Barabasi and Albert,
    1999; networkx starts from the same star). The generator is implemented here so that a seed gives the same graph
    under every version of networkx. Needs 1 <= m < num_nodes.
    """
    edges = [(0, leaf) for leaf in range(1, m + 1)]
    ends = [node for edge in edges for node in edge]  # each node appears once per neighbour
    for node in range(m + 1, num_nodes):
        targets: set[int] = set()
        while len(targets) < m:
            targets.update(ends[i] for i in rng.integers(len(ends), size=m - len(targets)).tolist())
        for target in sorted(targets):
            edges.append((target, node))
            ends += (target, node)
    edges = np.array(edges, dtype=np.int32)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def draw_maxcut_ba(rng: np.random.Generator, name: str, low: int, high: int, m: int) -> Graph:
    """A Barabasi-Albert graph, n uniform in low..high, with every edge of weight 1 (DISCS MaxCut)."""
    num_nodes = int(rng.integers(low, high, endpoint=True))
    edges = barabasi_albert_edges(rng, num_nodes, m)
    return Graph.from_arrays(name, num_nodes, edges, np.ones(len(edges)))
