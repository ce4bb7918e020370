"""Gibbs sampling (Glauber dynamics)."""

from __future__ import annotations

import dataclasses

import jax

from sl_discs.samplers.single_site import SingleSiteSampler


@dataclasses.dataclass(frozen=True)
class Gibbs(SingleSiteSampler):
    """Resamples the site from its conditional distribution: it flips with probability sigmoid(change).

    Of several alternatives v with gains g_v it draws one by exp(g_v), and accepts it with probability
    sigmoid(log sum_v exp(g_v)): together these are the conditional probabilities of all values.
    """

    def logits(self, gains):
        """The gains."""
        return gains

    def acceptance(self, change, log_chance):
        """sigmoid(change - log_chance), as exp(change) is the chance times the total weight of all alternatives."""
        return jax.nn.sigmoid(change - log_chance)
