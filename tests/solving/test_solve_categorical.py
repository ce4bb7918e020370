"""Potts models and colourings: exact values, optima by enumeration, and what is refused."""

import dataclasses
import math
from fractions import Fraction

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_except

import sl_discs
from sl_discs.errors import InputError
from sl_discs.experiment.batches import build_batch, plan
from sl_discs.models.terms import potts_terms
from sl_discs.problems.categorical import COLORING
from sl_discs.solving.answers import proof, verification
from sl_discs.testing.cases import states_of

STEPS = {"steps": 300, "chains": 8}


def petersen():
    return nx.petersen_graph()


def random_potts(seed=0, **options):
    """Four variables with different numbers of values, whose labels are letters."""
    rng = np.random.default_rng(seed)
    values = (2, 3, 4, 3)
    couplings = {pair: float(rng.normal()) for pair in (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))}
    fields = {label: rng.normal(size=count) for label, count in zip("abcd", values, strict=True)}
    return sl_discs.potts(couplings, values, fields, **options), couplings, fields


def by_definition(sample, couplings, fields):
    pairs = [number for (u, v), number in couplings.items() if sample[u] == sample[v]]
    return math.fsum([*pairs, *(fields[label][value] for label, value in sample.items())])


@pytest.mark.parametrize("maximise", [False, True])
def test_solve_finds_the_optimum_of_the_enumerated_values(maximise):
    problem, couplings, fields = random_potts(maximise=maximise)
    samples = [dict(zip("abcd", state.tolist(), strict=True)) for state in states_of(problem.num_values)]
    values = [by_definition(sample, couplings, fields) for sample in samples]
    for sample, value in zip(samples, values, strict=True):
        assert problem.value(sample) == value
    result = sl_discs.solve(problem, **STEPS)
    assert result.best_value == (max if maximise else min)(values)
    assert result.best_value == by_definition(result.best_sample, couplings, fields)
    assert result.best_value * (1 if maximise else -1) <= result.bound * (1 if maximise else -1)


@settings(deadline=None)
@given(st.data(), st.lists(st.permutations("abc"), max_size=8), st.booleans())
def test_values_are_rounded_once_where_pairs_are_given_in_both_directions(data, ends, sparse):
    numbers = st.sampled_from([0.1, 0.2, 0.3, 1.0, 1e16, -1e16])
    couplings = {(u, v): data.draw(numbers) for u, v, _ in ends}
    fields = {label: [data.draw(numbers), data.draw(numbers)] for label in "abc"}
    J, h, labels = couplings, fields, "abc"
    if sparse:
        places = {(labels.index(u), labels.index(v)): number for (u, v), number in couplings.items()}
        J, h, labels = np.zeros((3, 3)), list(fields.values()), range(3)
        for place, number in places.items():
            J[place] = number
    problem = sl_discs.potts(J, 2, h)
    values = []
    for state in states_of(problem.num_values):
        x = dict(zip("abc", state.tolist(), strict=True))
        terms = [number for (u, v), number in couplings.items() if x[u] == x[v]]
        values.append(float(sum(map(Fraction, [*terms, *(fields[label][x[label]] for label in "abc")]))))
        assert problem.value(dict(zip(labels, x.values(), strict=True))) == values[-1]
    assert problem.bound(1.0) <= min(values)
    terms = potts_terms(problem.source)
    assert (terms.pairs[:, 0] < terms.pairs[:, 1]).all() and len(np.unique(terms.pairs, axis=0)) == len(terms.pairs)
    assert (terms.couplings != 0).all()


def test_the_chains_model_is_the_problem():
    """Also where lists of neighbours are shorter than rows."""
    problem, *_ = random_potts(maximise=False)
    ring = sl_discs.potts({(i, (i + 1) % 300): 0.5 + i % 3 for i in range(300)}, 3)
    for one in (problem, ring):
        terms = potts_terms(one.source)
        [pack] = plan([terms], 1, 4)
        model, batch = build_batch([terms], [0], pack.shape, 0)
        params = jax.tree.map(lambda leaf: leaf[0], batch.params)
        states = np.random.default_rng(0).integers(0, one.num_values, (5, one.num_variables)).astype(np.int8)
        values = one.evaluate(states).values
        np.testing.assert_allclose(terms.evaluator()(states), -values, rtol=1e-12)
        x = np.pad(states, ((0, 0), (0, model.num_sites - one.num_variables)))
        found = jax.jit(jax.vmap(lambda x, p=params, m=model: m.value(p, x, m.init(p, x))))(x)
        np.testing.assert_allclose(found, -values, rtol=1e-5)


def test_a_graph_is_coloured_properly_and_known_to_be():
    graph = petersen()
    graph = nx.relabel_nodes(graph, {node: f"n{node}" for node in graph})
    result = sl_discs.solve(sl_discs.coloring(graph, 3), **STEPS)
    assert result.best_value == 0 and result.feasible and result.optimal and result.stopped == "bound"
    assert all(result.coloring[u] != result.coloring[v] for u, v in graph.edges)
    assert set(result.coloring.values()) <= {0, 1, 2}


