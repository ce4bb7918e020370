"""Clamped variables leave the problem: values are those of the whole."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError
from sl_discs.testing.conformance import all_states

SIZE = 7


def problem_of(kind, rng):
    graph = nx.gnp_random_graph(SIZE, 0.5, seed=int(rng.integers(1 << 20)))
    matrix = rng.integers(-4, 5, (SIZE, SIZE)) / 4
    if kind == "qubo":
        return sl_discs.qubo(matrix, offset=0.5, maximise=bool(rng.integers(2)))
    if kind == "ising":
        return sl_discs.ising(
            rng.normal(size=SIZE).round(3), {e: rng.normal() for e in graph.edges}, offset=-1.25
        )
    if kind == "maxcut":
        return sl_discs.maxcut(graph)
    return getattr(sl_discs, kind)(graph, penalty=1.5)


def objective(problem, state):
    """The value with penalties, in the sense of the problem."""
    terms = problem.terms().listed()
    value = (
        terms.constant
        + terms.linear @ state
        + (terms.scale * terms.weights) @ state[terms.edges].prod(axis=1)
    )
    return value if problem.maximise else -value


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["qubo", "ising", "maxcut", "mis", "maxclique", "vertex_cover"]),
    st.integers(0, SIZE - 1),
)
def test_values_are_those_of_the_whole(seed, kind, count):
    rng = np.random.default_rng(seed)
    problem = problem_of(kind, rng)
    size = problem.num_variables
    low = -1 if problem.spins else 0
    chosen = rng.choice(size, min(count, size - 1), replace=False)
    values = {problem.labels[k]: int(rng.choice([low, 1])) for k in chosen}
    places = [problem.labels.index(label) for label in values]
    states = all_states(size)
    fitting = states[
        (states[:, places] == [int(value > 0) for value in values.values()]).all(axis=1)
    ]
    if (problem.evaluate(fitting).states != fitting).any(axis=1).all():
        with pytest.raises(
            InputError, match=f"conflicts with another of the values: no answer to {kind} has all"
        ):
            problem.fix(values)
        return
    left = problem.fix(values)
    assert (left.maximise, left.spins) == (problem.maximise, problem.spins)
    assert set(left.labels) == set(problem.labels) - set(values)
    for given_values in itertools.product((low, 1), repeat=left.num_variables):
        sample = dict(zip(left.labels, given_values, strict=True))
        state = problem.as_state(sample | values)
        assert left.value(sample) == pytest.approx(objective(problem, state), abs=1e-12)
        if kind in ("qubo", "ising", "maxcut"):
            assert left.value(sample) == pytest.approx(problem.value(sample | values), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["mis", "maxclique", "vertex_cover"])
def test_completions_have_the_whole_values_of_the_problem(kind, weighted):
    """What a cover pays for edges and gets back cancels, though the default penalty is no short
    fraction.
    """
    rng = np.random.default_rng(0)
    graph = nx.gnp_random_graph(9, 0.5, seed=29)
    weight = rng.integers(1, 1000, 9) if weighted else None
    problem = getattr(sl_discs, kind)(graph, weight=weight)
    left = problem.fix({0: 1})
    states = all_states(9)
    found = problem.evaluate(states)
    feasible = states[(found.states == states).all(axis=1) & (states[:, 0] == 1)]
    assert (
        left.evaluate(feasible[:, 1:]).values.tolist() == problem.evaluate(feasible).values.tolist()
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["mis", "maxclique", "vertex_cover"]))
def test_with_weights_of_nodes_the_best_completion_is_feasible(seed, kind):
    """Weights differ by a factor of five, and some are 0: the lighter end of a conflict may be the
    given one.
    """
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(SIZE, 0.5, seed=int(rng.integers(1 << 20)))
    weights = dict(enumerate(rng.integers(0, 6, SIZE).tolist()))
    problem = getattr(sl_discs, kind)(graph, weight=weights)
    values = {int(k): int(rng.integers(2)) for k in rng.choice(SIZE, 2, replace=False)}
    states = all_states(SIZE)
    fitting = states[(states[:, list(values)] == list(values.values())).all(axis=1)]
    found = problem.evaluate(fitting)
    feasible = found.values[(found.states == fitting).all(axis=1)]
    try:
        left = problem.fix(values)
    except InputError:
        assert not len(feasible)
        return
    best = feasible.max() if problem.maximise else feasible.min()
    reached = [left.value(rest) for rest in itertools.product((0, 1), repeat=left.num_variables)]
    assert (max if problem.maximise else min)(reached) == pytest.approx(best, abs=1e-12)
