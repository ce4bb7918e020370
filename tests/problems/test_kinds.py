"""What a problem on a graph is: its model, sense, repair, count and improvement agree on every
state of small graphs.

Weights of nodes, where they count, are part of all of that.
"""

import itertools
import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.instances.dataset import PROBLEMS
from sl_discs.instances.graph import Graph, complement
from sl_discs.problems.graph_kind import Edges, graph_kind
from sl_discs.problems.problem import improve
from sl_discs.testing.conformance import all_states

SETS = ("mis", "maxclique", "vertex_cover")
laws = settings(max_examples=60, deadline=None, derandomize=True)
weights = st.integers(0, 9) | st.floats(0, 3).map(lambda w: round(w, 2))


@st.composite
def graphs(draw, weighted=False, most=7):
    size = draw(st.integers(1, most))
    pairs = list(itertools.combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    of_nodes = draw(st.lists(weights, min_size=size, max_size=size)) if weighted else None
    return Graph.from_arrays("g", size, np.array(edges, int).reshape(-1, 2), node_weights=of_nodes)


@st.composite
def graphs_and_states(draw):
    graph = draw(graphs(most=9))
    size = graph.num_nodes
    return graph, np.array(
        draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), np.int32
    )


def verify(problem, graph, x):
    """Value, feasibility and state after repair."""
    (value,), (feasible,), (state,) = graph_kind(problem).evaluator(graph)(x[None])
    return value, feasible, state


def is_feasible(kind, graph, chosen):
    edges = {tuple(sorted(edge)) for edge in graph.edges.tolist()}
    if kind == "vertex_cover":
        return all(chosen[u] or chosen[v] for u, v in edges)
    inside = itertools.combinations(np.flatnonzero(chosen).tolist(), 2)
    return all((pair in edges) == (kind == "maxclique") for pair in inside)


@laws
@given(graphs(weighted=True) | graphs(), st.sampled_from(SETS), st.sampled_from([1.0, 1.0001, 1.3]))
def test_model_repair_and_improvement(graph, kind, penalty):
    problem = getattr(sl_discs, kind)(graph, penalty=penalty)
    states, sign = all_states(graph.num_nodes), 1 if problem.maximise else -1
    model, found = problem.terms().values(states), problem.evaluate(states)
    good = np.array([is_feasible(kind, graph, state) for state in states])
    values = states @ (
        np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights
    )
    np.testing.assert_allclose(model[good], sign * values[good], atol=1e-9)
    assert found.feasible.all() and all(is_feasible(kind, graph, state) for state in found.states)
    assert (found.states[good] == states[good]).all()
    # Dropping a conflict never costs.
    assert (sign * found.values >= model - 1e-9).all()
    assert model.max() == pytest.approx((sign * values[good]).max(), abs=1e-9)
    improved = problem.evaluate(improve(problem, found.states))
    assert (sign * improved.values >= sign * found.values).all()
    assert (problem.evaluate(improve(problem, improved.states)).values == improved.values).all()


@laws
@given(graphs(weighted=True) | graphs())
def test_no_exchange_is_left(graph):
    """Of one node for two, of neighbours for one, and of nothing for one."""
    problem = sl_discs.mis(graph)
    heavy = np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights
    for state in improve(problem, problem.evaluate(all_states(graph.num_nodes)).states):
        inside, outside = np.flatnonzero(state), np.flatnonzero(1 - state)
        near = {tuple(edge) for one in (graph.edges, graph.edges[:, ::-1]) for edge in one.tolist()}
        for one in outside:
            assert heavy[one] <= sum(heavy[k] for k in inside if (one, k) in near) + 1e-9
        for a, b in itertools.combinations(outside, 2):
            out = [k for k in inside if (a, k) in near or (b, k) in near]
            if len(out) == 1 and (a, b) not in near:
                assert heavy[a] + heavy[b] <= heavy[out[0]]


@laws
@given(graphs_and_states())
def test_the_repair_follows_its_definition(case):
    """Step by step: the node with the most conflicts is dropped, ties to the lowest index."""
    graph, x = case
    nodes, edges = {i for i, bit in enumerate(x) if bit}, graph.edges.tolist()
    while True:
        counts = {i: sum(i in edge and set(edge) <= nodes for edge in edges) for i in nodes}
        worst = max(counts, key=lambda i: (counts[i], -i), default=None)
        if worst is None or counts[worst] == 0:
            break
        nodes.remove(worst)
    assert set(np.flatnonzero(verify("mis", graph, x)[2])) == nodes


@laws
@given(graphs_and_states())
def test_cliques_and_covers_are_independent_sets(case):
    """Of the complement, and what a set leaves out: the same repair and the same improvement."""
    graph, x = case
    other = complement(graph)
    independent, clique, cover = (
        verify("mis", graph, x), verify("maxclique", other, x), verify("vertex_cover", graph, 1 - x),
    )  # fmt: skip
    assert clique[:2] == independent[:2] == (graph.num_nodes - cover[0], cover[1])
    np.testing.assert_array_equal(clique[2], independent[2])
    np.testing.assert_array_equal(cover[2], 1 - independent[2])
    improved = graph_kind("mis").improve(graph)(independent[2].astype(bool))
    np.testing.assert_array_equal(
        graph_kind("vertex_cover").improve(graph)(cover[2].astype(bool)), ~improved
    )
    clique_improver = graph_kind("maxclique").improve(other)
    assert (clique_improver is None) == (graph.num_edges >= other.num_edges)
    if clique_improver is not None:
        np.testing.assert_array_equal(clique_improver(independent[2].astype(bool)), improved)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("num_states", [1, 9, 150])