def test_conflicts_of_too_few_colours_are_counted():
    """Four nodes that all know each other have one conflict with three colours; of as many edges as `petersen`."""
    graph = nx.disjoint_union(nx.complete_graph(4), nx.circular_ladder_graph(3))
    problem = sl_discs.coloring(nx.relabel_nodes(graph, {node: f"n{node}" for node in graph}), 3)
    result = sl_discs.solve(problem, **STEPS)
    assert result.best_value == 1 and not result.feasible
    [edge] = problem.violated(result.best_sample)
    u, v = (label.strip("'") for label in edge.removeprefix("edge ").split("-"))
    assert result.coloring[u] == result.coloring[v]


def test_the_fewest_conflicts_are_optimal_where_no_colouring_is_proper():
    result = sl_discs.solve(sl_discs.coloring(nx.complete_graph(4), 3))
    assert result.best_value == result.bound == 1 and result.stopped == "bound"
    assert result.optimal and not result.feasible
    assert proof(result).startswith("optimal, proved by")


@pytest.mark.parametrize("sampler", slow_except(["gibbs", "sl_dmala"], ["sl_dmala"]))
def test_samplers_by_name_localized_or_not(sampler):
    result = sl_discs.solve(sl_discs.coloring(petersen(), 3), sampler, steps=600, chains=8)
    assert result.best_value == 0 and result.sampler == sampler and result.engine == "reference"


@pytest.mark.slow
def test_initial_states_count_as_visited():
    problem = sl_discs.coloring(nx.cycle_graph(6), 2)
    good = [0, 1] * 3
    result = sl_discs.solve(problem, "metropolis", steps=1, chains=2, initial_states=good)
    assert result.coloring == dict(enumerate(good)) and result.best_value == 0


@pytest.mark.slow
def test_rounds_fill_a_time_limit():
    hard = sl_discs.coloring(nx.complete_graph(12), 3)
    result = sl_discs.solve(hard, time_limit=1.0, chains=4, presolve=False)
    # Three colour classes of four nodes each.
    assert result.best_value == 18 and result.stopped == "time"


def test_an_improper_colouring_is_told_by_its_conflicts():
    problem, state = sl_discs.coloring(nx.complete_graph(12), 3), np.arange(12) % 3
    result = sl_discs.solve(problem, steps=1, chains=1, initial_states=state, presolve=False)
    good, words = verification(problem, result)
    assert not good and words.startswith("not a proper colouring: 18 conflicts, the first on edge ")
    assert proof(dataclasses.replace(result, bound=0.0)) == "no useful bound (100 % off)"
    assert [COLORING.value_in_words(count) for count in (0, 1, 18)] == ["0 conflicts", "1 conflict", "18 conflicts"]


def test_results_are_saved_and_read(tmp_path):
    result = sl_discs.solve(sl_discs.coloring(petersen(), 3), **STEPS)
    again = sl_discs.Result.load(result.save(tmp_path / "colours.npz"))
    assert again.coloring == result.coloring


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl_discs.coloring(petersen(), 1), "colors is 1; expected .*at least 2"),
        (lambda: sl_discs.coloring(petersen(), 128), "colors is 128; expected at most 127"),
        (lambda: sl_discs.coloring(nx.Graph([(0, 0)]), 3), "self-loop"),
        (lambda: sl_discs.potts({("a", "b"): 1.0}, [2, 1]), "num_values is 1; expected .*at least 2"),
        (lambda: sl_discs.potts({("a", "b"): 1.0}, [2, 2, 2]), "num_values has length 3; expected one number, or"),
        (lambda: sl_discs.potts({("a", "a"): 1.0}, 2), "couples 'a' to itself"),
        (lambda: sl_discs.potts(np.zeros((2, 3)), 2), r"J has shape \(2, 3\)"),
        (lambda: sl_discs.potts({}, 2), "no variables"),
        (lambda: sl_discs.potts({}, 3, []), "no variables"),
        (lambda: sl_discs.potts({}, [], []), "no variables"),
        (lambda: sl_discs.potts({}, 3, 5.0), r"h has shape \(\); expected a dict, or numbers \[N, q\]"),
        (lambda: sl_discs.potts({}, 3, np.zeros((2, 2))), r"h has shape \(2, 2\); expected \(2, 3\)"),
        (lambda: sl_discs.potts({}, 3, {"a": [1.0, 2.0]}), r"h at 'a' has shape \(2,\); expected \[3\]"),
        (lambda: sl_discs.potts({}, 2, {"a": [1.0, np.nan]}), "h at 'a' is .*expected finite"),
        (lambda: sl_discs.potts({("a", "b"): np.inf}, 2), "J at .* is inf"),
    ],
)
def test_bad_problems_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "cpu"}, "engine is 'cpu', which cannot run metropolis: it only supports variables of two values"),
        ({"sampler": "exchange"}, "sampler is 'exchange': it only samples variables of two values"),
        ({"initial_states": [3] * 10}, "value at 0 is 3; expected a whole number from 0 to 2"),
        ({"initial_states": [0.5] * 10}, "value at 0 is 0.5; expected a whole number from 0 to 2"),
        ({"initial_states": [0] * 9}, "shape"),
    ],
)
def test_what_does_not_apply_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        sl_discs.solve(sl_discs.coloring(petersen(), 3), **STEPS, **options)


def test_quadratic_terms_and_other_values_are_refused():
    problem, *_ = random_potts()
    with pytest.raises(InputError, match="this needs variables of two values"):
        problem.terms()
    with pytest.raises(InputError, match=r"states hold 3 at 'b'; expected whole numbers from 0 to 2"):
        problem.evaluate(np.array([[1, 2, 3, 2], [0, 3, 0, 0]]))
