"""Draws of sites from unnormalised weights by a two-level inverse CDF: block sums, then inside one block.

A draw costs two uniform numbers and a look at N/32 + 32 weights instead of N Gumbel variables.

Weights are exp(logit - max), floored at exp(-80): in float32 every weight is then a normal number and no sum of
remaining weights can vanish. The floor is a function of the state alone, so a Metropolis-Hastings ratio formed
with the floored weights is that of the proposal actually used, and the law stays exact.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from sl_discs import keys
from sl_discs.batching import batch_max
from sl_discs.keys import Key
from sl_discs.models.base import GROUP, Flips, SiteTerm, list_length
from sl_discs.reductions import max_sites, sum_sites

WIDTH = 32
LOWEST_LOGIT = -80.0
LONGEST_WRITTEN_OUT = 64


class BlockedWeights(NamedTuple):
    """Weights of N sites in ceil(N/32) blocks, and the sum of each block."""

    weights: Float[Array, "K W"]
    sums: Float[Array, "K"]

    def total(self) -> Float[Array, ""]:
        """The sum of all weights."""
        return sum_sites(self.weights.reshape(-1))


class Drawn(NamedTuple):
    """Sites drawn one after the other.

    Attributes:
      flips: the distinct sites.
      sequence: [R] every draw in order, repeats included, padded with N; R is a `list_length`.
      log_prob: log-probability of that sequence.
    """

    flips: Flips
    sequence: Int[Array, "R"]
    log_prob: Float[Array, ""]


def floored_weights(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> Float[Array, "N"]:
    """exp(logits) relative to the largest over the mask and at least exp(-80); 0 outside the mask."""
    top = max_sites(jnp.where(mask, logits, -jnp.inf))
    # The mask comes before the exponential: XLA repeats what follows one in every kernel that reads the weights.
    return jnp.exp(jnp.where(mask, jnp.maximum(logits - top, LOWEST_LOGIT), -jnp.inf))


def in_blocks(weights: Float[Array, "N"]) -> BlockedWeights:
    """Cuts weights into blocks; places past N weigh nothing."""
    padding = -weights.shape[0] % WIDTH
    blocks = (jnp.pad(weights, (0, padding)) if padding else weights).reshape(-1, WIDTH)
    return BlockedWeights(blocks, jnp.sum(blocks, axis=1))


def softmax_weights(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> BlockedWeights:
    """Blocked weights proportional to the floored softmax over the mask."""
    return in_blocks(floored_weights(logits, mask))


class Pick(NamedTuple):
    """A place drawn from K weights, its weight, and the sum of all weights and of the others."""

    place: Int[Array, ""]
    weight: Float[Array, ""]
    total: Float[Array, ""]
    rest: Float[Array, ""]


def _inverse_cdf(uniform: Float[Array, ""], weights: Float[Array, "K"]) -> Pick:
    """A place with positive weight, by inversion; rounding never leads to a place without weight."""
    if weights.shape[0] > LONGEST_WRITTEN_OUT:
        return _inverse_cdf_long(uniform, weights)
    return _inverse_cdf_short(uniform, weights)


def _inverse_cdf_short(uniform: Float[Array, ""], weights: Float[Array, "K"]) -> Pick:
    """Written out term by term: mapped over chains, XLA makes one vectorised loop over chains of it."""
    place = independent_places(uniform, weights)
    weight, total, rest = jnp.float32(0), jnp.float32(0), jnp.float32(0)
    for k in range(weights.shape[0]):
        here = place == k
        weight = jnp.where(here, weights[k], weight)
        total = total + weights[k]
        rest = rest + jnp.where(here, 0.0, weights[k])
    return Pick(place, weight, total, rest)


def _inverse_cdf_long(uniform: Float[Array, ""], weights: Float[Array, "K"]) -> Pick:
    """The same by prefix sums, for many blocks."""
    places = jnp.arange(weights.shape[0], dtype=jnp.int32)
    running = jnp.cumsum(weights)
    total = running[-1]
    last = jnp.max(jnp.where(weights > 0, places, 0))
    place = jnp.minimum(jnp.sum(running <= uniform * total, dtype=jnp.int32), last)
    rest = jnp.sum(jnp.where(places == place, 0.0, weights))
    return Pick(place, weights[place], total, rest)


def independent_places(uniforms: Float[Array, "*P"], weights: Float[Array, "*P K"]) -> Int[Array, "*P"]:
    """Independent places by inversion, one of each row of weights or all of the same weights.

    From more than `LONGEST_WRITTEN_OUT` weights there has to be an axis P; `_inverse_cdf_long` draws one alone.
    """
    if weights.shape[-1] > LONGEST_WRITTEN_OUT:
        running = jnp.cumsum(weights, axis=-1)
        thresholds = uniforms * running[..., -1]
        places = jnp.arange(weights.shape[-1], dtype=jnp.int32)
        last = jnp.max(jnp.where(weights > 0, places, 0), axis=-1)
        return jnp.minimum(jnp.sum(running <= thresholds[:, None], axis=-1, dtype=jnp.int32), last)
    terms = [weights[..., k] for k in range(weights.shape[-1])]
    threshold = uniforms * functools.reduce(jnp.add, terms)
    running = jnp.float32(0)
    place, last = jnp.int32(0), jnp.int32(0)
    for k, term in enumerate(terms):
        running = running + term
        place = place + (running <= threshold).astype(jnp.int32)
        last = jnp.where(term > 0, k, last)
    return jnp.minimum(place, last)


def in_one_kernel(function, always_true: Bool[Array, ""], *arguments):
    """function(*arguments), computed once: XLA would otherwise repeat it in every kernel that uses its result.

    Its own remedy, an optimisation barrier, is dropped before kernels are formed; a conditional is not.
    """
    shapes = jax.eval_shape(function, *arguments)

    def zeros(*_):
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    return lax.cond(always_true, function, zeros, *arguments)


def _for_each_draw(key: Key, length: int | Int[Array, ""], body, carry):
    """body(index, two uniforms, carry) for index < length (at least; surplus turns must do nothing).

    Uniforms come in groups: a generator call inside the loop would cost more than the draw.
    """

    def group_uniforms(group, size):
        return keys.uniforms(keys.fold(key, group), (size, 2))

    if isinstance(length, int) and length <= GROUP:
        uniforms = group_uniforms(0, length)
        if length == 1:
            return body(0, uniforms[0], carry)
        return lax.fori_loop(0, length, lambda turn, carry: body(turn, uniforms[turn], carry), carry)

    longest = jnp.int32(length) if isinstance(length, int) else batch_max(length)

    def play_group(group, carry):
        uniforms = group_uniforms(group, GROUP)
        first = group * GROUP
        turns = jnp.minimum(longest - first, GROUP)
        return lax.fori_loop(0, turns, lambda turn, carry: body(first + turn, uniforms[turn], carry), carry)

    return lax.fori_loop(0, (longest + GROUP - 1) // GROUP, play_group, carry)


def flips_of_bits(
    taken: UInt32[Array, "K"], num_sites: int, sites: Int[Array, "R"], length: int | Int[Array, ""]
) -> Flips:
    """Flips of the sites whose bit is set, 32 to a word, given their list too."""
    bits = taken[:, None] >> jnp.arange(WIDTH, dtype=jnp.uint32)
    mask = (bits & 1).astype(bool).reshape(-1)[:num_sites]
    count = jnp.sum(lax.population_count(taken).astype(jnp.int32))
    return Flips(mask, sites, jnp.asarray(length, jnp.int32), count)


def draw_sites(
    key: Key,
    weights: BlockedWeights,
    num_sites: int,
    length: int | Int[Array, ""],
    *,
    replacement: bool,
    max_length: int | None = None,
) -> Drawn:
    """Draws `length` sites in turn, with or without replacement.

    Without replacement, the probability of the k-th draw is its weight over the weights that remain, and what
    remains is summed anew, never subtracted: no cancellation, however dominant the earlier picks were.

    Args:
      key: a key for this call alone.
      weights: of the sites; at least `length` of them positive if drawn without replacement.
      num_sites: N.
      length: number of draws; a Python int, or traced and at most `max_length`.
      replacement: whether a site can be drawn again (it then flips once).
      max_length: length of the returned sequence when `length` is traced; N by default.
    """
    capacity = length if isinstance(length, int) else (max_length or num_sites)
    blocks = jnp.arange(weights.sums.shape[0])
    lanes = jnp.arange(WIDTH, dtype=jnp.uint32)

    def turn(index, uniforms, carry):
        sums, taken, sequence, sites, log_prob = carry
        chosen = in_one_kernel(_inverse_cdf, index >= 0, uniforms[0], sums)
        inside = weights.weights[chosen.place]
        word = taken[chosen.place]
        if not replacement:
            inside = jnp.where((word >> lanes) & 1, 0.0, inside)
        picked = in_one_kernel(_inverse_cdf, index >= 0, uniforms[1], inside)
        site = chosen.place * WIDTH + picked.place
        bit = jnp.uint32(1) << picked.place.astype(jnp.uint32)
        active = index < length
        here = (blocks == chosen.place) & active
        log_prob += jnp.where(active, jnp.log(picked.weight) - jnp.log(chosen.total), 0.0)
        if replacement:
            fresh = active & (word & bit == 0)
            sites = sites.at[index].set(jnp.where(fresh, site, num_sites))
        else:
            sums = jnp.where(here, picked.rest, sums)
        taken = jnp.where(here, taken | bit, taken)
        sequence = sequence.at[index].set(jnp.where(active, site, num_sites))
        return sums, taken, sequence, sites, log_prob

    unused = jnp.full(list_length(capacity), num_sites, jnp.int32)
    sites = unused if replacement else None
    start = (weights.sums, jnp.zeros(blocks.shape, jnp.uint32), unused, sites, jnp.float32(0))
    carry = _for_each_draw(key, length, turn, start)
    _, taken, sequence, sites, log_prob = carry
    sites = sites if replacement else sequence
    flips = flips_of_bits(taken, num_sites, sites, length)
    return Drawn(flips, sequence, log_prob)


def log_prob_reversed(
    weights: BlockedWeights, drawn: Drawn, *, replacement: bool, beside: SiteTerm | None = None
) -> Float[Array, ""]:
    """Log-probability that these weights give a drawn sequence in reverse order.

    With replacement the order is immaterial. Without, the mass before the last pick is that of the untouched
    sites and the pick, and grows by one pick at a time from there: sums only, no cancellation.

    Args:
      weights: after the flips.
      drawn: the sequence.
      replacement: whether sites were drawn with replacement.
      beside: what each distinct site adds to the result, in the same pass.
    """
    flat = weights.weights.reshape(-1)
    num_sites = drawn.flips.mask.shape[0]
    untouched = jnp.where(drawn.flips.mask, 0.0, flat[:num_sites])
    mass = weights.total() if replacement else sum_sites(untouched)

    def turn(index, carry):
        mass, log_prob = carry
        site = drawn.sequence[index]
        active = site < num_sites
        weight = flat[jnp.minimum(site, num_sites - 1)]
        if not replacement:
            mass = mass + jnp.where(active, weight, 0.0)
        return mass, log_prob + jnp.where(active, jnp.log(weight) - jnp.log(mass), 0.0)

    def turn_and_beside(index, carry):
        mass, log_prob = turn(index, carry)
        distinct = drawn.flips.sites[index]
        added = beside(jnp.minimum(distinct, num_sites - 1))
        return mass, log_prob + jnp.where(distinct < num_sites, added, 0.0)

    start = mass, jnp.float32(0)
    if drawn.sequence.shape[0] == 1:
        # One draw is always made: to ask whether, as in the loop, adds 2 % to a localized step of one flip.
        log_prob = turn(0, start)[1]
        return log_prob if beside is None else log_prob + beside(drawn.flips.sites[0])
    body = turn if beside is None else turn_and_beside
    return lax.fori_loop(0, batch_max(drawn.flips.length), body, start)[1]


def sites_of_mask(mask: Bool[Array, "N"]) -> Flips:
    """The flips of a mask, found one set bit after the other (few are expected)."""
    num_sites = mask.shape[0]
    padded = jnp.pad(mask, (0, -num_sites % WIDTH)).reshape(-1, WIDTH)
    words = jnp.sum(padded.astype(jnp.uint32) << jnp.arange(WIDTH, dtype=jnp.uint32), axis=1, dtype=jnp.uint32)
    length = jnp.sum(mask, dtype=jnp.int32)
    blocks = jnp.arange(words.shape[0])

    def turn(index, carry):
        words, sites = carry
        block = jnp.argmax(words != 0)
        word = words[block]
        lowest = word & (~word + jnp.uint32(1))
        place = lax.population_count(lowest - jnp.uint32(1)).astype(jnp.int32)
        site = jnp.where(word != 0, block.astype(jnp.int32) * WIDTH + place, num_sites)
        words = jnp.where(blocks == block, word & ~lowest, words)
        return words, sites.at[index].set(site)

    start = (words, jnp.full(list_length(num_sites), num_sites, jnp.int32))
    _, sites = lax.fori_loop(0, batch_max(length), turn, start)
    return Flips(mask, sites, length, length)
