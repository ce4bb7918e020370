"""The arguments and results of a step of any sampler, and the Metropolis-Hastings test at its end."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.engines.gpu.target import State, select
from sl_discs.engines.gpu.vectors import Words, uniform
from sl_discs.samplers.base import Info

# Counter of the test's random number under a step's key, above the counters of all draws.
_ACCEPT = 0x40000000
ROUND = 0x50000000


class Adapting(NamedTuple):
    """Steps done, and the scale that adapts to the acceptance: a radius, or an expected number of flips."""

    steps: Int[Array, ""]
    scale: Float[Array, ""]


def decide(
    key: Words, acceptance: Float[Array, ""], proposed: State, current: State, hops: Float[Array, ""]
) -> tuple[State, Info]:
    """The proposed state with the given probability, else the current one; `hops` counts the differing sites."""
    accepted = uniform(key, _ACCEPT) < acceptance
    return select(accepted, proposed, current), Info(acceptance, jnp.where(accepted, hops, 0.0))
