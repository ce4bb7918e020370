"""Stochastic localization as a sampler of DISCS, around any sampler of DISCS."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.batching import AnyArray, cond_for_batch
from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.errors import InputError
from sl_discs.localization.algorithm import LocalizedState, observe, tilt_of
from sl_discs.localization.schedule import Localization

# Counters under the step's key, far from those that jax.random uses for the base sampler.
_FIRST, _MOVE = 0x534C0000, 0x534C0001


def unobserved(base: Any, shape: tuple[int, ...]) -> LocalizedState:
    """Returns the state before the first step, without the observation, which `with_observation` draws.

    DISCS gives all graphs and devices the same initial state; only the keys of their steps tell them apart.
    """
    zeros = jnp.zeros(shape, jnp.float32)
    return LocalizedState(base, jnp.int32(0), jnp.int32(0), zeros, zeros)


def with_observation(rng: Array, state: LocalizedState, noise: float) -> LocalizedState:
    """Returns the state, with Y_0 ~ N(0, noise^2) before the first step, whose key is `rng`."""
    key = keys.fold(keys.from_rng(rng), _FIRST)
    y = cond_for_batch(jnp.all(state.step == 0), _draw_first, state.y, key, jnp.float32(noise))
    return state._replace(y=y)


def _draw_first(y: Float[Array, "B *spin_shape"], key: Array, noise) -> Float[Array, "B *spin_shape"]:
    return noise * keys.normals(key, y.shape)


def check_batch(x: Int[Array, "B *shape"], num_chains: int, states: States) -> None:
    """Raises InputError unless the batch has the shape of the sampler's observations."""
    if x.shape != (num_chains, *states.shape):
        raise InputError(
            f"a localized sampler got states of shape {x.shape}, but was built for {(num_chains, *states.shape)} "
            "from config.experiment.batch_size and config.model.shape"
        )


class LocalizedSampler:
    """Algorithm 1 of Wang et al. (ICML 2025) around a sampler of DISCS, in its calling convention.

    Such a sampler steps a whole batch, so `localization.algorithm` is applied to the batch as to one chain. The state
    is a dictionary: num_ll_calls and steps, which DISCS reads, and `chains`, a `LocalizedState` whose `base` is the
    base sampler's state and whose `y` and `mean` are [B, N], or [B, N, q] for q > 2 values. Later steps than
    `chain_length` stay at the last level.

    Args:
      base: the base sampler.
      localization: the hyperparameters.
      chain_length: number of MCMC steps in all.
      num_chains: B, on one device.

    Raises:
      InputError: a hyperparameter out of its range.
    """

    def __init__(self, base: BaseSampler, localization: Localization, chain_length: int, num_chains: int):
        self._base, self._num_chains = base, num_chains
        self._levels, self._first_noise = localization.levels(chain_length), localization.initial_noise()
        self._tilts = localization.tilt

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Returns the base sampler's initial state, without an observation."""
        base, shape = self._base.make_init_state(rng), (self._num_chains, *self._base.states.spin_shape)
        return {"num_ll_calls": base["num_ll_calls"], "steps": jnp.int32(0), "chains": unobserved(base, shape)}

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: dict[str, Any],
        x_mask: Bool[Array, "*shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """Makes one step of the base sampler on each chain's tilted target, then updates the observation.

        The base sampler gets the key, the states, the parameters and the mask as DISCS passes them.

        Args:
          model: of the log-likelihood, temperature included.
          rng: a new key for each call.
          x: states.
          model_param: the model's parameters.
          state: before the step.
          x_mask: sites that exist; None for all.
        """
        states = self._base.states
        check_batch(x, self._num_chains, states)
        chains = with_observation(rng, state["chains"], self._first_noise)
        tilt = None
        if self._tilts:
            on = 1.0 if x_mask is None else states.over_values(x_mask.reshape(-1))
            tilt = tilt_of(self._levels, chains) * on
        new_x, base, acceptance = self._base.step(model, rng, x, model_param, chains.base, x_mask, tilt)
        spins = jax.vmap(states.sites.spins)(states.integers(new_x.reshape(len(x), -1)))
        chains = observe(keys.fold(keys.from_rng(rng), _MOVE), self._levels, chains, base, spins)
        new_state = {"num_ll_calls": base["num_ll_calls"], "steps": state["steps"] + 1, "chains": chains}
        return new_x, new_state, acceptance

    def final_sample(self, state: dict[str, Any]) -> Int[AnyArray, "B *shape"]:
        """Returns sign(Y_K / alpha(t_K)) of each chain, or the largest entry of each site, as integers.

        It is a sample only if the run localizes (`Localization.localizes`); otherwise the chain's state is the
        sample.
        """
        states = self._base.states
        return states.in_shape(states.sites.decode(state["chains"].y))
