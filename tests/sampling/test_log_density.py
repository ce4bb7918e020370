"""Draws from a log-density given as a function: their law by enumeration, and what is refused.

Seeds are fixed; a test of a law fails for a correct sampler with probability 1e-6.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.testing.cases import all_states, state_index

WEIGHTS = np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32)
STATES = all_states(6)


def energy(params, x):
    """Not multilinear, on arrays of shape (2, 3)."""
    x = x.reshape(-1)
    return 2 * jnp.tanh(x @ params["weights"] @ x / 2) + params["field"] * x[0]


PARAMS = {"weights": WEIGHTS, "field": 0.4}
VALUES = np.array([float(energy(PARAMS, jnp.asarray(x, jnp.float32))) for x in STATES])


def problem():
    return sl_discs.from_log_density(energy, PARAMS, (2, 3))


def law(temperature=1.0):
    weights = np.exp(VALUES / temperature)
    return weights / weights.sum(), np.log(weights.sum())


def test_exact_draws():
    found = sl_discs.sample(problem(), 0.7, draws=4000, seed=1)
    probabilities, log_z = law(0.7)
    assert found.method == "exact" and np.isclose(found.log_z[0], log_z, atol=1e-5)
    counts = np.bincount(state_index(found.states), minlength=64)
    distance = np.abs(counts / len(found) - probabilities).sum() / 2
    # Of 4,000 exact draws from 64 states it is about 0.4 sqrt(64/4000) = .05, with a deviation of below .01.
    assert distance < 0.1
    np.testing.assert_allclose(found.values, VALUES[state_index(found.states)], atol=1e-5)


@pytest.mark.parametrize(
    ("method", "sampler"),
    [
        ("chain", "gwg"),
        pytest.param("chain", "gibbs", marks=pytest.mark.slow),
        pytest.param("tempering", "metropolis", marks=pytest.mark.slow),
        pytest.param("tempering", "path_auxiliary", marks=pytest.mark.slow),
        pytest.param("tempering", "dmala", marks=pytest.mark.slow),
        pytest.param("localization", "gwg", marks=pytest.mark.slow),
    ],
)
def test_means_are_those_of_the_law(method, sampler):
    """By 6 standard errors; localization, whose draws have the bias of U, by .05 in addition."""
    found = sl_discs.sample(problem(), 0.8, draws=2000, method=method, sampler=sampler, seed=3)
    probabilities, log_z = law(0.8)
    bias = 0.05 if method == "localization" else 1e-6
    assert found.how["engine"] == "reference" and found.reliable, found.verdict
    for label in range(6):
        mean, error = found.marginal(label)
        assert abs(mean - probabilities @ STATES[:, label]) < 6 * error + bias
    mean, error = found.mean()
    assert abs(mean - probabilities @ VALUES) < 6 * error + bias
    if found.log_z is not None:
        estimate, error = found.log_z
        assert abs(estimate - log_z) < 6 * error + 1e-3


def some_forbidden(params, x):
    """Linear, and -inf at 1/16 of the states."""
    return jnp.where(jnp.any(x[:4] != jnp.array([0, 0, 1, 0])), x @ params, -jnp.inf)


@pytest.mark.parametrize("method", ["exact", "chain", "tempering"])
def test_a_value_of_plus_infinity_is_refused(method):
    """Where no check of starts sees it; a chain never leaves such a state."""
    problem = sl_discs.from_log_density(lambda params, x: -some_forbidden(params, x), jnp.zeros(10), 10)
    with pytest.raises(InputError, match="fn is inf at some states"):
        sl_discs.sample(problem, draws=100, method=method, sampler="metropolis", seed=2)


@pytest.mark.parametrize("method", ["exact", "tempering"])
def test_states_of_probability_0_count_at_infinite_temperature_alone(method):
    """Without them log Z would be log(16/15) = .065 off, 12 standard errors."""
    params, states = np.linspace(-0.5, 0.5, 10), all_states(10)
    allowed = states[(states[:, :4] != [0, 0, 1, 0]).any(axis=1)]
    weights = np.exp(allowed @ params)
    problem = sl_discs.from_log_density(some_forbidden, jnp.asarray(params, jnp.float32), 10)
    found = sl_discs.sample(problem, draws=2000, method=method, sampler="gibbs", seed=2)
    assert found.reliable and np.isfinite(found.values).all()
    for (estimate, error), known in (
        (found.log_z, np.log(weights.sum())),
        (found.mean(), weights @ allowed @ params / weights.sum()),
    ):
        assert error < 0.02 and abs(estimate - known) < 6 * error + 1e-5
    if method == "tempering":
        assert found.ladder.mean_values[0] == -np.inf and np.isfinite(found.ladder.mean_values[1:]).all()


def test_a_lookup_is_enough_for_samplers_without_gains():
    table = jnp.linspace(0, 3, 64)
    lookup = sl_discs.from_log_density(lambda table, x: table[(x @ 2 ** jnp.arange(6)).astype(int)], table, 6)
    found = sl_discs.sample(lookup, 1.0, draws=1000, method="chain", sampler="metropolis", scan="random", seed=0)
    weights = np.exp(table)
    mean, error = found.mean()
    assert abs(mean - weights @ table / weights.sum()) < 6 * error


WITHOUT_GRADIENT = sl_discs.from_log_density(
    lambda p, x: jax.lax.while_loop(lambda v: v < 9, lambda v: v + 1, x.sum()), (), 4
)
WIDE = sl_discs.from_log_density(lambda p, x: x.sum(), (), 21)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sl_discs.from_log_density(lambda p, x: x, (), 4), r"fn returns shape \(4,\)"),
        (lambda: sl_discs.from_log_density(lambda p, x: jnp.log(x.sum()), (), 4), "fn is -inf at all zeros"),
        (lambda: sl_discs.sample(problem(), method="chain", engine="cpu"), "engine 'cpu'"),
        (lambda: sl_discs.sample(WITHOUT_GRADIENT, method="chain", sampler="gwg"), "fn cannot be diff"),
        (lambda: sl_discs.sample(WIDE, method="exact"), "method 'exact' enumerates"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(InputError, match=message):
        call()
