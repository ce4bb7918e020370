"""Block Gibbs sampling: many sites that are not coupled to each other are resampled at once.

The block is a random independent set of the coupling graph, drawn by Luby's rounds. As it does not depend on the
state, every step leaves the target invariant. With one round this is LubyGlauber (Feng, Sun and Yin, What can be
sampled locally?, PODC 2017); further rounds only make the block larger. No colouring of the graph has to be computed
or stored.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.checks import whole
from sl_discs.models.base import Model, Params
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.dmala import log_probability


class BlockGibbsState(NamedTuple):
    """Steps done, and log-likelihood calls (4 per step)."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]


def independent_set(
    model: Model, params: Params, priorities: Float[Array, "N"], mask: Bool[Array, "N"], rounds: int
) -> Bool[Array, "N"]:
    """An independent set of the coupling graph, by Luby's rounds.

    In each round the remaining sites with a higher priority than all remaining neighbours join the set, and they and
    their neighbours leave the graph.

    Args:
      model: gives the neighbours.
      params: of the model.
      priorities: positive numbers; of two equal neighbours neither joins.
      mask: sites that may join.
      rounds: number of rounds; enough of them give a maximal independent set.
    """
    chosen, left = jnp.zeros_like(mask), mask
    for _ in range(rounds):
        waiting = jnp.where(left, priorities, 0.0)
        chosen |= left & (waiting > model.largest_neighbour(params, waiting))
        left &= ~chosen & (model.largest_neighbour(params, chosen.astype(jnp.float32)) == 0)
    return chosen


@dataclasses.dataclass(frozen=True)
class BlockGibbs(Sampler):
    """Resamples all sites of a random independent set from their conditional distribution given the others.

    Each site of the block flips with probability sigmoid(d_i), independently. If gains are exact, the
    Metropolis-Hastings test accepts up to rounding errors; it makes models with first-order gains exact as well.
    In a model that does not know its couplings, the block is a single site.

    Attributes:
      num_chains: chains per batch in DISCS's calling convention.
      rounds: rounds of Luby's algorithm, each of which costs two passes over the couplings.
    """

    calls_a_step: ClassVar[int] = 4

    num_chains: int = 1
    rounds: int = 2

    def __post_init__(self):
        whole("sampler_config.rounds", self.rounds, 1, bits=4)

    def init_state(self, num_sites):
        """Counters at zero."""
        return BlockGibbsState(jnp.int32(0), jnp.int32(0))

    def kernel(self, key, model, params, x, field, state, mask):
        """Draws a block, resamples it, and applies the test."""
        block = independent_set(model, params, 1 + keys.uniforms(keys.fold(key, 0), x.shape), mask, self.rounds)
        logits = jnp.where(block, model.gains(params, x, field), -jnp.inf)
        flips = keys.uniforms(keys.fold(key, 1), x.shape) < jax.nn.sigmoid(logits)
        y, field_y = model.flip(params, x, field, flips)
        logits_y = jnp.where(block, model.gains(params, y, field_y), -jnp.inf)
        change = model.change(params, x, field, flips, field_y)
        log_ratio = change + log_probability(logits_y, flips) - log_probability(logits, flips)
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        accepted = keys.uniforms(keys.fold(key, 2)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        state = BlockGibbsState(state.steps + 1, state.num_ll_calls + self.calls_a_step)
        return x, field, state, Info(acceptance, hops)
