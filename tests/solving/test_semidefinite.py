"""The semidefinite bound holds on every problem, whatever its scale, and its certificate is checked
in fractions.
"""

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import sl_discs
from sl_discs.models.terms import spin_form
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import Proofs
from sl_discs.solving.provers import semidefinite


def bound_of(problem):
    """The semidefinite bound alone."""
    prover = semidefinite.semidefinite_prover(unreduced(problem))
    assert not prover.advance(10.0, 0.0)
    return prover.bound


def positive_semidefinite(matrix):
    """Exactly, of numbers in double precision: Gaussian elimination in fractions."""
    rows = [[Fraction(float(number)) for number in row] for row in matrix]
    while rows:
        pivot = next((k for k in range(len(rows)) if rows[k][k] > 0), None)
        if pivot is None:
            return not any(map(any, rows))
        one = rows.pop(pivot)
        head = one.pop(pivot)
        for row in rows:
            factor = row.pop(pivot) / head
            for k in range(len(row)):
                row[k] -= factor * one[k]
        if any(rows[k][k] < 0 for k in range(len(rows))):
            return False
    return True


def scales(rng, count, wide):
    return rng.normal(size=count) * 10.0 ** rng.integers(-wide, wide + 1, count)


@pytest.mark.parametrize("wide", [0, 3, 12])
def test_the_certificate_holds_in_fractions(wide):
    rng = np.random.default_rng(wide)
    for _ in range(40):
        size = int(rng.integers(2, 9))
        upper = np.triu(scales(rng, size * size, wide).reshape(size, size), 1) * (
            rng.random((size, size)) < 0.8
        )
        matrix = upper + upper.T
        guess = np.abs(scales(rng, size, wide)) * np.abs(matrix).sum(axis=1)
        dual = semidefinite.certified(sparse.csr_array(matrix), guess)
        assert positive_semidefinite(np.diag(dual) - matrix)


def test_what_is_hardly_infeasible_is_refused():
    """Duals a few rounding errors beside the largest eigenvalue, where a factorization alone would
    often succeed.
    """
    infeasible = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.normal(size=(7, 7)), 1)
        matrix = upper + upper.T
        largest = np.linalg.eigvalsh(matrix)[-1]
        for part in (-4, -2, -1, 0, 1):
            dual = np.full(7, largest * (1 + part * 2.0**-52))
            holds = positive_semidefinite(np.diag(dual) - matrix)
            assert holds or not semidefinite._is_feasible(sparse.csr_array(matrix), dual)
            infeasible += not holds
        assert semidefinite._is_feasible(sparse.csr_array(matrix), np.full(7, largest * 1.0001))
    assert infeasible > 60


@pytest.mark.parametrize("size", [1, 40, 600])
def test_only_positive_definite_matrices_have_a_factor(size):
    """Taking a little more than fits from one direction leaves a matrix that is hardly
    indefinite.
    """
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix, vector = root @ root.T + size * np.eye(size), rng.normal(size=size)
    assert semidefinite.factorized(matrix.copy(order="F"))
    matrix -= 1.01 * np.outer(vector, vector) / (vector @ np.linalg.solve(matrix, vector))
    assert not semidefinite.factorized(np.asfortranarray(matrix))


def test_known_values():
    """A cycle of five edges has 5 (1 + cos(pi / 5)) / 2 = 4.52; a graph with two sides and K3 are
    tight.
    """
    assert bound_of(sl_discs.maxcut(nx.cycle_graph(5))) == 4
    assert bound_of(sl_discs.maxcut(nx.complete_bipartite_graph(3, 4))) == 12
    assert bound_of(sl_discs.maxcut(nx.complete_graph(3))) == 2
    odd = sl_discs.maxcut(nx.cycle_graph(5), name="odd")
    scaled = sl_discs.ising(None, dict.fromkeys(nx.cycle_graph(5).edges, 0.3))
    assert bound_of(scaled) == pytest.approx(
        -0.3 * (2 * 5 * (1 + np.cos(np.pi / 5)) / 2 - 5), rel=2e-3
    )
    assert Proofs(unreduced(odd)).bound_by == "the positive weights"


def test_any_multipliers_give_a_bound():
    """The function is at most that with changed couplings plus a constant, at every state."""
    rng = np.random.default_rng(7)
    for seed in range(20):
        graph = nx.gnp_random_graph(8, 0.7, seed=seed)
        terms = spin_form(
            sl_discs.ising(None, {edge: rng.normal() for edge in graph.edges}, maximise=True).source
        )
        pairs, entries = semidefinite.pairs_of(terms)
        multipliers = semidefinite.Multipliers(
            2 * entries, semidefinite.find(pairs, np.ones(len(entries), np.float32), True, 10**6)
        )
        for _ in range(10):
            multipliers.step(rng.uniform(-1, 1, len(entries)).astype(np.float32), 0.5)
        changed, constant, rounding = multipliers.exact()
        spins = np.array(list(itertools.product((-1, 1), repeat=8)))
        around = spins[:, pairs.ends[:, 0]] * spins[:, pairs.ends[:, 1]]
        assert constant > 0 and 0 < rounding < 1e-10
        assert (around @ (2 * entries) <= around @ changed + constant + rounding).all()


def test_cycles_close_most_of_the_gap_on_a_torus():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12, periodic=True))
    rng = np.random.default_rng(3)
    problem = sl_discs.ising(None, {edge: int(rng.choice([-1, 1])) for edge in graph.edges})
    lowest = sl_discs.solve(problem, "metropolis", steps=288_000, chains=16).best_value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semidefinite, "_MOST_LOOKS", -1)
        alone = bound_of(problem)
    assert alone < bound_of(problem) <= lowest and lowest - bound_of(problem) < (lowest - alone) / 3
