"""Estimates of draws beside what is known of their distribution, in units of their standard
errors.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from sl_discs.problems.problem import Problem
from sl_discs.sampling.drawn import Estimate
from sl_discs.sampling.exact import exact
from sl_discs.sampling.samples import Samples
from truths import Truth

# With seeds fixed, a right method fails a comparison with probability below 1e-5, batch means of 16
# groups included.
LIMIT = 5.0


def truth_of(problem: Problem, temperature: float) -> Truth:
    """By enumeration, of a small problem; the mean value is in the problem's own sense."""
    law = exact(problem.terms(), temperature)
    mean = float(law.known.mean_value) * (1 if problem.maximise else -1)
    return Truth(problem, temperature, law.log_z, mean, law.known.marginals[:, 1])


def errors(one: Estimate, known: float) -> float:
    """How many errors an estimate is off; rounding counts as one where it is exact."""
    return (one.mean - known) / max(one.error, 1e-9 * max(1.0, abs(known)))


def deviations(samples: Samples, truth: Truth) -> np.ndarray:
    """Errors of all marginals, of the mean value, and of log Z where the method gives it."""
    found = [*samples.marginals.values(), samples.mean()]
    known = [*truth.marginals, truth.mean_value]
    if samples.log_z is not None:
        found.append(samples.log_z)
        known.append(truth.log_z)
    return np.array([errors(*pair) for pair in zip(found, known, strict=True)])


def check(samples: Samples, truth: Truth) -> None:
    apart = deviations(samples, truth)
    assert np.abs(apart).max() < LIMIT, apart
    if samples.known is not None:  # the draws themselves
        check(dataclasses.replace(samples, known=None), truth)


def check_calibrated(draw: Callable[[int], Samples], truth: Truth) -> None:
    """Over 200 seeds the truth lies within two errors in 90 to 99 % of cases, and of all marginals
    together.
    """
    size = len(truth.marginals)
    shares = np.mean([np.abs(deviations(draw(seed), truth)) <= 2 for seed in range(200)], axis=0)
    # A share of 200 has a standard deviation of 1.5 %.
    assert (shares[size:] >= 0.9).all() and (shares[size:] <= 0.99).all(), shares
    assert 0.9 <= shares[:size].mean() <= 0.99, shares


def check_fields(samples: Samples, problem: Problem) -> None:
    """Recomputes every field from the draws, the problem, and what was asked for."""
    groups, draws = samples.group_values.shape
    states = samples.states.reshape(groups, draws, -1)
    spins = states if problem.spins else 2 * states - 1
    assert set(np.unique(spins)) <= {-1, 1} and len(samples) == groups * draws
    f = problem.terms().values((samples.states > 0).astype(np.int8))
    np.testing.assert_allclose(samples.values, f if problem.maximise else -f, atol=1e-9)
    overlaps = (spins * np.roll(spins, -1, axis=0)).mean(axis=2)
    np.testing.assert_allclose(samples.group_overlaps, overlaps, atol=1e-12)
    np.testing.assert_allclose(samples.group_magnetisations, spins.mean(axis=2), atol=1e-12)
    of_problem = ("kind", "name", "maximise", "spins")
    assert [getattr(samples, one) for one in of_problem] == [
        getattr(problem, one) for one in of_problem
    ]
    assert list(samples.labels) == list(problem.labels) == list(samples.marginals)
    method = samples.method
    assert (samples.ladder is not None) == (method == "tempering")
    assert (samples.known is not None) == (method == "exact")
    assert (samples.dependence == "none") == (method in ("exact", "localization"))
    assert (samples.averages is not None) == (method in ("chain", "tempering"))
    assert (samples.log_z is None) == (method in ("chain", "localization"))
    assert samples.curve is None and not samples.interrupted and samples.reliable
    assert [one.name for one in samples.diagnostics][:3] == ["value", "magnetisation", "overlap"]
    if samples.ladder is not None:
        swaps = samples.ladder.acceptance
        assert ((swaps >= 0) & (swaps <= 1)).all() and (samples.ladder.round_trips > 0).all()
    seconds = dict(samples.seconds)
    assert sum(seconds.values()) - seconds["total_s"] <= seconds["total_s"] + 0.1
