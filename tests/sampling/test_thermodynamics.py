"""Curves over temperatures, against sums over all states; within 6 standard errors where they are
estimates.
"""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import sl_discs
from sl_discs.sampling.exact import eliminated, exact_curve
from sl_discs.testing.conformance import all_states

TEMPERATURES = [2.0, 0.6, 1.0]
LIMIT = 6


def ring(size=9, free=0):
    """A ring with an offset, of 9 variables to share compiled programs with other tests; and free
    variables.
    """
    rng = np.random.default_rng(3)
    couplings = {(k, (k + 1) % size): float(rng.normal()) for k in range(size)}
    fields = {k: float(rng.normal()) for k in range(size)}
    return sl_discs.ising(fields | {size + k: 0.0 for k in range(free)}, couplings, offset=7.0)


def truth(problem, temperature):
    """Value, heat capacity, log Z and entropy by a sum over all states."""
    energies = np.array([problem.value(2 * x - 1) for x in all_states(problem.num_variables)])
    weights = np.exp(-energies / temperature)
    log_z, law = np.log(weights.sum()), weights / weights.sum()
    mean = law @ energies
    variance = law @ (energies - mean) ** 2
    return np.array([mean, variance / temperature**2, log_z, -(law * np.log(law)).sum()])


TRUTHS = np.array([truth(ring(), temperature) for temperature in TEMPERATURES])


def test_an_enumerated_curve():
    found = sl_discs.sample(ring(), TEMPERATURES, draws=80)
    assert found.method == "exact" and found.temperature == 0.6 and found.reliable
    np.testing.assert_allclose(found.curve.temperature, TEMPERATURES)
    columns = np.stack(found.curve[1:], axis=1)
    np.testing.assert_allclose(columns[:, :, 0], TRUTHS, rtol=1e-9)
    assert (columns[:, :, 1] == 0).all()
    assert found.curve.log_z[1, 0] == pytest.approx(found.log_z.mean)


def test_a_curve_by_elimination_is_that_by_enumeration():
    """21 variables are eliminated, three of which are free: each adds log 2 and no value."""
    known, found = (exact_curve(ring(18, free).terms(), TEMPERATURES) for free in (0, 3))
    assert eliminated(ring(18, 3).terms(), 1.0).width == 2
    np.testing.assert_allclose(found.value, known.value, rtol=1e-9)
    np.testing.assert_allclose(found.log_z[:, 0], known.log_z[:, 0] + 3 * np.log(2), rtol=1e-9)
    np.testing.assert_allclose(found.entropy[:, 0], known.entropy[:, 0] + 3 * np.log(2), rtol=1e-9)
    np.testing.assert_allclose(found.heat_capacity, known.heat_capacity, rtol=1e-9)


@pytest.mark.parametrize("size", [15, 40])
def test_exact_heat_capacities_and_entropies_have_all_digits_at_any_temperature(size):
    """An open chain of enumerated or eliminated spins: two states, and size - 1 independent
    bonds.
    """
    temperatures = np.array([0.02, 0.1, 1.0, 50.0])
    chain = sl_discs.ising({}, {(i, i + 1): -1.0 for i in range(size - 1)}, offset=1e3)
    curve, odds = exact_curve(chain.terms(), temperatures), np.exp(-2 / temperatures)
    capacity = (2 / temperatures) ** 2 * odds / (1 + odds) ** 2
    entropy = np.log1p(odds) + 2 / temperatures * odds / (1 + odds)
    np.testing.assert_allclose(
        curve.heat_capacity, np.stack([(size - 1) * capacity, 0 * odds], 1), rtol=1e-9
    )
    np.testing.assert_allclose(curve.entropy[:, 0], np.log(2) + (size - 1) * entropy, rtol=1e-9)


def test_what_a_ladder_gives_is_never_exact():
    """At temperatures so high that all errors are those of rounding."""
    found = sl_discs.sample(ring(), [1e25, 2e25], draws=160, method="tempering")
    assert "exact" not in str(found) + str(found.log_z)
    assert (np.stack(found.curve[1:])[:, :, 1] > 0).all()


def shown_rows(found):
    return {line.split("  ")[1] for line in str(found).splitlines() if line.startswith("  ")}


def test_a_curve_by_tempering(tmp_path):
    found = sl_discs.sample(ring(), TEMPERATURES, draws=800, method="tempering", seed=1)
    columns = np.stack(found.curve[1:], axis=1)
    mean, error = columns[:, :, 0], columns[:, :, 1]
    assert found.reliable and (error > 0).all() and (error < 0.2).all()
    assert (np.abs(mean - TRUTHS) < LIMIT * error).all()
    others = {one.name: one for one in found.diagnostics if " at " in one.name}
    assert set(others) == {"value at 2", "value at 1"} and set(others) <= shown_rows(found)
    assert all(one.ess_bulk > 400 and one.r_hat < one.limit for one in others.values())
    title = next(line for line in str(found).splitlines() if "heat capacity" in line)
    assert title.split()[0] == "temperature" and title.count("error") == 4
    loaded = sl_discs.Samples.load(found.save(tmp_path / "curve.npz"))
    np.testing.assert_array_equal(np.stack(loaded.curve[1:]), np.stack(found.curve[1:]))
    assert json.loads(json.dumps(found.summary()["curve"]))["temperature"] == TEMPERATURES
    labels = [axes.get_ylabel() for axes in found.plot().axes]
    assert labels[-3:] == ["value", "heat capacity", "entropy"]


@pytest.mark.usefixtures("quickly_compiled")
def test_a_curve_of_a_log_density_with_states_of_probability_0():
    """Of ten free sites two exclude each other: log Z and the entropy count three quarters of all
    states.
    """

    def excluded(field, x):
        return jnp.where(x[0] * x[1] > 0, -jnp.inf, field * x.sum())

    problem = sl_discs.from_log_density(excluded, 0.5, 10)
    known = sl_discs.sample(problem, TEMPERATURES, draws=80)
    found = sl_discs.sample(
        problem, TEMPERATURES, draws=1_024, method="tempering", sampler="gibbs", seed=1
    )
    for name in known.curve._fields[1:]:
        mean, error = getattr(found.curve, name).T
        assert (np.abs(mean - getattr(known.curve, name)[:, 0]) < LIMIT * error).all(), name


def test_one_temperature_has_no_curve():
    assert sl_discs.sample(ring(), 1.0, draws=80).curve is None
