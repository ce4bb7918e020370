"""Lets a sampler that only has DISCS's batched `step` be run chain by chain."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from sl_discs import keys
from sl_discs.samplers.base import Info, Sampler


@dataclasses.dataclass(frozen=True, eq=False)
class StepSampler(Sampler):
    """A batch of one chain for `inner.step(model, rng, x, model_param, state, x_mask)`.

    `inner` sees models with `forward(params, x)` and `get_value_and_grad(params, x)` on x [1, N] int32; anything that
    it shares between the chains of a batch belongs to a single chain here. The field is recomputed after each step.
    """

    inner: Any
    num_chains: int = 1

    def init_state(self, num_sites):
        """The inner sampler's state."""
        return self.inner.make_init_state(jax.random.key(0))

    def kernel(self, key, model, params, x, field, state, mask):
        """One step of the inner sampler."""
        rng = jax.random.wrap_key_data(keys.fold(key, 0))
        y, state, acceptance = self.inner.step(model, rng, x[None].astype(jnp.int32), params, state, mask)
        y = y[0].astype(x.dtype)
        hops = jnp.sum(y != x, dtype=jnp.float32)
        return y, model.init(params, y), state, Info(jnp.mean(jnp.float32(acceptance)), hops)
