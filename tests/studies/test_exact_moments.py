"""Exact moments are sums over all states, their files are complete, and draws are scored as they deserve."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sl_discs
from exact_moments import ExactMoments, check_draws, exact_moments
from sl_discs.errors import InputError
from sl_discs.files import write_document
from sl_discs.testing import all_states


def grid(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    graph = nx.grid_2d_graph(rows, columns)
    fields = {node: 0.4 * rng.normal() for node in graph}
    return sl_discs.ising(fields, {edge: rng.choice((-1.0, 1.0)) for edge in graph.edges}, name="grid")


@pytest.fixture(scope="module")
def exact():
    return exact_moments(grid(3, 4), 1.3)


def test_moments_are_sums_over_all_states(exact):
    states = all_states(12).astype(np.int8)
    problem = grid(3, 4)
    values = exact.values(states)
    terms = problem.terms()
    np.testing.assert_allclose(values, terms.evaluator()(states))
    weights = np.exp(values / 1.3)
    p = weights / weights.sum()
    assert exact.log_z == pytest.approx(np.log(weights.sum()))
    assert exact.mean_value == pytest.approx(p @ values)
    np.testing.assert_allclose(exact.marginals, p @ states)
    first, second = exact.pairs.T
    assert len(exact.pairs) == 66
    np.testing.assert_allclose(exact.pair_marginals, p @ (states[:, first] * states[:, second]))


def test_draws_of_the_law_agree_at_the_stated_rate_and_others_do_not():
    """Of 200 sets of exact draws at most 5 % have p < .05 up to chance: 21 or more have probability 1e-3. A law at a
    temperature that is 15 % higher, or 4 % of the draws replaced by one state, is found out.
    """
    problem = grid(5, 5)
    exact = exact_moments(problem, 1.0)
    draws = sl_discs.sample(problem, 1.0, 200 * 500, "exact").states.reshape(200, 500, 25)
    assert sum(check_draws(exact, one).p_value < 0.05 for one in draws) < 21
    many = draws[:40].reshape(-1, 25)
    found = check_draws(exact, many)
    assert found.agree and found.max_z < 5 and "agree with 'grid'" in repr(found)
    hot = check_draws(exact, sl_discs.sample(problem, 1.15, 20_000, "exact").states)
    stuck = many.copy()
    stuck[:800] = stuck[0]
    for one in (hot, check_draws(exact, stuck)):
        assert not one.agree and one.max_z > 5 and "do NOT agree" in repr(one)
    # Worth only 100 draws, the second would not be noticed.
    assert check_draws(exact, stuck, ess=100).agree


def test_rare_events_are_no_surprise():
    """A probability of 1e-4 in 2,000 draws: one such draw is 1.8 standard errors too many, two are 4 and no alarm."""
    problem = sl_discs.qubo({(0, 0): np.log(9_999.0), (1, 1): 0.0})
    exact = exact_moments(problem, 1.0)
    assert exact.marginals == pytest.approx([1e-4, 0.5])
    draws = np.zeros((2_000, 2), np.int8)
    draws[::2, 1] = 1
    draws[:2, 0] = 1
    assert check_draws(exact, draws).agree and check_draws(exact, draws).marginals[0] > 4
    draws[:20, 0] = 1
    assert not check_draws(exact, draws).agree


def test_samples_count_as_they_say(exact):
    """Weighted draws with their weights; they are worth what their diagnostics say."""
    samples = sl_discs.sample(grid(3, 4), 1.3, 4_000, "exact", groups=4)
    diagnostics = tuple(one._replace(ess_bulk=900.0 + place) for place, one in enumerate(samples.diagnostics))
    weights = np.array([0.0, 1.0, -1.0, 2.0])
    samples = dataclasses.replace(samples, log_weights=weights, diagnostics=diagnostics)
    found = check_draws(exact, samples)
    assert found.ess == 900
    shares = samples.weights @ (samples.states > 0)
    errors = np.sqrt(exact.marginals * (1 - exact.marginals) / 900)
    np.testing.assert_allclose(found.marginals, (shares - exact.marginals) / errors, atol=1e-9)


@pytest.mark.parametrize("size", [(3, 4), (6, 6)])
def test_saved_and_loaded_again(size, tmp_path):
    made = exact_moments(grid(*size), 0.8)
    found = ExactMoments.load(made.save(tmp_path / "target.npz"))
    for field in dataclasses.fields(made):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(made, field.name))
    draws = sl_discs.sample(grid(*size), 0.8, 1_000, "exact").states
    assert repr(check_draws(tmp_path / "target.npz", draws)) == repr(check_draws(made, draws))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"marginals": np.full(12, 1.5)}, "marginals has what is no probability"),
        ({"pairs": np.full((66, 2), 12)}, "pairs has a variable"),
        ({"pair_marginals": np.zeros(3)}, "pair_marginals"),
        ({"linear": np.zeros(12, int)}, "linear"),
        ({"temperature": 0.0}, "temperature"),
        ({"log_z": "1"}, "log_z"),
        ({"more": 1}, "other fields"),
    ],
)
def test_files_that_contradict_themselves_are_refused(exact, changes, message, tmp_path):
    fields = {field.name: getattr(exact, field.name) for field in dataclasses.fields(exact)} | changes
    arrays = {name: fields.pop(name) for name in list(fields) if isinstance(fields[name], np.ndarray)}
    write_document(tmp_path / "bad.npz", "sl_discs moments 1", arrays, fields)
    with pytest.raises(InputError, match=message):
        ExactMoments.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda exact: check_draws(exact, np.zeros((10, 11))), r"shape \[10, 11\]; expected \[S, 12\]"),
        (lambda exact: check_draws(exact, np.zeros((1, 12))), "S at least 2"),
        (lambda exact: check_draws(exact, np.full((10, 12), 2)), "other values than 0 and 1"),
        (lambda exact: check_draws(exact, np.zeros((10, 12)), ess=11), "worth no more"),
        (lambda exact: check_draws(exact, np.zeros((10, 12)), ess=1), "ess"),
        (lambda exact: check_draws("missing.npz", np.zeros((10, 12))), "no such file"),
        (lambda exact: exact_moments(grid(3, 3), 0.0), "temperature"),
        (lambda exact: exact_moments(sl_discs.mis(nx.complete_graph(60)), 1.0), "treewidth"),
    ],
)
def test_bad_arguments_are_named(exact, call, message):
    with pytest.raises(InputError, match=message):
        call(exact)
