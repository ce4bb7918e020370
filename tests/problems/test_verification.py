"""Verification: the repair bound, exact objectives, and the duality of cliques and independent sets."""

import tracemalloc
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph
from sl_discs.problems.graph_kind import graph_kind


def verify(problem, graph, x):
    """Value, feasibility and state after repair."""
    (value,), (feasible,), (state,) = graph_kind(problem).evaluator(graph)(x[None])
    return value, feasible, state


@st.composite
def graphs_and_states(draw):
    n = draw(st.integers(1, 9))
    pairs = list(combinations(range(n), 2))
    edges = [pair for pair in pairs if draw(st.booleans())]
    x = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), dtype=np.int32)
    return Graph.from_arrays("g", n, np.array(edges, dtype=int).reshape(-1, 2)), x


def complement(graph):
    present = {tuple(edge) for edge in graph.edges.tolist()}
    missing = [pair for pair in combinations(range(graph.num_nodes), 2) if pair not in present]
    return Graph.from_arrays("complement", graph.num_nodes, np.array(missing, dtype=int).reshape(-1, 2))


def repair_by_definition(graph, x):
    """The stated rule, step by step: drop the node with the most conflicts, ties to the lowest index."""
    nodes, edges = {i for i, bit in enumerate(x) if bit}, graph.edges.tolist()
    while True:
        counts = {i: sum(i in edge and set(edge) <= nodes for edge in edges) for i in nodes}
        worst = max(counts, key=lambda i: (counts[i], -i), default=None)
        if worst is None or counts[worst] == 0:
            return nodes
        nodes.remove(worst)


@given(graphs_and_states())
def test_the_repair_follows_its_definition(case):
    graph, x = case
    assert set(np.flatnonzero(verify("mis", graph, x)[2])) == repair_by_definition(graph, x)


@given(graphs_and_states())
def test_a_clique_is_an_independent_set_of_the_complement(case):
    graph, x = case
    clique, independent = verify("maxclique", graph, x), verify("mis", complement(graph), x)
    assert clique[:2] == independent[:2]
    np.testing.assert_array_equal(clique[2], independent[2])


@given(graphs_and_states(), st.data())
def test_a_cut_is_exact_and_its_state_untouched(case, data):
    graph, x = case
    number = st.one_of(st.integers(-9, 9).map(float), st.floats(-1e20, 1e20))
    weights = data.draw(st.lists(number, min_size=graph.num_edges, max_size=graph.num_edges))
    weighted = Graph.from_arrays("w", graph.num_nodes, graph.edges, np.array(weights))
    value, feasible, state = verify("maxcut", weighted, x)
    crossing = (w for w, (u, v) in zip(weights, graph.edges, strict=True) if x[u] != x[v])
    exact = sum(map(Fraction, crossing), Fraction(0))
    assert value == float(exact) and feasible
    np.testing.assert_array_equal(state, x)
    assert verify("maxcut", graph, x)[0] == sum(x[u] != x[v] for u, v in graph.edges)


def test_repairing_a_large_set_that_is_no_clique_lists_no_missing_edge():
    """Of 3,000 nodes; the pairs that are not joined would take 100 MB."""
    graph = Graph.from_arrays("large", 3_000, np.array([[7, 9], [9, 20], [7, 20]]))
    tracemalloc.start()
    found = verify("maxclique", graph, np.ones(3_000, np.int8))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[:2] == (3.0, True) and np.flatnonzero(found[2]).tolist() == [7, 9, 20]
    assert peak < 10**6


@pytest.mark.parametrize(
    ("problem", "x", "message"),
    [
        ("mis", [1, 0, 1, 0], "padding"),
        ("maxcut", [0.5, 0, 1], "0 and 1"),
        ("tsp", [1, 0, 1], "unknown problem"),
    ],
)
def test_bad_input_is_refused(problem, x, message):
    graph = Graph.from_arrays("path", 3, np.array([[0, 1], [1, 2]]))
    with pytest.raises(InputError, match=message):
        verify(problem, graph, np.array(x))
