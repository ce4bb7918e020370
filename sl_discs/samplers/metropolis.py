"""Single-site Metropolis."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from sl_discs.samplers.single_site import SingleSiteSampler


@dataclasses.dataclass(frozen=True)
class Metropolis(SingleSiteSampler):
    """Flips with probability min(1, exp(change)).

    A change of 0 is always accepted: if no flip changes f, as at infinite temperature, a sequential scan flips every
    site in every sweep and reaches few states. `Gibbs` does not have this problem.
    """

    def acceptance(self, change):
        """min(1, exp(change))."""
        return jnp.exp(jnp.minimum(change, 0.0))
