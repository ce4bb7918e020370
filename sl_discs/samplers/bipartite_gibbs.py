"""Gibbs sampling of two blocks in turn, each of them at once: for bipartite models such as Boltzmann machines."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from sl_discs import keys
from sl_discs.errors import InputError
from sl_discs.samplers.base import Info
from sl_discs.samplers.independent import IndependentFlips, bounded


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
        """False: the blocks have an order."""
        return False

    def logits(self, balanced, state, mask):
        """The gains themselves: those of the conditional distribution of each site."""
        return bounded(balanced, mask)

    def kernel(self, key, model, params, x, field, state, mask):
        """Both blocks, each with its test."""
        infos = []
        for number, block in enumerate(blocks(x.shape[0], self.split)):
            here = keys.fold(key, number)
            x, field, after, info = super().kernel(here, model, params, x, field, state, block & mask)
            infos.append(info)
        first, second = infos
        return x, field, after, Info((first.acceptance + second.acceptance) / 2, first.hops + second.hops)
