"""`sl_discs.sample` where variables have several values: the laws of all methods, their evidence, and files.

Laws are compared with enumeration, state by state. Independent draws pass Pearson's test with p > 1e-6. Of chains,
the share of each state is compared in units of its own standard error: a limit of 6 errors is exceeded by a right
method with probability below 2e-3, batch means of 16 populations included. Seeds are fixed.
"""

import math

import dimod
import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.errors import InputError
from sl_discs.sampling.draws import Batches
from sl_discs.sampling.estimates import estimates, marginals
from sl_discs.testing.cases import state_index, states_of
from sl_discs.testing.conformance import chi_squared

VALUES, TEMPERATURE, LIMIT = (2, 3, 4, 3), 0.8, 6.0
LABELS = ("a", "b", "c", ("d", 4))
PAIRS = ((0, 1), (1, 2), (2, 3), (0, 3))
SLOW = pytest.mark.slow


def problem(seed=0, **options):
    """Four variables in a ring, with different numbers of values."""
    rng = np.random.default_rng(seed)
    couplings = {(LABELS[u], LABELS[v]): float(rng.normal()) for u, v in PAIRS}
    fields = {label: rng.normal(size=count) for label, count in zip(LABELS, VALUES, strict=True)}
    return sl_discs.potts(couplings, VALUES, fields, **options)


def law_of(one, temperature=TEMPERATURE):
    """All states, exact values, and probabilities; and log Z."""
    states = states_of(one.num_values)
    values = one.evaluate(states).values
    scaled = (values if one.maximise else -values) / temperature
    log_z = scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())
    return states, values, np.exp(scaled - log_z), log_z


def check(samples, one, temperature=TEMPERATURE):
    """The joint law, values, marginals, mean value and log Z of a run."""
    states, values, law, log_z = law_of(one, temperature)
    found = state_index(samples.states, one.num_values)
    np.testing.assert_allclose(samples.values, values[found], atol=1e-9)
    if samples.dependence == "none":
        assert chi_squared(np.bincount(found, minlength=len(law)), law * len(samples))[1] > 1e-6
    else:
        common = np.flatnonzero(law > 1e-3)
        here = found.reshape(samples.group_values.shape)[..., None] == common
        groups, draws = samples.group_values.shape
        shares, errors = Batches(groups, draws, samples.dependence, samples.log_weights).share(here)
        assert (np.abs(shares - law[common]) <= LIMIT * errors + 1e-9).all(), (shares - law[common]) / errors
    for place, (label, count) in enumerate(zip(one.labels, one.num_values, strict=True)):
        marginal = samples.marginals[label]
        assert len(marginal) == count and sum(p.mean for p in marginal) == pytest.approx(1)
        for value, p in enumerate(marginal):
            assert abs(p.mean - law @ (states[:, place] == value)) <= LIMIT * p.error + 1e-9
            assert samples.marginal(label, value) == pytest.approx(p)
    mean = samples.mean()
    assert abs(mean.mean - law @ values) <= LIMIT * mean.error + 1e-9
    if samples.log_z is not None:
        assert abs(samples.log_z.mean - log_z) < max(LIMIT * samples.log_z.error, 1e-9)


@pytest.fixture(scope="module")
def drawn():
    return sl_discs.sample(problem(), TEMPERATURE, 4000, seed=2)


def test_auto_enumerates_and_draws_the_law(drawn):
    assert drawn.method == "exact" and drawn.reliable and drawn.how == {"states": 72}
    check(drawn, problem())
    up = problem(1, maximise=True)
    check(sl_discs.sample(up, TEMPERATURE, 4000), up)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "chain", "draws": 2048},
        pytest.param({"method": "tempering", "draws": 1024}, marks=SLOW),
        pytest.param({"method": "population", "draws": 1024}, marks=SLOW),
        pytest.param({"method": "localization", "draws": 1024, "K": 96}, marks=SLOW),
        pytest.param({"method": "localization", "draws": 1024, "K": 96, "sampler": "gibbs"}, marks=SLOW),
        *(
            pytest.param({"method": "chain", "draws": 2048, "sampler": name}, marks=SLOW)
            for name in ("gibbs", "metropolis", "gwg", "path_auxiliary")
        ),
        *(
            pytest.param({"method": method, "draws": 1024, "sampler": name}, marks=SLOW)
            for method in ("tempering", "population")
            for name in ("gibbs", "path_auxiliary")
        ),
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_method_draws_the_law(options):
    one = problem()
    samples = sl_discs.sample(one, TEMPERATURE, seed=3, **options)
    assert samples.method == options["method"] and samples.how["engine"] == "reference"
    assert samples.how["sampler"].removeprefix("sl_") == options.get("sampler", "dmala")
    assert samples.reliable, samples.verdict
    check(samples, one)


@SLOW
def test_the_potts_ring():
    """20 variables of 4 values: Z = (e^k + 3)^N + 3 (e^k - 1)^N with k = 1/temperature, by the transfer matrix."""
    size, temperature = 20, 0.5
    ring = sl_discs.potts({(i, (i + 1) % size): 1.0 for i in range(size)}, 4, maximise=True)
    edge = math.exp(1 / temperature)
    log_z = size * math.log(edge + 3) + math.log1p(3 * ((edge - 1) / (edge + 3)) ** size)
    for method in ("tempering", "population"):
        samples = sl_discs.sample(ring, temperature, 1024, method)
        assert abs(samples.log_z.mean - log_z) < LIMIT * samples.log_z.error and samples.log_z.error < 0.5
        for value in range(4):
            p = samples.marginal(7, value)
            assert abs(p.mean - 0.25) <= LIMIT * p.error + 1e-9


