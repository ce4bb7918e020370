"""The part of a graph in which every node has many neighbours."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool
from scipy import sparse

from sl_discs.engines.cpu.jit import entered


def core(adjacency: sparse.csr_matrix, least: int) -> Bool[np.ndarray, "N"]:
    """Which nodes [N] are left when nodes with fewer than `least` neighbours are removed until there is none."""
    degrees = np.diff(adjacency.indptr)
    _peel(adjacency.indptr, adjacency.indices, degrees, np.empty_like(degrees), least)
    return degrees >= least


@entered
def _peel(starts, others, degrees, queue, least):
    """Lowers degrees to those in the core; those outside come out below `least`."""
    length = 0
    for node in range(degrees.shape[0]):
        if degrees[node] < least:
            queue[length] = node
            length += 1
    begin = 0
    while begin < length:
        node = queue[begin]
        begin += 1
        for k in range(starts[node], starts[node + 1]):
            other = others[k]
            if degrees[other] >= least:
                degrees[other] -= 1
                if degrees[other] < least:
                    queue[length] = other
                    length += 1
