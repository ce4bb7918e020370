"""What every reduction must keep, by enumeration of both problems; and every rule is reached."""

import collections
import itertools
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.reductions import presolve, sets
from sl_discs.reductions.quadratic import FIXED, FREE, MERGED, PENDANT, ROOF, STAR
from sl_discs.reductions.sets import CLIQUE, COVER, FUNNEL, UNCONFINED
from sl_discs.testing.conformance import all_states

try:
    import dwave.preprocessing  # noqa: F401

    HAS_ROOF = True
except ImportError:
    HAS_ROOF = False

laws = settings(max_examples=90, deadline=None, derandomize=True)
weights = st.integers(-4, 4) | st.floats(-3, 3, allow_nan=False).map(lambda w: round(w, 2))


@st.composite
def graphs(draw, most=8, weighted=False):
    """Sparse and dense ones alike; labels that are no numbers."""
    size = draw(st.integers(1, most))
    pairs = list(itertools.combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * size) if pairs else st.just([]))
    if draw(st.booleans()):
        edges = sorted(set(pairs) - set(edges))
    graph = nx.Graph()
    graph.add_nodes_from(f"node {k}" for k in range(size))
    for u, v in edges:
        graph.add_edge(f"node {u}", f"node {v}", **({"weight": draw(weights)} if weighted else {}))
    return graph


@st.composite
def forms(draw, most=8):
    """Linear terms may be missing, and pairs may repeat in both directions."""
    size = draw(st.integers(1, most))
    pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    couplings = draw(st.dictionaries(pair, weights, max_size=2 * size))
    linear = draw(st.dictionaries(st.integers(0, size - 1), weights, max_size=size))
    offset, maximise = draw(weights), draw(st.booleans())
    linear = dict.fromkeys(range(size), 0) | linear
    if draw(st.booleans()):
        return sl_discs.ising(linear, couplings, offset=offset, maximise=maximise)
    terms = collections.Counter({(k, k): value for k, value in linear.items()})
    terms.update(couplings)
    return sl_discs.qubo(dict(terms), offset=offset, maximise=maximise)


def best_of(problem, values):
    return max(values) if problem.maximise else min(values)


def check(problem):
    """Enumerates both problems; returns the reduction."""
    reduced = presolve(problem)
    left, size = reduced.problem, problem.num_variables
    assert sum(reduced.removed.values()) == size - len(reduced.kept) and reduced.complete
    optimum = best_of(problem, problem.evaluate(all_states(size)).values)
    if left is None:
        assert len(reduced.kept) == 0
        states, values = np.zeros((1, 0), np.int8), np.zeros(1)
    else:
        kept_labels = tuple(problem.labels[k] for k in reduced.kept)
        assert (left.kind, left.name, tuple(left.labels)) == (problem.kind, problem.name, kept_labels)
        assert (left.penalty, left.maximise, left.spins) == (problem.penalty, problem.maximise, problem.spins)
        states = all_states(left.num_variables)
        evaluated = left.evaluate(states)
        values = evaluated.values
        if left is problem:  # whose states are not repaired
            states = evaluated.states
    lifted = reduced.lift(states)
    assert lifted.shape == (len(states), size) and lifted.dtype == np.int8
    of_lifted = problem.evaluate(lifted)
    assert (of_lifted.states == lifted).all() and of_lifted.feasible.all()
    np.testing.assert_allclose(of_lifted.values, values + reduced.constant, atol=1e-9)
    values = list(of_lifted.values)
    assert reduced.found.shape == (1 if problem.kind == "maxclique" else 0, size)
    if len(reduced.found):
        found = problem.evaluate(reduced.found)
        assert (found.states == reduced.found).all()
        values += list(found.values)
    assert best_of(problem, values) == pytest.approx(optimum, abs=1e-9)
    return reduced


@pytest.fixture
def rules_alone(monkeypatch):
    """Without the search for a set that meets every clique."""
    monkeypatch.setattr(sets, "_MOST_EDGES", -1)


def test_of_every_graph_of_up_to_seven_nodes(rules_alone):
    for graph in nx.graph_atlas_g()[1:]:
        check(sl_discs.mis(graph, penalty=1.5))


@laws
@given(graphs(), st.sampled_from(["mis", "vertex_cover", "maxclique"]))
def test_of_sets(graph, kind):
    check(getattr(sl_discs, kind)(graph, penalty=1.5))


@laws
@given(st.data(), graphs())
def test_of_weighted_cliques(data, graph):
    of_nodes = data.draw(st.lists(weights.map(abs), min_size=len(graph), max_size=len(graph)))
    check(sl_discs.maxclique(graph, weight=of_nodes, penalty=1.5))


