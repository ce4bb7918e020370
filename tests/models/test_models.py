"""Values, gains and fields of the models against direct evaluation."""

import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from sl_discs.chains.annealing import temperature_range
from sl_discs.instances.graph import Graph
from sl_discs.models import batching
from sl_discs.models.model import Target, apply_flips
from sl_discs.models.quadratic import Dense, QuadraticModel, field_dtype, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.testing import all_states, standard_cases

N = 6


def random_graph(seed, weighted):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(N, 0.5, seed=seed)
    edges = np.array(graph.edges).reshape(-1, 2)
    return Graph.from_arrays(
        "g", N, edges, rng.integers(-4, 5, len(edges)) / 4 if weighted else None
    )


def direct_value(problem, graph, x, penalty):
    """The objective minus penalty from the graph's definition alone."""
    edges = {tuple(edge) for edge in graph.edges.tolist()}
    if problem == "maxcut":
        weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
        return sum(w for (u, v), w in zip(graph.edges, weights, strict=True) if x[u] != x[v])
    pairs = list(itertools.combinations(np.flatnonzero(x).tolist(), 2))
    return sum(x) - penalty * sum((pair in edges) == (problem == "mis") for pair in pairs)


def build(problem, graph, sparse, padded=N):
    terms = graph_kind(problem).model(graph, 1.25)
    params = quadratic_params(terms, padded, terms.max_degree() if sparse else None)
    return QuadraticModel(padded, field_dtype(params.coupling)), jax.tree.map(jnp.asarray, params)


@functools.partial(jax.jit, static_argnums=0)
def values_and_gains(model, params, states):
    """[S] f and [S, N] the gains of its flips at each of these states."""

    def one(x):
        field = model.init(params, x)
        return model.value(params, x, field), model.gains(params, x, field)

    return jax.vmap(one)(states)


def test_changes_have_the_digits_of_fields_and_not_of_totals():
    """Of one flip beside 500 fields of 1e6; and of two neighbours."""
    linear, edges = np.append(0.5, np.full(500, 1e6)), np.array([[0, 1]])
    terms = Coefficients(linear, edges, np.array([0.3]), 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, 501, None))
    model, x = QuadraticModel(501), jnp.ones(501, jnp.int8)
    field = model.init(params, x)
    for flipped, change in ([0], -0.8), ([0, 1], -1e6 - 0.8):
        y = x.at[jnp.array(flipped)].set(0)
        found = model.change(params, x, field, y, model.update(params, x, field, y))
        assert found == pytest.approx(change, rel=1e-6)


@pytest.mark.parametrize(
    ("unit", "largest"), [(1.0, 3.0), (2.0**-40, 3 * 2.0**-40), (0.1, 60.0), (1e-3, 0.6)]
)
def test_sums_are_rounded_unless_they_are_whole_multiples_of_one_number(unit, largest):
    """200 couplings of 3 units to one site; sums of 24 bits and more are rounded, too."""
    edges = np.stack([np.zeros(200, int), np.arange(1, 201)], axis=1)
    terms = Coefficients(np.zeros(201), edges, np.full(200, 3 * unit), 1.0)
    assert terms.resolution(np.zeros(1)) == pytest.approx(largest / 2**24)
    huge = terms._replace(weights=np.append(np.full(199, unit), 2**24 * unit))
    assert huge.resolution(np.zeros(1)) == pytest.approx((1 + 199 / 2**24) * unit)


@pytest.mark.parametrize("sparse", [False, True])
def test_coupled_sites_are_those_whose_gains_change(sparse):
    """In a quadratic model, couplings of 0 among the listed ones included; any other model says
    all.
    """
    graph = random_graph(1, weighted=True)
    assert 0 in graph.weights
    model, params = build("maxcut", graph, sparse, padded=8)
    _, (before, *after) = values_and_gains(model, params, np.eye(9, 8, -1, np.int8))
    changed = (before != np.array(after)) & ~np.eye(8, dtype=bool)
    target = Target(model, params, jnp.float32(np.inf), jnp.ones(8, bool))
    for coupled in (functools.partial(model.coupled, params), target.coupled):
        np.testing.assert_array_equal(jax.jit(jax.vmap(coupled))(jnp.arange(8)), changed)
    lattice = standard_cases()[5].model
    np.testing.assert_array_equal(lattice.coupled(None, jnp.int32(2)), np.arange(6) != 2)


