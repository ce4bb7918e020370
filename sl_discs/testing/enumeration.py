"""Laws on {0,1}^N with N small enough to list every state."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int8

from sl_discs.models.base import Model
from sl_discs.models.tilted import Tilted, TiltedParams


class Law(NamedTuple):
    """Every state and its probability; state k has bit i of k at site i."""

    states: Int8[np.ndarray, "S N"]
    probabilities: Float64[np.ndarray, "S"]

    def sample(self, rng: np.random.Generator, count: int) -> Int8[np.ndarray, "count N"]:
        """Independent exact draws."""
        return self.states[rng.choice(len(self.states), size=count, p=self.probabilities)]


def all_states(num_sites: int) -> Int8[np.ndarray, "S N"]:
    """The 2^N states in order of their index."""
    return (np.arange(2**num_sites)[:, None] >> np.arange(num_sites) & 1).astype(np.int8)


def state_index(states) -> np.ndarray:
    """Index of each state [..., N]."""
    return np.asarray(states, np.int64) @ (1 << np.arange(states.shape[-1]))


def enumerate_law(
    model: Model, params: TiltedParams, mask: Bool[np.ndarray, "N"], start: Int8[np.ndarray, "N"]
) -> Law:
    """The law exp(f/tau + <s, h>) over the masked sites, the others held at `start`."""
    states = all_states(model.num_sites)
    tilted = Tilted(model)
    values = jax.vmap(lambda x: tilted.value(params, x, tilted.init(params, x)))(jnp.asarray(states))
    values = np.asarray(values, np.float64)
    values[(states != start)[:, ~mask].any(axis=1)] = -np.inf
    weights = np.exp(values - values.max())
    return Law(states, weights / weights.sum())
