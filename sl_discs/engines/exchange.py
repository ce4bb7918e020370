"""Exchanges of states between chains of neighbouring temperatures: non-reversible parallel tempering.

After interval n the pairs of places (r, r + 1) where r has the parity of n are tried, so that even and odd pairs
alternate (Okabe et al. 2001; Syed et al. 2022). A state then crosses the ladder in a time proportional to its length,
rather than to its square as with randomly chosen pairs.
"""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sl_discs.engines.contract import StepKeys
from sl_discs.keys import draw_words, word_to_uniform

Tree = TypeVar("Tree")


def acceptance(
    rate: Float[Array, "B"], next_rate: Float[Array, "B"], value: Float[Array, "G B"], next_value: Float[Array, "G B"]
) -> Float[Array, "G B"]:
    """Probability of an exchange between chains with targets exp(rate f) and states with these values of f."""
    return jnp.exp(jnp.minimum((rate - next_rate) * (next_value - value), 0.0))


def exchanges(
    keys: StepKeys, value: Float[Array, "G B"], temperature: Float[Array, "..."], step, interval, ladder: int
) -> Bool[Array, "G B"]:
    """Whether each chain exchanges its state with the next one.

    Args:
      keys: [G, B] keys of the chains. Only exchanges draw from observation keys directly; elsewhere they are folded.
      value: f of each chain.
      temperature: of all chains, or [B] of each.
      step: number of the last step before the exchange.
      interval: number of the interval that ends with this step.
      ladder: R.
    """
    num_chains = value.shape[1]
    rate, place = 1 / jnp.broadcast_to(temperature, num_chains), jnp.arange(num_chains) % ladder
    is_tried = (place % 2 == interval % 2) & (place < ladder - 1)
    word, _ = jax.vmap(jax.vmap(draw_words, (0, None)), (0, None))(keys.observation, step.astype(jnp.uint32))
    chance = acceptance(rate, jnp.roll(rate, -1), value, jnp.roll(value, -1, axis=1))
    return is_tried & (word_to_uniform(word) < chance)


def exchange(leaves: Tree, exchanged: Bool[Array, "G B"]) -> Tree:
    """Arrays [G, B, ...] of the chains, in which the entries of exchanging chains are swapped."""
    origin = jnp.arange(exchanged.shape[1]) + exchanged - jnp.roll(exchanged, 1, axis=1)
    take = jax.vmap(lambda leaf, origin: leaf[origin])
    return jax.tree.map(lambda leaf: take(leaf, origin), leaves)
