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


def _combine_rows(values: Float[Array, "N"], combine, fill: float) -> Float[Array, "L"]:
    lanes = 32
    while values.shape[0] > lanes * _MOST_ROWS:
        lanes *= 2
    padding = -values.shape[0] % lanes
    if padding:
        values = jnp.pad(values, (0, padding), constant_values=fill)
    rows = [values[start : start + lanes] for start in range(0, values.shape[0], lanes)]
    return functools.reduce(combine, rows)


def sum_sites(values: Float[Array, "N"]) -> Float[Array, ""]:
    """The sum of N values."""
    return jnp.sum(_combine_rows(values, jnp.add, 0.0))


def max_sites(values: Float[Array, "N"]) -> Float[Array, ""]:
    """The maximum of N values."""
    return jnp.max(_combine_rows(values, jnp.maximum, -jnp.inf))
