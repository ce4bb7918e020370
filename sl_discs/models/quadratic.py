"""The binary quadratic model f(x) = c.x + scale/2 x'Kx with an incremental local field."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int, Int8, Num
from scipy import sparse

from sl_discs.instances.graph import neighbours_of
from sl_discs.models.batching import AnyArray, batch_max, turn_width
from sl_discs.models.model import Model
from sl_discs.models.terms import Coefficients

# Symmetric couplings with zero diagonal, stored as rows (dense) or padded neighbour lists (sparse).
#
# A chain adds one row to its local field Kx for each flipped site, so the cost of a row matters.
# Fields have the smallest possible dtype, because a step reads those of all chains several times,
# and they compete for the cache.

# The largest sum of a field of 16 bits.
_MOST_IN_INT16 = 2**15 - 1
# A row costs about 0.3 ns a site when dense. Scattered it costs 4 ns a neighbour and, on CPUs, a
# copy of the field: lists are then shorter by less than this factor where they lose (2-core x86-64,
# XLA 2026).
_SCATTER_COST = 40
# Matrices that would not fit into caches, and memory before long, are avoided unless lists are
# nearly as large.
_LARGE_MATRIX, _SCATTER_COST_OF_LARGE = 4096, 12
# Rows whose couplings are listed together: what is needed beside the matrix is small.
_ROWS_AT_ONCE = 1024


class Dense(NamedTuple):
    """K as a matrix: [N, N], int8 where exact."""

    rows: Num[AnyArray, "N N"]

    def entries(self, num_sites: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns instance, site, neighbour and weight of each non-zero coupling of a stack, in
        order.
        """
        rows = np.asarray(self.rows)
        # Four times as fast as np.nonzero (2.7 instead of 11 ms for 4 x 832 x 832), which matters
        # in short runs.
        index = np.flatnonzero(
            rows.ravel() if rows.dtype != np.int8 else rows.ravel().view(np.bool_)
        )
        row, neighbour = np.divmod(index, num_sites)
        return row // num_sites, row % num_sites, neighbour, rows.ravel()[index]

    def matvec(self, x: Num[Array, "N"]) -> Float[Array, "N"]:
        """Returns Kx in float32 for whole numbers x, exact where K is int8."""
        if self.rows.dtype == jnp.int8:
            # Sums of integers below 2^24 are exact in any order, so the library's product may be
            # used.
            return jnp.dot(
                x.astype(jnp.float32), self.rows.astype(jnp.float32), precision="highest"
            )

        # Other sums depend on how XLA splits them, which differs between batches; row by row they
        # take no extra memory.
        rows = jnp.asarray(self.rows)

        def add_row(site, field):
            return field + x[site] * rows[site]

        return lax.fori_loop(0, x.shape[0], add_row, jnp.zeros(x.shape, jnp.float32))

    def products(self, x: Int8[np.ndarray, "B N"]) -> Float32[np.ndarray, "B N"]:
        """Returns Kx of many states on the host, with the sums of `matvec`.

        BLAS would share each product among threads, which wait for each other: with 832 sites and
        32 states, two threads took 25 ms, and this takes 2 ms where a twentieth of the couplings is
        not 0, 20 ms where all are not.
        """
        columns = x.T.astype(np.float32)
        num_sites = x.shape[1]
        sums = np.empty(x.shape, np.float32)
        for begin in range(0, num_sites, _ROWS_AT_ONCE):
            rows = self.rows[begin : begin + _ROWS_AT_ONCE]
            _, row, neighbour, weight = Dense(rows[None]).entries(num_sites)
            begins = np.searchsorted(row, np.arange(len(rows) + 1))
            block = sparse.csr_array(
                (weight.astype(np.float32), neighbour, begins), shape=rows.shape
            )
            sums[:, begin : begin + len(rows)] = (block @ columns).T
        return sums

    def add_row(self, field: Num[Array, "N"], site: Int[Array, ""], delta: Float[Array, ""]):
        """Returns field + delta K[site] in the field's dtype; a site of N adds nothing if delta is
        0.
        """
        row = self.rows[jnp.minimum(site, self.rows.shape[0] - 1)]
        return field + delta.astype(field.dtype) * row.astype(field.dtype)


