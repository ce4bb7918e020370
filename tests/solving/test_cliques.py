"""Branch and bound finds heaviest cliques, in slices of any length; covers and integer programs
hold as bounds.
"""

import functools
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sl_discs
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import TURN, Proofs
from sl_discs.solving.provers import cliques, covers, integer
from sl_discs.solving.provers.integer_program import edge_cliques, relaxed
from sl_discs.solving.reductions import presolve
from sl_discs.solving.workers import WORKERS


def adjacency_of(graph):
    return nx.to_numpy_array(graph, nodelist=range(len(graph))) > 0


def search_of(graph, weights=None, known=0.0, looks=10**9):
    search = cliques.CliqueSearch(
        adjacency_of(graph), np.ones(len(graph)) if weights is None else weights
    )
    search.raise_best(known)
    while not search.over:
        assert 0 <= search.done() <= 1
        search.advance(looks)
    return search


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 10**6), st.integers(1, 90), st.sampled_from([0.2, 0.5, 0.8]), st.sampled_from([1, 300, 10**9]),
    st.booleans(),
)  # fmt: skip
def test_cliques_are_heaviest(seed, size, density, looks, weighted):
    """Also of over 64 nodes, which take two words, with levels of their own orders, and where the
    best is told.
    """
    graph, weights = nx.gnp_random_graph(size, density, seed=seed), np.ones(size)
    if weighted:
        weights = np.random.default_rng(seed).integers(0, 20, size).astype(float)
    heaviest = None
    if density < 0.8 or size < 40:
        heaviest = max(weights[clique].sum() for clique in nx.find_cliques(graph))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cliques, "_WORTH", 5)
        patch.setattr(cliques, "_DENSE", 0.0)
        searches = [
            search_of(graph, weights, known, looks) for known in {0.0, float(heaviest or 0)}
        ]
    for search in searches:
        assert heaviest is None or search.best == heaviest
        assert all(
            graph.has_edge(u, v) for u, v in itertools.combinations(search.found.tolist(), 2)
        )
        assert len(search.found) == 0 or weights[search.found].sum() == search.best
        assert len(set(search.found.tolist())) == len(search.found)


@pytest.mark.parametrize("kind", ["mis", "maxclique", "vertex_cover"])
def test_solve_proves_sets_of_a_hundred_nodes(kind):
    graph = nx.gnp_random_graph(100, 0.5 if kind == "maxclique" else 0.1, seed=4)
    problem = getattr(sl_discs, kind)(graph)
    result = sl_discs.solve(problem)
    assert result.optimal and result.feasible and result.bound_by == "branch and bound"
    of_sets = graph if kind == "maxclique" else nx.complement(graph)
    size = search_of(of_sets).best
    assert result.best_value == (100 - size if kind == "vertex_cover" else size)


@pytest.mark.parametrize("kind", ["mis", "vertex_cover"])
def test_an_answer_worse_than_what_reductions_took_tells_nothing(kind):
    """Five nodes without edges are taken: without them, an answer has less than none of the rest."""
    graph = nx.disjoint_union(nx.empty_graph(5), nx.gnp_random_graph(30, 0.6, seed=0))
    problem = getattr(sl_discs, kind)(graph)
    presolved = presolve(problem)
    assert presolved.removed["clique"] == 5
    prover = cliques.clique_prover(presolved)
    while prover.advance(TURN, 0.0 if kind == "mis" else 35.0):
        pass
    assert problem.evaluate(prover.states).values.tolist() == [prover.bound]


def test_hopeless_problems_are_given_up():
    """Of 300 nodes and few edges: the part of the tree that was searched shows that it would take
    days.
    """
    problem = sl_discs.mis(nx.gnp_random_graph(300, 0.1, seed=1))
    proofs = Proofs(unreduced(problem), [covers.Cover, cliques.clique_prover])
    proofs.board.value = 44.0
    proofs.advance(3.0, 10.0)
    assert proofs.over and proofs.board.refused == [
        "branch and bound was given up: it needs more time than is left"
    ]
    assert cliques.clique_prover(unreduced(sl_discs.mis(nx.path_graph(2_001)))).endswith(
        "up to 2,000 nodes"
    )


