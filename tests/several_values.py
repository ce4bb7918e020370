"""Small Potts models, with several values for each site, and the oracle for them.

The transition matrices are written from the samplers' definitions. As in `sl_discs.testing.oracle`, nothing is
shared with an engine: float64 NumPy, and sums over everything that can happen in a step. A target is given by its
log-density at all states, in the order of `states_of`. For sites of two values the matrices are those of `oracle`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int8

from sl_discs.models.base import Model, Target
from sl_discs.models.quadratic import Coupling, add_rows, dense_coupling, sparse_coupling
from sl_discs.models.sites import Categories, entries
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.testing.cases import Case, state_index, states_of
from sl_discs.testing.oracle import (
    BALANCING,
    Kernel,
    LogDensity,
    Mask,
    kernel_of_proposals,
    metropolis_test,
    no_test,
)


class PottsParams(NamedTuple):
    """h, K (symmetric, zero diagonal) and its scale; entries of h for values that do not exist have no effect."""

    linear: Any  # [N, q]
    coupling: Coupling
    scale: Any


class PottsField(NamedTuple):
    """The data that a chain keeps up to date: for each value, the K of a site's neighbours that have it."""

    neighbours: Float[Array, "q N"]


@dataclasses.dataclass(frozen=True)
class PottsModel(Model):
    """f(x) = scale sum_{i<j} K_ij [x_i = x_j] + sum_i h_i(x_i), with exact gains."""

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


_EDGES = np.array([(0, 1), (1, 2), (0, 2), (2, 3)])


def potts_case(
    name: str,
    values: tuple[int, ...],
    weights: tuple[float, ...],
    *,
    temperature: float = 1.0,
    tilted: bool = False,
    mask: tuple[bool, ...] | None = None,
    sparse: bool = False,
) -> Case:
    """A Potts model on some of the edges of a triangle with a tail, with a field of fixed numbers.

    Args:
      name: of the case.
      values: number of values of each of up to four sites.
      weights: couplings of the first edges.
      temperature: of the target.
      tilted: whether it has a tilt.
      mask: sites that may change; None: all.
      sparse: whether couplings are stored as lists.
    """
    size, q = len(values), max(values)
    edges, weight = _EDGES[: len(weights)], np.array(weights)
    coupling = sparse_coupling(edges, weight, size, 3) if sparse else dense_coupling(edges, weight, size)
    field = np.random.default_rng(0).normal(size=(2, size, q)).astype(np.float32) * 0.7
    params = jax.tree.map(jnp.asarray, PottsParams(field[0], coupling, np.float32(0.8)))
    where, tilt = np.ones(size, bool) if mask is None else np.array(mask), jnp.asarray(field[1]) if tilted else None
    target = Target(PottsModel(Categories(values)), params, jnp.float32(temperature), where, tilt)
    return Case(name, target, np.where(where, 0, np.array(values) - 1).astype(np.int8))


def categorical_cases() -> list[Case]:
    """Four targets: of equal and different numbers of values, dense and sparse, with and without tilt and mask."""
    return [
        potts_case("potts", (3, 3, 3), (1.0, -2.0, 1.0)),
        potts_case("potts, tilted, different values", (2, 4, 3), (-1.0, 1.0), temperature=0.7, tilted=True),
        potts_case(
            "potts, real couplings, cold, tilted, masked", (3, 2, 3, 2), (0.7, -0.4, 1.3, 0.6), temperature=0.5,
            tilted=True, mask=(True, True, False, True), sparse=True,
        ),
        potts_case("product of categoricals", (4, 2, 3), (), temperature=2.0),
    ]  # fmt: skip


Counts = tuple[int, ...]


def moved(x: Int8[np.ndarray, " N"], values: dict[int, int], counts: Counts) -> int:
    """The number of the state that is x with these sites set to these values."""
    y = x.copy()
    for site, value in values.items():
        y[site] = value
    return int(state_index(y, counts))


def alternatives(x: Int8[np.ndarray, " N"], site: int, counts: Counts) -> list[int]:
    """All values of a site but its own."""
    return [value for value in range(counts[site]) if value != x[site]]


def balanced_weights(
    log_density: LogDensity, counts: Counts, mask: Mask, balancing: str
) -> Float64[np.ndarray, "S N q"]:
    """g(p(y)/p(x)) for each state x and the y that has value v at site i; 0 where that is no alternative."""
    weights = np.zeros((len(log_density), len(counts), max(counts)))
    for number, x in enumerate(states_of(counts)):
        for site in np.flatnonzero(mask).tolist():
            for value in alternatives(x, site, counts):
                ratio = np.exp(log_density[moved(x, {site: value}, counts)] - log_density[number])
                weights[number, site, value] = BALANCING[balancing](ratio)
    return weights


