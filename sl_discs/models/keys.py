"""Random streams: every random number is determined by (seed, purpose, instance, chain, step),
never by call order.

A result therefore does not depend on the number of devices, on which instances are run together, or
on how a run was divided into calls.

The generator is Threefry-2x32 with 20 rounds (Salmon et al. 2011), the same block function as
`jax.random`, written out so that XLA fuses it into the loops around it (on CPUs `jax.random` is a
loop over rounds, which costs a sampler step more than the sampling). A key is two words; folding
and drawing use different counters, so that a folded key never equals a drawn number. Numbers of
different laws from one key overlap: draw only once from a key.
"""

import enum
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from sl_discs.models.batching import AnyArray

Key = UInt32[AnyArray, "*batch 2"]

# Typed constants, as numba compiles a function anew for each literal argument.
_PARITY = np.uint32(0x1BD11BDA)
_EVEN = tuple(map(np.uint32, (13, 15, 26, 6)))
_ODD = tuple(map(np.uint32, (17, 29, 16, 24)))
_DRAW = np.uint32(0)
_FOLD = np.uint32(1)
# Makes a word a number on [0, 1), below which the largest is this.
_UNIT = np.float32(2.0**-32)
_LARGEST = np.float32(1 - 2.0**-24)


class Stream(enum.IntEnum):
    """The purpose of a stream of random numbers."""

    INITIAL_STATE = 0
    MCMC = 1
    OBSERVATION = 2


class StepKeys(NamedTuple):
    """The keys of a chain, or of one of its steps, which are folded from them."""

    mcmc: Key
    observation: Key


def make_threefry(jit: Callable[[Callable], Callable], word: Callable = np.uint32) -> Callable:
    """Returns the block function: of a key's two words and a counter's, it returns two words.

    Args:
      jit: the decorator of its parts, such as numba's for a core or a card.
      word: makes 32 bits of a sum, which numba widens to 64; of arrays, sums stay as they are.
    """

    @jit
    def rotate(left, right, by):
        left = word(left + right)
        right = word((right << by) | (right >> np.uint32(32 - by)))
        return left, word(right ^ left)

    @jit
    def turns(left, right, rotations):
        left, right = rotate(left, right, rotations[0])
        left, right = rotate(left, right, rotations[1])
        left, right = rotate(left, right, rotations[2])
        return rotate(left, right, rotations[3])

    @jit
    def block(key0, key1, first, second):
        key2 = word(key0 ^ key1 ^ _PARITY)
        left, right = turns(word(first + key0), word(second + key1), _EVEN)
        left, right = turns(word(left + key1), word(right + key2 + np.uint32(1)), _ODD)
        left, right = turns(word(left + key2), word(right + key0 + np.uint32(2)), _EVEN)
        left, right = turns(word(left + key0), word(right + key1 + np.uint32(3)), _ODD)
        left, right = turns(word(left + key1), word(right + key2 + np.uint32(4)), _EVEN)
        return word(left + key2), word(right + key0 + np.uint32(5))

    return block


# Of arrays of NumPy, which broadcast.
_on_host = make_threefry(lambda function: function, lambda array: array)
# Of arrays of JAX. Traced once for each shape, and not at every call in a kernel, which takes twice
# as long; XLA inlines the calls.
threefry = jax.jit(_on_host)


def make_uniform(jit: Callable[[Callable], Callable]) -> Callable:
    """Returns `word_to_uniform` of one word, compiled by a decorator of numba's."""

    @jit
    def uniform(word):
        return min(np.float32(np.float32(word) * _UNIT), _LARGEST)

    return uniform


def from_rng(rng: Array) -> Key:
    """Returns the key of a `jax.random` key, typed or as raw words."""
    words = jax.random.key_data(rng) if jnp.issubdtype(rng.dtype, jax.dtypes.prng_key) else rng
    return words.astype(jnp.uint32)[..., -2:]


def fold(key: Key, data: int | Int[Array, ""]) -> Key:
    """Returns the key folded from another key and a number, as `jax.random.fold_in` does.

    A folded key never equals a number that is drawn from the first key, so a sampler may fold a key
    for each of its draws: `fold(key, 0)`, `fold(key, 1)` and so on.

    Example:
        >>> key = sl_discs.models.keys.from_rng(jax.random.key(0))
        >>> sl_discs.models.keys.fold(key, 1).shape
        (2,)

    Args:
      key: [2] two words in uint32.
      data: a whole number, which may be traced; its 32 lowest bits count.

    Returns:
      [2] uint32, by Threefry-2x32 (Salmon et al. 2011).
    """
    words = threefry(*key, jnp.asarray(data).astype(jnp.uint32), _FOLD)
    # Without the barrier XLA fuses the rounds of a folded key into those of every key and number
    # drawn from it, once for each use, so that the code doubles with each round; from JAX 0.11 on,
    # compiling a step then never ends.
    return jnp.stack(jax.lax.optimization_barrier(words))


