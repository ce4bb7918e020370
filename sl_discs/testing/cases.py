"""Small targets that a sampler must leave invariant: problems, temperatures, tilts and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int, Int8

from sl_discs.instances.graph import Graph
from sl_discs.models.base import Model
from sl_discs.models.quadratic import IsingParams, QuadraticModel, field_dtype, ising_lattice, quadratic_params
from sl_discs.models.tilted import Tilted, TiltedParams
from sl_discs.problems.graph_kind import graph_kind

_NUM_SITES = 5


class Case(NamedTuple):
    """One target.

    Attributes:
      name: for messages.
      model: of f.
      params: with temperature and tilt.
      mask: [N] sites that may flip.
      start: [N] a state of positive probability; sites outside the mask keep its values.
    """

    name: str
    model: Model
    params: TiltedParams
    mask: Bool[np.ndarray, "N"]
    start: Int8[np.ndarray, "N"]


def _quadratic(problem: str, edges, weights=None, sparse: bool = False):
    graph = Graph.from_arrays(problem, _NUM_SITES, np.array(edges), weights)
    terms = graph_kind(problem).terms(graph, penalty=1.5)
    params = quadratic_params(terms, _NUM_SITES, terms.max_degree() if sparse else None)
    return QuadraticModel(_NUM_SITES, field_dtype(params.coupling)), jax.tree.map(jnp.asarray, params)


def standard_cases() -> list[Case]:
    """Six targets on five or six sites that together cover every part of a sampler's contract."""
    path = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)]
    tilt = jnp.array([0.4, -0.7, 0.2, 0.0, 0.9], jnp.float32)
    everywhere = np.ones(_NUM_SITES, bool)
    some = np.array([True, True, False, True, True])
    zeros = np.zeros(_NUM_SITES, np.int8)
    kept = np.array([0, 0, 1, 0, 0], np.int8)

    mis, mis_params = _quadratic("mis", path)
    cut, cut_params = _quadratic("maxcut", path, np.array([1.0, -0.5, 0.75, 1.25, -1.0]), sparse=True)
    clique, clique_params = _quadratic("maxclique", path)
    lattice = ising_lattice(2, 3)
    field = jnp.array([0.3, -0.2, 0.0, 0.1, 0.5, -0.4], jnp.float32)
    lattice_params = IsingParams(jnp.float32(0.3), field)

    def params(base, temperature, tilt=None):
        return TiltedParams(base, jnp.float32(temperature), tilt)

    return [
        Case("mis", mis, params(mis_params, 1.0), everywhere, zeros),
        Case("mis, tilted", mis, params(mis_params, 0.7, tilt), everywhere, zeros),
        Case("mis, cold, tilted, masked", mis, params(mis_params, 0.25, tilt), some, kept),
        Case("maxcut, weighted, masked", cut, params(cut_params, 0.5), some, kept),
        Case("maxclique, tilted", clique, params(clique_params, 0.6, -tilt), everywhere, zeros),
        Case(
            "ising lattice by autodiff, hot",
            lattice,
            params(lattice_params, 2.0),
            np.ones(6, bool),
            np.zeros(6, np.int8),
        ),
    ]


# Laws on sites of two or more values, few enough to list every state.


class Law(NamedTuple):
    """Every state in the order of `states_of`, and its probability."""

    states: Int8[np.ndarray, "S N"]
    probabilities: Float64[np.ndarray, "S"]

    def numbers(self, states) -> Int[np.ndarray, "*B"]:
        """The number of each state [..., N]."""
        return state_index(states, tuple(self.states.max(axis=0) + 1))

    def sample(self, rng: np.random.Generator, count: int) -> Int8[np.ndarray, "count N"]:
        """Independent exact draws."""
        return self.states[rng.choice(len(self.states), size=count, p=self.probabilities)]


def all_states(num_sites: int) -> Int8[np.ndarray, "S N"]:
    """The 2^N states in order of their index."""
    return (np.arange(2**num_sites)[:, None] >> np.arange(num_sites) & 1).astype(np.int8)


def states_of(counts: Sequence[int]) -> Int8[np.ndarray, "S N"]:
    """All states of sites with so many values each, in order of their index; the first site varies fastest."""
    return np.stack(np.unravel_index(np.arange(np.prod(counts)), counts, order="F"), axis=1).astype(np.int8)


def state_index(states, counts: Sequence[int] | None = None) -> Int[np.ndarray, "*B"]:
    """Index of each state [..., N] of sites with so many values each; None: two."""
    states = np.asarray(states, np.int64)
    counts = (2,) * states.shape[-1] if counts is None else counts
    return states @ np.cumprod([1, *counts[:-1]])


def enumerate_law(
    model: Model, params: TiltedParams, mask: Bool[np.ndarray, "N"], start: Int8[np.ndarray, "N"]
) -> Law:
    """The law exp(f/tau + <s, h>) over the masked sites, the others held at `start`."""
    states = states_of(model.sites.counts(model.num_sites))
    tilted = Tilted(model)
    values = jax.vmap(lambda x: tilted.value(params, x, tilted.init(params, x)))(jnp.asarray(states))
    values = np.asarray(values, np.float64)
    values[(states != start)[:, ~mask].any(axis=1)] = -np.inf
    weights = np.exp(values - values.max())
    return Law(states, weights / weights.sum())
