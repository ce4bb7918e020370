"""DISCS's effective sample size against chains whose autocorrelation is known."""

import numpy as np
import pytest

from sl_discs.errors import InputError
from sl_discs.experiment.ess import discs_ess, distances, effective_sample_size

# Traces have one of two shapes, for each of which a program is compiled.
LENGTH, CHAINS = 1_000, 2_000


def autoregression(a: float, length: int, chains: int) -> np.ndarray:
    """Stationary chains x_t = a x_{t-1} + noise, whose effective sample size is length (1 - a)/(1 + a)."""
    rng = np.random.default_rng(0)
    x = np.zeros((length, chains), np.float32)
    x[0] = rng.standard_normal(chains) / np.sqrt(1 - a * a)
    for t in range(1, length):
        x[t] = a * x[t - 1] + rng.standard_normal(chains)
    return x


@pytest.mark.parametrize("a", [0.0, 0.5, 0.8])
def test_effective_sample_size_of_an_autoregression(a):
    """The sum ends at the first negative correlation, which is noise: it is 12 % too long at most (seed fixed)."""
    found = float(np.mean(1 / np.asarray(effective_sample_size(autoregression(a, LENGTH, CHAINS)))))
    assert 0.97 < found * LENGTH * (1 - a) / (1 + a) < 1.12


def test_effective_sample_size_term_by_term():
    """The definition, in double precision and without a Fourier transform."""
    length, trace = 60, autoregression(0.6, 60, 5)
    expected = []
    for x in trace.T.astype(float):
        x = x - x.mean()
        correlations = np.array([np.mean(x[: length - k] * x[k:]) for k in range(length)]) / np.mean(x * x)
        end = np.argmax(correlations < 0)
        lags = np.arange(1, end)
        expected.append(length / (1 + 2 * np.sum((1 - lags / length) * correlations[1:end])))
    np.testing.assert_allclose(effective_sample_size(trace), expected, rtol=1e-5)


@pytest.mark.parametrize("ratio", [0.5, 0.25])
def test_the_four_figures(ratio):
    """Burn-in is left out, however far off it is; steps and evaluations are scaled by the ratio."""
    cut = int(LENGTH * ratio / (1 - ratio))
    length = cut + LENGTH
    trace = autoregression(0.5, length, CHAINS)
    trace[:cut] += 1e3
    found = discs_ess(trace, seconds=4.0, evaluations=8_000, ess_ratio=ratio)
    assert found.ess == pytest.approx(float(np.mean(effective_sample_size(trace[cut:]))), rel=1e-6)
    assert found.per_step == pytest.approx(found.ess / (length * ratio))
    assert found.per_second == pytest.approx(found.ess / 4)
    assert found.per_evaluation == pytest.approx(found.ess / (8_000 * ratio))


def test_a_frozen_chain_counts_as_one_sample():
    assert discs_ess(np.full((120, 5), 7.0), 1.0, 120).ess == pytest.approx(1)


def test_too_short_a_trace_is_refused():
    with pytest.raises(InputError, match="a trace of 2 steps has 1 after burn-in"):
        discs_ess(np.zeros((2, 1)), 1.0, 2)


def test_distances_from_a_state():
    states = np.array([[[0, 0, 1], [1, 1, 1]], [[0, 1, 0], [0, 0, 0]]], np.int8)
    np.testing.assert_array_equal(distances(states, np.array([0, 1, 1], np.int8)), [[1, 1], [1, 2]])
