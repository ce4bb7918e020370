"""Laws on sites of two or more values, few enough to list every state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int, Int8

from sl_discs.models.base import Model
from sl_discs.models.tilted import Tilted, TiltedParams


class Law(NamedTuple):
    """Every state in the order of `states_of`, and its probability."""

    states: Int8[np.ndarray, "S N"]
    probabilities: Float64[np.ndarray, "S"]

    def numbers(self, states) -> Int[np.ndarray, "*B"]:
        """The number of each state [..., N]."""
        return state_index(states, tuple(self.states.max(axis=0) + 1))

    def sample(self, rng: np.random.Generator, count: int) -> Int8[np.ndarray, "count N"]:
        """Independent exact draws."""
        return self.states[rng.choice(len(self.states), size=count, p=self.probabilities)]


def all_states(num_sites: int) -> Int8[np.ndarray, "S N"]:
    """The 2^N states in order of their index."""
    return (np.arange(2**num_sites)[:, None] >> np.arange(num_sites) & 1).astype(np.int8)


def states_of(counts: Sequence[int]) -> Int8[np.ndarray, "S N"]:
    """All states of sites with so many values each, in order of their index; the first site varies fastest."""
    return np.stack(np.unravel_index(np.arange(np.prod(counts)), counts, order="F"), axis=1).astype(np.int8)


def state_index(states, counts: Sequence[int] | None = None) -> Int[np.ndarray, "*B"]:
    """Index of each state [..., N] of sites with so many values each; None: two."""
    states = np.asarray(states, np.int64)
    counts = (2,) * states.shape[-1] if counts is None else counts
    return states @ np.cumprod([1, *counts[:-1]])


def enumerate_law(
    model: Model, params: TiltedParams, mask: Bool[np.ndarray, "N"], start: Int8[np.ndarray, "N"]
) -> Law:
    """The law exp(f/tau + <s, h>) over the masked sites, the others held at `start`."""
    states = states_of(model.sites.counts(model.num_sites))
    tilted = Tilted(model)
    values = jax.vmap(lambda x: tilted.value(params, x, tilted.init(params, x)))(jnp.asarray(states))
    values = np.asarray(values, np.float64)
    values[(states != start)[:, ~mask].any(axis=1)] = -np.inf
    weights = np.exp(values - values.max())
    return Law(states, weights / weights.sum())
