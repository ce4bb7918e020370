"""Small targets that a sampler must leave invariant: problems, temperatures, tilts and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, Int8

from sl_discs.instances.graph import Graph
from sl_discs.models.base import Model, Target, TargetModel
from sl_discs.models.functions import DifferentiableModel
from sl_discs.models.quadratic import QuadraticModel, field_dtype, quadratic_params
from sl_discs.problems.graph_kind import graph_kind

_NUM_SITES = 5


class Case(NamedTuple):
    """One target.

    Attributes:
      name: for messages.
      target: model, parameters, temperature, mask, and perhaps a tilt.
      start: [N] a state of positive probability; sites outside the mask keep its values.
    """

    name: str
    target: Target
    start: Int8[np.ndarray, "N"]

    @property
    def model(self) -> Model:
        """Returns the model of f."""
        return self.target.model

    @property
    def mask(self) -> Bool[np.ndarray, "N"]:
        """Sites that may change."""
        return self.target.mask


def _quadratic(problem: str, edges, weights=None, sparse: bool = False):
    graph = Graph.from_arrays(problem, _NUM_SITES, np.array(edges), weights)
    terms = graph_kind(problem).terms(graph, penalty=1.5)
    params = quadratic_params(terms, _NUM_SITES, terms.max_degree() if sparse else None)
    return QuadraticModel(_NUM_SITES, field_dtype(params.coupling)), jax.tree.map(jnp.asarray, params)


def _lattice(field: Float[Array, "6"], x: Float[Array, "6"]) -> Float[Array, ""]:
    """Returns the log-density of an Ising model on a torus of 2 x 3 spins, both bonds of the short side included."""
    spins = 2 * x - 1
    torus = spins.reshape(2, 3)
    bonds = jnp.sum(torus * jnp.roll(torus, 1, axis=0)) + jnp.sum(torus * jnp.roll(torus, 1, axis=1))
    return 0.3 * bonds + jnp.sum(field * spins)


def standard_cases() -> list[Case]:
    """Returns six targets on five or six sites that together cover every part of a sampler's contract."""
    path = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)]
    tilt = jnp.array([0.4, -0.7, 0.2, 0.0, 0.9], jnp.float32)
    everywhere = np.ones(_NUM_SITES, bool)
    some = np.array([True, True, False, True, True])
    zeros = np.zeros(_NUM_SITES, np.int8)
    kept = np.array([0, 0, 1, 0, 0], np.int8)

    mis, mis_params = _quadratic("mis", path)
    cut, cut_params = _quadratic("maxcut", path, np.array([1.0, -0.5, 0.75, 1.25, -1.0]), sparse=True)
    clique, clique_params = _quadratic("maxclique", path)
    lattice = DifferentiableModel(_lattice, 6)
    field = jnp.array([0.3, -0.2, 0.0, 0.1, 0.5, -0.4], jnp.float32)

    def case(name, model, params, temperature, mask, start, tilt=None):
        return Case(name, Target(model, params, jnp.float32(temperature), mask, tilt), start)

    return [
        case("mis", mis, mis_params, 1.0, everywhere, zeros),
        case("mis, tilted", mis, mis_params, 0.7, everywhere, zeros, tilt),
        case("mis, cold, tilted, masked", mis, mis_params, 0.25, some, kept, tilt),
        case("maxcut, weighted, masked", cut, cut_params, 0.5, some, kept),
        case("maxclique, tilted", clique, clique_params, 0.6, everywhere, zeros, -tilt),
        case("ising lattice by autodiff, hot", lattice, field, 2.0, np.ones(6, bool), np.zeros(6, np.int8)),
    ]


# Laws on sites of two or more values, few enough to list every state.


class Law(NamedTuple):
    """Every state in the order of `states_of`, and its probability."""

    states: Int8[np.ndarray, "S N"]
    probabilities: Float64[np.ndarray, "S"]

    def numbers(self, states) -> Int[np.ndarray, "*B"]:
        """Returns the number of each state [..., N]."""
        return state_index(states, tuple(self.states.max(axis=0) + 1))

    def sample(self, rng: np.random.Generator, count: int) -> Int8[np.ndarray, "count N"]:
        """Returns independent exact draws."""
        return self.states[rng.choice(len(self.states), size=count, p=self.probabilities)]


def states_of(counts: Sequence[int]) -> Int8[np.ndarray, "S N"]:
    """Returns all states of sites with `counts` values, in order of their index; the first site varies fastest."""
    return np.stack(np.unravel_index(np.arange(np.prod(counts)), counts, order="F"), axis=1).astype(np.int8)


def all_states(num_sites: int) -> Int8[np.ndarray, "S N"]:
    """Returns the 2^N states in order of their index."""
    return states_of((2,) * num_sites)


def state_index(states, counts: Sequence[int] | None = None) -> Int[np.ndarray, "*B"]:
    """Returns the index of each state [..., N] of sites with `counts` values; None: two."""
    states = np.asarray(states, np.int64)
    counts = (2,) * states.shape[-1] if counts is None else counts
    return states @ np.cumprod([1, *counts[:-1]])


def enumerate_law(target: Target, start: Int8[np.ndarray, "N"]) -> Law:
    """Returns the law of the target over the sites of its mask, the others held at `start`."""
    states = states_of((target.sites.num_values,) * target.num_sites)
    values = np.array(TargetModel().forward(target, jnp.asarray(states)), np.float64)
    values[(states != start)[:, ~np.asarray(target.mask)].any(axis=1)] = -np.inf
    weights = np.exp(values - values.max())
    return Law(states, weights / weights.sum())
