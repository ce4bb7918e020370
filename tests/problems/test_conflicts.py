"""(1,2)-swaps: what is left is an independent set at least as large, and no swap is possible any more."""

import itertools

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.instances.graph import Graph
from sl_discs.problems.graph_kind import TwoImprovement, graph_kind


@st.composite
def graphs_and_independent_sets(draw):
    n = draw(st.integers(1, 9))
    pairs = list(itertools.combinations(range(n), 2))
    edges = [pair for pair in pairs if draw(st.booleans())]
    graph = Graph.from_arrays("g", n, np.array(edges, dtype=int).reshape(-1, 2))
    x = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return graph, graph_kind("mis").evaluator(graph)(x[None]).states[0].astype(bool)


def independent(graph, nodes):
    return not any(u in nodes and v in nodes for u, v in graph.edges.tolist())


def larger_neighbours(graph, nodes):
    """Independent sets with one node more, of which at most one was exchanged for two."""
    everywhere = range(graph.num_nodes)
    found = [nodes | {one} for one in everywhere if one not in nodes]
    outside = [one for one in everywhere if one not in nodes]
    found += [nodes - {out} | set(two) for out in nodes for two in itertools.combinations(outside, 2)]
    return [one for one in found if independent(graph, one)]


@settings(deadline=None)
@given(graphs_and_independent_sets())
def test_nothing_is_left_to_exchange(case):
    graph, chosen = case
    before = chosen.copy()
    improved = TwoImprovement(graph.num_nodes, graph.edges)(chosen)
    np.testing.assert_array_equal(chosen, before)
    nodes = set(np.flatnonzero(improved).tolist())
    assert independent(graph, nodes) and len(nodes) >= chosen.sum()
    assert not larger_neighbours(graph, nodes)
    if not larger_neighbours(graph, set(np.flatnonzero(chosen).tolist())):
        np.testing.assert_array_equal(improved, chosen)


@settings(deadline=None)
@given(graphs_and_independent_sets())
def test_covers_and_cliques_are_improved_as_the_independent_sets_that_they_are(case):
    graph, chosen = case
    improved = TwoImprovement(graph.num_nodes, graph.edges)(chosen)
    cover = graph_kind("vertex_cover").improver(graph)
    np.testing.assert_array_equal(cover(1 - chosen.astype(np.int8)), ~improved)
    pairs = np.argwhere(np.triu(np.ones((graph.num_nodes,) * 2), 1))
    missing = [pair for pair in pairs.tolist() if pair not in graph.edges.tolist()]
    complement = Graph.from_arrays("complement", graph.num_nodes, np.array(missing, dtype=int).reshape(-1, 2))
    clique = graph_kind("maxclique").improver(complement)
    if len(missing) > graph.num_edges:
        np.testing.assert_array_equal(clique(chosen.astype(np.int8)), improved)
    else:
        assert clique is None


def test_solve_says_how_much_was_improved():
    problem = sl_discs.mis(nx.gnm_random_graph(600, 1_800, seed=0))
    result = sl_discs.solve(problem, "metropolis", steps=2_000, chains=3, seed=0)
    assert (result.improved > 0).all() and (result.values == result.states.sum(axis=1)).all() and result.feasible
    assert (problem.improve(result.states) == result.states).all()
    assert result.trajectory.best[-1] <= (result.values - result.improved).max()
    cover = sl_discs.vertex_cover(nx.gnm_random_graph(600, 1_800, seed=0))
    result = sl_discs.solve(cover, "metropolis", steps=2_000, chains=3, seed=0)
    assert (result.improved > 0).all() and (result.values == result.states.sum(axis=1)).all() and result.feasible
    unchanged = sl_discs.solve(sl_discs.maxcut([(0, 1)]), steps=10, chains=2)
    assert not unchanged.improved.any()
