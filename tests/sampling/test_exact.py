"""Exact draws, log Z and marginals: against sums over all states, and against each other."""

import numpy as np
import pytest
from scipy import stats

import truths
from sl_discs.models.exact_sums import enumerate_law, narrow_elimination
from sl_discs.models.terms import Coefficients
from sl_discs.sampling.exact import eliminated, exact
from sl_discs.support.errors import InputError
from sl_discs.testing.conformance import all_states, chi_squared, state_index

# A test that compares frequencies with their law fails by chance once in this many runs.
FALSE_ALARMS = 1e-6
NO_PAIRS = np.empty((0, 2), np.int32)


def random_terms(size: int, density: float, background: float, seed: int = 0) -> Coefficients:
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(np.triu(np.ones((size, size), bool), 1))
    edges = pairs[rng.random(len(pairs)) < density].astype(np.int32)
    weights = rng.normal(size=len(edges))
    return Coefficients(rng.normal(size=size), edges, weights, -0.7, background, 12.5)


def values_of(terms: Coefficients, states: np.ndarray) -> np.ndarray:
    """f term by term, from its definition."""
    K = np.full((len(terms.linear),) * 2, terms.background)
    K[terms.edges[:, 0], terms.edges[:, 1]] = terms.weights
    pairs = np.triu(K, 1)
    return np.array(
        [
            terms.constant + terms.linear @ x + terms.scale * (x @ pairs @ x)
            for x in states.astype(float)
        ]
    )


def grid(side: int) -> np.ndarray:
    site = np.arange(side * side).reshape(side, side)
    ends = [(site[:, :-1], site[:, 1:]), (site[:-1], site[1:])]
    return np.concatenate([np.stack([u.ravel(), v.ravel()], axis=1) for u, v in ends]).astype(
        np.int32
    )


@pytest.mark.parametrize("size", [1, 2, 7, 10])
@pytest.mark.parametrize("background", [0.0, 0.4])
@pytest.mark.parametrize("temperature", [1.7, 0.01])
def test_enumeration_is_the_sum_over_all_states(size, background, temperature):
    terms = random_terms(size, 0.5, background)
    states = all_states(size)
    values = values_of(terms, states)
    exponents = values / temperature
    weights = np.exp(exponents - exponents.max())
    p = weights / weights.sum()
    law = enumerate_law(terms, temperature)
    np.testing.assert_allclose(law.log_z, exponents.max() + np.log(weights.sum()), rtol=1e-13)
    np.testing.assert_allclose(law.probabilities, p, rtol=1e-9, atol=1e-15)
    has = np.stack([1 - states, states], axis=2)
    np.testing.assert_allclose(law.moments(), np.einsum("s,sik,sjl->ikjl", p, has, has), atol=1e-12)
    np.testing.assert_allclose(law.mean_value, p @ values, rtol=1e-12)


def test_a_state_without_weight_is_not_drawn():
    """The first of four states has probability 0, and the uniform number may be 0."""
    law = enumerate_law(Coefficients(np.array([1e5, 0.0]), NO_PAIRS, np.empty(0), 1.0), 1.0)

    class Zero(np.random.Generator):
        def random(self, draws):
            return np.zeros(draws)

    assert law.probabilities[0] == 0
    assert law.sample(Zero(np.random.PCG64()), 3)[:, 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("terms", "width"),
    [
        (random_terms(1, 0.0, 0.0), 0),
        (random_terms(3, 0.0, 0.0), 0),
        (random_terms(12, 0.2, 0.0), None),  # in several components
        (random_terms(12, 0.3, 0.0, seed=3), None),
        (random_terms(9, 0.8, 0.4), 8),
        (
            random_terms(7, 0.3, 0.0)._replace(linear=np.zeros(7)),
            None,
        ),  # one variable without any coefficient
    ],
)
@pytest.mark.parametrize("temperature", [1.7, 0.05])
def test_tree_decomposition_is_enumeration(terms, width, temperature):
    size = len(terms.linear)
    law = enumerate_law(terms, temperature)
    tree = eliminated(terms, temperature)
    assert width in (None, tree.width)
    np.testing.assert_allclose(tree.log_z, law.log_z, rtol=1e-12)
    moments, pairs = law.moments(), tree.known.pairs
    np.testing.assert_allclose(tree.known.marginals, np.einsum("ikik->ik", moments), atol=1e-10)
    np.testing.assert_allclose(tree.known.mean_value, law.mean_value, rtol=1e-10)
    np.testing.assert_allclose(tree.known.joint, moments[pairs[:, 0], :, pairs[:, 1]], atol=1e-10)
    states = tree.sample(np.random.default_rng(0), 20)
    assert states.shape == (20, size) and states.dtype == np.int8


def test_draws_of_tree_decomposition_have_the_law():
    terms = random_terms(6, 0.4, 0.0, seed=2)
    states = eliminated(terms, 0.8).sample(np.random.default_rng(5), 50_000)
    counts = np.bincount(state_index(states), minlength=64)
    assert chi_squared(counts, 50_000 * enumerate_law(terms, 0.8).probabilities)[1] > FALSE_ALARMS


@pytest.mark.parametrize("temperature", [1.5, 0.1])
def test_tree_decomposition_is_the_transfer_matrix(temperature):
    """A 12 x 12 grid; each variable's frequency has a two-sided binomial test."""
    truth, draws = truths.random_field_grid(12, temperature, field=0.5), 4_000
    found = exact(truth.problem.terms(), temperature)
    assert found.width < 16
    np.testing.assert_allclose(found.log_z, truth.log_z, rtol=1e-11)
    np.testing.assert_allclose(found.known.mean_value, truth.mean_value, rtol=1e-9)
    np.testing.assert_allclose(found.known.marginals[:, 1], truth.marginals, atol=1e-9)
    law = stats.binom(draws, np.clip(truth.marginals, 0, 1))
    ones = found.sample(np.random.default_rng(3), draws).sum(axis=0, dtype=np.int64)
    tails = 2 * np.minimum(law.cdf(ones), law.sf(ones - 1))
    assert tails.min() > FALSE_ALARMS / truth.problem.num_variables


@pytest.mark.parametrize(
    ("size", "edges", "width"),
    [
        (1, NO_PAIRS, 0),
        (4, np.array([[0, 1]]), 1),
        (2_000, np.stack([np.zeros(1_999, int), np.arange(1, 2_000)], axis=1), 1),  # a star
        (256, np.random.default_rng(0).permutation(256)[grid(16)], 16),
        (5, np.argwhere(np.triu(np.ones((5, 5)), 1)), 4),
    ],
)
def test_width_of_known_graphs(size, edges, width):
    found = narrow_elimination(size, edges, 25)
    assert found.width == width
    assert sorted(found.order) == list(range(size))


def test_memory_is_checked_before_tables_are_made(monkeypatch):
    monkeypatch.setattr("sl_discs.support.memory.usable_memory", lambda: 2**20)
    edges = grid(12)
    terms = Coefficients(np.zeros(144), edges, np.ones(len(edges)), 1.0)
    with pytest.raises(InputError):
        exact(terms, 1.0)