@SLOW
def test_auto_does_not_trust_chains_where_they_sit_in_different_modes():
    """A complete graph whose variables agree: three modes that chains do not leave, with equal values."""
    pairs = {(i, j): 1.0 for i in range(15) for j in range(i)}
    samples = sl_discs.sample(sl_discs.potts(pairs, 3, maximise=True), 3.0, 1024)
    assert samples.method == "tempering" and "nothing is known" in samples.chosen
    assert samples.reliable, samples.verdict
    for value in range(3):
        p = samples.marginal(0, value)
        assert abs(p.mean - 1 / 3) <= LIMIT * p.error + 1e-9


def test_evidence_names_variables_and_values(drawn):
    names = [one.name for one in drawn.diagnostics]
    assert names[:3] == ["value", "magnetisation", "overlap"]
    # A variable of two values has one event, any other all of its values.
    others = zip(LABELS[1:], VALUES[1:], strict=True)
    expected = ["variable 'a' = 1", *(f"variable {label!r} = {v}" for label, q in others for v in range(q))]
    assert sorted(names[3:]) == sorted(expected)
    rows, which = marginals(drawn, 5)
    assert rows[0] == ("variable and value", "P", "error") and len(rows) == 6
    assert which == "the 5 of 11 probabilities nearest to 1/2"
    assert any(title.startswith("P(variable ") and " = " in title for title, *_ in estimates(drawn))


def test_magnetisation_and_overlap_are_their_definitions(drawn):
    states, counts = drawn.states.reshape(*drawn.group_values.shape, -1), np.array(VALUES)
    share = np.stack([(states == value).mean(axis=2) for value in range(4)]).max(axis=0)
    np.testing.assert_allclose(drawn.observable("magnetisation"), (4 * share - 1) / 3)
    equal = states == np.roll(states, -1, axis=0)
    np.testing.assert_allclose(drawn.observable("overlap"), ((counts * equal - 1) / (counts - 1)).mean(axis=2))


def test_draws_by_label_pairs_and_other_libraries(drawn):
    states, law = law_of(problem())[::2]
    assert drawn.draw(5) == dict(zip(LABELS, drawn.states[5].tolist(), strict=True)) and drawn.draw(-1) != {}
    both = drawn.pair_marginal("b", "c", (2, 3))
    assert abs(both.mean - law @ ((states[:, 1] == 2) & (states[:, 2] == 3))) <= LIMIT * both.error + 1e-9
    equal = drawn.expectation(lambda x: x[:, 1] == x[:, 3])
    assert abs(equal.mean - law @ (states[:, 1] == states[:, 3])) <= LIMIT * equal.error + 1e-9
    assert list(drawn.to_dataframe().columns) == [*LABELS, "value", "weight"]
    sampleset = drawn.to_dimod()
    assert sampleset.vartype is dimod.DISCRETE and list(sampleset.variables) == list(LABELS)


def test_saved_and_loaded(drawn, tmp_path):
    loaded = sl_discs.Samples.load(drawn.save(tmp_path / "draws.npz"))
    assert loaded.num_values == VALUES and loaded.marginals == drawn.marginals and repr(loaded) == repr(drawn)
    np.testing.assert_array_equal(loaded.states, drawn.states)


def test_colours_of_nodes():
    graph = nx.relabel_nodes(nx.cycle_graph(5), lambda node: f"n{node}")
    samples = sl_discs.sample(sl_discs.coloring(graph, 3), 0.2, 500)
    colours = samples.draw(int(np.argmin(samples.values)))
    assert all(colours[u] != colours[v] for u, v in graph.edges) and set(colours) == set(graph)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "low_rank"}, "method 'low_rank' needs the couplings of a quadratic problem"),
        ({"engine": "cpu"}, "engine 'cpu' runs quadratic problems only; use 'reference' for variables of several"),
        ({"sampler": "exchange"}, "sampler is 'exchange', which is for variables of two values"),
        ({"sampler": "dlmc", "method": "tempering"}, "sampler is 'dlmc', which is for"),
    ],
)
def test_what_does_not_apply_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        sl_discs.sample(problem(), TEMPERATURE, **options)


def test_too_many_states_and_values_that_do_not_exist_are_refused(drawn):
    large = sl_discs.coloring(nx.cycle_graph(40), 3)
    with pytest.raises(InputError, match=r"up to 1,048,576 states .* 40 variables have more; use method='tempering'"):
        sl_discs.sample(large, 1.0, method="exact")
    for call, message in (
        (lambda: drawn.marginal("b", 3), "'b' is never 3; expected 0 to 2"),
        (lambda: drawn.marginal("a", -1), "'a' is never -1; expected 0 or 1"),
        (lambda: drawn.pair_marginal("a", "z"), "'z' is not a label"),
        (lambda: drawn.draw(4000), "draw 4000 of 4,000; expected 0 to 3999"),
    ):
        with pytest.raises(InputError, match=message):
            call()