def test_the_best_of_many_states_is_found_without_repairing_all(name, weighted, num_states):
    rng = np.random.default_rng(num_states)
    for size in (1, 2, 5, 12, 30):
        edges = np.argwhere(np.triu(rng.random((size, size)) < rng.random(), 1))
        of_edges, of_nodes = (
            (rng.normal(size=len(edges)), rng.integers(0, 4, size) * 0.3)
            if weighted
            else (None, None)
        )
        kind = graph_kind(name)
        graph = kind.counted(Graph.from_arrays("g", size, edges, of_edges, node_weights=of_nodes))
        states = rng.random((num_states, size)) < rng.random()
        evaluate = kind.evaluator(graph)
        evaluate_best = kind.best_evaluator(graph)
        every, best = evaluate(states), evaluate_best(states)
        signed = kind.sign * every.values
        top = int(np.argmax(signed))
        assert (best.values, best.feasible) == (every.values[top], every.feasible[top])
        np.testing.assert_array_equal(best.states, every.states[top, None])
        assert kind.most is not None and (kind.most(Edges(graph), states) >= signed).all()


@laws
@given(graphs(weighted=True), st.sampled_from(SETS))
def test_weights_of_one_change_nothing(graph, kind):
    """Neither where they are recognised nor in any function that takes them."""
    plain = Graph.from_arrays("g", graph.num_nodes, graph.edges)
    ones = Graph.from_arrays(
        "g", graph.num_nodes, graph.edges, node_weights=np.ones(graph.num_nodes)
    )
    assert getattr(sl_discs, kind)(ones).source.node_weights is None
    one, other = (graph_kind(kind).model(source, 1.3).listed() for source in (plain, ones))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    states = all_states(graph.num_nodes)
    one, other = (graph_kind(kind).evaluator(source)(states) for source in (plain, ones))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    improve, alike = (graph_kind(kind).improve(source) for source in (plain, ones))
    assert improve is None or all(
        np.array_equal(improve(state), alike(state)) for state in one.states.astype(bool)
    )


def test_every_form_of_weights():
    graph = nx.Graph([("a", "b"), ("b", "c")])
    by_label = {"a": 2, "b": 5.5, "c": 3}
    nx.set_node_attributes(graph, by_label, "mass")
    adjacency, edges = nx.to_scipy_sparse_array(graph), [(0, 1), (1, 2)]
    array = [2, 5.5, 3]
    of_graph = Graph.from_arrays("g", 3, np.array(edges), node_weights=array)
    for given_graph, weight in (
        (graph, "mass"), (graph, by_label), (graph, np.array(array)), (adjacency, array),
        (scipy.sparse.coo_matrix(adjacency), dict(enumerate(array))), (edges, array), (of_graph, None),
        (Graph.from_arrays("g", 3, np.array(edges), node_weights=[1, 2, 3]), array),
    ):  # fmt: skip
        problem = sl_discs.mis(given_graph, weight=weight)
        np.testing.assert_array_equal(problem.source.node_weights, array)
        assert (
            problem.value([0, 1, 0]) == 5.5
            and problem.value([1, 0, 1]) == 5
            and not problem.integer_values
        )
    # Labels 0 .. N - 1 are in their order, whatever that of the graph is.
    turned = nx.Graph([(2, 1), (1, 0)])
    nx.set_node_attributes(turned, {0: 7, 1: 8, 2: 9}, "weight")
    assert sl_discs.mis(turned, weight="weight").source.node_weights.tolist() == [7, 8, 9]
    assert sl_discs.mis(turned).source.node_weights is None
    assert sl_discs.maxcut(of_graph).source.node_weights is None


def test_large_sparse_graphs_have_no_list_of_missing_edges(monkeypatch):
    """Cliques are then penalised alike, which is exact as well; nor does the repair list the
    missing edges.
    """
    problem = sl_discs.maxclique(nx.gnp_random_graph(9, 0.3, seed=1), weight=np.arange(9))
    listed = problem.terms()
    monkeypatch.setattr("sl_discs.problems.graphs._MOST_LISTED", 0)
    alike = problem.terms()
    assert listed.background == 0 and alike.background == 8
    states = all_states(9)
    found = problem.evaluate(states).values
    for terms in (listed, alike):
        values = terms.values(states)
        assert (values <= found + 1e-9).all() and values.max() == pytest.approx(found.max())
    graph = Graph.from_arrays("large", 3_000, np.array([[7, 9], [9, 20], [7, 20]]))
    tracemalloc.start()
    repaired = verify("maxclique", graph, np.ones(3_000, np.int8))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert repaired[:2] == (3.0, True) and np.flatnonzero(repaired[2]).tolist() == [7, 9, 20]
    assert peak < 10**6  # the pairs that are not joined would take 100 MB


def test_solve_says_how_much_was_improved():
    for make in sl_discs.mis, sl_discs.vertex_cover:
        problem = make(nx.gnm_random_graph(600, 1_800, seed=0))
        result = sl_discs.solve(problem, "metropolis", steps=2_000, chains=3, seed=0)
        assert (
            (result.improved > 0).all()
            and (result.values == result.states.sum(axis=1)).all()
            and result.feasible
        )
    assert not sl_discs.solve(sl_discs.maxcut([(0, 1)]), steps=10, chains=2).improved.any()


def test_a_problem_shows_what_users_need():
    """What provers and results ask of it is in functions beside it."""
    shown = {name for name in dir(sl_discs.mis([(0, 1)])) if not name.startswith("_")}
    assert shown == {
        "kind", "name", "labels", "source", "penalty", "left_out", "num_variables", "maximise", "spins", "terms",
        "magnitude", "integer_values", "num_terms", "bound", "value", "fix", "evaluate", "as_state",
        "as_values",
    }  # fmt: skip
