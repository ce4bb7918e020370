"""Sums and maxima over sites, written out as element-wise operations on lanes of sites.

XLA's CPU backend turns a reduction over hundreds of sites into a windowed one that costs more than the exponentials
it follows. Rows of lanes are therefore combined one by one, which vectorises, and only the lanes are reduced.
The order is fixed by N alone.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array, Float

# Lanes are doubled until there are at most this many rows, so that long vectors do not swell the program.
_MOST_ROWS = 48
# (1 + v)^4 is a number for v up to 1e9.
_FACTORS = 4


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


def sum_log1p_sites(values: Float[Array, "N"]) -> Float[Array, ""]:
    """The sum of log(1 + v) over N values v >= 0, with one logarithm for every `_FACTORS` of them.

    A product of 1 + v is carried as what it exceeds 1 by, so that small values lose nothing. It must not pass the
    largest float32: values of up to 1e9 never do.
    """
    rows = _rows(values, 0.0)
    products = [
        functools.reduce(lambda product, row: product + row + product * row, rows[start : start + _FACTORS])
        for start in range(0, len(rows), _FACTORS)
    ]
    return jnp.sum(functools.reduce(jnp.add, [jnp.log1p(product) for product in products]))
