"""Symmetric couplings with zero diagonal, stored as rows (dense) or padded neighbour lists (sparse).

A chain adds one row to its local field Kx for each flipped site, so the cost of a row matters. Fields have the
smallest possible dtype, because a step reads those of all chains several times, and they compete for the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Int8, Num

from sl_discs import keys
from sl_discs.arrays import AnyArray
from sl_discs.keys import Key

# The largest sum of a field of 16 bits.
_MOST_IN_INT16 = 2**15 - 1
# A row costs about 0.3 ns a site when dense. Scattered it costs 4 ns a neighbour and, on CPUs, a copy of the field:
# lists are then shorter by less than this factor where they lose (2-core x86-64, XLA 2026).
_SCATTER_COST = 40
# Matrices that would not fit into caches, and memory before long, are avoided unless lists are nearly as large.
_LARGE_MATRIX, _SCATTER_COST_OF_LARGE = 4096, 12


class Dense(NamedTuple):
    """K as a matrix: [N, N], int8 where exact."""

    rows: Num[AnyArray, "N N"]

    def matvec(self, x: Int8[Array, "N"]) -> Float[Array, "N"]:
        """Kx in float32, exact where K is int8."""
        if self.rows.dtype == jnp.int8:
            # Sums of integers below 2^24 are exact in any order, so the library's product may be used.
            return jnp.dot(x.astype(jnp.float32), self.rows.astype(jnp.float32), precision="highest")

        # Other sums depend on how XLA splits them, which differs between batches; row by row they take no extra
        # memory.
        rows = jnp.asarray(self.rows)

        def add_row(site, field):
            return field + jnp.where(x[site] > 0, rows[site], 0)

        return lax.fori_loop(0, x.shape[0], add_row, jnp.zeros(x.shape, jnp.float32))

    def add_row(self, field: Num[Array, "N"], site: Int[Array, ""], delta: Float[Array, ""]):
        """field + delta K[site] in the field's dtype; a site of N adds nothing if delta is 0."""
        row = self.rows[jnp.minimum(site, self.rows.shape[0] - 1)]
        return field + delta.astype(field.dtype) * row.astype(field.dtype)

    def largest_neighbour(self, values: Float[Array, "N"]) -> Float[Array, "N"]:
        """The largest of the non-negative values at the neighbours of each site; 0 if there are none."""
        return jnp.max(jnp.where(self.rows != 0, values, 0.0), axis=1)

    def draw(self, key: Key, sign: Float[Array, ""]) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """A draw of N(0, sign K + D), and the diagonal D_ii = sum_j |K_ij|."""
        sites = jnp.arange(self.rows.shape[0])
        return _draw(key, sites[:, None], sites[None], sign * self.rows.astype(jnp.float32))


class Sparse(NamedTuple):
    """K as lists: the neighbours of each site [N, D], padded with N, and their couplings."""

    neighbours: Int[AnyArray, "N D"]
    weights: Num[AnyArray, "N D"]

    def matvec(self, x: Int8[Array, "N"]) -> Float[Array, "N"]:
        """Kx in float32, exact where K is int8."""
        x = jnp.append(x, jnp.int8(0))
        return jnp.sum(jnp.where(x[self.neighbours] > 0, self.weights, 0), axis=1, dtype=jnp.float32)

    def add_row(self, field: Num[Array, "N"], site: Int[Array, ""], delta: Float[Array, ""]):
        """field + delta K[site] in the field's dtype; a site of N adds nothing if delta is 0."""
        site = jnp.minimum(site, self.neighbours.shape[0] - 1)
        return field.at[self.neighbours[site]].add(
            delta.astype(field.dtype) * self.weights[site].astype(field.dtype), mode="drop", unique_indices=False
        )

    def largest_neighbour(self, values: Float[Array, "N"]) -> Float[Array, "N"]:
        """The largest of the non-negative values at the neighbours of each site; 0 if there are none."""
        return jnp.max(jnp.where(self.weights != 0, jnp.append(values, 0.0)[self.neighbours], 0.0), axis=1)

    def draw(self, key: Key, sign: Float[Array, ""]) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """A draw of N(0, sign K + D), and the diagonal D_ii = sum_j |K_ij|."""
        sites = jnp.arange(self.neighbours.shape[0])
        return _draw(key, sites[:, None], jnp.asarray(self.neighbours), sign * self.weights.astype(jnp.float32))


def _draw(key: Key, sites: Int[Array, "N 1"], others: Int[Array, "#N D"], weights: Float[Array, "N D"]):
    """Adds the normal numbers of the pairs; both sites of a pair compute its number from their own numbers."""
    first = sites < others
    low, high = jnp.where(first, sites, others), jnp.where(first, others, sites)
    normal, _ = keys.words_to_normals(*keys.threefry(key, low.astype(jnp.uint32), high.astype(jnp.uint32)))
    signs = jnp.where(first, 1.0, jnp.sign(weights))
    size = jnp.abs(weights)
    return jnp.sum(signs * jnp.sqrt(size) * normal, axis=1), jnp.sum(size, axis=1)


Coupling = Dense | Sparse


def sparse_is_cheaper(degree: int, num_sites: int) -> bool:
    """Whether neighbour lists of this length are cheaper than dense rows of this length."""
    cost = _SCATTER_COST if num_sites <= _LARGE_MATRIX else _SCATTER_COST_OF_LARGE
    return cost * max(degree, 1) < num_sites


def weight_dtype(weights: np.ndarray) -> type:
    """int8 if that is exact, otherwise float32."""
    exact = np.array_equal(weights, np.round(weights)) and np.abs(weights).max(initial=0) <= 127
    return np.int8 if exact else np.float32


def field_dtype(coupling: Coupling) -> str:
    """The dtype of the sums Kx: int16 if K is int8 and no sum can overflow, otherwise float32.

    Args:
      coupling: on the host, one or a stack of them.
    """
    weights = coupling[-1]
    if weights.dtype != np.int8:
        return "float32"
    largest = np.abs(weights).sum(axis=-1, dtype=np.int64).max(initial=0)
    return "int16" if largest <= _MOST_IN_INT16 else "float32"


def dense_coupling(
    edges: np.ndarray, weights: np.ndarray, num_sites: int, background: float = 0.0, padded: int | None = None
) -> Dense:
    """The symmetric matrix of weighted edges, with the background between all other sites, on the host.

    It is padded with zeros to `padded` sites, if that is given.
    """
    padded = padded or num_sites
    rows: np.ndarray = np.zeros((padded, padded), weight_dtype(np.append(weights, background)))
    if background:
        rows[:num_sites, :num_sites] = background
        np.fill_diagonal(rows, 0)
    rows[edges[:, 0], edges[:, 1]] = weights
    rows[edges[:, 1], edges[:, 0]] = weights
    return Dense(rows)


def sparse_coupling(edges: np.ndarray, weights: np.ndarray, num_sites: int, degree: int) -> Sparse:
    """The neighbour lists of weighted edges, padded to `degree`, on the host."""
    source = np.concatenate([edges[:, 0], edges[:, 1]])
    target = np.concatenate([edges[:, 1], edges[:, 0]])
    both = np.concatenate([weights, weights])
    order = np.lexsort((target, source))
    source, target, both = source[order], target[order], both[order]
    counts = np.bincount(source, minlength=num_sites)
    place = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    neighbours = np.full((num_sites, max(degree, 1)), num_sites, np.int32)
    values: np.ndarray = np.zeros((num_sites, max(degree, 1)), weight_dtype(weights))
    neighbours[source, place] = target
    values[source, place] = both
    return Sparse(neighbours, values)
