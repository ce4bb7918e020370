"""`sl_discs.run` on models of DISCS: the right law, and the effective draws that it reports."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sl_discs
from sl_discs.chains.chains import Chains
from sl_discs.discs_plugin.compat import effective_sample_size
from sl_discs.discs_plugin.densities import build_discs_model
from sl_discs.engines.choice import get_engine
from sl_discs.experiment.distributions import effective_draws
from sl_discs.experiment.experiment import perform, request_of, samplers_of
from sl_discs.instances.graph import Graph
from sl_discs.problems.kind import kinds_of
from sl_discs.support.errors import InputError, Interrupted, MissingExtra
from sl_discs.support.signals import Notice

pytestmark = pytest.mark.usefixtures("quickly_compiled")

MODELS = {
    "ising": {"shape": (3, 3), "lambdaa": 0.3},
    "bernoulli": {"shape": (8,)},
    "fhmm": {"shape": (4, 2)},
    "potts": {"shape": (2, 3), "num_categories": 3},
    "categorical": {"shape": (4,), "num_categories": 3},
    "rbm": {"shape": (6,), "num_visible": 6, "num_hidden": 3, "num_categories": 2, "data_path": ""},
}
QUADRATIC = "ising", "bernoulli", "fhmm"
FIELDS = {"batch_size": 16, "chain_length": 2_000}


def model_of(name):
    return {"name": name, **MODELS[name]}


def every_state(states):
    axes = [np.arange(states.num_values)] * states.num_sites
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, states.num_sites)


def values_by_discs(name):
    """DISCS's function at all states, and these."""
    built = build_discs_model(model_of(name), 0, quadratic=False)
    states = every_state(built.states).astype(np.int8)
    x = jnp.asarray(built.states.in_shape(states), jnp.float32)
    if built.states.num_values > 2:
        x = jax.nn.one_hot(x.astype(int), built.states.num_values)
    return np.asarray(built.terms.function.inner.forward(built.params, x), np.float64), states


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_discs(discs, name):
    expected, states = values_by_discs(name)
    found = build_discs_model(model_of(name), 0, name in QUADRATIC).terms.values(states)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "sampler"),
    [("ising", "gibbs"), ("fhmm", "gwg"), ("potts", "gibbs"), ("rbm", "metropolis")],
)
def test_the_mean_is_that_of_all_states(discs, name, sampler):
    """Within five stated errors: a false alarm in two million, where they are normal."""
    values, _ = values_by_discs(name)
    weights = np.exp(values - values.max())
    fields = {"name": sampler} | ({"adaptive": False} if sampler == "gwg" else {})
    found = sl_discs.run([fields], model_config=model_of(name), **FIELDS)
    record = found.record.samplers[sampler]
    draws = record.instances[0].draws
    assert record.engine.partition(" ")[0] == ("cpu" if name in QUADRATIC else "reference")
    assert abs(draws["f_mean"] - np.average(values, weights=weights)) < 5 * draws["f_mean_se"]
    assert draws["r_hat"] < 1.1
    assert record.instances[0].best <= values.max() + 1e-4


def test_effective_draws_are_those_of_the_recorded_states(discs, monkeypatch):
    advance = Chains.advance
    recorded = []

    def advanced(chains, *arguments):
        trace = advance(chains, *arguments)
        recorded.append(np.asarray(trace.states)[:, 0, : FIELDS["batch_size"], :4])
        return trace

    monkeypatch.setattr(Chains, "advance", advanced)
    found = sl_discs.run("metropolis", model_config=model_of("categorical"), **FIELDS)
    [instance] = found.record.samplers["metropolis"].instances
    states = np.concatenate(recorded)[1_000:].astype(int)
    built = build_discs_model(model_of("categorical"), 0, quadratic=False)
    distances = np.abs(states - built.origin).sum(axis=-1).astype(np.float32)
    expected = effective_sample_size(jnp.asarray(distances))
    assert instance.draws["discs_ess"] == pytest.approx(float(expected.mean()), rel=1e-5)
    values = built.terms.values(states.reshape(-1, 4).astype(np.int8))
    assert instance.draws["f_mean"] == pytest.approx(values.mean(), rel=1e-4)


def test_effective_draws_of_discs_do_not_see_chains_apart():
    """Independent draws about a centre of each chain: the distance from a state is that of every
    chain alone, and f's effective draws are those of the centres.
    """
    rng = np.random.default_rng(0)
    steps, chains = 2_000, 8
    values = 9.0 * np.arange(chains) + rng.normal(size=(steps, chains))
    found = effective_draws(values, values, 1.0)
    assert abs(found["discs_ess"] / steps - 1) < 0.1
    assert found["ess"] < 2 * chains and found["r_hat"] > 2
    mixed = effective_draws(values % 9, values - values.mean(axis=0), 1.0)
    assert abs(mixed["ess"] / (steps * chains) - 1) < 0.1 and mixed["r_hat"] < 1.01


