"""Single-site Metropolis."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp

from sl_discs.samplers.single_site import SEQUENTIAL, SingleSiteSampler

# A sequential scan takes a change of 0 for this one, which is accepted with probability 0.9.
TIE = math.log(0.9)


@dataclasses.dataclass(frozen=True)
class Metropolis(SingleSiteSampler):
    """Flips, or takes one of several alternatives drawn uniformly, with probability min(1, exp(change)).

    A sequential scan accepts a change of 0 with probability 0.9, which keeps the target invariant too. At 1 it would
    move everything that costs nothing in every sweep and always in the same direction, such as the two boundaries of
    a domain on a ring of spins, which then never meet; at 1/2 it would need more sweeps where much costs nothing.
    """

    def logits(self, gains):
        """Zeros."""
        return jnp.zeros_like(gains)

    def acceptance(self, change, log_chance):
        """min(1, exp(change)), and 0.9 at 0 in a sequential scan."""
        if self.scan == SEQUENTIAL:
            change = jnp.where(change == 0, TIE, change)
        return jnp.exp(jnp.minimum(change, 0.0))
