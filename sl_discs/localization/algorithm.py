"""Algorithm 1 of Wang et al. (ICML 2025): stochastic localization around the steps of any Markov
chain.

    Y <- N(0, t_0 sigma^2 I)
    for each level i = 0, ..., K - 1:
        for each of its n_i steps:
            one step of the base sampler on q_{t_i}(x|Y) ~ exp(f(x)/tau + <s, h>), h = alpha(t_i)
            Y/(sigma^2 t_i)
        U <- mean of the spins after the last steps of the level
        Y <- Y + (alpha(t_{i+1}) - alpha(t_i)) U + sigma sqrt(t_{i+1} - t_i) Z,  Z standard normal
    return sign(Y)  [`Sites.decode`: for more than two values, the largest entry of each site]

`Localized` is a sampler made of a base sampler: its kernel is one iteration of the inner loop and,
at the end of a level, of the outer loop. Engines, blackjax and DISCS run it as they run any other.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from sl_discs.localization.schedule import Levels
from sl_discs.models import keys
from sl_discs.models.batching import AnyArray, cond_for_batch
from sl_discs.models.keys import Key, StepKeys
from sl_discs.samplers.sampler import Sampler, SamplerState

# Counts under the key of a batch's step in `Sampler.step`, from which those of the observations are
# folded; far from the numbers of its chains.
_OBSERVATIONS = 0x534C0001
# Likewise under the key of a chain's first state, of which `keys.normals` counts the sites.
_BASE = 0x534C0002


class LocalizedState(NamedTuple):
    """The state of a localized chain, beside its x: what `Localized.init_state` draws and its
    kernel returns.

    Leaves of a batch have leading axes. The spins are [N], or [N, q] where sites have q > 2 values.

    Example:
        >>> localized = Localized(Gibbs(), Localization(K=4, sigma=2.0).levels(32))
        >>> states = localized.make_init_state(jax.random.key(0), 7, (5,))  # seven chains, N = 5
        >>> states.y.shape, states.level.tolist()
        ((7, 5), [0, 0, 0, 0, 0, 0, 0])

    Attributes:
      base: the base sampler's state.
      level: number of the level that the next step belongs to, from 0 to K - 1.
      step: number of the next step, from 0; after the last level Y and U no longer change.
      y: the observation Y, in the shape of the spins: once the last level is done, `Sites.decode`
        of it is the draw.
      mean: the partial sum of U: the spins that count so far, divided by the number that will.
    """

    base: SamplerState
    level: Int[AnyArray, "*G"]
    step: Int[AnyArray, "*G"]
    y: Float[AnyArray, "*shape"]
    mean: Float[AnyArray, "*shape"]


@dataclasses.dataclass(frozen=True, eq=False)
class Localized(Sampler):
    """A base sampler on the posterior given each chain's observation, which becomes more precise
    level by level.

    Its kernel is a step of Algorithm 1 of Wang et al. (ICML 2025): one of the base sampler on the
    tilted target and, at the end of a level, one of the observation.

    Example:
        >>> localized = Localized(Gibbs(), Localization(K=4, sigma=2.0).levels(32))
        >>> state = localized.init_state(fold(jnp.zeros(2, jnp.uint32), 1), (5,))
        >>> state.y.shape, int(state.level)  # the observation of five spins, before level 1
        ((5,), 0)

    Attributes:
      base: the base sampler.
      levels: of the run, leaves [K]. They are data: the sampler is made where a computation is
        traced, and other numbers compile nothing.
    """

    base: Sampler
    levels: Levels

    def init_state(self, key, shape):
        """Draws Y_0 from `key`, and the base sampler's state from another key."""
        y = self.levels.first_noise * keys.normals(key, shape)
        base = self.base.init_state(keys.fold(key, _BASE), shape)
        return LocalizedState(base, jnp.int32(0), jnp.int32(0), y, jnp.zeros(shape, jnp.float32))

    def step_key(self, root, number):
        return StepKeys(keys.fold(root, number), keys.fold(keys.fold(root, _OBSERVATIONS), number))

    def kernel(self, key, target, chain):
        """Makes one step of the base sampler, and of the observation; each has a key of its own
        (`StepKeys`).
        """
        state = chain.state
        tilted = target.tilted(tilt_of(self.levels, state))
        after, info = self.base.kernel(key.mcmc, tilted, chain._replace(state=state.base))
        spins = target.sites.spins(after.x)
        return after._replace(
            state=observe(key.observation, self.levels, state, after.state, spins)
        ), info


def tilt_of(levels: Levels, state: LocalizedState) -> Float[Array, "*shape"]:
    """Returns h, the tilt of the target of the next step."""
    return jnp.multiply(jnp.asarray(levels.tilt_scale)[state.level], state.y)


def observe(
    key: Key, levels: Levels, state: LocalizedState, base: SamplerState, spins: Num[Array, "*shape"]
) -> LocalizedState:
    """Returns the state after a step of the base sampler, which adds to U; at the end of a level Y
    moves.

    Args:
      key: of this step, for Z.
      levels: of the run, leaves [K].
      state: before the step.
      base: the base sampler's state after the step.
      spins: after the step.
    """
    here = (levels.last, levels.collected, levels.drift, levels.noise)
    last, collected, drift, noise = (jnp.asarray(leaf)[state.level] for leaf in here)
    left = last - state.step
    counts = (left >= 0) & (left < collected)
    mean = state.mean + jnp.where(
        counts, spins.astype(jnp.float32) / collected.astype(jnp.float32), 0.0
    )
    ends = left == 0
    y, mean = cond_for_batch(ends, _next_level, (state.y, mean), key, drift, noise)
    level = jnp.minimum(state.level + ends.astype(jnp.int32), len(levels.last) - 1)
    return LocalizedState(base, level, state.step + 1, y, mean)


def _next_level(observation, key: Key, drift, noise):
    y, mean = observation
    return y + drift * mean + noise * keys.normals(key, y.shape), jnp.zeros_like(mean)
