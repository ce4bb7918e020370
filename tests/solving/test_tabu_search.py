"""The tabu search: optima of small problems, and values that chains of 32 bits cannot tell
apart.
"""

import math

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum

import sl_discs
from sl_discs.solving.tabu_search import TabuSearch, tabu_search


def problems():
    rng = np.random.default_rng(1)
    graph = nx.gnp_random_graph(12, 0.5, seed=2)
    nx.set_edge_attributes(
        graph, {edge: int(rng.integers(-9, 10)) for edge in graph.edges}, "weight"
    )
    Q = rng.normal(size=(12, 12))
    return (
        sl_discs.maxcut(graph),
        sl_discs.qubo(Q, maximise=True),
        sl_discs.ising(rng.normal(size=12), Q, offset=2.0),
    )


@pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem.kind)
def test_the_best_state_of_a_small_problem_is_found_and_kept(problem):
    search = TabuSearch(problem, seed=3, walks=2)
    values = []
    for steps in 1, 20, 2_000:
        assert search.play(steps)
        values.append(
            problem.evaluate(search.state[None]).values[0] * (1 if problem.maximise else -1)
        )
    assert values == sorted(values)
    assert problem.evaluate(search.state[None]).values[0] == optimum(problem)


def test_walks_depend_on_the_seed_and_the_number_of_steps_alone():
    problem = sl_discs.maxcut(nx.gnp_random_graph(60, 0.2, seed=1))
    whole, parts, other = (TabuSearch(problem, seed, walks=2) for seed in (5, 5, 6))
    for one, lengths in (whole, [3_000]), (other, [3_000]), (parts, [1, 999, 2_000]):
        for steps in lengths:
            one.play(steps)
    states = [[walk.x.tolist() for walk in one._walks] for one in (whole, parts, other)]
    assert states[0] == states[1] != states[2] and states[0][0] != states[0][1]


def test_problems_that_are_too_large_for_a_trial_have_no_search():
    problem = sl_discs.maxcut(nx.cycle_graph(2_000))
    assert tabu_search(problem, 0, 1.0, 1) is not None and tabu_search(problem, 0, 1e-3, 1) is None


@pytest.mark.parametrize("how", [{}, {"time_limit": 2.0}])
@pytest.mark.usefixtures("limits_in_cpu_time")
def test_numbers_of_24_bits_are_parted_better_than_chains_can_tell(how):
    """Sums of squares have 54 bits. Chains alone end at a difference above 1,000; annealing in
    doubles at 331.
    """
    numbers = np.random.default_rng(0).integers(1, 2**24, 60).astype(float)
    couplings = np.triu(2 * np.outer(numbers, numbers), 1)
    problem = sl_discs.ising(None, couplings, offset=float(numbers @ numbers))
    result = sl_discs.solve(problem, seed=0, **how)
    sides = np.array([result.best_sample[label] for label in problem.labels])
    assert result.best_value == (sides @ numbers) ** 2
    assert math.sqrt(result.best_value) < 300
