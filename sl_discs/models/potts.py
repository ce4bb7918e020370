"""The Potts model f(x) = scale sum_{i<j} K_ij [x_i = x_j] + sum_i h_i(x_i) on sites of several values."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sl_discs.batching import AnyArray
from sl_discs.models.base import Model
from sl_discs.models.quadratic import Coupling, add_rows, dense_coupling, sparse_coupling
from sl_discs.models.sites import Categories, entries
from sl_discs.models.terms import PottsTerms


class PottsParams(NamedTuple):
    """h, K (symmetric, zero diagonal) and its scale.

    Entries of h for values that do not exist have no effect. Without couplings this is a product of categorical
    distributions. The scale is separate for the reason given in `QuadraticParams`.
    """

    linear: Float[AnyArray, "N q"]
    coupling: Coupling
    scale: Float[AnyArray, ""] | np.float32


class PottsField(NamedTuple):
    """The data that a chain keeps up to date: for each value, the K of a site's neighbours that have it."""

    neighbours: Float[Array, "q N"]


@dataclasses.dataclass(frozen=True)
class PottsModel(Model):
    """Potts model; gains are exact, and a move costs a row of K for each site that changes."""

    sites: Categories

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """N."""
        return len(self.sites.values)

    def init(self, params, x):
        values = range(max(self.sites.values))
        return PottsField(jnp.stack([params.coupling.matvec((x == value).astype(jnp.int8)) for value in values]))

    def value(self, params, x, field):
        """Half of the couplings to neighbours of the same value, which counts every pair once, and h."""
        return jnp.sum(entries(params.linear, x)) + params.scale * _pairs(x, field)

    def gains(self, params, x, field):
        local = params.linear + params.scale * field.neighbours.T
        return local - entries(local, x)[:, None]

    def update(self, params, x, field, y):
        """Moves a row of K from the old to the new value of each site that changes."""
        values = jnp.arange(max(self.sites.values))[:, None]
        delta = (values == y).astype(jnp.float32) - (values == x).astype(jnp.float32)
        moved = jax.vmap(add_rows, (None, 0, None, 0))(params.coupling, field.neighbours, x != y, delta)
        return PottsField(moved)

    def change(self, params, x, before, y, after):
        """Subtracts the exact parts first, so that nothing cancels."""
        linear = jnp.sum(entries(params.linear, y) - entries(params.linear, x))
        return linear + params.scale * (_pairs(y, after) - _pairs(x, before))

    def coupled(self, params, site):
        return params.coupling.add_row(jnp.zeros(self.num_sites), site, jnp.float32(1)) != 0


def _pairs(x, field: PottsField) -> Float[Array, ""]:
    """sum_{i<j} K_ij [x_i = x_j]."""
    return jnp.sum(entries(field.neighbours.T, x)) / 2


def potts_model(terms: PottsTerms, num_sites: int, params: PottsParams, asking: Any) -> PottsModel:
    """The model padded to num_sites with copies of the last site, so that more problems have the same model."""
    padding = num_sites - terms.num_sites
    return PottsModel(Categories(terms.num_values + terms.num_values[-1:] * padding))


def potts_params(terms: PottsTerms, num_sites: int, degree: int | None) -> PottsParams:
    """Host arrays of a model padded to num_sites, with neighbour lists of `degree` or, if None, dense rows."""
    fields = np.zeros((num_sites, max(terms.num_values)), np.float32)
    fields[: terms.num_sites] = terms.fields
    if degree is None:
        coupling: Coupling = dense_coupling(terms.pairs, terms.couplings, num_sites)
    else:
        coupling = sparse_coupling(terms.pairs, terms.couplings, num_sites, degree)
    return PottsParams(fields, coupling, np.float32(terms.scale))
