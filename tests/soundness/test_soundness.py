"""No answer passes its bound, no proof is wrong, and no reduction loses the optimum, of any kind of
problem with any numbers; against optima by elimination in fractions, and by HiGHS.
"""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from stated import (
    FORMS,
    GRAPHS,
    SETS,
    Stated,
    by_highs,
    check_result,
    law,
    problems,
    solve,
    stated,
    stated_of,
)

from sl_discs.problems.problem import exact_values, normal_form, units
from sl_discs.solving.board import Board
from sl_discs.solving.presolved import ROUNDED, unreduced
from sl_discs.solving.proofs import Proofs, Worker
from sl_discs.solving.provers import cliques, integer, tables
from sl_discs.solving.reductions import presolve
from sl_discs.solving.set_reductions import CLIQUE, CORE, FUNNEL, UNCONFINED
from sl_discs.solving.spin_reductions import FIXED, FREE, MERGED, ROOF, STAR
from sl_discs.solving.workers import workers_of
from sl_discs.support.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)
# The most nominal seconds of a prover.
WORK_S = 0.15
# Those that end with the best value, and those that only bound.
COMPLETE = tables.Enumeration, tables.TableElimination, cliques.Cliques, integer.IntegerProgram


def in_normal_form(case):
    """The problem as drivers solve it, with its numbers and its optimum; that of the given one is
    the same.
    """
    problem = normal_form(case.problem())
    normal = stated_of(problem)
    optimum = normal.optimum()
    assert units(problem).exactly(optimum) == case.optimum()
    return problem, normal, optimum


def some_states(problem, rng, count=20):
    """States of zeros and ones, repaired."""
    states = rng.random((count, problem.num_variables)) < rng.random((count, 1))
    return problem.evaluate(states.astype(np.int8)).states


def slack_of(problem):
    """How far the rounding of reductions moves values at most."""
    return 0 if problem.integer_values else Fraction(ROUNDED) * Fraction(problem.magnitude())


def check_prover(prover, normal, optimum, told, slice_s):
    """Bounds after any amount of work hold, and states found are answers."""
    problem = prover.presolved.original
    done = 0.0
    more = True
    while more and done < WORK_S:
        more = prover.advance(slice_s, told)
        done += slice_s
        if prover.bound is not None and math.isfinite(prover.bound):
            assert normal.sign * Fraction(prover.bound) >= normal.sign * optimum
        assert prover.bound is None or not math.isnan(prover.bound)
    prover.close()
    # Reductions find answers too.
    states = np.concatenate([prover.presolved.found, prover.states])
    values = []
    if len(states):
        values = [normal.value(state) for state in problem.evaluate(states).states]
    if more or not isinstance(prover, COMPLETE) or prover.bound is None:
        return
    # Weights that are not whole are rounded in a search, and in what reductions leave.
    slack = 4 * slack_of(problem)
    assert abs(Fraction(prover.bound) - optimum) <= slack
    # What a search was told it need not find, nor what has no weight.
    reached = [normal.sign * Fraction(told)] if math.isfinite(told) else []
    reached += [normal.sign * value for value in values]
    assert not reached or max(reached) >= normal.sign * optimum - slack


def check_provers(case, seed, factories=None):
    """Each prover alone, of the whole problem and of what reductions leave."""
    problem, normal, optimum = in_normal_form(case)
    rng = np.random.default_rng(seed)
    known = [*problem.evaluate(some_states(problem, rng, 1)).values, float(optimum)]
    told = [-normal.sign * np.inf, *known][rng.integers(3)]
    tried = 0
    with pytest.MonkeyPatch.context() as patch:
        # Levels of the search of cliques, further variables, and states that are too many.
        patch.setattr(cliques, "_WORTH", 4)
        patch.setattr(cliques, "_DENSE", 0.0)
        patch.setattr(tables, "_LOW", int(rng.choice([3, 14])))
        patch.setattr(tables, "MOST_ENUMERATED", int(rng.choice([0, 30])))
        patch.setattr(tables, "_MOST_LISTED", int(rng.choice([3, 4096])))
        for view in unreduced(problem), presolve(problem):
            if view.problem is None:
                continue
            for make in factories or workers_of(problem).provers:
                prover = make(view)
                if not isinstance(prover, Worker) or (
                    isinstance(prover, integer.IntegerProgram) and factories is None
                ):
                    continue
                if isinstance(prover, tables.Enumeration) and prover.terms.num_sites > 14:
                    continue
                slice_s = float(rng.choice([1e-4, 1e-2, WORK_S]))
                check_prover(prover, normal, optimum, told, slice_s)
                tried += 1
    assert tried


@law(90, problems(), SEEDS)
def test_each_prover_alone(case, seed):
    check_provers(case, seed)


@law(150, problems((*FORMS, "maxcut"), ("small",), ("hidden", "hundredths")), SEEDS)
def test_states_that_seem_equal_are_compared_exactly(case, seed):
    check_provers(case, seed, tables.EXACT)


