"""`sl_discs.solve` with constraints: optima of small instances, and what it says where nothing is feasible."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import sl_discs
from sl_discs.reductions.penalised import first_penalties, penalised
from sl_discs.solving.answers import verification
from sl_discs.solving.constrained import Descent
from sl_discs.testing.cases import all_states


def assignment(size, seed=0):
    cost = np.random.default_rng(seed).integers(1, 100, (size, size))
    rows = [sl_discs.one_hot([(i, j) for j in range(size)]) for i in range(size)]
    columns = [sl_discs.one_hot([(i, j) for i in range(size)]) for j in range(size)]
    costs = {((i, j), (i, j)): int(cost[i, j]) for i in range(size) for j in range(size)}
    problem = sl_discs.qubo(costs, constraints=rows + columns)
    return problem, cost[linear_sum_assignment(cost)].sum()


def knapsack(size, seed=0, weights=(1, 12)):
    rng = np.random.default_rng(seed)
    weights, worth = rng.integers(*weights, size).tolist(), rng.integers(1, 30, size).tolist()
    capacity = sum(weights) // 2
    best = np.zeros(capacity + 1, int)
    for weight, gain in zip(weights, worth, strict=True):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + gain)
    limit = sl_discs.linear(dict(enumerate(weights)), "<=", capacity, name="capacity")
    return sl_discs.qubo(np.diag(worth), maximise=True, constraints=[limit]), best[-1]


def densest(size, chosen):
    edges = np.triu(np.random.default_rng(1).random((size, size)) < 0.4, 1).astype(int)
    problem = sl_discs.qubo(edges, maximise=True, constraints=[sl_discs.exactly(chosen, range(size))])
    return problem, max(edges[np.ix_(one, one)].sum() for one in itertools.combinations(range(size), chosen))


@pytest.mark.parametrize("instance", [assignment(4), knapsack(12), densest(12, 4)])
def test_the_optimum_is_found_and_verified(instance):
    problem, optimum = instance
    result = sl_discs.solve(problem, steps=2_000, chains=8, presolve=False)
    assert result.feasible and result.best_value == optimum and not problem.violated(result.best_sample)
    assert verification(problem, result) == (
        True,
        "verified: all terms as given, summed in exact arithmetic, and every constraint holds",
    )
    assert np.array_equal(problem.evaluate(result.states).feasible, result.feasible_chains)
    assert result.kind == "constrained" and result.states.shape == (8, problem.num_variables)
    assert result.final_states.shape == result.states.shape
    again = sl_discs.solve(problem, steps=2_000, chains=8, presolve=False)
    assert np.array_equal(result.states, again.states)


def test_rounds_fill_a_time_limit_and_end_at_a_target():
    problem, optimum = knapsack(12)
    result = sl_discs.solve(problem, time_limit=0.5, chains=4, presolve=False)
    assert result.stopped == "time" and result.best_value == optimum and result.timing["run_s"] < 2
    result = sl_discs.solve(problem, time_limit=30, chains=4, presolve=False, target=float(optimum))
    assert result.stopped == "target" and result.best_value == optimum


def test_an_answer_that_meets_the_bound_is_optimal():
    """Where there is nothing to optimise, any feasible answer is."""
    groups = [sl_discs.exactly(2, range(5)), sl_discs.linear({0: 2, 3: 3, 4: -1}, ">=", 4)]
    problem = sl_discs.qubo({(k, k): 0 for k in range(5)}, constraints=groups)
    result = sl_discs.solve(problem, time_limit=3, chains=2)
    assert result.stopped == "bound" and result.optimal and result.best_set == {0, 3}


def test_another_sampler_and_initial_states():
    problem, optimum = assignment(4)
    identity = {label: int(label[0] == label[1]) for label in problem.labels}
    result = sl_discs.solve(problem, "metropolis", steps=2_000, chains=4, initial_states=identity)
    assert result.sampler == "metropolis" and result.feasible
    assert optimum <= result.best_value <= problem.value(identity)


def test_small_gains_beside_a_large_coefficient_are_kept():
    """The local search neglects 10^-9 of the largest coefficient, but its answers are not worse for that."""
    costs = {(k, k): 1 + 5 * k % 9 for k in range(12)}
    six = sl_discs.exactly(6, range(12))
    problem = sl_discs.qubo(costs | {(0, 1): 1e10}, constraints=[six])
    lightest = sorted(range(12), key=lambda k: costs[k, k])[:6]
    begin = {k: int(k in lightest) for k in range(12)}
    result = sl_discs.solve(problem, steps=500, chains=4, initial_states=begin)
    assert (result.values == sum(costs[k, k] for k in lightest)).all() and (result.improved >= 0).all()


def test_penalties_are_raised_until_the_constraints_hold():
    """With large coefficients it pays at first to exceed the bound a little: the best state of the model does."""
    problem, optimum = knapsack(8, weights=(20, 50))
    model = penalised(problem, first_penalties(problem))
    states = all_states(model.problem.num_variables)
    best = states[np.argmax(model.problem.evaluate(states).values)]
    assert not problem.evaluate(model.lift(best[None])).feasible[0]
    result = sl_discs.solve(problem, steps=4_000, chains=8, presolve=False)
    assert result.rounds > 1 and result.feasible and result.best_value == optimum


def test_contradictions_that_no_check_sees_are_reported():
    groups = [sl_discs.exactly(2, range(3)), sl_discs.at_most(1, [0, 1]), sl_discs.exactly(0, [2])]
    problem = sl_discs.qubo({(k, k): -1 for k in range(3)}, constraints=groups)
    with pytest.warns(UserWarning, match=r"no answer found satisfies all constraints; the best one violates constr"):
        result = sl_discs.solve(problem, steps=200, chains=2)
    assert not result.feasible and "infeasible" in repr(result)
    good, words = verification(problem, result)
    assert not good and words.startswith("not verified: the answer violates constraints[")


def test_infeasible_answers_never_beat_feasible_ones(tmp_path):
    problem, optimum = assignment(4)
    result = sl_discs.solve(problem, steps=500, chains=4, presolve=False)
    cheat = result.states.copy()
    cheat[1] = 0
    changed = {**vars(result), "states": cheat, "values": np.where([0, 1, 0, 0], 0.0, result.values)}
    changed["feasible_chains"] = np.array([True, False, True, True])
    result = type(result)(**changed)
    assert result.feasible and result.best_value == optimum
    assert result.to_dataframe()["value"].tolist()[-1] == 0
    loaded = type(result).load(result.save(tmp_path / "result.npz"))
    assert loaded.best_sample == result.best_sample


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_local_search_keeps_what_it_claims(seed):
    """Violations never grow; where they stay, values do not fall; and in the end no one or two flips improve."""
    rng = np.random.default_rng(seed)
    size = 6
    rows = [
        sl_discs.linear(dict(enumerate(rng.integers(-3, 5, size).tolist())) | {0: 1}, sense, 1)
        for sense in ("<=", ">=")
    ]
    problem = sl_discs.qubo(rng.integers(-5, 6, (size, size)), maximise=bool(seed % 2), constraints=rows)
    source, sign = problem.source, 1 if problem.maximise else -1

    def rank(state):
        side = source.matrix @ state.astype(np.int64)
        excess = np.maximum(source.low - side, 0) + np.maximum(side - source.high, 0)
        return -int(excess.sum()), sign * problem.value(state)

    begun = rng.integers(0, 2, (5, size), dtype=np.int8)
    for before, after in zip(begun, Descent(source)(begun), strict=True):
        assert rank(after) >= rank(before)
        for pair in itertools.combinations_with_replacement(range(size), 2):
            other = after.copy()
            other[list(pair)] ^= 1
            assert rank(other) <= rank(after)


def test_kicks_lead_from_a_poor_state_to_the_optimum():
    """From no item at all, a local search with hardly any kicks ends before it."""
    problem, optimum = knapsack(30, weights=(20, 50))
    begun = np.zeros((1, problem.num_variables), np.int8)
    for found, seconds in ((True, None), (False, 1e-9)):
        [state] = Descent(problem.source)(begun, seconds)
        assert not problem.violated(state) and (problem.value(state) == optimum) == found
