"""Targets on three or four sites, small enough for the oracle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sl_discs.testing.enumeration import all_states
from sl_discs.testing.oracle import LogDensity


class Target(NamedTuple):
    """exp(f(x)/temperature + <s, h>) for f(x) = c.x + scale/2 x'Kx.

    Attributes:
      linear: [N] c.
      couplings: [N, N] K, symmetric with zero diagonal.
      scale: of K.
      tilt: [N] h, or None for a chain that is not localized.
      mask: [N] sites that may flip.
    """

    linear: Float[np.ndarray, "N"]
    couplings: Float[np.ndarray, "N N"]
    scale: float
    tilt: Float[np.ndarray, "N"] | None
    mask: Bool[np.ndarray, "N"]

    def log_density(self, temperature: float) -> LogDensity:
        """At every state, up to a constant."""
        x = all_states(len(self.mask)).astype(np.float64)
        value = x @ self.linear + self.scale / 2 * np.einsum("si,ij,sj->s", x, self.couplings, x)
        return value / temperature + (0 if self.tilt is None else (2 * x - 1) @ self.tilt)


def small_targets(num_sites: int, *, tilted: bool = True, whole: bool = True) -> list[Target]:
    """Four targets: coupled densely; with a masked site; with two open sites and no couplings; coupled sparsely.

    Args:
      num_sites: 3 or 4.
      tilted: whether they have tilts.
      whole: whether K has whole numbers, which are stored in another way than real ones.
    """
    couplings = np.array([[0, 1, 2, -1], [1, 0, 1, 3], [2, 1, 0, 1], [-1, 3, 1, 0]]) * (1.0 if whole else 0.7)
    path = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    # Of these numbers no sum is 0, which would be a tie for some engines, but not for those that round it otherwise.
    linear, tilt = np.array([0.5, -0.3, 1.0, 0.2]), np.array([0.43, -0.31, 0.17, 0.0])
    everywhere, some, two = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0]], bool)
    targets = [
        Target(linear, couplings, -0.5, tilt, everywhere),
        Target(-linear, couplings, 0.4, -tilt, some),
        Target(linear, 0 * couplings, 1.0, tilt, two),
        Target(linear, path, -1.0, 0 * tilt, everywhere),
    ]
    kept = slice(num_sites)
    return [
        Target(c[kept], K[kept, kept], scale, h[kept] if tilted and h is not None else None, mask[kept])
        for c, K, scale, h, mask in targets
    ]