@law(2, problems(SETS, ("band", "trees"), ("whole", "real")), SEEDS)
def test_integer_programs(case, seed):
    check_provers(case, seed, [integer.integer_prover])


def check_reductions(case, seed):
    """Whole, or ended early; what is left has the values of the answers that it lifts to, and its
    bounds hold for the whole.
    """
    problem, normal, optimum = in_normal_form(case)
    rng = np.random.default_rng(seed)
    reduced = presolve(problem, float(rng.choice([1e-5, 1e-3, math.inf])))
    slack = slack_of(problem)
    assert sum(reduced.removed.values()) == problem.num_variables - len(reduced.kept)
    left = reduced.problem
    states = np.zeros((1, 0), np.int8)
    values = [Fraction(0)]
    best = Fraction(0)
    if left is not None:
        of_left = stated_of(left)
        best = of_left.optimum()
        assert [problem.labels[k] for k in reduced.kept] == list(left.labels)
        assert (left.kind, left.maximise, left.penalty) == (
            problem.kind,
            problem.maximise,
            problem.penalty,
        )
        states = some_states(left, rng)
        values = [of_left.value(state) for state in states]
    lifted = [normal.value(state) for state in reduced.lift(states)]
    assert None not in lifted
    for value, whole in zip(values, lifted, strict=True):
        # A spin that is lifted is the best one beside the others.
        assert abs(value + Fraction(reduced.constant) - whole) <= slack
    found = [normal.value(state) for state in reduced.found]
    assert None not in found
    reached = max(normal.sign * one for one in [best + Fraction(reduced.constant), *found])
    assert abs(reached - normal.sign * optimum) <= slack
    bound = reduced.lifted_bound(best)
    assert normal.sign * Fraction(bound) >= normal.sign * optimum
    assert abs(Fraction(bound) - optimum) <= 2 * slack


@law(100, problems(), SEEDS)
def test_reductions_keep_the_optimum(case, seed):
    check_reductions(case, seed)


SPARSE = "small", "trees", "small world"


@law(120, problems(("mis", "vertex_cover"), SPARSE, ("equal",), (False,)), SEEDS)
def test_reductions_of_sets_keep_the_optimum(case, seed):
    check_reductions(case, seed)


def test_every_rule_is_met():
    try:
        import dwave.preprocessing  # noqa: F401

        with_flow = {ROOF}
    except ImportError:
        with_flow = set()
    met = set()
    for seed, family in itertools.product(range(6), GRAPHS):
        for kind in "mis", "maxclique", "maxcut", "ising":
            problem = stated(kind, family, "whole", seed, kind == "ising").problem()
            met |= set(presolve(problem).removed)
    of_spins = {FREE, FIXED, MERGED, STAR} | with_flow
    assert met == {CLIQUE, FUNNEL, UNCONFINED, CORE} | of_spins


@pytest.mark.slow
def test_reductions_of_every_graph_of_up_to_seven_nodes():
    for graph in nx.graph_atlas_g()[1:]:
        coupled = dict.fromkeys(graph.edges, 1.0)
        check_reductions(Stated("mis", len(graph), None, coupled), 0)


HOW = {
    "auto": {},
    "chains": {"presolve": False, "steps": 200, "chains": 2},
    "without proofs": {"proofs": False, "steps": 100, "chains": 2},
    "reduced": {"sampler": "metropolis", "presolve": True, "steps": 300, "chains": 2},
    "gwg": {"sampler": "gwg", "steps": 40, "chains": 2},
}


@law(70, problems(), st.sampled_from(tuple(HOW)), st.integers(0, 3))
def test_answers_bounds_and_proofs(case, how, seed):
    """`auto` proves what is a whole multiple of a unit."""
    result = solve(case, seed=seed, **HOW[how])
    check_result(case, case.optimum(), result)
    exact = normal_form(case.problem()).integer_values
    assert result.optimal or not exact or how != "auto"


@law(6, problems(SETS, ("band",), ("whole", "equal")), st.sampled_from([0.1, 0.3, 0.6]), SEEDS)
def test_sets_of_dense_and_sparse_graphs_against_highs(case, density, seed):
    rng = np.random.default_rng(seed)
    pairs = itertools.combinations(range(case.size), 2)
    coupled = {pair: 1.0 for pair in pairs if rng.random() < density}
    case = Stated(case.kind, case.size, case.own, coupled)
    optimum = by_highs(case)
    for how in {}, {"presolve": False, "steps": 100, "chains": 2}:
        result = solve(case, **how)
        check_result(case, optimum, result)
        assert result.optimal or how


@law(4, problems((*FORMS, "maxcut"), ("torus",), ("whole", "signs")), st.booleans())
def test_forms_and_cuts_against_highs(case, reduced):
    result = solve(case, steps=100, chains=2, presolve=reduced or None)
    optimum = by_highs(case)
    assert optimum == case.optimum()
    check_result(case, optimum, result)


