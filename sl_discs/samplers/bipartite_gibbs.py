"""Gibbs sampling of two blocks in turn, each of them at once: for bipartite models such as Boltzmann machines."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.errors import InputError
from sl_discs.samplers.base import Info, Sampler, accept_or_keep


class BipartiteGibbsState(NamedTuple):
    """Steps done, and log-likelihood calls (4 a step)."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]


def blocks(num_sites: int, split: int) -> Bool[Array, "2 N"]:
    """The sites of each block, see `BipartiteGibbs`."""
    sites = jnp.arange(num_sites)
    first = sites < split if split else sites % 2 == 0
    return jnp.stack([first, ~first])


def log_probability(logits: Float[Array, "N"], flips: Bool[Array, "N"], block: Bool[Array, "N"]) -> Float[Array, ""]:
    """Log-probability of flipping exactly these sites of a block, each with probability sigmoid(logit)."""
    return jnp.sum(jnp.where(block, jax.nn.log_sigmoid(jnp.where(flips, logits, -logits)), 0.0))


@dataclasses.dataclass(frozen=True)
class BipartiteGibbs(Sampler):
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

    def init_state(self, num_sites):
        """Counters at zero."""
        return BipartiteGibbsState(jnp.int32(0), jnp.int32(0))

    def kernel(self, key, model, params, x, field, state, mask):
        """Both blocks, each with its test."""
        acceptance = hops = jnp.float32(0)
        for number, sites in enumerate(blocks(x.shape[0], self.split)):
            block = sites & mask
            gains = model.gains(params, x, field)
            flips = block & (keys.uniforms(keys.fold(key, 2 * number), x.shape) < jax.nn.sigmoid(gains))
            y, field_y = model.flip(params, x, field, flips)
            back = log_probability(model.gains(params, y, field_y), flips, block)
            change = model.change(params, x, field, flips, field_y)
            probability = jnp.exp(jnp.minimum(change + back - log_probability(gains, flips, block), 0.0))
            accepted = keys.uniforms(keys.fold(key, 2 * number + 1)) < probability
            x, field = accept_or_keep(accepted, (y, field_y), (x, field))
            acceptance += probability / 2
            hops += jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        state = BipartiteGibbsState(state.steps + 1, state.num_ll_calls + self.calls_a_step)
        return x, field, state, Info(acceptance, hops)
