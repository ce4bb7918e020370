"""The observation process Y that localizes a chain (Algorithm 1 of Wang et al., ICML 2025)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int8, Num

from sl_discs import keys
from sl_discs.keys import Key
from sl_discs.localization.schedule import LocalizationStep

# Sums of so many spins of -1 and 1 are numbers of 8 bits.
MOST_COUNTED = 127


class Observation(NamedTuple):
    """Y and the running estimate of the posterior mean of the spins, of one chain."""

    y: Float[Array, "N"]
    mean: Float[Array, "N"]


def init_observation(key: Key, num_sites: int, noise: float) -> Observation:
    """Y_0 ~ N(0, t_0 sigma^2): alpha(t_0) X is small beside it and unknown.

    Args:
      key: folded again here, so it may be the chain's own.
      num_sites: N.
      noise: sigma sqrt(t_0).
    """
    normal = keys.normals(keys.fold(key, 0), (num_sites,))
    return Observation(noise * normal, jnp.zeros(num_sites, jnp.float32))


def tilt(observation: Observation, step: LocalizationStep) -> Float[Array, "N"]:
    """h = alpha(t) y / (sigma^2 t), the field that Y = y adds to the posterior of the spins."""
    return step.tilt_scale * observation.y


def count(sums: Int8[Array, "N"], x: Int8[Array, "N"], step: LocalizationStep) -> Int8[Array, "N"]:
    """The sums of the spins of a level's counted steps, with this step's; up to `MOST_COUNTED` steps fit.

    Small integers: they are read and written at every other step, four to a float. On CPUs nothing is touched at the
    steps that do not count; a GPU would wait at each step for the host to choose the branch.
    """

    def add(sums, x, step):
        return sums + jnp.where(step.collect > 0, 2 * x - 1, 0)

    def where_counted(sums, x, step):
        return lax.cond(step.collect > 0, add, lambda sums, *_: sums, sums, x, step)

    return lax.platform_dependent(sums, x, step, cpu=where_counted, default=add)


def collect(observation: Observation, sums: Num[Array, "N"], step: LocalizationStep) -> Observation:
    """Adds the spins of counted steps, summed, to the posterior mean U; each weighs as much as those of `step`."""
    return observation._replace(mean=observation.mean + step.collect * sums)


def move(observation: Observation, normal: Float[Array, "N"], step: LocalizationStep) -> Observation:
    """Y + drift U + noise Z for standard normal Z, and U starts again."""
    y = observation.y + step.drift * observation.mean + step.noise * normal
    return Observation(y, jnp.zeros_like(observation.mean))


def advance(key: Key, observation: Observation, step: LocalizationStep) -> Observation:
    """`move` at a level's last step, otherwise nothing.

    Args:
      key: of this chain and step.
      observation: with U complete.
      step: scalars, the same for all chains of a batch, so that noise is only drawn where a level ends.
    """

    num_sites = observation.y.shape[0]

    def draw(key):
        return keys.normal_words(key, num_sites)

    def draw_nothing(key):
        return jax.tree.map(jnp.zeros_like, jax.eval_shape(draw, key))

    def move_by(words, observation):
        return move(observation, keys.normals_of(words, num_sites), step)

    # Words in a branch of their own: XLA would otherwise make them anew for each number that is formed of them.
    words = lax.cond(step.boundary, draw, draw_nothing, key)
    return lax.cond(step.boundary, move_by, lambda _, observation: observation, words, observation)


def final_sample(observation: Observation) -> Int8[Array, "N"]:
    """sign(Y_K / alpha(t_K)) as zeros and ones; alpha is positive. X only where the run localizes."""
    return (observation.y > 0).astype(jnp.int8)
