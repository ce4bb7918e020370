"""How provers work and end; that they prove nothing wrong is tested in tests/soundness."""

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum

import sl_discs
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import Proofs, Worker
from sl_discs.solving.provers import tables
from sl_discs.solving.workers import WORKERS


def test_without_proofs_no_prover_is_made(monkeypatch):
    """Chains are the same, and a bound is one that needs no work."""
    graph = nx.gnp_random_graph(60, 0.3, seed=1)
    for kind in "mis", "maxclique", "vertex_cover", "maxcut":
        problem, how = (
            getattr(sl_discs, kind)(graph),
            {"steps": 6_000, "chains": 4, "presolve": False},
        )
        proved = sl_discs.solve(problem, **how)
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "__init__", lambda *arguments: pytest.fail("a prover was made"))
            found = sl_discs.solve(problem, proofs=False, **how)
            sl_discs.solve(problem, proofs=False, steps=6_000, chains=4)
        assert (found.states == proved.states).all() and not found.optimal
        assert (
            found.bound is None
            or (found.bound - proved.bound) * (1 if problem.maximise else -1) >= 0
        )


def test_an_interrupt_ends_provers_that_would_go_on():
    """Branch and bound would take a minute; the interrupt comes after eight turns of provers."""
    asked = []
    problem = sl_discs.mis(nx.gnp_random_graph(250, 0.1, seed=3))
    found = sl_discs.solve(
        problem, time_limit=60, chains=1, interrupt=lambda: asked.append(0) or len(asked) > 8
    )
    assert found.stopped == "interrupt" and len(asked) <= 11
    assert found.bound >= found.best_value and not found.optimal


def test_pairs_given_in_parts_are_not_merged_into_whole_numbers():
    """.1 and .9 add up to a little more than 1, which their sum in double precision hides."""
    parts = {(0, 1): -0.1, (1, 0): -0.9, (0, 0): 1.0}
    for size in 2, 24:
        terms = parts | {(k, k): 1.0 for k in range(2, size)}
        result = sl_discs.solve(sl_discs.qubo(terms))
        assert not result.optimal or result.best_sample[0] == result.best_sample[1] == 1


def run(prover, work):
    turns = 1
    while prover.advance(work, 0.0):
        turns += 1
    return turns


def test_enumeration_is_interrupted_and_goes_on():
    rng = np.random.default_rng(0)
    problem = sl_discs.qubo(rng.integers(-9, 10, (18, 18)))
    whole, parts = tables.Enumeration(unreduced(problem)), tables.Enumeration(unreduced(problem))
    assert run(whole, 1.0) == 1 and run(parts, 1e-5) > 10
    assert whole.bound == parts.bound == optimum(problem)
    assert (problem.evaluate(parts.states).values == whole.bound).all()


def test_what_is_too_large_has_no_tables():
    dense = unreduced(sl_discs.maxcut(nx.gnp_random_graph(60, 0.9, seed=1)))
    assert tables.enumeration(dense) is None and tables.elimination(dense) is None
    proofs = Proofs(dense, WORKERS["maxcut"].provers)
    proofs.advance(0.1)
    assert proofs.board.refused == []
