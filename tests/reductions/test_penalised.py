"""Penalties in place of constraints: the best states of the model are the best that satisfy the constraints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError
from sl_discs.reductions.penalised import first_penalties, penalised, slack_sizes
from sl_discs.testing.cases import all_states

cheap = settings(max_examples=60, deadline=None)


@given(st.integers(0, 300))
def test_slack_has_every_value_in_range_and_no_other(largest):
    sizes = slack_sizes(largest)
    assert (sizes > 0).all()
    expected = [0] if largest <= 1 else list(range(largest + 1))
    assert sorted(set((all_states(len(sizes)) @ sizes).tolist())) == expected


@st.composite
def problems(draw):
    size = draw(st.integers(2, 5))
    numbers = st.integers(-9, 9)
    Q = np.array(draw(st.lists(numbers, min_size=size**2, max_size=size**2))).reshape(size, size)
    rows = []
    for _ in range(draw(st.integers(1, 2))):
        row = draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size).filter(any))
        # A bound that some state meets with equality.
        bound = int(np.array(row) @ draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
        rows.append(sl_discs.linear(dict(enumerate(row)), draw(st.sampled_from(["==", "<=", ">="])), bound))
    maximise = draw(st.booleans())
    try:
        return sl_discs.qubo(Q, maximise=maximise, offset=2, constraints=rows)
    except InputError:
        return sl_discs.qubo(Q, maximise=maximise, offset=2, constraints=rows[:1])


@cheap
@given(problems())
def test_the_best_states_are_the_best_feasible_ones(problem):
    # No two values of the objective are as far apart as one unit of violation costs.
    model = penalised(problem, np.full(len(problem.source.names), 2048.0))
    states = all_states(model.problem.num_variables)
    values = model.problem.evaluate(states).values
    sign = 1 if problem.maximise else -1
    answers = problem.evaluate(all_states(problem.num_variables))
    lifted = model.lift(states[values == (sign * values).max() * sign])
    if answers.feasible.any():
        best = (sign * answers.values[answers.feasible]).max() * sign
        expected = answers.states[answers.feasible & (answers.values == best)]
        assert np.array_equal(np.unique(lifted, axis=0), np.unique(expected, axis=0))
        assert (sign * values).max() * sign == best
    # States with the best slack: the objective where they are feasible, otherwise worse by at least a penalty.
    extended = model.problem.evaluate(model.extend(answers.states)).values
    loss = sign * (answers.values - extended)
    assert (loss[answers.feasible] == 0).all() and (loss[~answers.feasible] >= 2048).all()


def test_slack_bits_are_the_best_for_a_state():
    problem = sl_discs.qubo(
        np.eye(3), constraints=[sl_discs.linear({0: 3, 1: 5, 2: -4}, "<=", 6), sl_discs.at_least(1, range(3))]
    )
    model = penalised(problem, np.array([1.0, 1.0]))
    states = all_states(model.problem.num_variables)
    values = model.problem.evaluate(states).values
    for x in all_states(3):
        same = (model.lift(states) == x).all(axis=1)
        assert model.problem.evaluate(model.extend(x[None])).values[0] == values[same].min()


def test_first_penalties_are_in_units_of_the_gains():
    cost = {(k, k): -float(k) for k in range(1, 5)}
    groups = [sl_discs.one_hot([1, 2]), sl_discs.one_hot([3, 4]), sl_discs.linear({1: 10, 2: 10}, "<=", 10)]
    found = first_penalties(sl_discs.qubo(cost, constraints=groups))
    assert found == pytest.approx([2, 4, 2], rel=0.01)
    assert first_penalties(sl_discs.qubo({(0, 0): 0, (1, 1): 0}, constraints=[sl_discs.one_hot([0, 1])])) == [1]
