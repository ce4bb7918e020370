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
from sl_discs.errors import InputError, whole
from sl_discs.models.base import Target
from sl_discs.samplers.base import Info
from sl_discs.samplers.langevin import IndependentFlips, bounded


def independent_set(target: Target, priorities: Float[Array, "N"], rounds: int) -> Bool[Array, "N"]:
    """An independent set of the sites of the mask in the coupling graph, by Luby's rounds.

    In each round the remaining sites with a higher priority than all remaining neighbours join the set, and they and
    their neighbours leave the graph.

    Args:
      target: gives the neighbours and the mask.
      priorities: positive numbers; of two equal neighbours neither joins.
      rounds: number of rounds; enough of them give a maximal independent set.
    """
    chosen, left = jnp.zeros_like(target.mask), target.mask
    for _ in range(rounds):
        waiting = jnp.where(left, priorities, 0.0)
        chosen |= left & (waiting > target.largest_neighbour(waiting))
        left &= ~chosen & (target.largest_neighbour(chosen.astype(jnp.float32)) == 0)
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

    def kernel(self, key, target, chain):
        priorities = 1 + keys.uniforms(keys.fold(key, 2), chain.x.shape)
        return super().kernel(key, target.masked(independent_set(target, priorities, self.rounds)), chain)


# Gibbs sampling of two blocks in turn, each of them at once: for bipartite models such as Boltzmann machines.


def blocks(num_sites: int, split: int) -> Bool[Array, "2 N"]:
    """The sites of each block, see `BipartiteGibbs`."""
    sites = jnp.arange(num_sites)
    first = sites < split if split else sites % 2 == 0
    return jnp.stack([first, ~first])


@dataclasses.dataclass(frozen=True)
class BipartiteGibbs(IndependentFlips):
    """A step draws every site of one block from its conditional distribution, and then every site of the other.

    Where no two sites of a block are coupled, these are draws of the block given the rest. Metropolis and Hastings'
    test then always accepts; otherwise it keeps the sampler exact, and rejects the more the stronger a block's own
    couplings are.

    Attributes:
      split: sites before this one form one block, for a Boltzmann machine the number of its visible units; 0: the
        blocks are the sites with even and with odd numbers.
      num_chains: chains a batch in DISCS's calling convention.
    """

    calls_a_step: ClassVar[int] = 4

    split: int = 0
    num_chains: int = 1

    def __post_init__(self):
        if self.split < 0:
            raise InputError(f"sampler_config.split is {self.split}; expected the number of sites of a block, or 0")

    @property
    def reversible(self):
        return False

    def logits(self, balanced, state, mask):
        """The gains themselves: those of the conditional distribution of each site."""
        return bounded(balanced, mask)

    def kernel(self, key, target, chain):
        infos = []
        for number, block in enumerate(blocks(chain.x.shape[0], self.split)):
            here = target.masked(block & target.mask)
            # Both halves start from the step's own state, so that they count as one step.
            after, info = super().kernel(keys.fold(key, number), here, chain)
            chain = after._replace(state=chain.state)
            infos.append(info)
        first, second = infos
        return after, Info((first.acceptance + second.acceptance) / 2, first.hops + second.hops)
