"""The binary quadratic model f(x) = c.x + scale/2 x'Kx with an incremental local field."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Num

from sl_discs.batching import batch_max
from sl_discs.models.base import GROUP, Flips, Model, apply_flips, sums_over_flips
from sl_discs.models.coefficients import Coefficients
from sl_discs.models.coupling import Coupling, dense_coupling, sparse_coupling

# Rows of K added in one pass over the field; divides GROUP.
ROWS = 4


class QuadraticParams(NamedTuple):
    """c, K (symmetric, zero diagonal) and its scale; J = scale K.

    The scale stands apart so that K can hold small integers: the running sums below are then exact in float32
    and never drift, however long the chain and whatever the penalty.
    """

    linear: Float[Array, "N"]
    coupling: Coupling
    scale: Float[Array, ""]


class QuadraticField(NamedTuple):
    """What a chain carries: Kx in the model's `field_dtype`, c.x and x'Kx/2."""

    coupled: Num[Array, "N"]
    linear: Float[Array, ""]
    pairs: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class QuadraticModel(Model):
    """Quadratic pseudo-Boolean function; gains are exact because f is multilinear.

    Attributes:
      num_sites: N.
      field_dtype: of Kx, see `coupling.field_dtype`; no number depends on it.
    """

    num_sites: int
    field_dtype: str = "float32"

    def init(self, params, x):
        """Kx by a product with the whole matrix."""
        coupled = params.coupling.matvec(x)
        state = x.astype(jnp.float32)
        linear, pairs = jnp.sum(params.linear * state), jnp.sum(state * coupled) / 2
        return QuadraticField(coupled.astype(self.field_dtype), linear, pairs)

    def value(self, params, x, field):
        """c.x + scale/2 x'Kx."""
        return field.linear + params.scale * field.pairs

    def gains(self, params, x, field):
        """(1 - 2x)(c + Jx)."""
        local = params.linear + params.scale * field.coupled.astype(jnp.float32)
        return jnp.where(x > 0, -local, local)

    def flip(self, params: QuadraticParams, x, field: QuadraticField, flips: Flips):
        """Adds one row of K for each flipped site."""
        if flips.sites.shape[0] == 1:
            return apply_flips(x, flips), self._flip_one(params, x, field, flips.sites[0])
        coupled = self._add_rows(params.coupling, x, field.coupled, flips)

        def delta(sites):
            return jnp.where(x[sites] > 0, -1.0, 1.0)

        def linear_change(sites):
            return delta(sites) * params.linear[sites]

        def pairs_change(sites):
            """Twice as much: y'Ky - x'Kx = (y - x)'(Kx + Ky) for symmetric K."""
            return delta(sites) * (field.coupled[sites].astype(jnp.float32) + coupled[sites].astype(jnp.float32))

        linear, pairs = sums_over_flips(flips, linear_change, pairs_change)
        return apply_flips(x, flips), QuadraticField(coupled, field.linear + linear, field.pairs + pairs / 2)

    def _flip_one(self, params: QuadraticParams, x, field: QuadraticField, site: Int[Array, ""]) -> QuadraticField:
        delta = jnp.where(x[site] > 0, -1.0, 1.0)
        return QuadraticField(
            coupled=params.coupling.add_row(field.coupled, site, delta),
            linear=field.linear + delta * params.linear[site],
            pairs=field.pairs + delta * field.coupled[site].astype(jnp.float32),
        )

    def _add_rows(self, coupling: Coupling, x, coupled: Num[Array, "N"], flips: Flips) -> Num[Array, "N"]:
        """K(x after the flips), adding ROWS rows a pass over the field.

        The inner loop also keeps XLA from looking up the signs again for every element of the field.
        """
        rows = min(ROWS, flips.sites.shape[0])
        longest = batch_max(flips.length)

        def add_group(group, coupled):
            sites = lax.dynamic_slice(flips.sites, (group * GROUP,), (min(GROUP, flips.sites.shape[0]),))
            sign = jnp.where(x[jnp.minimum(sites, self.num_sites - 1)] > 0, -1.0, 1.0)
            signs = jnp.where(sites < self.num_sites, sign, 0.0)

            def add_rows(turn, coupled):
                for row in range(rows):
                    place = turn * rows + row
                    coupled = coupling.add_row(coupled, sites[place], signs[place])
                return coupled

            turns = (jnp.minimum(longest - group * GROUP, GROUP) + rows - 1) // rows
            return lax.fori_loop(0, turns, add_rows, coupled)

        if flips.sites.shape[0] <= GROUP:
            return add_group(0, coupled)
        return lax.fori_loop(0, (longest + GROUP - 1) // GROUP, add_group, coupled)

    def change(self, params, x, before, flips, after):
        """Differences of the exact parts first, so that nothing cancels."""
        return (after.linear - before.linear) + params.scale * (after.pairs - before.pairs)


def quadratic_params(terms: Coefficients, num_sites: int, degree: int | None) -> QuadraticParams:
    """Host arrays of a model padded to num_sites, with neighbour lists of `degree` or, if None, dense rows."""
    linear = np.zeros(num_sites, np.float32)
    linear[: len(terms.linear)] = terms.linear
    if degree is None:
        coupling = dense_coupling(terms.edges, terms.weights, len(terms.linear), terms.background, num_sites)
    else:
        terms = terms.listed()
        coupling = sparse_coupling(terms.edges, terms.weights, num_sites, degree)
    return QuadraticParams(linear, coupling, np.float32(terms.scale))
