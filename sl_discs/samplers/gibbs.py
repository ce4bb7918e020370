"""Gibbs sampling (Glauber dynamics)."""

from __future__ import annotations

import dataclasses

import jax

from sl_discs.samplers.single_site import SingleSiteSampler


@dataclasses.dataclass(frozen=True)
class Gibbs(SingleSiteSampler):
    """Resamples the site from its conditional distribution: it flips with probability sigmoid(change)."""

    def acceptance(self, change):
        """sigmoid(change)."""
        return jax.nn.sigmoid(change)
