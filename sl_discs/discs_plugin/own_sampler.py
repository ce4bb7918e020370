"""Samplers of sl_discs on models of DISCS."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.batching import over_chains
from sl_discs.discs_plugin.states import States
from sl_discs.models.functions import GradientModel, ValueAndGrad
from sl_discs.models.sites import Categories, Sites, TwoValues
from sl_discs.models.tilted import Tilted, TiltedParams
from sl_discs.samplers.base import Sampler


@dataclasses.dataclass(frozen=True)
class BatchModel(GradientModel):
    """A model for single states, made from one that gives values and gradients of batches in coordinates."""

    inner: Any
    states: States

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """Number of sites of a flattened state."""
        return math.prod(self.states.shape)

    @property
    def sites(self) -> Sites:  # type: ignore[override]  # a field of other models
        """Two values each, or q."""
        return Categories((self.states.num_values,) * self.num_sites) if self.states.several else TwoValues()

    def init(self, params, x):
        """Value and gradient at x."""
        z = self.states.coordinates(x.reshape(1, *self.states.shape)).astype(jnp.float32)
        value, grad = self.inner.get_value_and_grad(params, z)
        grad = grad.reshape(self.sites.shape(self.num_sites))
        return ValueAndGrad(value[0].astype(jnp.float32), grad.astype(jnp.float32))

    def flip(self, params, x, field, flips):
        """The state after the move, and its value and gradient."""
        if self.states.several:
            return flips, self.init(params, flips)
        return super().flip(params, x, field, flips)


class OwnSampler:
    """A sampler of sl_discs in DISCS's calling convention; every chain adapts on its own.

    Its state is a dictionary of num_ll_calls, steps and `chains`, the sampler's own states, leaves [B, ...].

    Args:
      name: for messages.
      sampler: the kernel; for more than two values, one that takes them (`Sampler.several_values`).
      num_chains: B, on one device.
      states: of its batches.
    """

    def __init__(self, name: str, sampler: Sampler, num_chains: int, states: States):
        self.name = name
        self.states = states
        self._sampler = sampler
        self._num_chains = num_chains

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Counters at zero, and the sampler's first state for each chain."""
        del rng
        one = self._sampler.init_state(math.prod(self.states.shape))
        chains = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self._num_chains, *leaf.shape)), one)
        return {"num_ll_calls": jnp.int32(0), "steps": jnp.int32(0), "chains": chains}

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: dict[str, Any],
        x_mask: Bool[Array, "*shape"] | None = None,
        tilt: Float[Array, "B *spin_shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """One step of each chain on the log-likelihood plus <s(x), tilt>, where s are the spins."""
        target = Tilted(BatchModel(model, self.states))
        flat = x.reshape(x.shape[0], -1).astype(jnp.int8)
        mask = jnp.ones(flat.shape[1], bool) if x_mask is None else x_mask.reshape(-1).astype(bool)
        tilts = None if tilt is None else tilt.reshape(len(x), *target.sites.shape(target.num_sites))
        root = keys.from_rng(rng)

        def one(chain, x, own, tilt):
            params = TiltedParams(model_param, jnp.float32(1), tilt)
            key = keys.fold(root, chain)
            x, _, own, info = self._sampler.kernel(key, target, params, x, target.init(params, x), own, mask)
            return x, own, info.acceptance

        flat, chains, acceptance = over_chains(one)(jnp.arange(x.shape[0]), flat, state["chains"], tilts)
        calls = jax.tree.leaves(chains.num_ll_calls)[0][0]
        new_state = {"num_ll_calls": calls, "steps": state["steps"] + 1, "chains": chains}
        return flat.reshape(x.shape).astype(x.dtype), new_state, jnp.mean(acceptance)
