"""Bounds hold on every small problem, and prove optima where they are tight."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs

GRAPH_KINDS = "mis", "maxclique", "vertex_cover", "maxcut"


def optimum(problem):
    states = np.array(list(itertools.product((0, 1), repeat=problem.num_variables)), np.int8)
    values = problem.evaluate(states).values
    return values.max() if problem.maximise else values.min()


def no_worse(problem, value):
    return value >= optimum(problem) if problem.maximise else value <= optimum(problem)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([0.2, 0.5, 0.8]))
def test_no_set_or_cut_passes_its_bound(seed, size, density):
    graph = nx.gnp_random_graph(size, density, seed=seed)
    for u, v in graph.edges:
        graph[u][v]["weight"] = (u * v + seed) % 5 - 2
    for kind in GRAPH_KINDS:
        problem = getattr(sl_discs, kind)(graph)
        assert no_worse(problem, problem.bound(2.0))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans(), st.booleans())
def test_no_value_of_a_form_passes_its_bound(seed, size, spins, maximise):
    rng = np.random.default_rng(seed)
    pairs, weights = rng.integers(0, size, (8, 2)).tolist(), rng.normal(size=8)
    couplings = {tuple(pair): float(weight) for pair, weight in zip(pairs, weights, strict=True)}
    fields = rng.normal(size=size).tolist()
    if spins:
        problem = sl_discs.ising(fields, couplings, maximise=maximise)
    else:
        problem = sl_discs.qubo(couplings, maximise=maximise)
    assert no_worse(problem, problem.bound(2.0))


def test_a_tight_bound_ends_the_search():
    """Cliques in a row, of which a set takes one node each; reductions alone would solve it."""
    graph = nx.disjoint_union_all([nx.complete_graph(5)] * 8)
    problem = sl_discs.mis(graph)
    assert problem.bound(2.0) == 8
    result = sl_discs.solve(problem, "metropolis", steps=4_000, chains=2)
    assert (result.best_value, result.bound, result.optimal, result.gap) == (8, 8, True, 0)


@pytest.mark.parametrize("kind", GRAPH_KINDS[:3])
def test_a_large_graph_has_none_in_a_short_time(kind):
    problem = getattr(sl_discs, kind)(nx.gnm_random_graph(2_000, 20_000, seed=1))
    assert problem.bound(2.0) is not None
    assert problem.bound(0.005) is None
