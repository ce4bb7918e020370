"""Samplers of sl_discs in DISCS's calling convention."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs.batching import AnyArray
from sl_discs.discs_plugin.base_sampler import States
from sl_discs.discs_plugin.localized_sampler import check_batch, unobserved, with_observation
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.schedule import Localization
from sl_discs.models.functions import GradientModel, ValueAndGrad
from sl_discs.models.sites import Sites
from sl_discs.samplers.base import Sampler


@dataclasses.dataclass(frozen=True)
class BatchModel(GradientModel):
    """A model for single flat states, made from one of DISCS that gives values and gradients of batches."""

    inner: Any
    states: States

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """N."""
        return self.states.num_sites

    @property
    def sites(self) -> Sites:  # type: ignore[override]  # a field of other models
        """The sites of a flat state."""
        return self.states.sites

    def init(self, params, x):
        z = self.states.in_shape(self.states.coordinates(x[None])).astype(jnp.float32)
        value, grad = self.inner.get_value_and_grad(params, z)
        return ValueAndGrad(value[0].astype(jnp.float32), grad.reshape(self.states.spin_shape).astype(jnp.float32))


class OwnSampler:
    """A sampler of sl_discs in DISCS's calling convention, localized or not; every chain adapts on its own.

    Its state is a dictionary of num_ll_calls, steps and `chains`, the sampler's own states, leaves [B, ...].

    Args:
      sampler: the base sampler; for more than two values, one that takes them (`Sampler.several_values`).
      num_chains: B, on one device.
      states: of its batches.
      localization: around it; None: the base sampler itself.
      chain_length: number of MCMC steps in all, of localization.

    Raises:
      InputError: a hyperparameter of localization out of its range.
    """

    def __init__(
        self,
        sampler: Sampler,
        num_chains: int,
        states: States,
        localization: Localization | None = None,
        chain_length: int = 0,
    ):
        self._states, self._num_chains, self._localization = states, num_chains, localization
        self._base = self._sampler = sampler
        if localization is not None:
            self._sampler = Localized(sampler, localization.levels(chain_length))

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Returns counters at zero, and the sampler's first state for each chain."""
        del rng
        one = self._base.init_state(self._states.num_sites)
        if self._localization is not None:
            one = unobserved(one, self._states.spin_shape)
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
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """Makes one step of each chain: `Sampler.step` on flat states."""
        chains = state["chains"]
        if self._localization is not None:
            check_batch(x, self._num_chains, self._states)
            chains = with_observation(rng, chains, self._localization.initial_noise())
        flat, mask = x.reshape(x.shape[0], -1), None if x_mask is None else x_mask.reshape(-1)
        own = BatchModel(model, self._states)
        flat, chains, acceptance = self._sampler.step(own, rng, flat, model_param, chains, mask)
        calls = state["num_ll_calls"] + self._base.calls_a_step
        new_state = {"num_ll_calls": calls, "steps": state["steps"] + 1, "chains": chains}
        return flat.reshape(x.shape), new_state, acceptance

    def final_sample(self, state: dict[str, Any]) -> Int[AnyArray, "B *shape"]:
        """Returns the states whose spins are closest to the observations at the end of a run."""
        return self._states.in_shape(self._states.sites.decode(state["chains"].y))
