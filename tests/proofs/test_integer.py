"""Integer programming in a process: clique inequalities, the relaxation, and proofs of sets, covers and cliques."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sl_discs
from sl_discs.proofs import integer
from sl_discs.proofs.integer_program import edge_cliques, relaxed
from sl_discs.proofs.provers import TURN, Proofs
from sl_discs.reductions.presolve import unreduced


def heaviest_set(graph, weights):
    absent = nx.complement(graph)
    nx.set_node_attributes(absent, dict(enumerate(weights)), "weight")
    return nx.max_weight_clique(absent, "weight")[1]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 14), st.sampled_from([0.2, 0.5, 0.9]))
def test_every_edge_is_in_a_clique_and_no_set_passes_the_relaxation(seed, size, density):
    graph = nx.gnp_random_graph(size, density, seed=seed)
    graph.add_edge(0, 1)
    cliques = edge_cliques(size, np.array(graph.edges))
    covered = {frozenset(pair) for clique in cliques for pair in itertools.combinations(clique, 2)}
    assert covered == {frozenset(edge) for edge in graph.edges}
    matrix = sparse.csr_array([[float(node in clique) for node in range(size)] for clique in cliques])
    weights = np.random.default_rng(seed).integers(1, 9, size)
    assert relaxed(weights.astype(float), matrix) >= heaviest_set(graph, weights.tolist()) - 1e-9


@pytest.mark.parametrize("kind", ["mis", "vertex_cover", "maxclique"])
@pytest.mark.parametrize("whole", [True, False])
def test_sets_covers_and_cliques_are_proved(kind, whole):
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 9, 12) if whole else rng.random(12)
    problem = getattr(sl_discs, kind)(nx.gnp_random_graph(12, 0.4, seed=5), weight=weights)
    states = (np.arange(2**12)[:, None] >> np.arange(12) & 1).astype(np.int8)
    sign, values = 1 if problem.maximise else -1, problem.evaluate(states).values
    best = sign * (sign * values).max()
    prover = integer.integer_prover(unreduced(problem))
    while prover.advance(1.0, best):
        pass
    assert problem.evaluate(prover.states).values.tolist() == [pytest.approx(best)]
    assert sign * prover.bound >= sign * best
    assert prover.bound == (best if whole else pytest.approx(best, abs=1e-4))
    prover.close()


def test_a_process_stops_after_the_relaxation_and_ends_with_the_proofs():
    """It goes on where the best known answer is near, waits where it is not, and is given up where it is far off."""
    problem = sl_discs.mis(nx.gnp_random_graph(120, 0.04, seed=1), weight=range(1, 121))
    proofs = Proofs(unreduced(problem), 0.0, [integer.integer_prover])
    while proofs.bound is None:
        proofs.advance(0.2)
    (prover,) = proofs._waiting
    process, relaxed = prover._process, prover._relaxed
    for part, expected in ((0.5, np.inf), (0.9, None), (0.99, 0.0)):
        assert process.poll() is None
        prover.advance(TURN, part * relaxed)
        assert prover.expected == expected
    proofs.close()
    assert process.poll() is not None


@pytest.mark.slow
def test_solve_proves_sparse_graphs_with_weights():
    """A torus, whose cliques are its edges, and a tree with weights that are not whole, up to rounding."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(16, 16, periodic=True))
    weights = np.random.default_rng(1).integers(1, 21, 256)
    result = sl_discs.solve(sl_discs.mis(graph, weight=weights))
    assert result.optimal and result.bound_by == "integer programming"
