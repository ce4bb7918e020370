"""Spectral gaps against formulas for one and two sites and against the oracle; bounds where they hold and fail."""

import numpy as np
import pytest
from single_steps import small_targets

import gaps
from gaps import chernoff, exact_rms, families, glauber_errors, mean_errors, random_models, readings, scan, verdicts
from sl_discs.models.quadratic import SpinForm
from sl_discs.samplers.langevin import DMALA
from sl_discs.testing import oracle

NOISE = np.finfo(float).eps * 100


def pair(coupling: float, first: float, second: float) -> SpinForm:
    """Two spins, coupling s_1 s_2 + fields."""
    return SpinForm(np.array([[0.0, -coupling], [-coupling, 0.0]]), np.array([first, second]), 1.0, 0.0)


def gap(kernel, form, **options):
    return gaps.gap_of(gaps.transitions(kernel, gaps.log_density(form), **options))


@pytest.mark.parametrize("h", [0.1, 1.0, 3.0])
def test_one_site(h):
    """Two states: the gap is the sum of the two probabilities to flip."""
    free = SpinForm(np.zeros((1, 1)), np.array([h]), 1.0, 0.0)
    assert gap("glauber", free) == pytest.approx((1, 1))
    # The only proposal is the flip: accepted with exp(-2h) one way, surely the other way.
    wanted = 1 + np.exp(-2 * h), 1 - np.exp(-2 * h)
    assert gap("metropolis", free) == pytest.approx(wanted)
    assert gap("gwg", free) == pytest.approx(wanted)
    assert gap("langevin", free).one_sided == pytest.approx((1 + np.exp(-2 * h)) / (1 + np.exp(-h)))
    step = 0.4
    flips = [1 / (1 + np.exp(1 / (2 * step) + side * h)) for side in (1, -1)]
    assert gap("dula", free, step_size=step).one_sided == pytest.approx(sum(flips))


@pytest.mark.parametrize(("J", "first", "second"), [(0.3, 0.2, -0.5), (-1.0, 0.7, 0.7), (0.0, 1.0, 2.0)])
def test_glauber_on_two_sites_has_the_gap_of_their_correlation(J, first, second):
    """A random scan of two sites: N gap = 1 - |corr(s_1, s_2)|."""
    weights = {(a, b): np.exp(J * a * b + first * a + second * b) for a in (-1, 1) for b in (-1, 1)}
    total = sum(weights.values())
    means = [sum(weight * state[i] for state, weight in weights.items()) / total for i in range(2)]
    product = sum(weight * a * b for (a, b), weight in weights.items()) / total
    correlation = (product - means[0] * means[1]) / np.sqrt((1 - means[0] ** 2) * (1 - means[1] ** 2))
    assert 2 * gap("glauber", pair(J, first, second)).one_sided == pytest.approx(1 - abs(correlation))


@pytest.mark.parametrize("target", small_targets(3)[:1] + small_targets(3)[3:])
def test_dula_is_the_oracles_and_reversible_for_its_own_law(target):
    density = target.log_density(0.8)
    wanted = oracle.kernel_of(DMALA(scaling="fixed", step_size=0.3, adjusted=False), density, target.mask).transitions
    matrix = gaps.dula(density, 0.3)
    np.testing.assert_allclose(matrix, wanted, atol=NOISE)
    own = density + np.logaddexp(0, gaps.flip_gains(density) / 2 - 1 / 0.6).sum(axis=1)
    flow = np.exp(own - np.logaddexp.reduce(own))[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=NOISE)
    assert np.abs(flow.sum(axis=0) - np.exp(density) / np.exp(density).sum()).max() > 0.01


@pytest.mark.parametrize("kernel", gaps.KERNELS)
def test_the_spectrum_is_that_of_the_kernel(kernel):
    _, form = next(random_models(1, seed=3))
    matrix = gaps.transitions(kernel, gaps.log_density(form))
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    np.testing.assert_allclose(gaps.spectrum(matrix), np.sort(np.linalg.eigvals(matrix).real), atol=1e-7)


