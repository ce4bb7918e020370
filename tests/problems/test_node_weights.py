"""Weights of nodes, by enumeration, in every form that they come in, and against another program."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError
from sl_discs.instances.graph import Graph
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.testing.cases import all_states

KINDS = ("mis", "maxclique", "vertex_cover")
laws = settings(max_examples=60, deadline=None, derandomize=True)
weights = st.integers(0, 9) | st.floats(0, 3).map(lambda w: round(w, 2))


@st.composite
def weighted_graphs(draw, most=7):
    size = draw(st.integers(1, most))
    pairs = list(itertools.combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    of_nodes = draw(st.lists(weights, min_size=size, max_size=size))
    return Graph.from_arrays("g", size, np.array(edges, int).reshape(-1, 2), node_weights=of_nodes)


def feasible(kind, graph, chosen):
    edges = {tuple(edge) for edge in graph.edges.tolist()}
    if kind == "vertex_cover":
        return all(chosen[u] or chosen[v] for u, v in edges)
    inside = itertools.combinations(np.flatnonzero(chosen).tolist(), 2)
    return all((pair in edges) == (kind == "maxclique") for pair in inside)


def problem_of(kind, graph, **how):
    return getattr(sl_discs, kind)(graph, **how)


@laws
@given(weighted_graphs(), st.sampled_from(KINDS), st.sampled_from([1.0, 1.0001, 1.3]))
def test_model_repair_and_improvement(graph, kind, penalty):
    problem = problem_of(kind, graph, penalty=penalty)
    states, sign = all_states(graph.num_nodes), 1 if problem.maximise else -1
    model, found = problem.terms().evaluator()(states), problem.evaluate(states)
    good = np.array([feasible(kind, graph, state) for state in states])
    values = states @ graph.node_weights
    np.testing.assert_allclose(model[good], sign * values[good], atol=1e-9)
    assert found.feasible.all() and all(feasible(kind, graph, state) for state in found.states)
    assert (found.states[good] == states[good]).all()
    # Dropping a conflict never costs.
    assert (sign * found.values >= model - 1e-9).all()
    assert model.max() == pytest.approx((sign * values[good]).max(), abs=1e-9)
    improved = problem.evaluate(problem.improve(found.states))
    assert (sign * improved.values >= sign * found.values).all()
    assert (problem.evaluate(problem.improve(improved.states)).values == improved.values).all()


@laws
@given(weighted_graphs())
def test_no_exchange_is_left(graph):
    """Of one node for two, of neighbours for one, and of nothing for one."""
    problem = sl_discs.mis(graph)
    heavy = graph.node_weights
    for state in problem.improve(problem.evaluate(all_states(graph.num_nodes)).states):
        inside, outside = np.flatnonzero(state), np.flatnonzero(1 - state)
        near = {tuple(edge) for one in (graph.edges, graph.edges[:, ::-1]) for edge in one.tolist()}
        for one in outside:
            assert heavy[one] <= sum(heavy[k] for k in inside if (one, k) in near) + 1e-9
        for a, b in itertools.combinations(outside, 2):
            out = [k for k in inside if (a, k) in near or (b, k) in near]
            if len(out) == 1 and (a, b) not in near:
                assert heavy[a] + heavy[b] <= heavy[out[0]]


@laws
@given(weighted_graphs(), st.sampled_from(KINDS))
def test_weights_of_one_change_nothing(graph, kind):
    """Neither where they are recognised nor in any function that takes them."""
    plain = Graph.from_arrays("g", graph.num_nodes, graph.edges)
    ones = Graph.from_arrays("g", graph.num_nodes, graph.edges, node_weights=np.ones(graph.num_nodes))
    assert problem_of(kind, ones).source.node_weights is None
    one, other = (graph_kind(kind).terms(source, 1.3) for source in (plain, ones))
    if kind == "maxclique":
        one, other = one.listed(), other.listed()
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    states = all_states(graph.num_nodes)
    one, other = (graph_kind(kind).evaluator(source)(states) for source in (plain, ones))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    one, other = (graph_kind(kind).improver(source) for source in (plain, ones))
    assert one is None or all(
        np.array_equal(one(state), other(state)) for state in states if feasible(kind, plain, state)
    )


@pytest.mark.parametrize("seed", range(4))
def test_against_networkx(seed):
    """Proved to be optimal, in graphs too large to enumerate."""
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(30 + 3 * seed, (0.3, 0.5, 0.7, 0.9)[seed], seed=seed)
    nx.set_node_attributes(graph, {node: int(rng.integers(1, 100)) for node in graph}, "mass")
    _, best = nx.max_weight_clique(graph, weight="mass")
    total = sum(nx.get_node_attributes(graph, "mass").values())
    absent = nx.complement(graph)
    absent.add_nodes_from(graph.nodes(data=True))
    for problem, expected in (
        (sl_discs.maxclique(graph, weight="mass"), best),
        (sl_discs.mis(absent, weight="mass"), best),
        (sl_discs.vertex_cover(absent, weight="mass"), total - best),
    ):
        result = sl_discs.solve(problem, seed=0)
        assert result.optimal and result.best_value == expected
        assert problem.value(result.best_sample) == expected


def test_every_form_of_weights():
    graph = nx.Graph([("a", "b"), ("b", "c")])
    by_label = {"a": 2, "b": 5.5, "c": 3}
    nx.set_node_attributes(graph, by_label, "mass")
    adjacency, edges = nx.to_scipy_sparse_array(graph), [(0, 1), (1, 2)]
    array = [2, 5.5, 3]
    of_graph = Graph.from_arrays("g", 3, np.array(edges), node_weights=array)
    for given_graph, weight in (
        (graph, "mass"), (graph, by_label), (graph, array), (graph, np.array(array)),
        (adjacency, array), (scipy.sparse.coo_matrix(adjacency), dict(enumerate(array))),
        (edges, array), (edges, dict(enumerate(array))), (of_graph, None),
        (Graph.from_arrays("g", 3, np.array(edges), node_weights=[1, 2, 3]), array),
    ):  # fmt: skip
        problem = sl_discs.mis(given_graph, weight=weight)
        np.testing.assert_array_equal(problem.source.node_weights, array)
        assert problem.value([0, 1, 0]) == 5.5 and problem.value([1, 0, 1]) == 5 and not problem.integer_values
    # Labels 0 .. N - 1 are in their order, whatever that of the graph is.
    turned = nx.Graph([(2, 1), (1, 0)])
    nx.set_node_attributes(turned, {0: 7, 1: 8, 2: 9}, "weight")
    assert sl_discs.mis(turned, weight="weight").source.node_weights.tolist() == [7, 8, 9]
    assert sl_discs.mis(turned).source.node_weights is None
    assert sl_discs.maxcut(of_graph).source.node_weights is None


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2], r"weights of nodes of shape \(2,\) for 3 nodes"),
        ([1, -2, 3], "the weight of node 'b' is -2; expected a finite number, at least 0"),
        (np.array([1, -2, 3]), "the weight of node 'b' is -2.0; expected a finite number of at least 0"),
        ([1, 2, np.nan], "the weight of node 'c' is nan"),
        ([1, "2", 3], "the weight of node 'b' is '2'"),
        ([1e307, 1e307, 1e307], "add up to more than 1e307"),
        ({"a": 1, "b": 2}, "node 'c' has no weight"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "'d', which is not a node"),
        ("mass", "node 'b' has no weight"),
    ],
)
def test_bad_weights(weight, message):
    graph = nx.Graph([("a", "b"), ("b", "c")])
    graph.nodes["a"]["mass"] = graph.nodes["c"]["mass"] = 1
    with pytest.raises(InputError, match=message):
        sl_discs.mis(graph, weight=weight)


def test_large_sparse_graphs_have_no_list_of_missing_edges(monkeypatch):
    """Cliques are then penalised alike, which is exact as well."""
    graph = nx.gnp_random_graph(9, 0.3, seed=1)
    problem = sl_discs.maxclique(graph, weight=np.arange(9))
    listed = problem.terms()
    monkeypatch.setattr("sl_discs.problems.graphs._MOST_LISTED", 0)
    alike = problem.terms()
    assert listed.background == 0 and alike.background == 8
    states = all_states(9)
    found = problem.evaluate(states).values
    for terms in (listed, alike):
        values = terms.evaluator()(states)
        assert (values <= found + 1e-9).all() and values.max() == pytest.approx(found.max())
