"""Draws from a log-density given as a function: their law by enumeration, and what is refused.

Seeds are fixed; a test of a law fails for a correct sampler with probability 1e-6. Numbers of draws
are powers of two: JAX compiles for each length of a call, and the calls have few lengths then.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from marks import slow_except

import sl_discs
from sl_discs import InputError
from sl_discs.models import keys
from sl_discs.models.functions import DifferentiableModel
from sl_discs.samplers.registry import registered
from sl_discs.samplers.sampler import Chain
from sl_discs.testing.conformance import all_states, state_index

pytestmark = pytest.mark.usefixtures("quickly_compiled")

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
    # Of 4,000 exact draws from 64 states it is about 0.4 sqrt(64/4000) = .05, with a deviation of
    # below .01.
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
    found = sl_discs.sample(problem(), 0.8, draws=2_048, method=method, sampler=sampler, seed=3)
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


@pytest.mark.parametrize("method", ["exact", "chain", "tempering"])
def test_a_value_of_plus_infinity_is_refused(method):
    """Where no check of starts sees it: at one state of 4,096, to which chains are drawn, and never
    leave it.
    """
    pattern = jnp.arange(12) % 2

    def infinite_at_one(params, x):
        missed = jnp.abs(x - pattern).sum()
        return jnp.where(missed == 0, jnp.inf, -params * missed)

    problem = sl_discs.from_log_density(infinite_at_one, 3.0, 12)
    with pytest.raises(InputError):
        sl_discs.sample(problem, draws=100, method=method, sampler="metropolis", seed=2)


def test_a_lookup_is_enough_for_samplers_without_gains():
    table = jnp.linspace(0, 3, 64)
    lookup = sl_discs.from_log_density(
        lambda table, x: table[(x @ 2 ** jnp.arange(6)).astype(int)], table, 6
    )
    found = sl_discs.sample(
        lookup, 1.0, draws=1_024, method="chain", sampler="metropolis", scan="random", seed=0
    )
    weights = np.exp(table)
    mean, error = found.mean()
    assert abs(mean - weights @ table / weights.sum()) < 6 * error


CYCLE = np.arange(12)


def hard_core(weight, x):
    """On a cycle: -inf at 92 % of the states, such as all ones."""
    return jnp.where(x[CYCLE] @ x[CYCLE - 1] > 0, -jnp.inf, weight * x.sum())


# A ladder plays the chains of the method `chain`, and swaps them.
METHODS = slow_except(["exact", "chain", "tempering"], ("exact", "tempering"))


@pytest.mark.parametrize("method", METHODS)
def test_states_of_probability_0_are_never_visited(method):
    """At infinite temperature, 322 of 4,096 states are equally probable; log Z counts them by
    random states.
    """
    states = all_states(12)
    sizes = states[(states & np.roll(states, 1, axis=1)).sum(axis=1) == 0].sum(axis=1)
    weights = np.exp(0.5 * sizes)
    problem = sl_discs.from_log_density(hard_core, 0.5, 12)
    found = sl_discs.sample(problem, draws=1_024, method=method, seed=1)
    assert found.reliable and np.isfinite(found.values).all()
    assert (
        abs(found.mean().mean - 0.5 * weights @ sizes / weights.sum())
        < 6 * found.mean().error + 1e-6
    )
    if method != "chain":
        assert found.log_z.error < 0.05
        assert abs(found.log_z.mean - np.log(weights.sum())) < 6 * found.log_z.error + 1e-5
    if method == "tempering":
        assert np.isfinite(found.ladder.mean_values).all()


def test_where_hardly_any_state_has_a_probability_log_z_is_unknown():
    """Independent sets of a grid, 2e-4 of all states, which the rung at infinite temperature holds
    alone.
    """
    rows, columns = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6)).edges).T

    def independent(_, x):
        return jnp.where(x[rows] @ x[columns] > 0, -jnp.inf, 0.7 * x.sum())

    found = sl_discs.sample(
        sl_discs.from_log_density(independent, (), 30), draws=1_024, method="tempering", seed=0
    )
    assert found.reliable and found.log_z is None and "log Z is unknown" in " ".join(found.notes)


@pytest.mark.parametrize("sampler", ["gwg", "path_auxiliary", "dmala"])
def test_derivatives_without_bound_hold_no_chain(sampler):
    """Those of sqrt at 0, and 5e5 beside it; probabilities by 5 standard errors of about 100
    independent chains.
    """
    model = DifferentiableModel(lambda small, x: -jnp.sqrt(x + small).sum(), 3)
    kernel = registered(sampler).build({"adapt_until": 100})

    @jax.jit
    def ones_of_chains(small, temperature, chain_keys, starts):
        target = dataclasses.replace(
            model.target(small, jnp.ones(3, bool)), temperature=temperature
        )
        visited = jax.vmap(functools.partial(chain, target))(chain_keys, starts)
        return visited.mean(axis=(1, 2))

    def chain(target, key, x):
        def step(chain, number):
            chain, _ = kernel.kernel(keys.fold(key, number), target, chain)
            return chain, chain.x

        begin = Chain(x, target.init(x), kernel.init_state(key, x.shape))
        return jax.lax.scan(step, begin, jnp.arange(400))[1][200:]

    starts = np.random.default_rng(0).integers(0, 2, (128, 3), np.int8)
    chain_keys = keys.chain_keys(0, 1, np.arange(1), 128)[0]
    for small, temperature in itertools.product((0.0, 1e-12), (0.5, 2.0)):
        ones = ones_of_chains(small, temperature, chain_keys, starts)
        known = 1 / (1 + np.exp(1 / temperature))
        assert abs(ones.mean() - known) < 5 * ones.std() / np.sqrt(128) < 0.1


def test_a_start_may_be_given():
    """Where none of the states that are tried has a density: x has to be near a hidden pattern."""
    hidden = np.random.default_rng(1).integers(0, 2, 40)

    def near(params, x):
        del params
        return jnp.where(jnp.abs(x - hidden).sum() <= 2, 0.0, -jnp.inf)

    with pytest.raises(InputError):
        sl_discs.from_log_density(near, (), 40)
    problem = sl_discs.from_log_density(near, (), 40, start=hidden)
    draws = sl_discs.sample(
        problem, draws=256, method="chain", sampler="gibbs", scan="random", seed=0
    )
    assert (np.abs(draws.states - hidden).sum(axis=1) <= 2).all()
    assert np.ptp(draws.states, axis=0).any()


def linear(params, x):
    """A constant above 0, 1 and 2 times the sites."""
    return params[0] + params[1:] @ x.astype(params.dtype)


def linear_above(constant):
    return sl_discs.from_log_density(linear, jnp.array([constant, 0.0, 1.0, 2.0]), 3)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_in_double_precision_changes_no_draw(method):
    with jax.enable_x64(True):
        few, many = (
            sl_discs.sample(linear_above(one), draws=1_024, method=method) for one in (0.0, 1e8)
        )
        assert jnp.array([1e8]).dtype == jnp.float64 and many.reliable
        np.testing.assert_array_equal(few.states, many.states)
        np.testing.assert_allclose(many.values - 1e8, few.values, atol=1e-6)


@pytest.mark.parametrize("method", ["exact", "chain"])
def test_values_too_coarse_for_the_temperature_are_not_reliable(method):
    """In single precision, numbers near 3e7 are 2 apart."""
    for constant, reliable in (1e3, True), (3e7, False):
        draws = sl_discs.sample(linear_above(constant), draws=1_024, method=method)
        assert draws.reliable == reliable
        assert reliable or "rounding changes f by up to 3.6" in str(draws.verdict)


def test_an_offset_beyond_double_precision_changes_no_law():
    """Of enumerated states of a quadratic problem, beside which its coefficients would vanish."""
    few, many = (
        sl_discs.sample(sl_discs.qubo({("a", "a"): 1.0}, offset=one), draws=80)
        for one in (0.0, 1e17)
    )
    assert few.marginal("a") == many.marginal("a") and few.marginal("a").mean < 0.3


def test_under_a_transformation_of_jax_the_message_says_so():
    """Not that the function is wrong: params are traced, or what it closes over, or everything, as
    under jit.
    """

    def drawn(weight, closed=False):
        fn = (
            (lambda params, x: weight * x.sum()) if closed else (lambda params, x: params * x.sum())
        )
        return (
            sl_discs.sample(sl_discs.from_log_density(fn, 1.0 if closed else weight, 3), draws=8)
            .mean()
            .mean
        )

    cut = sl_discs.maxcut(nx.path_graph(3))
    for call in (
        lambda: jax.grad(drawn)(1.0),
        lambda: jax.grad(lambda weight: drawn(weight, closed=True))(1.0),
        lambda: jax.grad(
            lambda temperature: sl_discs.sample(cut, temperature, draws=8).mean().mean
        )(1.0),
        lambda: jax.jit(drawn)(1.0),
        lambda: jax.jit(
            lambda temperature: sl_discs.sample(cut, draws=8).mean().mean * temperature
        )(1.0),
    ):
        with pytest.raises(InputError):
            call()