@pytest.mark.parametrize("kind", ["mis", "vertex_cover"])
@pytest.mark.parametrize("heaviest", [1, 99])
def test_components_are_proved_one_after_another(kind, heaviest):
    """More nodes than branch and bound takes together; the answer is a best one of each."""
    rng = np.random.default_rng(0)
    size = 40
    whole = nx.disjoint_union_all(nx.gnp_random_graph(size, 0.3, seed=seed) for seed in range(60))
    for node in whole:
        whole.nodes[node]["own"] = int(rng.integers(1, heaviest, endpoint=True))
    make = functools.partial(getattr(sl_discs, kind), weight="own")
    found = sl_discs.solve(make(whole))
    assert found.optimal and found.bound_by == "branch and bound"
    for begin in range(0, len(whole), size):
        part = make(whole.subgraph(range(begin, begin + size)))
        alone = sl_discs.solve(part)
        assert alone.optimal
        assert part.value({v: found.best_sample[v] for v in part.labels}) == alone.best_value


def test_provers_are_hopeful_only_while_one_expects_to_end():
    """Covers only bound; branch and bound does not know at first, and then knows that this search
    ends.
    """
    proofs = Proofs(
        unreduced(sl_discs.mis(nx.gnp_random_graph(3_000, 0.003, seed=1))), WORKERS["mis"].provers
    )
    proofs.advance(0.06)
    assert not proofs.over and not proofs.hopeful
    proofs = Proofs(
        unreduced(sl_discs.mis(nx.gnp_random_graph(200, 0.1, seed=1))), WORKERS["mis"].provers
    )
    proofs.board.value = 40.0
    assert not proofs.hopeful
    proofs.advance(1.0, 30.0)
    assert not proofs.over and proofs.hopeful
    assert proofs.bound_by == "a clique cover (branch and bound needs more time)"


# Integer programming in a process: clique inequalities, the relaxation, and proofs.


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 14), st.sampled_from([0.2, 0.5, 0.9]))
def test_every_edge_is_in_a_clique_and_no_set_passes_the_relaxation(seed, size, density):
    graph = nx.gnp_random_graph(size, density, seed=seed)
    graph.add_edge(0, 1)
    found = edge_cliques(size, np.array(graph.edges))
    covered = {frozenset(pair) for clique in found for pair in itertools.combinations(clique, 2)}
    assert covered == {frozenset(edge) for edge in graph.edges}
    matrix = sparse.csr_array([[float(node in clique) for node in range(size)] for clique in found])
    weights = np.random.default_rng(seed).integers(1, 9, size)
    assert (
        relaxed(weights.astype(float), matrix)
        >= search_of(nx.complement(graph), weights.astype(float)).best - 1e-9
    )


def test_a_process_stops_after_the_relaxation_and_ends_with_the_proofs():
    """It goes on where the best known answer is near, waits where it is not, and is given up where
    it is far off.
    """
    problem = sl_discs.mis(nx.gnp_random_graph(120, 0.04, seed=1), weight=range(1, 121))
    proofs = Proofs(unreduced(problem), [integer.integer_prover])
    while proofs.board.bound is None and not proofs.over:
        proofs.advance(0.2, 60.0)
    (prover,) = proofs._waiting
    process, relaxed = prover._process, prover._relaxed
    for part, expected in ((0.5, np.inf), (0.9, None), (0.99, 0.0)):
        assert process.poll() is None
        prover.advance(TURN, part * relaxed)
        assert prover.expected == expected
    proofs.close()
    assert process.poll() is not None


def _no_folder(**given):
    raise FileNotFoundError(2, "No usable temporary directory found")


def _no_process(*given, **more):
    raise BlockingIOError(11, "Resource temporarily unavailable")


@pytest.mark.parametrize(
    ("module", "name", "fails"),
    [("tempfile", "TemporaryFile", _no_folder), ("subprocess", "Popen", _no_process)],
)
def test_solve_goes_on_without_a_prover_that_the_system_refuses(monkeypatch, module, name, fails):
    """No folder for its input, or no further process: the answer is that of the search, and the
    bound says why.
    """
    problem = sl_discs.mis(
        nx.random_regular_graph(5, 2_010, seed=0)
    )  # too large for branch and bound
    monkeypatch.setattr(getattr(integer, module), name, fails)
    result = sl_discs.solve(problem, steps=3_000, chains=2, seed=0)
    assert result.feasible and result.bound > result.best_value
    assert "integer programming could not be used" in result.bound_by


@pytest.mark.slow
def test_solve_proves_sparse_graphs_with_weights():
    """A torus, whose cliques are its edges, and a tree with weights that are not whole, up to
    rounding.
    """
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(16, 16, periodic=True))
    weights = np.random.default_rng(1).integers(1, 21, 256)
    result = sl_discs.solve(sl_discs.mis(graph, weight=weights))
    assert result.optimal and result.bound_by == "integer programming"
