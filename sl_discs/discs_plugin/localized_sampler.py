"""Stochastic localization as a sampler of DISCS, around any sampler of DISCS."""

from __future__ import annotations

from typing import Any, Protocol

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.batching import cond_for_batch
from sl_discs.discs_plugin.base_sampler import State, States
from sl_discs.errors import InputError
from sl_discs.localization.algorithm import Observation, localized_step
from sl_discs.localization.schedule import Localization

# Counters under the step's key, far from those that jax.random uses for the base sampler.
_FIRST, _MOVE = 0x534C0000, 0x534C0001


class TiltableSampler(Protocol):
    """A sampler that can be localized, as it takes a tilt (`BaseSampler`, `OwnSampler`)."""

    name: str
    states: States

    def make_init_state(self, rng: Array) -> State:
        """A dictionary with num_ll_calls and steps."""

    def step(self, model, rng, x, model_param, state, x_mask=None, tilt=None):
        """New states, state, mean acceptance."""


class LocalizedSampler:
    """Algorithm 1 of Wang et al. (ICML 2025) in DISCS's calling convention.

    Its state is a dictionary: num_ll_calls and steps, which DISCS reads; `base`, the base sampler's state; `level`,
    from 0 to K - 1; `y` [B, *spin_shape], the observation; `mean` [B, *spin_shape], the running posterior mean of the
    spins, which are -1 and 1, or centred one-hot vectors for more than two values (`States`). Steps after
    `chain_length` stay at the last level. If DISCS divides the chains among devices, every chain still gets its own
    observation, as it is drawn in the first step from that step's key.

    Args:
      base: the base sampler.
      localization: the hyperparameters.
      chain_length: number of MCMC steps in all.
      num_chains: B, on one device.

    Raises:
      InputError: a hyperparameter out of its range.
    """

    def __init__(self, base: TiltableSampler, localization: Localization, chain_length: int, num_chains: int):
        self._base = base
        self._levels = localization.levels(chain_length)
        self._first_noise = localization.initial_noise()
        self._num_chains = num_chains

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """The base sampler's initial state, and a placeholder for the observation, which the first step draws."""
        base = self._base.make_init_state(rng)
        zeros = jnp.zeros((self._num_chains, *self._base.states.spin_shape), jnp.float32)
        return {
            "num_ll_calls": base["num_ll_calls"],
            "steps": jnp.int32(0),
            "base": base,
            "level": jnp.int32(0),
            "y": zeros,
            "mean": zeros,
        }

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: dict[str, Any],
        x_mask: Bool[Array, "*shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """One step of the base sampler on each chain's tilted target, and the update of the observation after it.

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
        if x.shape != (self._num_chains, *states.shape):
            raise InputError(
                f"sl_{self._base.name}: states of shape {x.shape}, but the sampler was built for "
                f"{(self._num_chains, *states.shape)} from config.experiment.batch_size and config.model.shape"
            )
        key = keys.from_rng(rng)
        y = cond_for_batch(state["steps"] == 0, self._draw_first, state["y"], key)

        def base_step(tilt):
            tilt = tilt if x_mask is None else tilt * states.over_values(x_mask)
            after = self._base.step(model, rng, x, model_param, state["base"], x_mask, tilt)
            return states.spins(after[0]), after

        before = Observation(y, state["mean"])
        observation, level, (new_x, base, acceptance) = localized_step(
            keys.fold(key, _MOVE), self._levels, state["level"], state["steps"], before, base_step
        )
        new_state = {
            "num_ll_calls": base["num_ll_calls"],
            "steps": state["steps"] + 1,
            "base": base,
            "level": level,
            "y": observation.y,
            "mean": observation.mean,
        }
        return new_x, new_state, acceptance

    def final_sample(self, state: dict[str, Any]) -> Int[Array, "B *shape"]:
        """sign(Y_K / alpha(t_K)) of each chain, or the largest entry of each site, as integers; alpha is positive.

        It is a sample only if the run localizes (`Localization.localizes`); otherwise the chain's state is the
        sample.
        """
        return self._base.states.decode(state["y"])

    def _draw_first(self, y: Float[Array, "B *spin_shape"], key: Array) -> Float[Array, "B *spin_shape"]:
        """Y_0 ~ N(0, t_0 sigma^2)."""
        return self._first_noise * keys.normals(keys.fold(key, _FIRST), y.shape)
