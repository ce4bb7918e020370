"""The binary quadratic model f(x) = c.x + scale/2 x'Kx with an incremental local field."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Num

from sl_discs.arrays import AnyArray
from sl_discs.batching import batch_max
from sl_discs.models.base import Model, apply_flips
from sl_discs.models.coefficients import Coefficients
from sl_discs.models.coupling import Coupling, dense_coupling, sparse_coupling


class QuadraticParams(NamedTuple):
    """c, K (symmetric, zero diagonal) and its scale; J = scale K.

    The scale is separate so that K can hold small integers: the running sums below are then exact in float32
    and do not drift, whatever the length of the chain and the penalty.
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

    def flip(self, params: QuadraticParams, x, field: QuadraticField, flips):
        """Adds one row of K for each flipped site."""
        delta = jnp.where(flips, 1 - 2 * x, 0).astype(jnp.float32)
        coupled = _add_rows(params.coupling, field.coupled, flips, delta)
        linear = jnp.sum(delta * params.linear)
        # y'Ky - x'Kx = (y - x)'(Kx + Ky) for symmetric K.
        pairs = jnp.sum(delta * (field.coupled.astype(jnp.float32) + coupled.astype(jnp.float32))) / 2
        return apply_flips(x, flips), QuadraticField(coupled, field.linear + linear, field.pairs + pairs)

    def change(self, params, x, before, flips, after):
        """Subtracts the exact parts first, so that nothing cancels."""
        return (after.linear - before.linear) + params.scale * (after.pairs - before.pairs)

    def coupled(self, params, site):
        """Where the site's row of K is not 0."""
        return params.coupling.add_row(jnp.zeros(self.num_sites), site, jnp.float32(1)) != 0

    def largest_neighbour(self, params, values):
        """Over the couplings that are not 0."""
        return params.coupling.largest_neighbour(values)

    def draw_coupled(self, params, key):
        """The sum over all pairs of sqrt(|J_ij|) (e_i + sign(J_ij) e_j) times a normal number, e_i unit vectors."""
        drawn, variances = params.coupling.draw(key, jnp.sign(params.scale))
        strength = jnp.abs(params.scale)
        return jnp.sqrt(strength) * drawn, strength * variances


def _add_rows(
    coupling: Coupling, coupled: Num[Array, "N"], flips: Bool[Array, "N"], delta: Float[Array, "N"]
) -> Num[Array, "N"]:
    """K(x + delta) from Kx, adding the rows of the flipped sites one after the other."""
    sites = jnp.arange(flips.shape[0])

    def add_next(_, carry):
        left, coupled = carry
        # N if no site is left: chains with fewer flips than others then add nothing.
        site = jnp.min(jnp.where(left, sites, sites.shape[0]))
        coupled = coupling.add_row(coupled, site, delta.at[site].get(mode="fill", fill_value=0.0))
        return left & (sites != site), coupled

    longest = batch_max(jnp.sum(flips, dtype=jnp.int32))
    return lax.fori_loop(0, longest, add_next, (flips, coupled))[1]


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
