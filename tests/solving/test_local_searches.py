"""Local searches: on vertex covers, always covers, smallest ones on small graphs, and a fair rival
of annealing; and the tabu search, on values that chains of 32 bits cannot tell apart.
"""

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.instances.graph import Graph, complement, graph_from_networkx
from sl_discs.solving.cover_search import CoverSearch, cover_search, greedy_state
from sl_discs.solving.policy import Annealer, Policy
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.tabu_search import TabuSearch, tabu_search
from sl_discs.testing.conformance import all_states

pytestmark = pytest.mark.usefixtures("limits_in_cpu_time")
LIMIT_S = 0.5


def graph_of(given: nx.Graph) -> Graph:
    return graph_from_networkx(given, "graph")


@functools.cache
def planted(groups: int, size: int, constraints: int, seed: int) -> tuple[Graph, np.ndarray]:
    """A graph of model RB with a planted independent set of one node in each group, which is a
    largest one.

    A constraint excludes a quarter of the pairs of nodes of two groups, but not the planted one.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.integers(size, size=groups)
    graph = nx.disjoint_union_all([nx.complete_graph(size)] * groups)
    for _ in range(constraints):
        one, other = rng.choice(groups, 2, replace=False)
        pairs = [pair for pair in np.ndindex(size, size) if pair != (chosen[one], chosen[other])]
        for place in rng.choice(len(pairs), size * size // 4, replace=False):
            graph.add_edge(one * size + pairs[place][0], other * size + pairs[place][1])
    state = np.zeros(groups * size, np.int8)
    state[np.arange(groups) * size + chosen] = 1
    return graph_of(graph), state


def is_cover(graph: Graph, state: np.ndarray) -> bool:
    return bool(state[graph.edges].any(axis=1).all())


def smallest_cover(graph: Graph) -> int:
    states = all_states(graph.num_nodes)
    covers = states[:, graph.edges].any(axis=2).all(axis=1)
    return int(states[covers].sum(axis=1).min())


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_smallest_covers_of_any_small_graph(size, seed, density):
    """Weights are forgotten many times on graphs this small, and each best state is a cover."""
    graph = graph_of(nx.gnp_random_graph(size, density, seed=seed))
    searching = CoverSearch(unreduced(sl_discs.vertex_cover(graph)), seed, walks=1)
    for steps in 1, 3, 50, 500:
        searching.play(steps)
        assert is_cover(graph, searching.state)
    assert searching.state.sum() == smallest_cover(graph)


def states_of(search):
    """The state of each walk."""
    if isinstance(search, TabuSearch):
        return [walk.x.tolist() for walk in search._walks]
    return [walk.moved.tolist() for walk in search._searches]


@pytest.mark.parametrize("make", [TabuSearch, CoverSearch])
def test_walks_depend_on_the_seed_and_the_number_of_steps_alone(make):
    problem = sl_discs.maxcut(nx.gnp_random_graph(60, 0.2, seed=1))
    if make is CoverSearch:
        problem = sl_discs.vertex_cover(nx.gnp_random_graph(150, 0.1, seed=1))
    whole, parts, other = (make(unreduced(problem), seed, walks=2) for seed in (5, 5, 6))
    for one, lengths in (whole, [3_000]), (other, [3_000]), (parts, [1, 999, 2_000]):
        for steps in lengths:
            one.play(steps)
    states = [states_of(search) for search in (whole, parts, other)]
    assert states[0] == states[1] != states[2] and states[0][0] != states[0][1]


def test_a_planted_set_is_found_in_every_form():
    graph, state = planted(20, 10, 160, seed=0)
    problems = (
        sl_discs.mis(graph),
        sl_discs.vertex_cover(graph),
        sl_discs.maxclique(complement(graph)),
    )
    for problem in problems:
        searching = cover_search(unreduced(problem), 1, 1.0, 1)
        searching.play(50_000)
        found = problem.evaluate(searching.state[None])
        np.testing.assert_array_equal(found.states, searching.state[None])  # no repair
        assert found.values[0] == (20 if problem.maximise else graph.num_nodes - 20)
    assert is_cover(graph, 1 - state) and state.sum() == 20


def test_graphs_that_are_too_large_for_a_trial_or_have_weights_have_no_search():
    def search(problem, seconds):
        return cover_search(unreduced(problem), 0, seconds, 1)

    problem = sl_discs.mis(nx.gnp_random_graph(200, 0.5, seed=0))
    assert search(problem, 1.0) is not None and search(problem, 1e-3) is None
    many = sl_discs.mis(nx.cycle_graph(10_000))
    assert search(many, 10.0) is not None and search(many, 0.1) is None
    assert search(sl_discs.maxclique(nx.empty_graph(200)), 1e-3) is None
    assert search(sl_discs.mis(nx.path_graph(3), weight=[1, 2, 1]), 1.0) is None
    cut = unreduced(sl_discs.maxcut(nx.cycle_graph(2_000)))
    assert tabu_search(cut, 0, 1.0, 1) is not None and tabu_search(cut, 0, 1e-3, 1) is None


def formula_graph(num_variables: int, num_clauses: int, seed: int) -> nx.Graph:
    """A graph of a random formula with three literals a clause, of which the drawn assignment
    satisfies each.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, num_variables)
    literals = []
    while len(literals) < 3 * num_clauses:
        variables, signs = rng.choice(num_variables, 3, replace=False), rng.integers(0, 2, 3)
        if (signs == truth[variables]).any():
            literals += zip(variables.tolist(), signs.tolist(), strict=True)
    graph = nx.Graph()
    for a, b in itertools.combinations(range(len(literals)), 2):
        (x, of_x), (y, of_y) = literals[a], literals[b]
        if a // 3 == b // 3 or (x == y and of_x != of_y):
            graph.add_edge(a, b)
    return graph


