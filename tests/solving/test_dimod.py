"""The dimod sampler passes dimod's own suite, and agrees with its exact solver."""

import inspect
import json
import unittest

import dimod
import dimod.testing
import numpy as np
import pytest
from marks import slow_except

import sl_discs.dimod
from sl_discs.dimod import BoltzmannSampler, SLSampler
from sl_discs.solving.proofs import Worker
from sl_discs.support.errors import InputError
from sl_discs.testing.conformance import chi_squared


@dimod.testing.load_sampler_bqm_tests(SLSampler)
@dimod.testing.load_sampler_bqm_tests(BoltzmannSampler)
class TestSamplers(unittest.TestCase):
    """dimod's conformance suite."""

    def test_api(self):
        dimod.testing.assert_sampler_api(SLSampler())
        dimod.testing.assert_sampler_api(BoltzmannSampler())


def random_bqm(seed):
    """2 to 9 variables with labels of several types, of either vartype, with integer or real
    coefficients.
    """
    rng = np.random.default_rng(seed)
    labels = [("t", 0), "a", 3, "b", 0, (), -1, "c", 2.5][: rng.integers(2, 10)]
    draw = (lambda: float(rng.integers(-5, 6))) if seed % 2 else rng.normal
    pairs = {(u, v): draw() for k, u in enumerate(labels) for v in labels[:k] if rng.random() < 0.6}
    vartype = dimod.SPIN if seed % 4 < 2 else dimod.BINARY
    return dimod.BinaryQuadraticModel({label: draw() for label in labels}, pairs, draw(), vartype)


def test_it_agrees_with_the_exact_solver():
    for seed in range(50):
        bqm = random_bqm(seed)
        found = SLSampler().sample(bqm, num_reads=8, num_sweeps=200, seed=seed)
        dimod.testing.assert_response_energies(found, bqm)
        exact = dimod.ExactSolver().sample(bqm)
        assert found.first.energy == pytest.approx(exact.first.energy, abs=1e-9)


def test_no_prover_works_on_a_bound_that_no_sample_set_holds(monkeypatch):
    monkeypatch.setattr(Worker, "__init__", lambda *arguments: pytest.fail("a prover was made"))
    for arguments in {}, {"time_limit": 0.1}:
        SLSampler().sample(random_bqm(4), seed=2, **arguments)


def test_arguments_of_simulated_annealing():
    bqm = random_bqm(4)
    one, two = (
        SLSampler().sample(bqm, num_reads=3, num_sweeps=50, beta_range=(0.1, 4.2), seed=88)
        for _ in range(2)
    )
    assert (one.record == two.record).all() and one.info["beta_range"] == pytest.approx([0.1, 4.2])
    assert one.info["steps"] == 50 * bqm.num_variables and one.info["seed"] == 88
    assert set(one.info["timing"]) >= {"preprocessing_ns", "sampling_ns", "postprocessing_ns"}
    assert min(one.info["timing"].values()) >= 0
    empty = SLSampler().sample(dimod.BinaryQuadraticModel("SPIN"), num_reads=3)
    assert len(empty) == 3 and set(empty.info) == set(one.info)
    assert set(empty.info["timing"]) == set(one.info["timing"])
    lowest = dimod.ExactSolver().sample(bqm).first.sample
    tiled = SLSampler().sample(
        bqm, initial_states=lowest, initial_states_generator="tile", num_reads=4, num_sweeps=1
    )
    assert tiled.record.energy == pytest.approx([bqm.energy(lowest)] * 4)
    calls = []
    stopped = SLSampler().sample(
        bqm, num_sweeps=300_000, seed=1, interrupt_function=lambda: calls.append(1) or True
    )
    # Asked once, after the first call to the engine.
    assert len(calls) == 1 and stopped.info["steps"] < 300_000 * bqm.num_variables
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning):
        found = SLSampler().sample(
            bqm, num_sweeps=1, proposal_acceptance_criteria="Gibbs", colour="red"
        )
    assert found.info["sampler"] == "gibbs"


def test_reads_at_one_temperature_are_said_to_be_no_draws(recwarn):
    bqm = dimod.BQM.from_ising({"a": 1.0}, {})
    for one in {"beta_range": (1, 1)}, {"beta_schedule": [2, 2], "beta_schedule_type": "custom"}:
        with pytest.warns(UserWarning, match="not draws; use BoltzmannSampler"):
            SLSampler().sample(bqm, **one, seed=3)
    recwarn.clear()
    SLSampler().sample(bqm, beta_range=(0.5, 1), num_sweeps=1, seed=3)
    SLSampler().sample(bqm, seed=3)
    assert not recwarn


def test_the_signature_is_that_of_simulated_annealing():
    """So that positional arguments mean the same."""
    peer = pytest.importorskip("dwave.samplers").SimulatedAnnealingSampler
    theirs = [name for name in inspect.signature(peer().sample).parameters if name != "kwargs"]
    own = list(inspect.signature(SLSampler().sample).parameters)
    assert own[: len(theirs)] == theirs and set(peer().parameters) <= set(SLSampler().parameters)
    assert (
        SLSampler().properties["beta_schedule_options"]
        == peer().properties["beta_schedule_options"]
    )


