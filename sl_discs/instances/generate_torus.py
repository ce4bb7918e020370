"""Spin glasses on a 3-D torus with weights +-1: the family of the Optsicom sg3dl05 MaxCut instances."""

from __future__ import annotations

import numpy as np

from sl_discs.instances.graph import Graph


def draw_torus(rng: np.random.Generator, name: str, side: int = 5) -> Graph:
    """A periodic side x side x side grid (6 neighbours per node; side >= 3), with weights -1 or 1 equally likely.

    Node x * side^2 + y * side + z is the site (x, y, z). For side 5: 125 nodes, 375 edges.
    """
    site = np.arange(side**3).reshape(side, side, side)
    pairs = [np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in range(3)]
    edges = np.sort(np.concatenate(pairs), axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return Graph.from_arrays(name, side**3, edges, 2.0 * rng.integers(2, size=len(edges)) - 1.0)
