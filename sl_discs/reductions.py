"""Sums and maxima over sites, written out as element-wise operations on lanes of sites.

XLA's CPU backend turns a reduction over hundreds of sites into a windowed one that costs more than the exponentials
it follows. Rows of lanes are therefore combined one by one, which vectorises, and only the lanes are reduced.
The order is fixed by N alone.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
from jaxtyping import Array, Float

# Lanes are doubled until there are at most this many rows, so that long vectors do not swell the program.
_MOST_ROWS = 48
# exp of this is a float32, with room for rounding.
_LARGEST_LOG = 85.0


def _rows(values: Float[Array, "N"], fill: float) -> list[Float[Array, "L"]]:
    lanes = 32
    while values.shape[0] > lanes * _MOST_ROWS:
        lanes *= 2
    padding = -values.shape[0] % lanes
    if padding:
        values = jnp.pad(values, (0, padding), constant_values=fill)
    return [values[start : start + lanes] for start in range(0, values.shape[0], lanes)]


def sum_sites(values: Float[Array, "N"]) -> Float[Array, ""]:
    """The sum of N values."""
    return jnp.sum(functools.reduce(jnp.add, _rows(values, 0.0)))


def max_sites(values: Float[Array, "N"]) -> Float[Array, ""]:
    """The maximum of N values."""
    return jnp.max(functools.reduce(jnp.maximum, _rows(values, -jnp.inf)))


def sum_log1p_sites(values: Float[Array, "N"], scale: Float[Array, ""], total: float) -> Float[Array, ""]:
    """The sum of log(1 + scale v) over N values v >= 0, with one logarithm for as many of them as a float32 allows.

    A product of 1 + v is carried as what it exceeds 1 by, so that small values lose nothing.

    Args:
      values: v.
      scale: of all of them.
      total: no less than the sum of scale v.
    """
    rows = _rows(values, 0.0)
    factors = _factors(total, len(rows))

    def times(product, row):
        value = scale * row
        return product + value + product * value

    products = [
        functools.reduce(times, rows[start : start + factors], jnp.zeros_like(rows[0]))
        for start in range(0, len(rows), factors)
    ]
    return jnp.sum(functools.reduce(jnp.add, [jnp.log1p(product) for product in products]))


def _factors(total: float, most: int) -> int:
    """How many factors 1 + v can be multiplied, up to `most`, if the v sum to no more than `total`.

    The product of k of them is at most (1 + total/k)^k.
    """
    return max((k for k in range(1, most + 1) if k * math.log1p(total / k) < _LARGEST_LOG), default=1)