class Sparse(NamedTuple):
    """K as lists: the neighbours of each site [N, D], padded with N, and their couplings."""

    neighbours: Int[AnyArray, "N D"]
    weights: Num[AnyArray, "N D"]

    def entries(self, num_sites: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns the instance, both sites and the value of each coupling that is not zero."""
        neighbours = np.asarray(self.neighbours)
        weights = np.asarray(self.weights)
        entry = np.nonzero(weights)
        instance, site, _ = entry
        return instance, site, neighbours[entry], weights[entry]

    def matvec(self, x: Num[Array, "N"]) -> Float[Array, "N"]:
        x = jnp.append(x.astype(jnp.float32), 0.0)
        return jnp.sum(x[self.neighbours] * self.weights, axis=1)

    def products(self, x: Int8[np.ndarray, "B N"]) -> Float32[np.ndarray, "B N"]:
        """Returns Kx of many states by NumPy, with the sums of `matvec`."""
        chosen = np.pad(x, ((0, 0), (0, 1))) > 0
        sums = np.zeros(x.shape, np.float32)
        for neighbours, weights in zip(self.neighbours.T, self.weights.T, strict=True):
            sums += chosen[:, neighbours] * weights
        return sums

    def add_row(self, field: Num[Array, "N"], site: Int[Array, ""], delta: Float[Array, ""]):
        site = jnp.minimum(site, self.neighbours.shape[0] - 1)
        return field.at[self.neighbours[site]].add(
            delta.astype(field.dtype) * self.weights[site].astype(field.dtype),
            mode="drop",
        )


Coupling = Dense | Sparse


def sparse_is_cheaper(degree: int, num_sites: int) -> bool:
    """Returns whether neighbour lists of this length are cheaper than dense rows of this length."""
    cost = _SCATTER_COST if num_sites <= _LARGE_MATRIX else _SCATTER_COST_OF_LARGE
    return cost * max(degree, 1) < num_sites


def weight_dtype(weights: np.ndarray) -> type:
    """Returns int8 if that is exact, otherwise float32."""
    exact = np.array_equal(weights, np.round(weights)) and np.abs(weights).max(initial=0) <= 127
    return np.int8 if exact else np.float32


def field_dtype(coupling: Coupling) -> str:
    """Returns the dtype of the sums Kx: int16 if K is int8 and no sum can overflow, otherwise
    float32.

    Args:
      coupling: on the host, one or a stack of them.
    """
    weights = coupling[-1]
    fits = (
        weights.dtype == np.int8
        and np.abs(weights).sum(axis=-1, dtype=np.int64).max(initial=0) <= _MOST_IN_INT16
    )
    return "int16" if fits else "float32"


def dense_coupling(terms: Coefficients, num_sites: int) -> Dense:
    """Returns the symmetric matrix of the couplings, padded with zeros to `num_sites`, on the
    host.
    """
    dtype = weight_dtype(np.append(terms.weights, terms.background))
    rows: np.ndarray = np.zeros((num_sites, num_sites), dtype)
    if terms.background:
        rows[: terms.num_sites, : terms.num_sites] = terms.background
        np.fill_diagonal(rows, 0)
    first, second = terms.edges.T
    rows[first, second] = terms.weights
    rows[second, first] = terms.weights
    return Dense(rows)


def sparse_coupling(terms: Coefficients, num_sites: int, degree: int) -> Sparse:
    """Returns the lists of the sites that each site is coupled to, padded to `degree`, on the
    host.
    """
    listed = terms.listed()
    near = neighbours_of(num_sites, listed.edges)
    counts = np.diff(near.starts)
    site = np.repeat(np.arange(num_sites), counts)
    column = np.arange(len(site)) - np.repeat(near.starts[:-1], counts)
    shape = (num_sites, max(degree, 1))
    neighbours = np.full(shape, num_sites, np.int32)
    weights: np.ndarray = np.zeros(shape, weight_dtype(listed.weights))
    neighbours[site, column] = near.others
    weights[site, column] = listed.weights[near.numbers]
    return Sparse(neighbours, weights)


# The arrays of chains.


class QuadraticParams(NamedTuple):
    """c, K (symmetric, zero diagonal) and its scale; J = scale K.

    The scale is separate so that K can hold small integers: the running sums below are then exact
    in float32 and do not drift, whatever the length of the chain and the penalty.
    """

    linear: Float[AnyArray, "N"]
    coupling: Coupling
    scale: Float[AnyArray, ""] | np.float32


class QuadraticField(NamedTuple):
    """The data that a chain keeps up to date: Kx in the model's `field_dtype`, c.x and x'Kx/2."""

    coupled: Num[Array, "N"]
    linear: Float[Array, ""]
    pairs: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class QuadraticModel(Model):
    """Quadratic pseudo-Boolean function; gains are exact because f is multilinear.

    Attributes:
      num_sites: N.
      field_dtype: of Kx, see `coupling.field_dtype`; results do not depend on it.
    """

    num_sites: int
    field_dtype: str = "float32"

    def init(self, params, x):
        """Returns Kx by a product with the whole matrix."""
        coupled = params.coupling.matvec(x)
        state = x.astype(jnp.float32)
        linear = jnp.sum(params.linear * state)
        pairs = jnp.sum(state * coupled) / 2
        return QuadraticField(coupled.astype(self.field_dtype), linear, pairs)

    def fields_on_host(self, params, x):
        """Computes fields as `init`, instance by instance; sums real numbers in double
        precision.
        """
        coupled = np.zeros(x.shape, self.field_dtype)
        linear, pairs = np.zeros((2, *x.shape[:2]), np.float32)
        form = type(params.coupling)
        leaves = [np.asarray(leaf) for leaf in params.coupling]
        for g, (states, weights) in enumerate(zip(x, np.asarray(params.linear), strict=True)):
            sums = form(*(leaf[g] for leaf in leaves)).products(states)
            coupled[g] = sums
            linear[g] = (states * weights).sum(axis=1, dtype=np.float64)
            pairs[g] = (states * sums).sum(axis=1, dtype=np.float64) / 2
        return QuadraticField(coupled, linear, pairs)

    def value(self, params, x, field):
        return field.linear + params.scale * field.pairs

    def gains(self, params, x, field):
        local = params.linear + params.scale * field.coupled.astype(jnp.float32)
        return jnp.where(x > 0, -local, local)

    def update(self, params: QuadraticParams, x, field: QuadraticField, y):
        """Adds one row of K for each flipped site."""
        delta = (y - x).astype(jnp.float32)
        coupled = add_rows(params.coupling, field.coupled, delta)
        linear, pairs = _changes(params, delta, field.coupled, coupled)
        return QuadraticField(coupled, field.linear + linear, field.pairs + pairs)

    def change(self, params, x, before, y, after):
        """Returns what `update` adds, which has the digits of fields and not those of the
        totals.
        """
        linear, pairs = _changes(params, (y - x).astype(jnp.float32), before.coupled, after.coupled)
        return linear + params.scale * pairs

    def coupled(self, params, site):
        return params.coupling.add_row(jnp.zeros(self.num_sites), site, jnp.float32(1)) != 0


def _changes(
    params: QuadraticParams,
    delta: Float[Array, "N"],
    before: Num[Array, "N"],
    after: Num[Array, "N"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the changes of c.x and of x'Kx/2 by delta, from Kx before and after it."""
    # y'Ky - x'Kx = (y - x)'(Kx + Ky) for symmetric K.
    pairs = jnp.sum(delta * (before.astype(jnp.float32) + after.astype(jnp.float32))) / 2
    return jnp.sum(delta * params.linear), pairs


def add_rows(
    coupling: Coupling, coupled: Num[Array, "N"], delta: Float[Array, "N"]
) -> Num[Array, "N"]:
    """Returns K(x + delta) from Kx: adds the rows of the flipped sites one after the other, or all
    by one product.
    """
    num_sites = delta.shape[0]
    flips = delta != 0
    if turn_width(num_sites, 1) == num_sites and coupling[-1].dtype == jnp.int8:
        return coupled + coupling.matvec(delta).astype(coupled.dtype)
    sites = jnp.arange(num_sites)

    def add_next(_, carry):
        left, coupled = carry
        # N if no site is left: chains with fewer flips than others then add nothing.
        site = jnp.min(jnp.where(left, sites, sites.shape[0]))
        coupled = coupling.add_row(coupled, site, delta.at[site].get(mode="fill", fill_value=0.0))
        return left & (sites != site), coupled

    longest = batch_max(jnp.sum(flips, dtype=jnp.int32))
    return lax.fori_loop(0, longest, add_next, (flips, coupled))[1]


def quadratic_params(terms: Coefficients, num_sites: int, degree: int | None) -> QuadraticParams:
    """Returns host arrays of a model padded to num_sites: neighbour lists of `degree` or, if None,
    dense rows.
    """
    linear = np.zeros(num_sites, np.float32)
    linear[: terms.num_sites] = terms.linear
    coupling: Coupling = (
        dense_coupling(terms, num_sites)
        if degree is None
        else sparse_coupling(terms, num_sites, degree)
    )
    return QuadraticParams(linear, coupling, np.float32(terms.scale))
