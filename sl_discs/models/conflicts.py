"""The repair of sets with conflicts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int


def drop_conflicts(
    chosen: Bool[np.ndarray, "N"], pairs: Int[np.ndarray, "P 2"], *, joined: bool = False
) -> Bool[np.ndarray, "N"]:
    """Drops chosen nodes until no two of the rest conflict: most conflicts first, ties to the lowest index.

    Every drop removes at least one of V conflicts, so at least |chosen| - V nodes remain, and never fewer than the
    floor of the penalised objective |chosen| - lambda V when lambda >= 1.

    Args:
      chosen: [N] the set.
      pairs: [P, 2] the pairs that conflict, both ends chosen, each pair once.
      joined: whether `pairs` are instead those that do not conflict, while all others do.

    Returns:
      [N] the remaining set.
    """
    heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
    tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[np.argsort(heads, kind="stable")]
    degrees = np.bincount(heads, minlength=len(chosen))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    remaining = chosen.copy()
    conflicts = np.where(chosen, np.count_nonzero(chosen) - 1 - degrees, 0) if joined else degrees
    while conflicts[node := int(np.argmax(conflicts))] > 0:
        remaining[node] = False
        others = tails[starts[node] : starts[node + 1]]
        if joined:
            conflicts -= remaining
            conflicts[others] += remaining[others]
        else:
            conflicts[others] -= 1
        conflicts[node] = 0
    return remaining