@pytest.mark.parametrize("problem", ["mis", "maxcut", "maxclique"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_values_and_gains_are_exact(problem, sparse, seed):
    graph = random_graph(seed, weighted=problem == "maxcut" and seed > 0)
    model, params = build(problem, graph, sparse)
    states = all_states(N)
    direct = np.array([direct_value(problem, graph, x, 1.25) for x in states])
    values, gains = values_and_gains(model, params, states)
    np.testing.assert_allclose(values, direct, atol=1e-5)
    neighbours = np.arange(len(states))[:, None] ^ (1 << np.arange(N))
    np.testing.assert_allclose(gains, direct[neighbours] - direct[:, None], atol=1e-5)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("on_cpu", [True, False])
def test_flips_follow_the_field_exactly(on_cpu, sparse, weighted, monkeypatch):
    """Row by row on CPUs; on GPUs by one product where couplings are whole numbers."""
    if not on_cpu:
        monkeypatch.setattr(batching, "_decides_cheaply", lambda: False)
    graph = random_graph(1, weighted)
    model, params = build("maxcut", graph, sparse, padded=64)
    rng = np.random.default_rng(0)
    x = (rng.random(64) < 0.5) & (np.arange(64) < N)
    x = jnp.asarray(x, jnp.int8)
    order = rng.permutation(N)

    @jax.jit
    def flipped(x, flips):
        y, before = apply_flips(x, flips), model.init(params, x)
        after, fresh = model.update(params, x, before, y), model.init(params, y)
        values = [model.value(params, x, before), model.value(params, y, fresh)]
        return after, fresh, model.change(params, x, before, y, after), values

    for length in (1, 5):
        after, fresh, change, values = flipped(
            x, jnp.asarray(np.isin(np.arange(64), order[:length]))
        )
        for followed, direct in zip(after, fresh, strict=True):
            np.testing.assert_array_equal(followed, direct)
        np.testing.assert_allclose(change, values[1] - values[0], atol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_fields_of_many_states_on_the_host_are_those_of_each_state(whole):
    """Beyond the rows that are listed together, with rows of zeros and with all couplings
    of a row.
    """
    rng, num_sites = np.random.default_rng(0), 1_030
    rows = np.triu(
        (rng.random((num_sites, num_sites)) < 0.02) * rng.integers(-63, 64, (num_sites, num_sites)),
        1,
    )
    rows[:-1, -1], rows[5], rows[:, 5] = 100, 0, 0
    rows = rows + rows.T
    coupling = Dense(rows.astype(np.int8) if whole else (0.37 * rows).astype(np.float32))
    x = rng.integers(0, 2, (3, num_sites)).astype(np.int8)
    np.testing.assert_array_equal(coupling.products(x), jax.vmap(coupling.matvec)(jnp.asarray(x)))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("last", "dtype"), [(1, "int16"), (2, "float32"), (0.5, "float32")])
def test_fields_take_16_bits_only_where_no_sum_can_leave_them(sparse, last, dtype):
    """258 neighbours of weight -127 and one more: the sum reaches -32,767, the least allowed, or
    goes on.
    """
    size = 260
    edges = np.stack([np.zeros(size - 1, int), np.arange(1, size)], axis=1)
    weights = -np.append(np.full(size - 2, 127.0), last)
    terms = Coefficients(np.zeros(size), edges, weights, 1.0)
    params = quadratic_params(terms, size, size - 1 if sparse else None)
    coupling = params.coupling
    assert field_dtype(coupling) == dtype
    assert field_dtype(jax.tree.map(lambda leaf: np.stack([0 * leaf, leaf]), coupling)) == dtype
    found = jax.jit(QuadraticModel(size, dtype).init)(params, np.ones(size, np.int8))
    assert found.coupled.dtype == dtype and float(found.coupled[0]) == weights.sum()
    assert float(found.pairs) == weights.sum()


def test_general_models_have_exact_gains():
    target, states = standard_cases()[5].target, all_states(6)
    neighbours = np.arange(64)[:, None] ^ (1 << np.arange(6))
    values, gains = map(np.asarray, values_and_gains(target.model, target.params, states))
    np.testing.assert_allclose(gains, values[neighbours] - values[:, None], atol=1e-5)


def test_tilt_and_temperature():
    model, params = build("mis", random_graph(0, False), sparse=False)
    tilt = jnp.arange(N) / 4 - 0.875  # sums are exact
    target, states = (
        Target(model, params, jnp.float32(0.5), jnp.ones(N, bool), tilt),
        all_states(N)[::7],
    )
    spins = 2.0 * states - 1
    values, gains = map(np.asarray, values_and_gains(model, params, states))
    fields = jax.jit(jax.vmap(target.init))(states)
    found = jax.jit(jax.vmap(lambda x, field: (target.value(x, field), target.gains(x, field))))(
        states, fields
    )
    np.testing.assert_allclose(found[0], values / 0.5 + spins @ np.asarray(tilt), rtol=1e-5)
    np.testing.assert_allclose(found[1], gains / 0.5 - 2 * spins * np.asarray(tilt), atol=1e-5)


def test_a_clique_in_a_sparse_graph_lists_no_missing_edge():
    """The complement of 20,000 nodes has 2 10^8 edges; as a list and as a background it is the same
    model.
    """
    edges = np.array([[0, 1], [1, 2], [0, 2], [3, 5]])
    large, terms, nearly_all = (
        graph_kind("maxclique").model(Graph.from_arrays("graph", size, some), 1.0001)
        for size, some in (
            (20_000, edges),
            (9, edges),
            (9, np.argwhere(np.triu(np.ones((9, 9)), 1))[4:]),
        )
    )
    listed = terms.listed()
    assert len(large.edges) == len(nearly_all.edges) == 4
    assert terms.background == 1 and (terms.max_degree(), len(listed.edges)) == (8, 32)
    for degree in (None, 8):
        one, other = (quadratic_params(each, 12, degree).coupling for each in (terms, listed))
        jax.tree.map(np.testing.assert_array_equal, one, other)
    assert temperature_range(terms) == pytest.approx(temperature_range(listed))
