"""Draws of sites with probability proportional to their weights, and the probability of a sequence
of draws.

Weights are exp(logit - max), floored at exp(-80): in float32 every weight is then a normal number,
and no sum of remaining weights can vanish. The floor depends only on the state, so the
Metropolis-Hastings ratio with the floored weights is that of the actual proposal, and the sampler
stays exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from sl_discs.models import keys
from sl_discs.models.batching import batch_max, turn_width
from sl_discs.models.keys import Key

LOWEST_LOGIT = -80.0
_BLOCK = 32


class Draws(NamedTuple):
    """Sites drawn one after the other.

    Attributes:
      sites: [R] in the order of the draws, with repeats; the value N marks an unused entry.
      length: number of draws.
      flips: [N] True at the sites that were drawn.
    """

    sites: Int[Array, "R"]
    length: Int[Array, ""]
    flips: Bool[Array, "N"]


def _in_blocks(values: Float[Array, "N"], fill: float) -> Float[Array, "K W"]:
    """Returns values in rows of 32, the last one padded."""
    return jnp.pad(values, (0, -values.shape[0] % _BLOCK), constant_values=fill).reshape(-1, _BLOCK)


def floored_logits(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> Float[Array, "N"]:
    """Returns logits relative to the largest over the mask and at least -80; -inf outside
    the mask.
    """
    # The maximum is taken row by row: with one over N numbers, which XLA does not vectorise on
    # CPUs, a step of dmala takes a fifth longer (N = 640).
    top = jnp.max(
        functools.reduce(jnp.maximum, _in_blocks(jnp.where(mask, logits, -jnp.inf), -jnp.inf))
    )
    return jnp.where(mask, jnp.maximum(logits - top, LOWEST_LOGIT), -jnp.inf)


def softmax_weights(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> Float[Array, "N"]:
    """Returns the floored softmax over the mask, not normalised; 0 outside the mask."""
    return jnp.exp(floored_logits(logits, mask))


def invert_cdf(uniform: Float[Array, ""], weights: Float[Array, "K"]) -> Int[Array, ""]:
    """Returns the first index of positive weight at which the cumulative sum exceeds `uniform`
    times the total.

    The total is the largest of these sums, so such an index exists whatever the rounding.
    """
    running = jnp.where(weights > 0, jnp.cumsum(weights), 0.0)
    exceeds = running > uniform * jnp.max(running)
    # The smallest of their indices: `argmax`, which XLA does not vectorise on CPUs, makes a draw
    # half as long again.
    return jnp.min(jnp.where(exceeds, jnp.arange(len(weights)), len(weights) - 1))


def draw_site(key: Key, weights: Float[Array, "N"]) -> Int[Array, ""]:
    """Returns a site drawn with probability proportional to its weight; some weight must be
    positive.

    Example:
        >>> int(draw_site(fold(jnp.zeros(2, jnp.uint32), 1), jnp.array([0.0, 3.0, 0.0])))
        1

    Args:
      key: of this draw alone.
      weights: [N] of the sites, at least 0; a mask of sites as numbers gives a uniform draw.

    The site's block of 32 is drawn first, then the site in it: on CPUs one cumulative sum over N =
    832 takes ten times as long (4.9 microseconds instead of .5).
    """
    blocks = _in_blocks(weights, 0.0)
    uniforms = keys.uniforms(key, (2,))
    block = invert_cdf(uniforms[0], jnp.sum(blocks, axis=1))
    return block * _BLOCK + invert_cdf(uniforms[1], blocks[block])


def draw_sites(
    key: Key, weights: Float[Array, "N"], length: Int[Array, ""], most: int, *, replacement: bool
) -> Draws:
    """Draws `length` sites in turn, with or without replacement.

    Without replacement, site i is reached at a random time, exponentially distributed with rate
    weights[i], and the sites are those that are reached first: each is then drawn by weight from
    those that are left.

    Args:
      key: used only in this call.
      weights: of the sites; at least `length` of them positive if drawn without replacement.
      length: number of draws.
      most: an upper bound on `length`, the same for all chains.
      replacement: whether a site can be drawn again.
    """
    num_sites = weights.shape[0]
    width = _draws_a_turn(most)
    # A single draw is the same in both ways.
    replacement = replacement or most == 1

    def body(number, carry):
        sites, flips, speeds = carry
        indices = number * width + jnp.arange(width)
        if replacement:
            new = jax.vmap(lambda index: draw_site(keys.fold(key, index), weights))(indices)
        else:
            _, new = lax.top_k(speeds, width)
            speeds = speeds.at[new].set(0.0)
        # Also where JAX has 64 bits.
        new = jnp.where(indices < length, new, num_sites).astype(jnp.int32)
        return (
            lax.dynamic_update_slice(sites, new, (indices[0],)),
            flips.at[new].set(True, mode="drop"),
            speeds,
        )

    speeds = weights if replacement else weights / keys.exponentials(key, weights.shape)
    unused = jnp.full(-(-most // width) * width, num_sites, jnp.int32), jnp.zeros(num_sites, bool)
    sites, flips, _ = _take_turns(length, most, body, (*unused, speeds))
    return Draws(sites, length, flips)


def log_probability(
    weights: Float[Array, "N"], drawn: Draws, *, replacement: bool, backwards: bool = False
) -> Float[Array, ""]:
    """Returns the log-probability of drawing these sites from these weights, in the order of the
    draws or backwards.

    Without replacement, a site is drawn from the total weight of itself, the sites drawn after it
    and those never drawn. This weight is summed from the last draw to the first, never subtracted,
    so nothing cancels, however dominant the first sites are.
    """
    num_sites = weights.shape[0]
    most = drawn.sites.shape[0]
    width = _draws_a_turn(most)
    last = _turns(drawn.length, width) - 1

    def body(number, carry):
        mass, log_prob = carry
        first = (number if backwards else last - number) * width
        sites = lax.dynamic_slice(drawn.sites, (first,), (width,))
        drawn_weights = weights.at[sites].get(mode="fill", fill_value=0.0)
        masses = mass
        if not replacement:
            masses = mass + lax.cumsum(drawn_weights, reverse=not backwards)
            mass = mass + jnp.sum(drawn_weights)
        log_probs = jnp.where(sites < num_sites, jnp.log(drawn_weights) - jnp.log(masses), 0.0)
        return mass, log_prob + jnp.sum(log_probs)

    mass = jnp.sum(weights if replacement else jnp.where(drawn.flips, 0.0, weights))
    return _take_turns(drawn.length, most, body, (mass, jnp.float32(0)))[1]


def _draws_a_turn(most: int) -> int:
    return turn_width(most, 8)


def _turns(length: Int[Array, ""], width: int) -> Int[Array, ""]:
    """Returns the number of turns of `width` draws after which every chain of the batch has made
    its own.
    """
    return -(-batch_max(length) // width)


def _take_turns(length: Int[Array, ""], most: int, body: Callable, carry):
    """Returns the last of carry = body(number, carry)."""
    width = _draws_a_turn(most)
    return body(0, carry) if width == most else lax.fori_loop(0, _turns(length, width), body, carry)