@pytest.mark.parametrize("kind", ["mis", "vertex_cover"])
@pytest.mark.parametrize("how", [{}, {"time_limit": 20.0}])
def test_satisfiable_formulas_are_solved_and_proved(kind, how):
    """Every clause has a literal in the set, so a clique cover proves the optimum; annealing misses
    a few clauses.
    """
    result = sl_discs.solve(getattr(sl_discs, kind)(formula_graph(100, 400, seed=1)), seed=0, **how)
    assert result.optimal and result.best_value == (400 if kind == "mis" else 800)


# As a rival of annealing in `solve`.


@pytest.fixture
def searches(monkeypatch):
    """Leaves each annealer its first round alone."""
    monkeypatch.setattr(Policy, "_fill", lambda self, seconds: None)
    monkeypatch.setattr(Annealer, "most", lambda self, seconds: 0.0)


def hard(kind: str = "mis") -> sl_discs.problems.Problem:
    """Annealing does not find the planted set, which is not proved to be largest in this time."""
    graph, _ = planted(45, 21, 480, seed=2)
    return getattr(sl_discs, kind)(complement(graph) if kind == "maxclique" else graph)


@pytest.mark.parametrize("kind", ["mis", "vertex_cover", "maxclique"])
@pytest.mark.usefixtures("searches")
def test_the_best_answer_may_be_its(kind):
    problem = hard(kind)
    found = sl_discs.solve(problem, time_limit=2 * LIMIT_S, seed=1)
    assert CoverSearch.by in found.engine_note and found.feasible
    assert problem.value(found.best_sample) == found.best_value