def metropolis(log_density: LogDensity, counts: Counts, mask: Mask) -> Kernel:
    """Proposes an alternative of a site, both drawn uniformly."""
    states, sites = states_of(counts), np.flatnonzero(mask).tolist()

    def proposals(x):
        for site in sites:
            for value in alternatives(states[x], site, counts):
                chance = 1 / len(sites) / (counts[site] - 1)
                yield moved(states[x], {site: value}, counts), chance, chance

    return kernel_of_proposals(log_density, proposals)


def gibbs(log_density: LogDensity, counts: Counts, mask: Mask) -> Kernel:
    """Draws a site uniformly, and its value from the conditional distribution."""
    states, sites = states_of(counts), np.flatnonzero(mask).tolist()
    kernel = Kernel(np.zeros((len(states), len(states))), np.zeros(len(states)))
    for number, x in enumerate(states):
        for site in sites:
            others = [moved(x, {site: value}, counts) for value in range(counts[site])]
            weights = np.exp(log_density[others] - log_density[others].max())
            kernel.transitions[number, others] += weights / weights.sum() / len(sites)
    kernel.acceptance[:] = 1 - np.diag(kernel.transitions)
    return kernel


def path(
    log_density: LogDensity, counts: Counts, mask: Mask, num_flips: int, balancing: str, *, replacement: bool
) -> Kernel:
    """Draws sites by the total weight of their alternatives, then an alternative of each by its own weight.

    The reverse draws the same sites at y, in reverse order where it is without replacement, and the old values.
    """
    states = states_of(counts)
    weights = balanced_weights(log_density, counts, mask, balancing)
    totals, free = weights.sum(axis=2), np.flatnonzero(mask).tolist()
    drawn = itertools.product(free, repeat=num_flips) if replacement else itertools.permutations(free, num_flips)
    sequences = [list(sequence) for sequence in drawn]

    def of_sites(number, sequence):
        left = [np.delete(totals[number], [] if replacement else sequence[:k]).sum() for k in range(len(sequence))]
        return (totals[number, sequence] / left).prod()

    def of_values(number, values):
        return np.prod([weights[number, site, value] / totals[number, site] for site, value in values.items()])

    def proposals(x):
        for sequence in sequences:
            sites = sorted(set(sequence))
            for chosen in itertools.product(*(alternatives(states[x], site, counts) for site in sites)):
                there, back = dict(zip(sites, chosen, strict=True)), {site: states[x][site] for site in sites}
                y = moved(states[x], there, counts)
                forward = of_sites(x, sequence) * of_values(x, there)
                order = sequence if replacement else sequence[::-1]
                yield y, forward, of_sites(y, order) * of_values(y, back)

    return kernel_of_proposals(log_density, proposals)


def dmala(
    log_density: LogDensity,
    counts: Counts,
    mask: Mask,
    *,
    step_size: float | None,
    expected_flips: float,
    balancing: str,
    test: Callable[[float], float],
) -> Kernel:
    """Every site takes a value independently: its own with weight 1, or another with a multiple of that one's weight.

    The factor is exp(-1/(2 step_size)), or expected_flips over the sum of all weights of the state that is left.
    """
    states = states_of(counts)
    weights = balanced_weights(log_density, counts, mask, balancing)
    if step_size is not None:
        odds = weights * np.exp(-1 / (2 * step_size))
    else:
        odds = weights * expected_flips / weights.sum(axis=(1, 2), keepdims=True)
    sites = np.arange(len(counts))
    for number, x in enumerate(states):
        odds[number, sites, x] = 1
    chances = odds / odds.sum(axis=2, keepdims=True)

    def proposals(x):
        for y in range(len(states)):
            if (states[x] == states[y])[~mask].all():
                yield y, chances[x, sites, states[y]].prod(), chances[y, sites, states[x]].prod()

    return kernel_of_proposals(log_density, proposals, test)


def kernel_of(sampler: Any, log_density: LogDensity, counts: Counts, mask: Mask) -> Kernel:
    """The kernel of one step of a sampler that does not adapt, with a random scan."""
    matrices: dict[type, Callable[..., Kernel]] = {Gibbs: gibbs, Metropolis: metropolis}
    for kind, replacement in ((GWG, True), (PathAuxiliary, False)):
        matrices[kind] = functools.partial(path, replacement=replacement)
    matrices[DMALA] = dmala
    settings: dict[str, Any] = {}
    if type(sampler) in (GWG, PathAuxiliary):
        settings = {"num_flips": sampler.num_flips, "balancing": sampler.balancing_fn_type}
    if type(sampler) is DMALA:
        settings = {
            "step_size": sampler.step_size if sampler.scaling == "fixed" else None,
            "expected_flips": sampler.expected_flips,
            "balancing": sampler.balancing_fn_type,
            "test": metropolis_test if sampler.adjusted else no_test,
        }
    return matrices[type(sampler)](log_density, counts, mask, **settings)
