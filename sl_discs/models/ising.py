"""Two spin systems as general models, with value and gains by automatic differentiation."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sl_discs import keys
from sl_discs.models.general import DifferentiableModel


class IsingParams(NamedTuple):
    """Coupling lambda of neighbours and external field mu of each spin."""

    coupling: Float[Array, ""]
    external: Float[Array, "N"]


def ising_lattice(height: int, width: int) -> DifferentiableModel:
    """2-D Ising model on a torus: f = lambda sum_<ij> s_i s_j + sum_i mu_i s_i; each bond of the torus once.

    Params are `IsingParams`. On a side of length 2, both bonds to the same neighbour count.
    """

    def log_density(params: IsingParams, x: Float[Array, "N"]) -> Float[Array, ""]:
        spins = (2 * x - 1).reshape(height, width)
        bonds = jnp.float32(0)
        if height > 1:
            bonds += jnp.sum(spins * jnp.roll(spins, 1, axis=0))
        if width > 1:
            bonds += jnp.sum(spins * jnp.roll(spins, 1, axis=1))
        return params.coupling * bonds + jnp.sum(params.external * spins.reshape(-1))

    return DifferentiableModel(log_density, height * width)


def sherrington_kirkpatrick(num_sites: int) -> DifferentiableModel:
    """Sherrington-Kirkpatrick model: f = beta/sqrt(N) sum_{i<j} g_ij s_i s_j; params are (beta, g [N, N])."""

    def log_density(params, x: Float[Array, "N"]) -> Float[Array, ""]:
        beta, couplings = params
        spins = 2 * x - 1
        return beta / jnp.sqrt(jnp.float32(num_sites)) * (spins @ (jnp.triu(couplings, 1) @ spins))

    return DifferentiableModel(log_density, num_sites)


def draw_couplings(seed: int, num_sites: int) -> Float[Array, "N N"]:
    """Standard normal g, of which the part above the diagonal is used."""
    return keys.normals(keys.from_seed(seed), (num_sites, num_sites))
