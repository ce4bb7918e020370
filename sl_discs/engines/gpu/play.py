"""Runs an interval of a program on one chain: the body of the kernel, a pure function of arrays or references."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num

from sl_discs.engines.contract import StepKeys
from sl_discs.engines.gpu import dmala, path, single_site
from sl_discs.engines.gpu.steps import Adapting
from sl_discs.engines.gpu.target import State, Target
from sl_discs.engines.gpu.vectors import normals
from sl_discs.keys import fold_words
from sl_discs.localization.algorithm import Observation
from sl_discs.localization.schedule import Levels
from sl_discs.samplers.base import Info, Sampler
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary

# The step of each supported sampler; a subclass may differ from its base and is not supported.
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
    """The complete state of one chain.

    Attributes:
      state: spins and their field.
      adapting: steps done, and the adaptive scale (0 if there is none).
      observation: Y and the posterior mean, or None.
      best: highest value over every step.
      best_spins: [P] state with that value.
    """

    state: State
    adapting: Adapting
    observation: Observation | None
    best: Float[Array, ""]
    best_spins: Float[Array, "P"]


def play(
    sampler: Sampler,
    instance: Instance,
    keys: StepKeys,
    levels: Levels | None,
    level: Int[Array, ""],
    temperature: Float[Array, "E"],
    done: Int[Array, ""],
    chain: FusedChain,
) -> tuple[FusedChain, Info]:
    """Plays E steps.

    Args:
      sampler: one of `STEPS`.
      instance: the instance; its rows may be a reference, which is read one row at a time.
      keys: keys of the chain, each indexed for its two words.
      levels: of localization, arrays or references; None without it.
      level: number of the first step's level.
      temperature: an array or a reference.
      done: steps done before.
      chain: the chain before the steps.

    Returns:
      the chain after the steps, and the means of the steps' infos.
    """
    num_sites = instance.rows.shape[0]
    step = STEPS[type(sampler)]

    def one(place, carry):
        chain, level, sums = carry
        here = levels and Levels(*(leaf[level] for leaf in levels))
        tilt = None if here is None else here.tilt_scale * chain.observation.y
        target = Target(
            instance.rows, instance.linear, instance.scale, instance.mask, num_sites, 1 / temperature[place], tilt
        )
        key = fold_words(keys.mcmc, done + place + 1)
        state, scale, info = step(sampler, key, target, chain.state, chain.adapting)
        observation = chain.observation
        if here is not None:
            key = fold_words(keys.observation, done + place + 1)
            observation = _observe(key, observation, state.spins, here, done + place, num_sites)
            level = jnp.minimum(level + (here.last == done + place), levels.last.shape[0] - 1)
        value = state.linear + instance.scale * state.pairs
        better = value > chain.best
        chain = FusedChain(
            state,
            Adapting(chain.adapting.steps + 1, scale),
            observation,
            jnp.where(better, value, chain.best),
            jnp.where(better, state.spins, chain.best_spins),
        )
        return chain, level, Info(sums.acceptance + info.acceptance, sums.hops + info.hops)

    length = temperature.shape[0]
    start = chain, level, Info(jnp.float32(0), jnp.float32(0))
    chain, _, sums = lax.fori_loop(0, length, one, start)
    return chain, Info(sums.acceptance / length, sums.hops / length)


def _observe(key, observation: Observation, spins, here: Levels, step, num_sites: int) -> Observation:
    """The observation after a step, as in `localized_step`, with random numbers that the kernel supports."""
    counts = here.last - step < here.collected
    mean = observation.mean + jnp.where(counts, spins / here.collected.astype(jnp.float32), 0.0)

    def move(y, mean):
        normal = normals(key, num_sites, spins.shape[0])
        return y + here.drift * mean + here.noise * normal, jnp.zeros_like(mean)

    return Observation(*lax.cond(here.last == step, move, lambda *same: same, observation.y, mean))
