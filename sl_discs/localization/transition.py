"""One step of one chain, localized or not: the only place where a sampler and an observation process meet."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int8

from sl_discs.keys import Key, fold, uniforms
from sl_discs.localization import observation as observing
from sl_discs.localization.observation import Observation
from sl_discs.localization.schedule import LocalizationStep
from sl_discs.models.base import Field, Model, Params
from sl_discs.models.tilted import Tilted, TiltedParams
from sl_discs.samplers.base import Info, Sampler, SamplerState


class Chain(NamedTuple):
    """What one chain carries from step to step; `observation` is None for a sampler that is not localized."""

    x: Int8[Array, "N"]
    field: Field
    sampler: SamplerState
    observation: Observation | None


class Level(NamedTuple):
    """What a localized chain carries from step to step of one level, or of a part of `MOST_COUNTED` steps at most.

    Attributes:
      tilt: h.
      sums: of the spins at those steps that count for the posterior mean.
    """

    tilt: Float[Array, "N"]
    sums: Int8[Array, "N"]


class ProgramStep(NamedTuple):
    """What the run prescribes at each of T steps (leading axis T), or at one (scalars)."""

    temperature: Float[Array, "*T"]
    localization: LocalizationStep | None


class StepKeys(NamedTuple):
    """Keys of one chain at one step."""

    mcmc: Key
    observation: Key


def fold_step(keys: StepKeys, step) -> StepKeys:
    """The keys of a step from those of a chain."""
    return StepKeys(*(fold(key, step) for key in keys))


def init_chain(
    keys: StepKeys, x: Int8[Array, "N"], model: Model, params: Params, sampler: Sampler, noise: float | None
) -> Chain:
    """The chain before step 1; `noise` is the standard deviation of Y_0, None when not localized."""
    localized = None if noise is None else observing.init_observation(keys.observation, x.shape[0], noise)
    return Chain(x, model.init(params, x), sampler.init_state(x.shape[0]), localized)


def begin_level(chain: Chain, step: ProgramStep) -> Level | None:
    """Before the steps of a level, of which one is given; None when not localized."""
    if chain.observation is None:
        return None
    return Level(observing.tilt(chain.observation, step.localization), jnp.zeros(chain.x.shape, jnp.int8))


def transition(
    keys: StepKeys,
    model: Model,
    params: Params,
    sampler: Sampler,
    chain: Chain,
    level: Level | None,
    step: ProgramStep,
    mask: Bool[Array, "N"],
) -> tuple[Chain, Level | None, Info]:
    """One MCMC step on exp(f/tau + <s, h>), whose spins the level counts.

    Args:
      keys: of this chain and step.
      model: the model of f.
      params: its parameters.
      sampler: the base sampler.
      chain: the chain before the step.
      level: of `begin_level`; None when not localized.
      step: scalars of the program, the same for all chains.
      mask: the sites that exist.
    """
    target = TiltedParams(params, step.temperature, level and level.tilt)
    x, field, state, info = sampler.kernel(
        keys.mcmc, Tilted(model), target, chain.x, chain.field, chain.sampler, mask
    )
    if level is not None:
        level = level._replace(sums=observing.count(level.sums, x, step.localization))
    return Chain(x, field, state, chain.observation), level, info


def end_level(keys: StepKeys, chain: Chain, level: Level | None, step: ProgramStep) -> Chain:
    """The chain after the last of the steps, whose keys and row are given; Y moves if the level ends there."""
    if level is None:
        return chain
    observation = observing.collect(chain.observation, level.sums, step.localization)
    return chain._replace(observation=observing.advance(keys.observation, observation, step.localization))


def initial_state(key: Key, mask: Bool[Array, "N"]) -> Int8[Array, "N"]:
    """Each site of the mask 0 or 1 with equal probability, 0 outside it."""
    bits = uniforms(key, mask.shape) < 0.5
    return (bits & mask).astype(jnp.int8)
