"""Bounds hold on every small problem, and prove optima where they are tight."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.problems.forms import form_bound
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import Proofs, Prover
from sl_discs.solving.reductions import presolve
from sl_discs.solving.workers import workers_of

GRAPH_KINDS = "mis", "maxclique", "vertex_cover", "maxcut"


def bound_of(problem):
    """By all provers that do not need to search."""
    proofs = Proofs(unreduced(problem), workers_of(problem).provers)
    proofs.advance(1.0)
    return proofs.board.bound


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([0.2, 0.5, 0.8]))
def test_no_answer_passes_its_bound(seed, size, density):
    graph, rng = nx.gnp_random_graph(size, density, seed=seed), np.random.default_rng(seed)
    for u, v in graph.edges:
        graph[u][v]["weight"] = (u * v + seed) % 5 - 2
    couplings = {edge: float(rng.normal()) for edge in [*graph.edges, *((v, v) for v in graph)]}
    problems = [getattr(sl_discs, kind)(graph) for kind in GRAPH_KINDS]
    for maximise in True, False:
        problems.append(sl_discs.ising(rng.normal(size=size), couplings, maximise=maximise))
        problems.append(sl_discs.qubo(couplings, maximise=maximise))
    for problem in problems:
        for bound in problem.bound(), bound_of(problem):
            # The optimum is rounded, which keeps the order.
            assert (
                bound is None
                or (float(bound) - optimum(problem)) * (1 if problem.maximise else -1) >= 0
            )


def test_without_proofs_no_prover_is_made(monkeypatch):
    """Chains are the same, and a bound is one that needs no work."""
    graph = nx.gnp_random_graph(60, 0.3, seed=1)
    for kind in GRAPH_KINDS:
        problem, how = (
            getattr(sl_discs, kind)(graph),
            {"steps": 6_000, "chains": 4, "presolve": False},
        )
        proved = sl_discs.solve(problem, **how)
        with monkeypatch.context() as patch:
            patch.setattr(Prover, "__init__", lambda *arguments: pytest.fail("a prover was made"))
            found = sl_discs.solve(problem, proofs=False, **how)
            sl_discs.solve(problem, proofs=False, steps=6_000, chains=4)
        assert (found.states == proved.states).all() and not found.optimal
        assert (
            found.bound is None
            or (found.bound - proved.bound) * (1 if problem.maximise else -1) >= 0
        )


def test_bounds_on_whole_numbers_are_whole():
    """The entries of a pair add up to a whole number, but not to the bound's; with another half,
    nothing is whole.
    """
    couplings = {(0, 1): 1.5, (1, 0): -0.5, (1, 1): 1.0}
    for more, most, least in ((0.0, 2.0, 0.0), (0.5, 3.0, -0.5)):
        problem = sl_discs.qubo(couplings | {(2, 2): more}, maximise=True)
        assert problem.bound() == most and form_bound(problem.source) == 2.5 + more
        assert sl_discs.qubo(couplings | {(2, 2): more}).bound() == least
    assert (
        sl_discs.qubo({(0, 0): 0.1, (0, 1): 0.2}, offset=2.0**40, maximise=True).bound() > 2.0**40
    )


@pytest.mark.parametrize("maximise", [True, False])
def test_what_reductions_leave_has_no_fractional_bound(maximise):
    """Stars of three edges become triangles of halves."""
    graph = nx.random_regular_graph(3, 30, seed=2)
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 if (u + v) % 3 else 2
    problem = sl_discs.maxcut(graph)
    if not maximise:
        problem = sl_discs.ising(None, dict.fromkeys(graph.edges, 1))
    left = presolve(problem)
    bound = Proofs(left).board.bound
    assert 0 < left.problem.num_variables < 30 and float(bound).is_integer()
    sign = 1 if maximise else -1
    assert sign * bound >= sign * sl_discs.solve(problem, steps=300, chains=2).best_value


def test_a_bound_on_what_reductions_leave_is_not_rounded_below_the_optimum():
    """All couplings of a ferromagnet, up to a change of signs, can be met; reductions remove its
    pendant spins.
    """
    proved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = nx.random_regular_graph(5, 12, seed=seed)
        graph.add_edges_from((node, 12 + 2 * node + k) for node in range(12) for k in (0, 1))
        best = rng.choice([-1, 1], 36)
        couplings = {
            (u, v): float(-best[u] * best[v] * rng.uniform(0.5, 1.5)) for u, v in graph.edges
        }
        problem = sl_discs.ising(None, couplings, offset=0.1)
        result = sl_discs.solve(problem, steps=3_000, chains=2)
        assert result.bound == problem.value(best)
        proved += result.optimal
    assert proved > 10


def test_bounds_beside_a_large_constant_are_compared_exactly():
    """The sum of the best signs is lower than the optimum by 1, which doubles of this size do not
    tell.
    """
    result = sl_discs.solve(
        sl_discs.qubo({(0, 1): -1.0, (1, 1): 1.5520913312345679}, offset=2.0**70)
    )
    assert result.optimal and result.best_value == 2.0**70


@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_problems_of_twenty_nodes_are_proved(kind):
    """Also where sets with conflicts are as good, and there are many best states."""
    keywords = {} if kind == "maxcut" else {"penalty": 1.0}
    for graph in (
        nx.gnp_random_graph(20, 0.3, seed=3),
        nx.disjoint_union_all([nx.path_graph(2)] * 10),
    ):
        problem = getattr(sl_discs, kind)(graph, **keywords)
        result = sl_discs.solve(problem)
        assert result.optimal and result.rounds == 0
        assert (
            result.best_value
            == sl_discs.solve(problem, "metropolis", steps=20_000, chains=8).best_value
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


def test_reductions_of_real_coefficients_prove_nothing_by_rounded_sums():
    """Merged spins add fields of 1e8 and 3e-9: the small one is lost, and with it the better of two
    states.

    Elimination compares exactly; where it does not apply, the bound is a rounding error away.
    """
    fields = {0: 3e-9, 1: 1e8, 2: -1e8} | dict.fromkeys(range(3, 24), 0.25)
    ring = {(k, (k + 1) % 24): -1.5 for k in range(3, 23)}
    problem = sl_discs.ising(fields, {(0, 1): -1e9, (1, 2): -1e9} | ring, offset=2e9)
    result = sl_discs.solve(problem, seed=0)
    other = {label: -spin if label < 3 else spin for label, spin in result.best_sample.items()}
    assert problem.value(other) > result.best_value >= result.bound
    tree = nx.random_labeled_tree(40, seed=1)
    weights = dict(enumerate(np.random.default_rng(0).uniform(size=40)))
    result = sl_discs.solve(sl_discs.mis(tree, weight=weights))
    assert not result.optimal and 0 < result.gap < 1e-9
    with_root, without = {}, {}
    for node in nx.dfs_postorder_nodes(tree, 0):
        below = [child for child in tree[node] if child in with_root]
        with_root[node] = weights[node] + sum(without[child] for child in below)
        without[node] = sum(max(with_root[child], without[child]) for child in below)
    assert result.best_value == pytest.approx(max(with_root[0], without[0]))


def exact(terms, offset, sample):
    """The value of a form, in fractions."""
    products = (Fraction(number) * sample[i] * sample[j] for (i, j), number in terms.items())
    return Fraction(offset) + sum(products)


HIDDEN = {
    "whole numbers, offset 2^60": ([-1, 2, -3], 2.0**60),
    "halves, offset 1e17": ([-1.5, 2.5, 0.5], 1e17),
    "a heavy variable": ([-1e17, -1.0, 1.0], 0.0),
    "tenths": ([0.1, -0.7, 1e-17], 1.0),
}


@pytest.mark.parametrize(("size", "maximise"), [(3, True), (24, False), (40, True), (40, False)])
@pytest.mark.parametrize("case", HIDDEN)
@pytest.mark.parametrize("how", [{}, {"chains": 3, "steps": 50, "presolve": False}])
def test_rounding_never_makes_a_worse_answer_optimal(case, size, maximise, how):
    """The optimum has each variable on the side of its sign, which rounded values do not tell; a
    claim is then true.

    Problems of 3 variables are enumerated, those of 24 by a prover, and those of 40 have the bound
    of their signs.
    """
    numbers, offset = HIDDEN[case]
    terms = {(k, k): number for k, number in enumerate((numbers * size)[:size])}
    terms |= {(k, k + 1): 0.25 * (k % 3 - 1) for k in range(2, size - 1)}
    result = sl_discs.solve(sl_discs.qubo(terms, offset=offset, maximise=maximise), seed=1, **how)
    sign = 1 if maximise else -1
    # A path: the better value of what is left of each variable, for both of its values.
    best = [Fraction(0), Fraction(sign) * Fraction(terms[0, 0])]
    for k in range(1, size):
        coupling = sign * Fraction(terms.get((k - 1, k), 0))
        one = max(best[0], best[1] + coupling) + sign * Fraction(terms[k, k])
        best = [max(best), one]
    optimum = sign * max(best) + Fraction(offset)
    value = exact(terms, offset, result.best_sample)
    assert not result.optimal or value == optimum
    assert result.bound is None or sign * Fraction(result.bound) >= sign * optimum or result.optimal
    assert result.optimal or size > 3 or how


def test_a_cut_of_weights_of_many_sizes_is_compared_exactly():
    """Every edge of a forest is cut at the optimum; the sum of the weights rounds away all but the
    heaviest.
    """
    for count in 2, 20:
        edges = np.arange(2 * count).reshape(-1, 2)
        for how in {}, {"presolve": False, "steps": 20}:
            weights = [1e17, *[1.0] * (count - 1)]
            result = sl_discs.solve(sl_discs.maxcut(edges, weights), seed=0, **how)
            sides = result.best_sample
            cut = all(sides[u] != sides[v] for u, v in edges.tolist())
            assert cut or not result.optimal
            assert cut or how


def test_pairs_given_in_parts_are_not_merged_into_whole_numbers():
    """.1 and .9 add up to a little more than 1, which their sum in double precision hides."""
    parts = {(0, 1): -0.1, (1, 0): -0.9, (0, 0): 1.0}
    for size in 2, 24:
        terms = parts | {(k, k): 1.0 for k in range(2, size)}
        result = sl_discs.solve(sl_discs.qubo(terms))
        assert not result.optimal or result.best_sample[0] == result.best_sample[1] == 1