def test_it_is_for_auto_and_answers_after_reductions(monkeypatch):
    advanced, real = [], CoverSearch.advance
    monkeypatch.setattr(
        CoverSearch, "advance", lambda self, *given: advanced.append(0) or real(self, *given)
    )
    problem = sl_discs.mis(nx.gnp_random_graph(60, 0.3, seed=1))
    for how in (
        {"presolve": False},
        {"sampler": "metropolis"},
        {"sampler": "metropolis", "presolve": True},
    ):
        sl_discs.solve(problem, time_limit=0.1, chains=2, **how)
    sl_discs.solve(problem, steps=1_000, chains=2)
    sl_discs.solve(sl_discs.maxcut(problem.source), time_limit=0.1, chains=2)
    assert not advanced
    graph = nx.gnp_random_graph(200, 0.5, seed=3)
    graph.add_edges_from((node, 1_000 + node) for node in range(0, 40, 2))
    found = sl_discs.solve(sl_discs.mis(graph), time_limit=LIMIT_S)
    assert (
        found.presolved
        and nx.is_empty(graph.subgraph(found.best_set))
        and set(found.best_sample) == set(graph)
    )


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("end", ["target", "interrupt", "callback", "bound", "time"])
def test_it_ends_where_annealing_does(monkeypatch, end):
    problem, begun, real = hard(), [], CoverSearch.advance
    monkeypatch.setattr(
        CoverSearch, "advance", lambda self, *given: begun.append(0) or real(self, *given)
    )
    how = {
        "target": {"target": 40},
        "interrupt": {"interrupt": lambda: len(begun) > 2},
        "callback": {"callback": lambda steps, best: len(begun) > 2},
    }.get(end, {})
    if end == "bound":
        problem = sl_discs.mis(planted(25, 8, 140, seed=1)[0])
    elif end == "time":
        problem = sl_discs.mis(nx.gnp_random_graph(500, 0.1, seed=1))
    limit = {"time": 1.0, "interrupt": 10.0, "callback": 10.0}.get(end, 30.0)
    found = sl_discs.solve(problem, time_limit=limit, chains=2, **how)
    assert found.stopped == end
    assert end != "bound" or found.optimal


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0.0, 0.5), st.booleans())
def test_greedy_sets_are_largest_on_forests_and_as_large_as_promised_elsewhere(
    size, seed, density, maximise
):
    """A node of degree 0 or 1 is in a largest set; elsewhere there are at least sum 1 / (degree +
    1) (Wei 1981).
    """
    make = sl_discs.mis if maximise else sl_discs.vertex_cover
    graph = nx.gnp_random_graph(size, density, seed=seed)
    forest = nx.minimum_spanning_tree(graph)
    for one in graph, forest:
        problem = make(one)
        nodes = [
            problem.labels[place] for place in np.flatnonzero(greedy_state(problem)[0] == maximise)
        ]
        assert nx.is_empty(one.subgraph(nodes))
        assert len(nodes) >= sum(1 / (degree + 1) for _, degree in one.degree) - 1e-9
    assert len(nodes) == size - len(nx.max_weight_matching(forest, maxcardinality=True))


def test_a_limit_too_short_for_one_annealing_has_the_greedy_answer():
    problem = sl_discs.mis(nx.gnm_random_graph(5_000, 25_000, seed=0))
    greedy = problem.evaluate(greedy_state(problem)).values[0]
    short = {"time_limit": 1e-3, "proofs": False}
    with pytest.warns(UserWarning, match="chains would take"):
        result = sl_discs.solve(problem, **short, presolve=True)
    assert result.best_value >= greedy and result.stopped == "time" and result.rounds == 0
    with pytest.warns(UserWarning, match="chains would take"):
        assert sl_discs.solve(problem, "metropolis", **short).best_value < greedy


# The tabu search.


def tabu_problems():
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


@pytest.mark.parametrize("problem", tabu_problems(), ids=lambda problem: problem.kind)
def test_the_best_state_of_a_small_problem_is_found_and_kept(problem):
    search = TabuSearch(unreduced(problem), seed=3, walks=2)
    values = []
    for steps in 1, 20, 2_000:
        assert search.play(steps)
        values.append(
            problem.evaluate(search.state[None]).values[0] * (1 if problem.maximise else -1)
        )
    assert values == sorted(values)
    assert problem.evaluate(search.state[None]).values[0] == optimum(problem)


@pytest.mark.parametrize("how", [{}, {"time_limit": 0.5}])
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
