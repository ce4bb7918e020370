"""Plays an interval of a program on one chain: the body of the kernel, a pure function of arrays or references."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num

from sl_discs.fused import dmala, path, single_site
from sl_discs.fused.steps import Adapting
from sl_discs.fused.target import State, Target
from sl_discs.fused.vectors import normals
from sl_discs.keys import fold_words
from sl_discs.localization import observation as observing
from sl_discs.localization.observation import Observation
from sl_discs.localization.transition import ProgramStep, StepKeys
from sl_discs.samplers.base import Info, Sampler
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary

# What each known sampler does in a step; a subclass may do something else and is not known.
STEPS = {
    GWG: path.step,
    PathAuxiliary: path.step,
    Gibbs: single_site.step,
    Metropolis: single_site.step,
    DMALA: dmala.step,
}


class Instance(NamedTuple):
    """f of one instance, N sites padded to P.

    Attributes:
      rows: [N, P] K.
      linear: [P] c.
      scale: J = scale K.
      mask: [P] sites that may flip.
    """

    rows: Num[Array, "N P"]
    linear: Float[Array, "P"]
    scale: Float[Array, ""]
    mask: Bool[Array, "P"]


class FusedChain(NamedTuple):
    """Everything that one chain carries through an interval.

    Attributes:
      state: spins and their field.
      adapting: steps done, and the scale that adapts (0 where nothing does).
      observation: Y and the posterior mean, or None.
      best: highest value over every step.
      best_spins: [P] where it was.
    """

    state: State
    adapting: Adapting
    observation: Observation | None
    best: Float[Array, ""]
    best_spins: Float[Array, "P"]


def _observe(key, observation: Observation, spins, row, num_sites: int) -> Observation:
    """What localization does after a step."""
    observation = observing.collect(observation, spins, row)

    def move(observation):
        normal = normals(key, num_sites, spins.shape[0])
        return observing.move(observation, normal, row)

    return lax.cond(row.boundary, move, lambda observation: observation, observation)


def play(
    sampler: Sampler,
    instance: Instance,
    keys: StepKeys,
    program: ProgramStep,
    first_step: Int[Array, ""],
    chain: FusedChain,
) -> tuple[FusedChain, Info]:
    """Plays E steps.

    Args:
      sampler: one of `STEPS`.
      instance: rows may be a reference, of which one row is read at a time.
      keys: of the chain, each indexed for its two words.
      program: leaves [E]; arrays or references.
      first_step: number of the first step.
      chain: before it.

    Returns:
      the chain, and the means of what the steps reported.
    """
    num_sites = instance.rows.shape[0]
    step = STEPS[type(sampler)]

    def one(number, carry):
        chain, sums = carry
        temperature = program.temperature[number]
        row = program.localization and type(program.localization)(*(leaf[number] for leaf in program.localization))
        tilt = None if chain.observation is None else observing.tilt(chain.observation, row)
        target = Target(
            instance.rows, instance.linear, instance.scale, instance.mask, num_sites, 1 / temperature, tilt
        )
        key = fold_words(keys.mcmc, first_step + number)
        state, scale, info = step(sampler, key, target, chain.state, chain.adapting)
        observation = chain.observation
        if observation is not None:
            key = fold_words(keys.observation, first_step + number)
            observation = _observe(key, observation, state.spins, row, num_sites)
        value = state.linear + instance.scale * state.pairs
        better = value > chain.best
        chain = FusedChain(
            state,
            Adapting(chain.adapting.steps + 1, scale),
            observation,
            jnp.where(better, value, chain.best),
            jnp.where(better, state.spins, chain.best_spins),
        )
        return chain, Info(sums.acceptance + info.acceptance, sums.hops + info.hops)

    length = program.temperature.shape[0]
    chain, sums = lax.fori_loop(0, length, one, (chain, Info(jnp.float32(0), jnp.float32(0))))
    return chain, Info(sums.acceptance / length, sums.hops / length)