@pytest.mark.parametrize(
    ("arguments", "betas", "sweeps"),
    [
        (
            {"beta_schedule_type": "linear", "beta_range": (0.0, 3.0), "num_sweeps": 4},
            [0, 1, 2, 3],
            4,
        ),
        ({"beta_range": (1.0, 4.0), "num_sweeps": 6, "num_sweeps_per_beta": 2}, [1, 2, 4], 6),
        ({"beta_range": [4.0, 1.0], "num_sweeps": 3}, [4, 2, 1], 3),
        ({"beta_range": [4.0, 1.0], "num_sweeps": 1}, [1], 1),
        (
            {
                "beta_schedule_type": "custom",
                "beta_schedule": [2, 0.5, 1],
                "num_sweeps_per_beta": 5,
            },
            [2, 0.5, 1],
            15,
        ),
    ],
)
def test_schedules_of_inverse_temperature(monkeypatch, arguments, betas, sweeps):
    """As the peer has them; each lasts for equally many sweeps, and 0 is a temperature that refuses
    nothing.
    """
    seen, bqm = [], random_bqm(4)
    real = sl_discs.dimod.solve
    monkeypatch.setattr(
        sl_discs.dimod, "solve", lambda *a, **more: seen.append(real(*a, **more)) or seen[-1]
    )
    found = SLSampler().sample(bqm, **arguments, seed=1, sampler="gibbs")
    assert found.info["beta_range"] == pytest.approx([betas[0], betas[-1]])
    assert found.info["steps"] == sweeps * bqm.num_variables
    expected = np.repeat(betas, sweeps * bqm.num_variables // len(betas))
    np.testing.assert_allclose(1 / seen[0].trajectory.temperature, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("in_order", [True, False])
def test_one_sweep_in_order_tries_every_variable(in_order):
    """In the cold each free variable falls to its lower side when it is tried, and in a random
    order not all are.
    """
    bqm = dimod.BinaryQuadraticModel(dict.fromkeys(range(200), 1.0), {}, dimod.SPIN)
    found = SLSampler().sample(
        bqm,
        num_reads=4,
        num_sweeps=1,
        beta_range=(50.0, 50.0),
        randomize_order=not in_order,
        seed=1,
    )
    assert ((found.record.energy == -200) == in_order).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"beta_schedule_type": "custom", "beta_schedule": [1.0, -2.0]},
        {"beta_schedule_type": "custom", "beta_schedule": [1.0, 2.0], "num_sweeps": 3},
        {"randomize_order": True, "sampler": "gwg"},
        {"initial_states_generator": "none"},
        {"sampler_fields": {"sigma": 1.0}},
    ],
)
def test_bad_arguments_are_explained(arguments):
    with pytest.raises(InputError, match="|".join([*arguments, "no field"])):
        SLSampler().sample(random_bqm(4), **arguments)


@pytest.mark.parametrize("method", ["exact", "chain", "tempering", "localization"])
@pytest.mark.parametrize("vartype", slow_except(["SPIN", "BINARY"], ["BINARY"]))
def test_draws_have_the_law_of_the_inverse_temperature(method, vartype):
    """4,000 reads over 16 states, labels of several types, an offset: chi-squared fails once in
    10^6 by chance.
    """
    fields, pairs = (
        {("t", 0): 0.5, "b": -0.3, 3: 0.2, "": 0.0},
        {("b", 3): 0.8, (3, ""): -0.6, (("t", 0), "b"): 0.7},
    )
    bqm = dimod.BinaryQuadraticModel(fields, pairs, 3.0, vartype)
    found = BoltzmannSampler().sample(bqm, beta=0.7, num_reads=4_000, method=method, seed=3)
    assert len(found) == 4_000 and found.vartype is bqm.vartype
    dimod.testing.assert_response_energies(found, bqm)
    exact = dimod.ExactSolver().sample(bqm)
    columns = [exact.variables.index(label) for label in found.variables]
    weights = np.exp(-0.7 * exact.record.energy)
    counts = np.array(
        [(found.record.sample == state[columns]).all(axis=1).sum() for state in exact.record.sample]
    )
    law = weights / weights.sum()
    assert chi_squared(counts, 4_000 * law)[1] > 1e-6
    info = found.info
    assert info["reliable"], info["reasons"]
    assert info["beta"] == 0.7 and info["seed"] == 3 and info["method"] == method
    if info["log_z"] is not None:
        assert abs(info["log_z"][0] - np.log(weights.sum())) <= 5 * info["log_z"][1] + 1e-9
    error = info["mean"]["value"][1]
    assert abs(info["mean"]["value"][0] - law @ exact.record.energy) <= 5 * error + 1e-9
    json.dumps(info)


@pytest.mark.parametrize("reads", slow_except([1, 7, 1_001], [7]))
@pytest.mark.parametrize("method", ["auto", "chain"])
def test_there_are_exactly_as_many_draws_as_reads(reads, method):
    bqm = random_bqm(4)
    one, two = (
        BoltzmannSampler().sample(bqm, num_reads=reads, method=method, seed=8) for _ in range(2)
    )
    assert len(one) == reads and (one.record == two.record).all()


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_time_and_interruption_keep_the_number_of_reads():
    bqm = random_bqm(4)
    stopped = BoltzmannSampler().sample(
        bqm, beta=0.2, num_reads=50_000, method="chain", interrupt_function=lambda: True, seed=1
    )
    assert len(stopped) == 50_000 and stopped.info["interrupted"] and not stopped.info["reliable"]
    assert stopped.info["draws"] < 50_000
    timed = BoltzmannSampler().sample(
        bqm, beta=0.2, num_reads=9, method="chain", time_limit=0.05, seed=1
    )
    assert len(timed) == 9 and timed.info["draws"] > 9


@pytest.mark.parametrize(
    "arguments", [{"beta": "cold"}, {"beta": 1e-320}, {"num_reads": 1.5}, {"method": "magic"}]
)
def test_bad_arguments_of_draws_are_explained(arguments):
    with pytest.raises(InputError, match="|".join([*arguments, "no field"])):
        BoltzmannSampler().sample(random_bqm(4), **arguments)
