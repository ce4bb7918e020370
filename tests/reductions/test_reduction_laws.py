"""What every reduction must keep, by enumeration of both problems; and every rule is reached."""

import collections
import itertools
import time
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.instances.graph import Graph
from sl_discs.solving.reductions import presolve
from sl_discs.solving.set_reductions import CLIQUE, FUNNEL, UNCONFINED, core
from sl_discs.solving.spin_reductions import FIXED, FREE, MERGED, PENDANT, ROOF, STAR
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
    edges = draw(
        st.lists(st.sampled_from(pairs), unique=True, max_size=2 * size) if pairs else st.just([])
    )
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
    assert sum(reduced.removed.values()) == size - len(reduced.kept)
    optimum = best_of(problem, problem.evaluate(all_states(size)).values)
    if left is None:
        assert len(reduced.kept) == 0
        states, values = np.zeros((1, 0), np.int8), np.zeros(1)
    else:
        kept_labels = tuple(problem.labels[k] for k in reduced.kept)
        assert (left.kind, left.name, tuple(left.labels)) == (
            problem.kind,
            problem.name,
            kept_labels,
        )
        assert (left.penalty, left.maximise, left.spins) == (
            problem.penalty,
            problem.maximise,
            problem.spins,
        )
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


def test_of_every_graph_of_up_to_seven_nodes():
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


def test_every_larger_clique_is_in_the_core():
    """Also with weights of nodes: what a clique weighs decides."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = nx.gnp_random_graph(12, 0.5, seed=seed)
        edges = np.array(list(graph.edges), np.int32)
        near = Graph.from_arrays("graph", 12, edges).neighbours
        weights = np.ones(12) if seed % 2 else rng.integers(1, 5, 12).astype(float)
        for clique in nx.find_cliques(graph):
            mass = weights[clique].sum()
            assert core(near, weights, mass - 1)[clique].all()


def lowest(form):
    """The least value of a form of spins, in fractions."""
    pairs = form.pairs.tolist()
    couplings = list(map(Fraction, form.couplings.tolist()))
    fields = list(map(Fraction, form.linear.tolist()))

    def value(spins):
        products = (k * spins[a] * spins[b] for (a, b), k in zip(pairs, couplings, strict=True))
        return sum(products) + sum(h * spin for h, spin in zip(fields, spins, strict=True))

    states = itertools.product((1, -1), repeat=form.num_variables)
    return min(map(value, states)) + Fraction(form.offset)


def test_bounds_of_what_is_left_hold_for_the_whole():
    """In fractions: rounded coefficients of what is left prove nothing that does not hold.

    Trees around five spins that are all coupled, with real couplings and fields.
    """
    reduced = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = nx.compose(nx.complete_graph(5), nx.random_labeled_tree(8, seed=seed))
        couplings = {edge: float(rng.normal()) for edge in graph.edges}
        problem = sl_discs.ising(dict(enumerate(rng.normal(size=8) / 4)), couplings)
        presolved = presolve(problem)
        if presolved.problem is not problem and presolved.problem is not None:
            bound = presolved.lifted_bound(lowest(presolved.left.source))
            assert Fraction(bound) <= lowest(problem.source)
            reduced += 1
    assert reduced > 10


def largest_independent_set(problem):
    """A state, by another program."""
    graph = nx.Graph(problem.source.edges.tolist())
    graph.add_nodes_from(range(problem.num_variables))
    state = np.zeros((1, problem.num_variables), np.int8)
    state[0, nx.max_weight_clique(nx.complement(graph), weight=None)[0]] = 1
    return state


def test_every_rule_of_independent_sets():
    """Some need larger graphs than those that are enumerated."""
    met = collections.Counter()
    for seed in range(40):
        problem = sl_discs.mis(nx.watts_strogatz_graph(32, 6, 0.3, seed=seed))
        reduced = presolve(problem)
        met.update(reduced.removed)
        left = reduced.problem
        best = reduced.lift(
            np.zeros((1, 0), np.int8) if left is None else largest_independent_set(left)
        )
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
    assert {
        rule for problem in problems for rule, count in check(problem).removed.items() if count
    } == expected


@pytest.mark.parametrize(("kind", "some"), [("mis", 3e-4), ("maxcut", 1.5e-3)])
def test_work_is_bounded(monkeypatch, kind, some):
    """What is done until then counts; the clock ends rules on a machine where each look takes a
    second.
    """
    problem = getattr(sl_discs, kind)(nx.gnp_random_graph(200, 0.012, seed=4))
    clock = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: 0.0)
        parts = [presolve(problem, seconds) for seconds in (1e-6, some, 1.0)]
        patch.setattr(time, "perf_counter", lambda: float(next(clock)))
        parts.append(presolve(problem, 4.0))
    assert next(clock) < 200
    sizes = [len(part.kept) for part in parts]
    assert sizes[0] == 200 > sizes[1] > sizes[2] and sizes[3] > sizes[2]
    solved = [
        0
        if part.problem is None
        else sl_discs.solve(part.problem, "metropolis", steps=60_000, chains=8).best_value
        for part in parts
    ]
    assert len({value + part.constant for value, part in zip(solved, parts, strict=True)}) == 1
