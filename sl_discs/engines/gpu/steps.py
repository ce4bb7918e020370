"""What a step of any sampler takes and returns, and the Metropolis-Hastings test that ends it."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.engines.gpu.target import State, select
from sl_discs.engines.gpu.vectors import Words, uniform
from sl_discs.samplers.base import Info

# Counters under a step's key, beyond those of any draw.
_ACCEPT = 0x40000000
ROUND = 0x50000000


class Adapting(NamedTuple):
    """Steps done, and the scale that follows the acceptance: a radius, or an expected number of flips."""

    steps: Int[Array, ""]
    scale: Float[Array, ""]


def decide(
    key: Words, acceptance: Float[Array, ""], proposed: State, current: State, hops: Float[Array, ""]
) -> tuple[State, Info]:
    """The proposed state with the given probability, else the current one; `hops` is how many sites differ."""
    accepted = uniform(key, _ACCEPT) < acceptance
    return select(accepted, proposed, current), Info(acceptance, jnp.where(accepted, hops, 0.0))
