"""Samplers that flip each site independently, with a probability given by all gains: the common part of the Langevin
samplers and of block_gibbs.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import LOWEST_LOGIT


class Counters(NamedTuple):
    """Steps done, and log-likelihood calls (4 per step, as in DISCS)."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]


def log_probability(logits: Float[Array, "N"], flips: Bool[Array, "N"]) -> Float[Array, ""]:
    """Log-probability of flipping exactly these sites, each with probability sigmoid(logit)."""
    return -jnp.sum(jnp.log(1 + jnp.exp(jnp.where(flips, -logits, logits))))


def bounded(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> Float[Array, "N"]:
    """Logits between -80 and 80, whose probabilities are normal numbers in float32; -inf outside the mask."""
    return jnp.where(mask, jnp.clip(logits, LOWEST_LOGIT, -LOWEST_LOGIT), -jnp.inf)


class IndependentFlips(Sampler):
    """Flips site i with probability sigmoid(logit_i), for all sites at once; a subclass gives the logits."""

    @property
    def adjusted(self) -> bool:
        """Whether the Metropolis-Hastings test is applied, without which most of these samplers are not exact."""
        return True

    def balanced(self, gains: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Log-weights of the alternatives: the gains, unless a subclass balances them."""
        return gains

    @abc.abstractmethod
    def logits(self, balanced: Float[Array, "N"], state: Any, mask: Bool[Array, "N"]) -> Float[Array, "N"]:
        """The logits of the sites, given the log of the total weight of their alternatives; -inf outside the mask."""

    def init_state(self, num_sites):
        """Counters at zero."""
        return Counters(jnp.int32(0), jnp.int32(0))

    def next_state(self, state: Any, acceptance: Float[Array, ""], mask: Bool[Array, "N"]) -> Any:
        """The sampler's state after a step."""
        return Counters(state.steps + 1, state.num_ll_calls + self.calls_a_step)

    def kernel(self, key, model, params, x, field, state, mask):
        """Flips each site independently, and applies the Metropolis-Hastings test with the reverse flips from y."""
        sites = model.sites
        weights = self.balanced(model.gains(params, x, field))
        logits = self.logits(sites.total(x, weights), state, mask)
        flips = keys.uniforms(keys.fold(key, 0), x.shape) < jax.nn.sigmoid(logits)
        move = sites.choose(keys.fold(key, 2), x, weights, flips)
        y, field_y = model.flip(params, x, field, move)
        if self.adjusted:
            weights_y = self.balanced(model.gains(params, y, field_y))
            logits_y = self.logits(sites.total(y, weights_y), state, mask)
            log_back = log_probability(logits_y, flips) + sites.log_chance(y, x, weights_y)
            log_there = log_probability(logits, flips) + sites.log_chance(x, y, weights)
            log_ratio = model.change(params, x, field, move, field_y) + log_back - log_there
            acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        else:
            acceptance = jnp.float32(1)
        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        return x, field, self.next_state(state, acceptance, mask), Info(acceptance, hops)