@laws
@given(st.one_of(graphs(weighted=True).map(sl_discs.maxcut), forms()))
def test_of_cuts_and_forms(problem):
    check(problem)


def largest_independent_set(problem):
    """A state, by another program."""
    graph = nx.Graph(problem.source.edges.tolist())
    graph.add_nodes_from(range(problem.num_variables))
    state = np.zeros((1, problem.num_variables), np.int8)
    state[0, nx.max_weight_clique(nx.complement(graph), weight=None)[0]] = 1
    return state


def test_every_rule_of_independent_sets(rules_alone):
    """Some need larger graphs than those that are enumerated."""
    met = collections.Counter()
    for seed in range(40):
        problem = sl_discs.mis(nx.watts_strogatz_graph(32, 6, 0.3, seed=seed))
        reduced = presolve(problem)
        met.update(reduced.removed)
        left = reduced.problem
        best = reduced.lift(np.zeros((1, 0), np.int8) if left is None else largest_independent_set(left))
        found, optimum = problem.evaluate(best), problem.evaluate(largest_independent_set(problem))
        assert (found.states == best).all() and found.values == optimum.values
    assert set(met) == {CLIQUE, FUNNEL, UNCONFINED}


def random_form(seed):
    rng = np.random.default_rng(seed)
    J = np.triu(rng.integers(-3, 4, (9, 9)) * (rng.random((9, 9)) < 0.4), 1)
    return sl_discs.ising(rng.integers(-3, 4, 9), J)


def test_every_rule_of_forms():
    expected = {FREE, PENDANT, FIXED, MERGED, STAR} | ({ROOF} if HAS_ROOF else set())
    problems = [random_form(seed) for seed in range(30)] + [
        sl_discs.maxcut(nx.gnp_random_graph(9, 0.3, seed=seed)) for seed in range(30)
    ]
    assert {rule for problem in problems for rule, count in check(problem).removed.items() if count} == expected


@pytest.mark.parametrize(("kind", "some"), [("mis", 3e-4), ("maxcut", 1.5e-3)])
def test_work_is_bounded(monkeypatch, rules_alone, kind, some):
    """What is done until then counts; the clock ends rules on a machine where each look takes a second."""
    problem = getattr(sl_discs, kind)(nx.gnp_random_graph(200, 0.012, seed=4))
    clock = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: 0.0)
        parts = [presolve(problem, seconds) for seconds in (1e-6, some, 1.0)]
        patch.setattr(time, "perf_counter", lambda: float(next(clock)))
        parts.append(presolve(problem, 4.0))
    assert [part.complete for part in parts] == [False, False, True, False] and next(clock) < 200
    sizes = [len(part.kept) for part in parts]
    assert sizes[0] == 200 > sizes[1] > sizes[2] and sizes[3] > sizes[2]
    solved = [
        0 if part.problem is None else sl_discs.solve(part.problem, "metropolis", steps=60_000, chains=8).best_value
        for part in parts
    ]
    assert len({value + part.constant for value, part in zip(solved, parts, strict=True)}) == 1


def formula_graph(num_variables, num_clauses, seed):
    """A graph of a random formula with three literals a clause, of which the drawn assignment satisfies each."""
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
def test_satisfiable_formulas(kind):
    """Every clause has a literal in the set, so the optimum is known; the rules alone leave most of the graph."""
    for seed in range(5):
        problem = getattr(sl_discs, kind)(formula_graph(40, 160, seed))
        reduced = presolve(problem)
        assert reduced.problem is None and reduced.removed[COVER] > 300
        state = reduced.lift(np.zeros((1, 0), np.int8))
        found = problem.evaluate(state)
        assert (found.states == state).all() and found.values == (160 if kind == "mis" else 320)


def test_a_search_in_vain(monkeypatch):
    """Nothing is lost where it is given up or refuted; to the last graph no rule applies."""
    problem = sl_discs.mis(formula_graph(40, 160, 0))
    monkeypatch.setattr(sets, "_MOST_LOOKS_OF_COVERS", 10)
    assert presolve(problem).problem is not None
    monkeypatch.setattr(sets, "_MOST_LOOKS_OF_COVERS", 10**6)
    monkeypatch.setattr(sets, "_LEAST_SHARE", 0)
    problem, states = sl_discs.mis(nx.icosahedral_graph()), all_states(12)[::100]
    reduced = presolve(problem)
    assert reduced.problem is problem and (reduced.lift(states) == states).all()
