"""Stochastic localization as a sampler of DISCS's calling convention, around any base sampler."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8, PRNGKeyArray

from sl_discs import keys
from sl_discs.batching import over_chains
from sl_discs.localization import observation as observing
from sl_discs.localization.observation import Observation
from sl_discs.localization.schedule import Localization
from sl_discs.localization.transition import Chain, ProgramStep, StepKeys, transition
from sl_discs.models.base import Model, Params
from sl_discs.samplers.base import Sampler, SamplerState


class LocalizedState(NamedTuple):
    """State of B localized chains.

    Attributes:
      base: the base sampler's state, leaves [B, ...].
      observation: Y and the running posterior mean, leaves [B, N].
      best_value: [B] highest value of the model seen so far, -inf before the first step.
      best_x: [B, N] the state that had it.
      steps: steps done, of chain_length.
    """

    base: SamplerState
    observation: Observation
    best_value: Float[Array, "B"]
    best_x: Int8[Array, "B N"]
    steps: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class StochasticLocalization:
    """Algorithm 1 of Wang et al. (ICML 2025); steps after `chain_length` go on at the last level.

    Attributes:
      base: the base sampler.
      localization: the hyperparameters.
      chain_length: number of MCMC steps in all.
      num_chains: B.
      num_sites: N, with padding.
    """

    base: Sampler
    localization: Localization
    chain_length: int
    num_chains: int
    num_sites: int

    def __post_init__(self):
        self.localization.compile(self.chain_length)

    def make_init_state(self, rng: PRNGKeyArray) -> LocalizedState:
        """Y_0 ~ N(0, t_0 sigma^2) and the base sampler's first state."""
        noise = self.localization.initial_noise()
        observation = jax.vmap(lambda key: observing.init_observation(key, self.num_sites, noise))
        base = self.base.init_state(self.num_sites)
        return LocalizedState(
            base=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num_chains, *leaf.shape)), base),
            observation=observation(self._chain_keys(rng)),
            best_value=jnp.full(self.num_chains, -jnp.inf, jnp.float32),
            best_x=jnp.zeros((self.num_chains, self.num_sites), jnp.int8),
            steps=jnp.int32(0),
        )

    def step(
        self,
        model: Model,
        rng: PRNGKeyArray,
        x: Int[Array, "B N"],
        model_param: Params,
        state: LocalizedState,
        x_mask: Bool[Array, "N"] | None = None,
    ) -> tuple[Int[Array, "B N"], LocalizedState, Float[Array, ""]]:
        """One MCMC step on the tilted target of each chain, then what localization does after it.

        Args:
          model: of the log-likelihood, its temperature included, as DISCS passes it.
          rng: a new key for each call.
          x: states.
          model_param: the model's parameters.
          state: before the step.
          x_mask: sites that exist.
        """
        program = self.localization.compile(self.chain_length)
        row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[state.steps], program)
        mask = jnp.ones(x.shape[-1], bool) if x_mask is None else x_mask.astype(bool)

        def one(key, x, base, observation, best_value, best_x):
            x = x.astype(jnp.int8)
            chain = Chain(x, model.init(model_param, x), base, observation)
            step_keys = StepKeys(keys.fold(key, 1), keys.fold(key, 2))
            step = ProgramStep(jnp.float32(1), row)
            chain, info = transition(step_keys, model, model_param, self.base, chain, step, mask)
            value = model.value(model_param, chain.x, chain.field)
            better = value > best_value
            best_x = jnp.where(better, chain.x, best_x)
            return chain, jnp.maximum(value, best_value), best_x, info.acceptance

        chain, best_value, best_x, acceptance = over_chains(one)(
            self._chain_keys(rng), x, state.base, state.observation, state.best_value, state.best_x
        )
        state = LocalizedState(chain.sampler, chain.observation, best_value, best_x, state.steps + 1)
        return chain.x.astype(x.dtype), state, jnp.mean(acceptance)

    def final_sample(self, state: LocalizedState) -> Int8[Array, "B N"]:
        """sign(Y_K / alpha(t_K)) of each chain."""
        return observing.final_sample(state.observation)

    def _chain_keys(self, rng: PRNGKeyArray) -> Array:
        return jax.vmap(keys.fold, (None, 0))(keys.from_rng(rng), jnp.arange(self.num_chains))
