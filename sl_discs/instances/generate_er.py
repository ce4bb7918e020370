"""Erdos-Renyi graphs G(n, p), with n uniform between two bounds (inclusive)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int32

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph


def erdos_renyi_edges(rng: np.random.Generator, num_nodes: int, p: float) -> Int32[np.ndarray, "E 2"]:
    """Edges of G(num_nodes, p), sorted by (u, v): every pair u < v is an edge with probability p, independently.

    Each pair takes one uniform number, drawn row by row, so memory beyond the edges is linear in the number of nodes.
    """
    rows = [
        np.flatnonzero(rng.random(num_nodes - 1 - u) < p).astype(np.int32) + (u + 1) for u in range(num_nodes - 1)
    ]
    sources = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
    return np.stack([sources, np.concatenate([np.zeros(0, np.int32), *rows])], axis=1)


def draw_mis_er(rng: np.random.Generator, name: str, low: int, high: int, p: float) -> Graph:
    """An unweighted G(n, p), n uniform in low..high: the MIS test graphs of DISCS (700-800 nodes)."""
    num_nodes = int(rng.integers(low, high, endpoint=True))
    return Graph.from_arrays(name, num_nodes, erdos_renyi_edges(rng, num_nodes, p))


def draw_maxcut_er(rng: np.random.Generator, name: str, low: int, high: int, p: float) -> Graph:
    """The largest component of a G(n, p), n uniform in low..high, with every edge of weight 1 (DISCS MaxCut).

    If the largest component (among equally large ones, the one with the smallest node) has fewer than `low` nodes,
    the graph is discarded and drawn again, n included. Nodes keep their order.

    Raises:
      InputError: a thousand graphs in a row were too small, so p is far too low for `low` nodes to connect.
    """
    for _ in range(1000):
        num_nodes = int(rng.integers(low, high, endpoint=True))
        edges = erdos_renyi_edges(rng, num_nodes, p)
        kept = _largest_component(num_nodes, edges)
        if kept.sum() >= low:
            break
    else:
        raise InputError(f"{name}: no component of {low} nodes in 1000 graphs at p = {p}; raise p or lower the sizes")
    new_label = np.cumsum(kept, dtype=np.int32) - 1
    edges = new_label[edges[kept[edges[:, 0]]]]
    return Graph.from_arrays(name, int(kept.sum()), edges, np.ones(len(edges)))


def _largest_component(num_nodes: int, edges: Int32[np.ndarray, "E 2"]) -> Bool[np.ndarray, "n"]:
    """Membership in the largest component, found by spreading the smallest label until nothing changes."""
    label = np.arange(num_nodes)
    while True:
        smaller = label.copy()
        np.minimum.at(smaller, edges[:, 0], label[edges[:, 1]])
        np.minimum.at(smaller, edges[:, 1], label[edges[:, 0]])
        if (smaller == label).all():
            return label == np.argmax(np.bincount(label))
        label = smaller
