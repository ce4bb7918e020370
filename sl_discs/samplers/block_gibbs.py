"""Block Gibbs sampling: many sites that are not coupled to each other are resampled at once.

The block is a random independent set of the coupling graph, drawn by Luby's rounds. As it does not depend on the
state, every step leaves the target invariant. With one round this is LubyGlauber (Feng, Sun and Yin, What can be
sampled locally?, PODC 2017); further rounds only make the block larger. No colouring of the graph has to be computed
or stored.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sl_discs import keys
from sl_discs.checks import whole
from sl_discs.models.base import Model, Params
from sl_discs.samplers.independent import IndependentFlips, bounded


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
class BlockGibbs(IndependentFlips):
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

    def logits(self, balanced, state, mask):
        """The gains themselves: a conditional distribution is a balanced proposal without a step size."""
        return bounded(balanced, mask)

    def kernel(self, key, model, params, x, field, state, mask):
        """Draws a block, and resamples it."""
        priorities = 1 + keys.uniforms(keys.fold(key, 2), x.shape)
        block = independent_set(model, params, priorities, mask, self.rounds)
        return super().kernel(key, model, params, x, field, state, block)
