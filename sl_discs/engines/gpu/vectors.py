"""Vectors over the P padded sites of a chain: selecting an element, drawing a site, and random numbers."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from sl_discs import keys

# The two words of a key: the kernel has no vectors of length two.
Words = tuple[UInt32[Array, ""], UInt32[Array, ""]]


def pick(values: Float[Array, "P"], here: Bool[Array, "P"]) -> Float[Array, ""]:
    """The sum of the values that are `here`, which is a single element if only one is."""
    return jnp.sum(jnp.where(here, values, 0.0))


def draw_site(
    uniform: Float[Array, ""],
    weights: Float[Array, "P"],
    running: Float[Array, "P"],
    total: Float[Array, ""],
) -> Int[Array, ""]:
    """A site of positive weight by inversion of the distribution function.

    Args:
      uniform: on [0, 1).
      weights: of the sites; if none is positive, the site is 0.
      running: their prefix sums, which may decrease by rounding errors, as a GPU computes them in a tree.
      total: their sum.
    """
    sites = jnp.arange(weights.shape[0], dtype=jnp.int32)
    possible = weights > 0
    reached = possible & (running > uniform * total)
    last = jnp.max(jnp.where(possible, sites, 0))
    return jnp.minimum(jnp.min(jnp.where(reached, sites, weights.shape[0])), last)


def uniform(key: Words, counter: int | Int[Array, ""]) -> Float[Array, ""]:
    """A uniform number determined by a key and a counter."""
    first, _ = keys.draw_words(key, jnp.asarray(counter).astype(jnp.uint32))
    return keys.word_to_uniform(first)


def _words(key: Words, num_sites: int, size: int) -> tuple[Words, Bool[Array, "size"]]:
    """Both random words behind each entry of `keys.uniforms(key, (num_sites,))`, and which entries use the first."""
    sites = jnp.arange(size, dtype=jnp.int32)
    half = (num_sites + 1) // 2
    counter = jnp.where(sites < half, sites, sites - half)
    return keys.draw_words(key, counter.astype(jnp.uint32)), sites < half


def uniforms(key: Words, num_sites: int, size: int) -> Float[Array, "size"]:
    """`keys.uniforms(key, (num_sites,))` in the first entries."""
    (first, second), takes_first = _words(key, num_sites, size)
    return keys.word_to_uniform(jnp.where(takes_first, first, second))


def normals(key: Words, num_sites: int, size: int) -> Float[Array, "size"]:
    """`keys.normals(key, (num_sites,))` in the first entries."""
    words, takes_first = _words(key, num_sites, size)
    return jnp.where(takes_first, *keys.words_to_normals(*words))
