"""Samplers that try to flip one uniformly drawn site a step: what gibbs and metropolis share."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs import keys
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import draw_site


class SingleSiteState(NamedTuple):
    """Steps done and log-likelihood calls (2 a step)."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class SingleSiteSampler(Sampler):
    """Random scan; a subclass says with what probability a change of log-density is accepted."""

    calls_a_step: ClassVar[int] = 2

    num_chains: int = 1

    @abc.abstractmethod
    def acceptance(self, change: Float[Array, ""]) -> Float[Array, ""]:
        """Probability of flipping when the log-density changes by `change`."""

    def init_state(self, num_sites):
        """Counters at zero."""
        return SingleSiteState(jnp.int32(0), jnp.int32(0))

    def kernel(self, key, model, params, x, field, state, mask):
        """Draw a site, flip it with the rule's probability."""
        site = draw_site(keys.fold(key, 0), mask.astype(jnp.float32))
        flips = jnp.arange(x.shape[0]) == site
        y, field_y = model.flip(params, x, field, flips)
        acceptance = self.acceptance(model.change(params, x, field, flips, field_y))
        uniform = keys.uniforms(keys.fold(key, 1))
        accepted = uniform < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        state = SingleSiteState(state.steps + 1, state.num_ll_calls + self.calls_a_step)
        return x, field, state, Info(acceptance, accepted.astype(jnp.float32))
