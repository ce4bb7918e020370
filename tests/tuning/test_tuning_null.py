"""The null control: the tilt has no effect at all, and only the seed tells trials apart."""

import dataclasses
import importlib.util

import numpy as np
import pytest

from sl_discs.experiment.run import compile_program, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import method_fields
from sl_discs.tuning import space
from sl_discs.tuning.points import Candidate, annealing_of, candidate_of, without_tilt

SETTINGS = Settings(batch_size=4, chain_length=600, seed=3)


def null(sampler, **fields):
    return without_tilt(Candidate(method_fields(sampler) | {"n_min": 2} | fields, annealing_of(SETTINGS)))


def run(candidate, dataset, engine):
    settings = dataclasses.replace(candidate.settings(SETTINGS), engine=engine)
    method = candidate.method(settings.batch_size)
    return run_sampler("mis", dataset, 1.0001, method, settings, lambda steps: None)


@pytest.mark.parametrize("alpha", ["geom(2,1)", "geom(1,1)", "classic"])
def test_the_tilt_is_exactly_zero(alpha):
    for eps in (1e-4, 1e-1):
        method = null("sl_gwg", alpha=alpha, eps=eps, eps_end=eps).method(4)
        program = compile_program(method, SETTINGS).localization
        assert not program.tilt_scale.any()
        spread = np.sqrt(method.localization.initial_noise() ** 2 + (program.noise.astype(np.float64) ** 2).sum())
        assert 10 * spread + program.drift.sum() < np.finfo(np.float32).max


@pytest.mark.parametrize("base", ["gwg", "path_auxiliary", "dmala"])
def test_chains_are_those_of_the_base_sampler(dataset, base):
    plain = run(Candidate(method_fields(base), annealing_of(SETTINGS)), dataset, "xla")
    for fields in ({}, {"budget": "identical", "mc_ratio": 1.0, "grid": "log_snr"}):
        localized = run(null(f"sl_{base}", **fields), dataset, "xla")
        np.testing.assert_array_equal(localized.trajectory, plain.trajectory)
        np.testing.assert_array_equal(localized.acceptance, plain.acceptance)
        for one, other in zip(localized.instances, plain.instances, strict=True):
            np.testing.assert_array_equal(one.solution, other.solution)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("base", ["gwg", "path_auxiliary", "dmala"])
def test_compiled_loops_differ_by_rounding_alone(dataset, base):
    """They add up weights anew where a level ends: sums may differ in the last bits, the law does not."""
    plain = run(Candidate(method_fields(base), annealing_of(SETTINGS)), dataset, "cpu")
    localized = run(null(f"sl_{base}"), dataset, "cpu")
    np.testing.assert_allclose(localized.acceptance.mean(axis=0), plain.acceptance.mean(axis=0), atol=0.02)
    np.testing.assert_array_equal([i.best for i in localized.instances], [i.best for i in plain.instances])


def test_no_choice_of_the_null_search_matters(dataset):
    """Points of the null space that differ in everything give the same chains."""
    dimensions = space.space_of("sl_gwg", "sl", 600, null=True)
    start = Candidate(method_fields("sl_gwg"), annealing_of(SETTINGS))

    class Ends:
        def __init__(self, last):
            self.last = last

        def suggest_categorical(self, name, choices):
            return choices[-1 if self.last else 0]

        def suggest_float(self, name, low, high, **_):
            return high if self.last else low

    points = [space.propose(dimensions, Ends(last)) for last in (False, True)]
    first, second = (run(without_tilt(candidate_of(point, start)), dataset, "xla") for point in points)
    assert all(points[0][name] != points[1][name] for name in ("alpha", "grid", "eps", "mc_ratio", "budget"))
    np.testing.assert_array_equal(first.trajectory, second.trajectory)
