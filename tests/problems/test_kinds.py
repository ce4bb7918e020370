"""What a problem is: its model, sense, repair and count agree with each other on every state of small graphs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph
from sl_discs.problems.graph_kind import GRAPH_KINDS, Edges, graph_kind
from sl_discs.problems.kind import KINDS, PENALTY
from sl_discs.testing.cases import all_states


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 7))
    edges = [pair for pair in itertools.combinations(range(size), 2) if draw(st.booleans())]
    return Graph.from_arrays("g", size, np.array(edges, int).reshape(-1, 2))


def model_values(kind, graph, states, penalty=PENALTY):
    terms = kind.terms(graph, penalty).listed()
    pairs = (states[:, terms.edges[:, 0]] * states[:, terms.edges[:, 1]]) @ terms.weights
    return states @ terms.linear + terms.scale * pairs + terms.constant


def test_every_problem_has_its_own_name():
    assert all(kind.name == name for name, kind in KINDS.items())
    with pytest.raises(InputError, match="unknown problem 'tsp'; known: mis, "):
        graph_kind("tsp")


@pytest.mark.parametrize("name", GRAPH_KINDS)
@settings(deadline=None, max_examples=30)
@given(graph=graphs())
def test_a_maximiser_of_the_model_is_an_optimum_of_the_problem(name, graph):
    kind = graph_kind(name)
    states = all_states(graph.num_nodes)
    values, found = model_values(kind, graph, states), kind.evaluator(graph)(states)
    unrepaired = (found.states == states).all(axis=1)
    np.testing.assert_allclose(values[unrepaired], kind.sign * found.values[unrepaired], atol=1e-9)
    assert found.feasible.all()
    best = int(np.argmax(values))
    assert unrepaired[best] and kind.sign * found.values[best] == (kind.sign * found.values).max()
    # A repair is never worse than the penalised objective, rounded to the worse side.
    assert (kind.sign * found.values >= np.floor(values + 1e-9)).all()


@pytest.mark.parametrize("name", GRAPH_KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("num_states", [1, 9, 150])
def test_the_best_of_many_states_is_found_without_repairing_all(name, weighted, num_states):
    rng = np.random.default_rng(num_states)
    for size in (1, 2, 5, 12, 30):
        edges = np.argwhere(np.triu(rng.random((size, size)) < rng.random(), 1))
        weights = (rng.normal(size=len(edges)), rng.integers(0, 4, size) * 0.3) if weighted else (None, None)
        graph = Graph.from_arrays("g", size, edges, weights[0], node_weights=weights[1])
        kind = graph_kind(name)
        graph, states = kind.counted(graph), rng.random((num_states, size)) < rng.random()
        evaluate, evaluate_best = kind.evaluators(graph)
        every, best = evaluate(states), evaluate_best(states)
        signed = kind.sign * every.values
        top = int(np.argmax(signed))
        assert (best.values, best.feasible) == (every.values[top], every.feasible[top])
        np.testing.assert_array_equal(best.states, every.states[top, None])
        assert kind.most is not None and (kind.most(Edges.of(graph), states) >= signed).all()


@settings(deadline=None, max_examples=50)
@given(graph=graphs())
def test_a_vertex_cover_is_what_an_independent_set_leaves_out(graph):
    states = all_states(graph.num_nodes)
    cover, independent = graph_kind("vertex_cover").evaluator(graph), graph_kind("mis").evaluator(graph)
    covers, sets = cover(states), independent(1 - states)
    np.testing.assert_array_equal(covers.states, 1 - sets.states)
    np.testing.assert_array_equal(covers.values, graph.num_nodes - sets.values)
    assert (covers.states >= states).all()
    covered = covers.states[:, graph.edges[:, 0]] | covers.states[:, graph.edges[:, 1]]
    assert covered.all()
    assert covers.values.min() == graph.num_nodes - independent(states).values.max()


@pytest.mark.parametrize("name", [name for name, kind in GRAPH_KINDS.items() if kind.penalty is not None])
@pytest.mark.parametrize("penalty", [0.5, math.nan])
def test_a_penalty_below_1_is_refused(name, penalty):
    with pytest.raises(InputError, match=f"penalty is {penalty}; expected at least 1"):
        graph_kind(name).terms(Graph.from_arrays("path", 2, np.array([[0, 1]])), penalty)
