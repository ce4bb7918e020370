"""Enumeration and elimination find every best state, also where double precision does not tell."""

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.problems.problem import exact_values
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import Proofs
from sl_discs.solving.provers import tables
from sl_discs.solving.workers import WORKERS


def exact_provers_of(problem):
    view = tables.view_of(unreduced(problem))
    return tables.Enumeration(view), tables.TableElimination(view)


def run(prover, work):
    turns = 1
    while prover.advance(work, 0.0):
        turns += 1
    return turns


@settings(deadline=None, max_examples=80)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from(["whole", "real", "wide"]),
)
def test_both_prove_the_optimum(seed, size, spins, numbers):
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (size, size)).astype(float)
    if numbers != "whole":
        values = rng.normal(size=(size, size)) * 10.0 ** (
            rng.choice([0, 9, 17], (size, size)) * (numbers == "wide")
        )
    values *= rng.random((size, size)) < 0.6
    problem = (
        sl_discs.ising(values[0], np.triu(values, 1))
        if spins
        else sl_discs.qubo(values, maximise=bool(seed % 2))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_LOW", 3)
        provers = exact_provers_of(problem)
    for prover in provers:
        run(prover, 1e-4 if seed % 3 else 1.0)
        best = problem.evaluate(prover.states).values
        best = best.max() if problem.maximise else best.min()
        assert best == optimum(problem)
        # Too many states may be equal up to rounding, but not here.
        assert float(prover.bound) == best


def test_states_that_seem_equal_are_compared_exactly(monkeypatch):
    """-1e17 - 1 is -1e17 in double precision; the better state is neither the first nor in the
    table of the first.
    """
    monkeypatch.setattr(tables, "_LOW", 2)
    problem = sl_discs.qubo({(0, 0): -1e17, (1, 1): 1.0, (2, 2): 1.0, (3, 3): -1.0})
    for prover in exact_provers_of(problem):
        run(prover, 1.0)
        assert prover.bound == -(10**17) - 1 == min(exact_values(problem, prover.states))


def test_enumeration_is_interrupted_and_goes_on():
    rng = np.random.default_rng(0)
    problem = sl_discs.qubo(rng.integers(-9, 10, (18, 18)))
    whole, parts = tables.Enumeration(unreduced(problem)), tables.Enumeration(unreduced(problem))
    assert run(whole, 1.0) == 1 and run(parts, 1e-5) > 10
    assert whole.bound == parts.bound == optimum(problem)
    assert (problem.evaluate(parts.states).values == whole.bound).all()


def test_too_many_states_that_seem_best_are_forgotten_for_better_ones():
    """Half of all states have the value 0, and are met first; with the other value of one variable
    they differ.
    """
    size, hub = 18, 12
    terms = {(hub, other): 0.1 for other in range(size) if other != hub} | {(hub, hub): -0.35}
    problem = sl_discs.qubo(terms, maximise=True)
    prover = tables.Enumeration(unreduced(problem))
    run(prover, 1e-3)
    assert float(prover.bound) == optimum(problem) == problem.value([1] * size)
    assert prover.bound == max(exact_values(problem, prover.states))


@pytest.mark.parametrize("gaussian", [False, True])
def test_a_glass_on_a_torus_is_proved(gaussian):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6, periodic=True))
    rng = np.random.default_rng(5)
    couplings = {
        edge: rng.normal() if gaussian else int(rng.choice([-1, 1])) for edge in graph.edges
    }
    result = sl_discs.solve(sl_discs.ising(None, couplings))
    assert result.optimal and result.bound_by == "elimination of variables" and result.rounds == 0
    found = sl_discs.solve(sl_discs.ising(None, couplings), "metropolis", steps=72_000, chains=16)
    assert found.best_value == result.best_value


def test_what_is_too_large_has_no_tables():
    dense = unreduced(sl_discs.maxcut(nx.gnp_random_graph(60, 0.9, seed=1)))
    assert tables.enumeration(dense) is None and tables.elimination(dense) is None
    proofs = Proofs(dense, WORKERS["maxcut"].provers)
    proofs.advance(0.1)
    assert proofs.board.refused == []