def test_rounding_errors_of_each_chain_do_not_count():
    """Independent draws of three values of f, where running sums have drifted apart."""
    rng = np.random.default_rng(0)
    values = rng.choice([-7.1, -3.5, -2.6], size=(1_000, 16))
    drifted = values + rng.uniform(-1e-6, 1e-6, size=16)
    expected, found = (effective_draws(values, f, 1.0) for f in (values, drifted))
    assert found["ess"] == pytest.approx(expected["ess"], rel=1e-3)
    assert found["r_hat"] == pytest.approx(expected["r_hat"], abs=1e-4)


@pytest.mark.parametrize("final", [None, np.full(16, 2.0)])
def test_values_that_all_agree_tell_nothing_of_errors(final):
    """But for rounding errors of each chain."""
    rng = np.random.default_rng(0)
    still = np.full((1_000, 16), 2.2e6) + rng.uniform(size=16)
    found = effective_draws(still, still, 1.0, final)
    unknown = {name for name, number in found.items() if number is None}
    assert unknown == {"ess", "ess_a_step", "ess_a_second", "r_hat", "f_mean_se"}


def test_a_graph_poses_no_distribution(discs):
    request_of(FIELDS, model_of("ising"), samplers_of("gibbs"), named={}).load()
    assert kinds_of(Graph.from_arrays("edge", 2, [(0, 1)])) == [
        "mis", "maxcut", "maxclique", "vertex_cover"
    ]  # fmt: skip


def test_a_whole_number_of_discs_may_be_real(discs):
    """The config of `fhmm` has sigma=2; the log-density falls by squares over 2 sigma^2."""
    below = [
        build_discs_model({**model_of("fhmm"), "sigma": sigma}, 0, quadratic=True)
        for sigma in (2, 2.0, 0.5)
    ]
    states = every_state(below[0].states).astype(np.int8)
    of_int, of_float, small = (built.terms.values(states) for built in below)
    np.testing.assert_array_equal(of_int, of_float)
    assert np.ptp(small) > np.ptp(of_int)


class Stopped(Notice):
    """A notice that comes when chains have run for a while."""

    asked = 0

    @property
    def given(self):
        Stopped.asked += 1
        return Stopped.asked > 5

    @given.setter
    def given(self, value):
        pass


def test_an_interrupted_run_ends_as_another_one(discs, monkeypatch, tmp_path):
    """Base and localized have rows in the summary and in files."""
    monkeypatch.setattr(type(get_engine("cpu")), "steps_per_call", lambda engine, sampler: 200)
    samplers = samplers_of(["gibbs", {"name": "sl_gibbs", "K": 8}])
    request = request_of(FIELDS, model_of("ising"), samplers, named={})
    dataset = request.load()
    whole = perform(request, dataset, tmp_path / "whole", shown=False)
    with pytest.raises(Interrupted):
        perform(request, dataset, tmp_path / "parts", notice=Stopped(), shown=False)
    resumed = perform(request, dataset, tmp_path / "parts", shown=False)
    assert resumed.resumed
    content = json.loads((tmp_path / "parts" / "results.json").read_text())
    for name, sampler in whole.record.samplers.items():
        [ours], [theirs] = sampler.instances, resumed.record.samplers[name].instances
        for number, value in ours.draws.items():
            if not number.endswith("second"):
                assert theirs.draws[number] == value, number
        [instance] = content["samplers"][name]["instances"]
        assert instance["discs_ess"] == ours.draws["discs_ess"]
        assert any(line.split()[:1] == [name] for line in resumed.summary().splitlines())
    [localized] = whole.record.samplers["sl_gibbs"].instances
    assert localized.draws["ess"] == FIELDS["batch_size"]


def test_what_discs_cannot_build_and_samplers_cannot_run(discs):
    for model, sampler, named in [
        ({"name": "ising", "lambda": 1.0}, "gwg", "lambda"),
        ({"name": "rbm"}, "gwg", "path"),
        ({"name": "ising", "shape": (9,)}, "gwg", "ising"),
        ({"name": "ising", "shape": (0, 3)}, "gwg", "shape"),
        ({"name": "ising", "shape": (True, 3)}, "gwg", "shape"),
        ({"name": "ising", "shape": (3, 3), "num_categories": 3}, "gwg", "ising"),
        ({"name": "ising", "shape": (3, 3), "mu": np.nan}, "gwg", "finite"),
        (model_of("potts"), "block_gibbs", "num_categories"),
    ]:
        with pytest.raises(InputError, match=named):
            sl_discs.run(sampler, model_config=model, **FIELDS)


def test_without_discs(no_discs):
    with pytest.raises(MissingExtra):
        sl_discs.run("gwg", model_config={"name": "ising"})
