"""Known truths against sums over all states, and limits that are known without them."""

import numpy as np
import pytest
from scipy import special

import truths
from sl_discs.testing.conformance import all_states
from truths import boltzmann_machine, communities, hopfield, planted_strip, two_sides


def machine(visible, hidden, temperature, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (visible, hidden), visible, hidden
    return boltzmann_machine(*(rng.normal(size=shape) for shape in shapes), temperature)


@pytest.mark.parametrize(
    "truth",
    [
        truths.curie_weiss(9, 0.7, coupling=1.3, field=0.05),
        truths.complete_bipartite(5, 4, 0.2),
        truths.ising_torus(4, truths.CRITICAL),
        truths.ising_torus(4, 1.4),
        truths.ising_torus(3, 0.01),
        truths.random_field_grid(4, 0.8, field=0.7, seed=1),
        truths.random_field_grid(4, 0.05),
        hopfield(12, [1.5, 0.7], 0.6, field=0.2, seed=1),
        hopfield(8, [1.6, 1.4, 1.2, 1, 0.8, 0.6, 0.4], 0.6, field=0.1),
        communities([3, 5, 4], 1.7, -0.4, 0.5, field=0.1, seed=3),
        two_sides(3, 7, 0.9, gain=0.4, penalty=1.1, weight=0.3),
        planted_strip(3, 4, 1.5, 0.6, 0.8, field=0.1, seed=1),
        planted_strip(4, 3, 0.0, 1.0, 0.3, field=-0.1, seed=2),
        machine(7, 4, 1.0),
    ],
    ids=lambda truth: f"{truth.problem.name}-{truth.temperature:.2f}",
)
def test_truth_is_the_sum_over_all_states(truth):
    states = all_states(truth.problem.num_variables).astype(float)
    terms = truth.problem.terms().listed()
    u, v = terms.edges.T
    values = (
        terms.constant
        + states @ terms.linear
        + terms.scale * (states[:, u] * states[:, v]) @ terms.weights
    )
    exponents = values / truth.temperature
    log_z = special.logsumexp(exponents)
    p = np.exp(exponents - log_z)
    np.testing.assert_allclose(truth.log_z, log_z, rtol=1e-12)
    np.testing.assert_allclose(truth.mean_value, p @ values, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(truth.marginals, p @ states, rtol=1e-9, atol=1e-12)
    if truth.counts is not None:
        np.testing.assert_allclose(
            truth.counts, np.bincount(_order(truth, states), p), rtol=1e-9, atol=1e-14
        )
    if truth.mode_weight is not None:
        np.testing.assert_allclose(truth.mode_weight, p[_in_mode(truth, states)].sum(), rtol=1e-9)


def _in_mode(truth, states):
    if truth.problem.name == "complete-bipartite":
        left = truth.problem.source.edges[:, 0].max() + 1
        return states[:, :left].sum(axis=1) > states[:, left:].sum(axis=1)
    direction = np.ones(states.shape[1]) if truth.direction is None else truth.direction
    return (2 * states - 1) @ direction > 0


def _order(truth, states):
    """How many spins agree with the direction."""
    direction = np.ones(states.shape[1]) if truth.direction is None else truth.direction
    return ((2 * states - 1) * direction > 0).sum(axis=1)
