"""Algorithm 1 of Wang et al. (ICML 2025): stochastic localization around the steps of any Markov chain.

    Y <- N(0, t_0 sigma^2 I)
    for each level i = 0, ..., K - 1:
        for each of its n_i steps:
            one step of the base sampler on q_{t_i}(x|Y) ~ exp(f(x)/tau + <s, h>), h = alpha(t_i) Y/(sigma^2 t_i)
        U <- mean of the spins after the last steps of the level
        Y <- Y + (alpha(t_{i+1}) - alpha(t_i)) U + sigma sqrt(t_{i+1} - t_i) Z,  Z standard normal
    return sign(Y)  [`Sites.decode`: for more than two values, the largest entry of each site]

`localized_step` is one iteration of the inner loop and, at the end of a level, of the outer loop. It serves both a
run and DISCS, which calls a sampler step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from sl_discs import keys
from sl_discs.batching import AnyArray, cond_for_batch
from sl_discs.keys import Key
from sl_discs.localization.schedule import Levels

Result = TypeVar("Result")


class Observation(NamedTuple):
    """Y, and the partial sum of U: the spins that count so far, divided by the number that will."""

    y: Float[AnyArray, "*shape"]
    mean: Float[AnyArray, "*shape"]


def init_observation(key: Key, shape: tuple[int, ...], noise: float | Float[Array, ""]) -> Observation:
    """Y_0 ~ N(0, t_0 sigma^2 I): alpha(t_0) X is unknown, and small compared with the noise.

    Args:
      key: used only in this call.
      shape: of the spins.
      noise: sigma sqrt(t_0).
    """
    return Observation(noise * keys.normals(key, shape), jnp.zeros(shape, jnp.float32))


def localized_step(
    key: Key,
    levels: Levels,
    level: Int[Array, ""],
    step: Int[Array, ""],
    observation: Observation,
    markov_step: Callable[[Float[Array, "*shape"]], tuple[Num[Array, "*shape"], Result]],
) -> tuple[Observation, Int[Array, ""], Result]:
    """One Markov step and the update of the observation.

    Args:
      key: of this step, for Z.
      levels: of the run, leaves [K].
      level: number of the level that the step belongs to, from 0.
      step: number of the step, from 0; after the last level Y and U no longer change.
      observation: before the step.
      markov_step: takes the tilt h and returns the spins after the step and any other value.

    Returns:
      the observation, the level of the next step, and the other value of `markov_step`.
    """
    here = Levels(*(jnp.asarray(leaf)[level] for leaf in levels))
    spins, result = markov_step(jnp.multiply(here.tilt_scale, observation.y))
    left = here.last - step
    counts = (left >= 0) & (left < here.collected)
    mean = observation.mean + jnp.where(counts, spins / here.collected.astype(jnp.float32), 0.0)
    ends = left == 0
    observation = cond_for_batch(ends, _next_level, Observation(observation.y, mean), key, here.drift, here.noise)
    return observation, jnp.minimum(level + ends, len(levels.last) - 1), result


def _next_level(observation: Observation, key: Key, drift, noise) -> Observation:
    """Y + drift U + noise Z, with U reset."""
    y, mean = observation
    return Observation(y + drift * mean + noise * keys.normals(key, y.shape), jnp.zeros_like(mean))