@law(60, problems(), SEEDS)
def test_values_and_models_follow_the_definition(case, seed):
    """Of all states: rounded once, and as the model that chains have, up to single roundings."""
    problem = case.problem()
    rng = np.random.default_rng(seed)
    states = (rng.random((20, case.size)) < rng.random((20, 1))).astype(np.int8)
    found = problem.evaluate(states)
    values = [case.value(state) for state in found.states]
    assert found.feasible.all() and found.values.tolist() == [float(value) for value in values]
    assert exact_values(problem, found.states) == values
    of_model = problem.terms().values(found.states)
    rounding = 1e-12 * (case.size + len(case.coupled)) * problem.magnitude()
    np.testing.assert_allclose(of_model, case.sign * found.values, rtol=0, atol=rounding)
    bound = problem.bound()
    assert bound is None or case.sign * Fraction(bound) >= case.sign * case.optimum()


@law(60, problems(), SEEDS)
def test_what_given_values_leave_has_the_values_of_the_whole(case, seed):
    """The best completion, and feasible ones; values that conflict are refused."""
    assume(case.size > 1)
    problem = case.problem()
    rng = np.random.default_rng(seed)
    chosen = rng.choice(case.size, rng.integers(1, min(case.size, 6)), replace=False).tolist()
    values = {node: int(rng.random() < 0.4) for node in chosen}
    best = case.optimum(values)
    low = -1 if problem.spins else 0
    try:
        left = problem.fix({node: value or low for node, value in values.items()})
    except InputError:
        assert best is None
        return
    rounding = 1e-12 * (case.size + len(case.coupled)) * problem.magnitude()
    of_left = stated_of(left)
    assert best is not None and of_left.sign == case.sign
    assert abs(of_left.optimum() - best) <= rounding
    whole = some_states(problem, rng)
    whole[:, chosen] = list(values.values())
    whole = np.array([state for state in whole if case.value(state) is not None], np.int8)
    found = left.evaluate(np.delete(whole.reshape(-1, case.size), chosen, axis=1)).values
    expected = [float(case.value(state)) for state in whole]
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding)
    assert not problem.integer_values or found.tolist() == expected


@law(60, problems(), SEEDS)
def test_more_work_never_hurts(case, seed):
    """All provers together, in slices: the best answer and the bound only become better, and a
    proof stays one.
    """
    problem, normal, optimum = in_normal_form(case)
    rng = np.random.default_rng(seed)
    reduced = presolve(problem, float(rng.choice([1e-4, math.inf])))
    if reduced.problem is None:
        reduced = unreduced(problem)
    proofs = Proofs(reduced, workers_of(problem).provers)
    bounds, values = [], []
    for _ in range(6):
        proofs.advance(float(rng.choice([1e-4, 1e-2])), 10.0)
        board = proofs.board
        board.take(problem.evaluate(some_states(problem, rng, 1)), "drawn")
        [value] = exact_values(problem, board.incumbent.states)
        assert value == normal.value(board.incumbent.states[0])
        values.append(normal.sign * value)
        if board.bound is not None:
            bounds.append(normal.sign * Fraction(board.bound))
            assert not problem.integer_values or bounds[-1].denominator == 1
        assert board.closed == (bool(bounds) and bounds[-1] == values[-1])
    proofs.close()
    assert values == sorted(values) and bounds == sorted(bounds, reverse=True)
    assert all(bound >= normal.sign * optimum for bound in bounds)
    assert not any("left out" in word for word in proofs.board.refused)


@law(80, problems(graphs=("small",)), SEEDS)
def test_what_a_board_holds(case, seed):
    """After answers and bounds in any order, some of which are wrong: the best of the answers, the
    tightest bound where no answer passes one, and whether they meet.
    """
    problem, normal, optimum = in_normal_form(case)
    rng = np.random.default_rng(seed)
    board = Board(problem)
    states, bounds = [], []
    unit = max(abs(optimum), Fraction(1, 2**200)) / 8
    for _ in range(8):
        if rng.random() < 0.5:
            states.append(some_states(problem, rng, 2))
            board.take(problem.evaluate(states[-1]), "drawn")
        else:
            bounds.append((optimum + int(rng.integers(-3, 4)) * unit, f"source {rng.integers(3)}"))
            board.take_bound(*bounds[-1])
        values = [normal.sign * normal.value(state) for state in np.concatenate(states or [[]])]
        if values:
            assert normal.sign * normal.value(board.incumbent.states[0]) == max(values)
            assert board.value == float(normal.sign * max(values))
        least = max(values, default=-math.inf)
        tightest = min((normal.sign * bound for bound, _ in bounds), default=math.inf)
        if board.bound is None:
            assert board.closed is False and (not bounds or tightest < least)
            continue
        assert (board.bound, board.bound_by) in bounds and normal.sign * board.bound >= least
        assert tightest < least or normal.sign * board.bound == tightest
        assert board.closed == (bool(values) and normal.sign * board.bound == max(values))
