"""Sites that flip independently, drawn as the points of a Poisson process instead of one number a site.

With few expected flips that takes few draws. Points are drawn a vector at a time: one of eight costs hardly more than
one of one, and few chains have more of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from sl_discs import keys
from sl_discs.batching import batch_max
from sl_discs.keys import Key
from sl_discs.models.base import GROUP, Flips, list_length
from sl_discs.samplers.draws import WIDTH, BlockedWeights, flips_of_bits, in_one_kernel, independent_places

# Points of one turn; divides GROUP.
_POINTS = GROUP // 2


class _Points(NamedTuple):
    """What was drawn so far.

    Attributes:
      count: number of points, those after the process's end included; the same for all chains.
      elapsed: time of the last one.
      taken: the sites that flip, as bits.
      sites: the same as a list with gaps, in which N marks an unused place.
      length: the list is unused from here on.
    """

    count: Int[Array, ""]
    elapsed: Float[Array, ""]
    taken: UInt32[Array, "K"]
    sites: Int[Array, "R"]
    length: Int[Array, ""]


def poisson_limit(mean: float) -> int:
    """A number that a Poisson variable of this mean exceeds with probability below 1e-15."""
    return math.ceil(mean + 10 * math.sqrt(mean) + 20)


def _words(key: Key) -> tuple[UInt32[Array, "P"], ...]:
    """Four words for each point."""
    left, right = keys.draw_words(key, jnp.arange(2 * _POINTS, dtype=jnp.uint32))
    return left[:_POINTS], left[_POINTS:], right[:_POINTS], right[_POINTS:]


def _none_until(waiting: Float[Array, "P"]) -> Float[Array, "P"]:
    """exp(-time) of each point, from uniform numbers that stand for the waiting times between them."""
    places = jnp.arange(_POINTS)
    product = jnp.float32(1)
    for k in range(_POINTS):
        product = product * jnp.where(places >= k, 1 - waiting[k], 1.0)
    return product


def _is_kept(keep: Float[Array, "P"], odds: Float[Array, "P"], exists: Bool[Array, "P"]) -> Bool[Array, "P"]:
    """Keeps points with probability log(1 + odds) / odds."""
    return exists & (keep * odds < jnp.log1p(odds))


def _is_new(kept: Bool[Array, "P"], sites: Int[Array, "P"], words, bits) -> Bool[Array, "P"]:
    """Whether a kept point is the first at its site."""
    places = jnp.arange(_POINTS)
    new = kept & (words & bits == 0)
    for k in range(_POINTS - 1):
        new = new & ~((sites == sites[k]) & kept[k] & (places > k))
    return new


def flips_of_odds(
    key: Key, weights: BlockedWeights, scale: Float[Array, ""], num_sites: int, max_points: int
) -> Flips:
    """Flips site i with probability odds_i / (1 + odds_i), all independent, for odds_i = scale weights_i.

    Points arrive as a Poisson process with rates odds_i. One at i is kept with probability log(1 + odds_i) / odds_i,
    which leaves a process with rates log(1 + odds_i), and the sites with any point of that one flip.

    Args:
      key: a key for this call alone.
      weights: the odds of the sites up to a factor.
      scale: that factor.
      num_sites: N.
      max_points: most points that are drawn, a `poisson_limit` of the largest possible sum of odds.
    """
    total = scale * weights.total()
    blocks = jnp.arange(weights.sums.shape[0])
    flat = weights.weights.reshape(-1)

    def unfinished(points: _Points):
        more = (points.elapsed <= total) & (points.count < max_points)
        return batch_max(more.astype(jnp.int32)) > 0

    def turn(points: _Points):
        once = points.count >= 0
        words = in_one_kernel(_words, once, keys.fold(key, points.count))
        waiting, first, second, keep = (keys.word_to_uniform(word) for word in words)
        none = in_one_kernel(_none_until, once, waiting)
        block = in_one_kernel(independent_places, once, first, weights.sums)
        place = in_one_kernel(independent_places, once, second, weights.weights[block])
        site = block * WIDTH + place
        number = points.count + jnp.arange(_POINTS, dtype=jnp.int32)
        exists = (none >= jnp.exp(points.elapsed - total)) & (number < max_points)
        kept = in_one_kernel(_is_kept, once, keep, scale * flat[site], exists)
        bit = jnp.uint32(1) << place.astype(jnp.uint32)
        new = in_one_kernel(_is_new, once, kept, site, points.taken[block], bit)
        taken = points.taken
        for k in range(_POINTS):
            taken = jnp.where((blocks == block[k]) & kept[k], taken | bit[k], taken)
        return _Points(
            count=points.count + _POINTS,
            elapsed=points.elapsed - jnp.log(none[-1]),
            taken=taken,
            sites=lax.dynamic_update_slice(points.sites, jnp.where(new, site, num_sites), (points.count,)),
            length=jnp.maximum(points.length, jnp.max(jnp.where(new, number + 1, 0))),
        )

    unused = jnp.full(list_length(max_points), num_sites, jnp.int32)
    start = _Points(jnp.int32(0), jnp.float32(0), jnp.zeros(blocks.shape, jnp.uint32), unused, jnp.int32(0))
    drawn = lax.while_loop(unfinished, turn, start)
    return flips_of_bits(drawn.taken, num_sites, drawn.sites, drawn.length)