def draw_words(
    key: Key, counter: UInt32[Array, "*s"]
) -> tuple[UInt32[Array, "*s"], UInt32[Array, "*s"]]:
    """Draws two random words for each counter."""
    return threefry(*key, counter, _DRAW)


def word_to_uniform(word: UInt32[AnyArray, "*s"]) -> Float[AnyArray, "*s"]:
    """Returns a word as a number on [0, 1) in float32, near 0 a multiple of 2^-32: small
    probabilities count.
    """
    return (word.astype(np.float32) * _UNIT).clip(max=_LARGEST)


# sin(pi v)/v and cos(pi v) for v in [-1/2, 1/2], polynomials of v^2 by least squares at Chebyshev
# nodes, lowest power first; errors below 5e-8. XLA's own functions are not vectorised on CPUs.
SINE = (3.14159274, -5.1677103, 2.55007744, -0.598291278, 0.0776576623)
COSINE = (0.99999994, -4.934793, 4.05841112, -1.33187652, 0.219689608)


def words_to_normals(
    first: UInt32[Array, "*s"], second: UInt32[Array, "*s"]
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """Returns two independent standard normal numbers of two words, up to 6.7 in size (Box and
    Muller 1958).
    """
    # The middle of the word's interval, whose logarithm is always finite.
    radius = jnp.sqrt(-2 * jnp.log((first.astype(jnp.float32) + np.float32(0.5)) * _UNIT))
    # Half the angle, over pi: it lies where the polynomials hold.
    half = second.astype(jnp.float32) * _UNIT - np.float32(0.5)
    square = half * half
    sine = half * _polynomial(SINE, square)
    cosine = _polynomial(COSINE, square)
    return radius * (1 - 2 * sine * sine), radius * (2 * sine * cosine)


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    return functools.reduce(
        lambda value, c: value * x + jnp.float32(c), coefficients[::-1], jnp.zeros_like(x)
    )


def uniforms(key: Key, shape: tuple[int, ...] = ()) -> Float[AnyArray, "..."]:
    """Draws uniform numbers on [0, 1) in float32, near 0 multiples of 2^-32.

    Draw only once from a key: numbers of different laws from one key overlap. The first words of
    all counters come before the second, so a longer draw does not begin with a shorter one.

    Example:
        >>> key = sl_discs.models.keys.from_rng(jax.random.key(0))
        >>> numbers = sl_discs.models.keys.uniforms(key, (2, 3))
        >>> numbers.shape, bool((numbers < 1).all())
        ((2, 3), True)

    Args:
      key: [2] two words in uint32, or [..., 2] many keys in an array of NumPy, with which NumPy
        computes the numbers.
      shape: of the numbers from each key.

    Returns:
      [..., *shape] float32.
    """
    on_host = isinstance(key, np.ndarray)
    block: Any = _on_host if on_host else threefry
    xp: Any = np if on_host else jnp
    size = math.prod(shape)
    counters = xp.arange((size + 1) // 2, dtype=np.uint32)
    words = xp.concatenate(block(key[..., :1], key[..., 1:], counters, _DRAW), axis=-1)
    return word_to_uniform(words[..., :size].reshape(*key.shape[:-1], *shape))


def exponentials(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Draws positive numbers of mean 1, exponentially distributed, from 1e-10 to 16.6; in the order
    of `uniforms`.
    """
    return -jnp.log1p(-jnp.maximum(uniforms(key, shape), jnp.float32(2.0**-33)))


def normals(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Draws standard normal numbers in float32, see `words_to_normals`; in the order of
    `uniforms`.
    """
    size = math.prod(shape)
    words = draw_words(key, jnp.arange((size + 1) // 2, dtype=jnp.uint32))
    return jnp.concatenate(words_to_normals(*words))[:size].reshape(shape)


def chain_keys(
    seed: int, stream: Stream, instances: Int[AnyArray, "G"], num_chains: int
) -> UInt32[np.ndarray, "G B 2"]:
    """Returns one key per chain; `instances` are positions in the whole dataset, not in the
    batch.
    """
    # With NumPy: to compile so little takes longer than anything else before the first step.
    words: Any = np.array([[seed >> 32 & 0xFFFFFFFF], [seed & 0xFFFFFFFF]], np.uint32)
    for data in ([stream], np.asarray(instances), np.arange(num_chains)[:, None]):
        words = _on_host(*words, np.asarray(data, np.uint32), _FOLD)
    return np.ascontiguousarray(np.stack(words, axis=-1).swapaxes(0, 1))
