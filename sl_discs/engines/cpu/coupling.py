"""The effect of a flip on the local field of one chain, for dense rows and for neighbour lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import inlined

# Unsigned, as in tree.py.
_NEXT = np.uint64(1)


class Target(NamedTuple):
    """f of one instance, for a chain of padded length N; the unused form of K is empty.

    Attributes:
      linear: [N] c.
      scale: J = scale K.
      dense: whether `rows` hold K.
      rows: [N, M] K, int8 or float32; M may be larger than N.
      starts: [N + 1] where the entries of each site begin in the two lists.
      neighbours: [E] neighbours of all sites, concatenated.
      weights: [E] their couplings.
      mask: [N] 1 where a site may flip, else 0.
      open_sites: [A] the sites that may flip.
    """

    linear: np.ndarray
    scale: np.float32
    dense: bool
    rows: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    open_sites: np.ndarray


@inlined
def flip(target, spins, coupled, site):
    """Flips a site in place; returns the changes of c.x and of x'Kx/2.

    Args:
      target: f.
      spins: [N] -1 or 1.
      coupled: [N] Kx, in int16 or int32 if K is int8, else in float64: a flip and a flip back leave what was there.
      site: which site.
    """
    sign = -spins[site]
    spins[site] = sign
    if target.dense:
        row = target.rows[site]
        if sign > 0:
            for i in range(coupled.shape[0]):
                coupled[i] += row[i]
        else:
            for i in range(coupled.shape[0]):
                coupled[i] -= row[i]
    else:
        # Multiplied by the sign, as the processor could not predict a branch between two loops.
        by = coupled.dtype.type(sign)
        for k in range(target.starts[site], target.starts[site + _NEXT]):
            coupled[target.neighbours[k]] += by * target.weights[k]
    # No site is its own neighbour, so `coupled[site]` is what it was.
    return np.float64(sign) * target.linear[site], np.float64(sign) * coupled[site]
