"""What a flip does to the local field of one chain, for dense rows and for neighbour lists."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

_F = np.float32


class Target(NamedTuple):
    """f of one instance and what tilts it, for a chain of padded length N; the unused form of K is empty.

    Attributes:
      linear: [N] c.
      scale: J = scale K.
      dense: whether `rows` hold K.
      rows: [N, N] K.
      neighbours: [N, D] neighbours of each site; the number N' of the model's sites ends a list.
      weights: [N, D] their couplings.
      num_sites: N' <= N.
      mask: [N] 1 where a site may flip, else 0.
    """

    linear: np.ndarray
    scale: np.float32
    dense: bool
    rows: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    num_sites: int
    mask: np.ndarray


@numba.njit
def flip(target, spins, coupled, site):
    """Flips a site in place; returns the changes of c.x and of x'Kx/2."""
    delta = -spins[site]
    change_linear = np.float64(delta * target.linear[site])
    change_pairs = np.float64(delta * coupled[site])
    if target.dense:
        row = target.rows[site]
        for i in range(row.shape[0]):
            coupled[i] += delta * _F(row[i])
    else:
        for k in range(target.neighbours.shape[1]):
            other = target.neighbours[site, k]
            if other >= target.num_sites:
                break
            coupled[other] += delta * _F(target.weights[site, k])
    spins[site] = delta
    return change_linear, change_pairs