def test_bounds_and_the_condition():
    h, N = 2.0, 5
    assert gaps.bound("glauber", h, N) == pytest.approx(1 - h / (np.exp(1.5) + np.exp(-1.5)))
    assert gaps.bound("metropolis", h, N) == pytest.approx(1 - 4 * np.exp(-2))
    squared = (np.exp(0.5) + np.exp(-0.5)) ** 2
    assert gaps.bound("gwg", h, N) == gaps.bound("langevin", h, N) == pytest.approx(1 - h / squared)
    assert gaps.bound("dula", h, N) == pytest.approx(1 - 4 * h * N / squared)
    form = SpinForm(np.array([[0, 1, 0], [1, 0, -3.0], [0, -3, 0]]), np.array([1.0, -9, 8]), 0.5, 0.0)
    assert gaps.needed_field(form) == 4 and gaps.smallest_field(form) == 1
    assert gaps.smallest_field(form, np.array([3, 0, 0])) == 4


@pytest.mark.parametrize("h", [6.0, 12.0, 24.0])
def test_gwg_gets_stuck_on_two_sites_under_the_condition(h):
    """The smallest counterexample to its bound, which tends to 1: from (-, -) all proposals but 2 exp(-h) fail."""
    form = pair(h / 2, h, h)
    assert gaps.smallest_field(form) >= gaps.needed_field(form)
    assert 2 * gap("gwg", form).one_sided == pytest.approx(4 * np.exp(-h), rel=0.02)
    assert gaps.bound("gwg", h, 2) > 0.35
    assert 2 * gap("glauber", form).one_sided > gaps.bound("glauber", h, 2)


@pytest.mark.parametrize("J", [0.5, 1.0, 2.0])
def test_gwg_does_not_get_fast_as_the_field_of_a_run_grows(J):
    """At a fixed coupling its N gap tends to 4 exp(-2J), not to 1."""
    assert 2 * gap("gwg", pair(J, 20.0, 20.0)).one_sided == pytest.approx(4 * np.exp(-2 * J))


def test_verdicts_name_the_smallest_failure():
    rows = scan((1, 2), (0.3, 8.0), 10)
    found = {(row["kernel"], row["reading"]): row for row in verdicts(rows)}
    assert found["glauber", "N steps"]["failed"] == found["metropolis", "N steps"]["failed"] == 0
    assert found["glauber", "one step"]["smallest"]["sites"] == 2
    worst = found["gwg", "N steps"]["smallest"]
    assert (worst["model"], worst["sites"], worst["field"]) == ("ferromagnet", 2, 8.0)
    free = found["langevin", "N steps"]["smallest"]
    assert (free["model"], free["sites"], free["field"]) == ("free", 1, 0.3)
    assert found["dula", "step size 0.2"]["failed"] and not found["dula", "no step size"]["failed"]


def test_readings_scale_with_the_sites():
    _, form = list(families(3, 1.0))[1]
    found = readings("glauber", form)
    assert found["N steps"] == pytest.approx(3 * found["one step"])


def test_the_mean_of_a_chain_has_the_exact_error():
    """Of 4,000 chains the mean square is known within 6 %, five standard errors."""
    density = gaps.log_density(next(random_models(1, seed=5))[1])
    steps = [1, 4, 64]
    measured = np.sqrt((glauber_errors(density, steps, 4_000) ** 2).mean(axis=(1, 2)))
    np.testing.assert_allclose(measured, exact_rms(density, np.array(steps)), rtol=0.03 * 2)
    found = mean_errors(density, gaps.gap_of(gaps.transitions("glauber", density)).one_sided, steps, 500, 0.25)
    assert (np.array(found["missed"]) <= np.array(found["chernoff"]) + 0.01).all()


def test_chernoff_of_independent_draws_is_hoeffdings():
    assert chernoff(1.0, np.array([200]), 0.25, 3)[0] == pytest.approx(6 * np.exp(-200 * 0.25**2 / 2))
    assert chernoff(0.01, np.array([1]), 0.25, 3)[0] == 1
