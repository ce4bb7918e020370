"""The null control: the tilt has no effect at all, and only the seed tells trials apart."""

import dataclasses

import numpy as np
import pytest

from sl_discs.experiment.chains import program_of
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import method_fields
from sl_discs.tuning import space
from sl_discs.tuning.space import Candidate, annealing_of, candidate_of, without_tilt

SETTINGS = Settings(batch_size=4, chain_length=600, seed=3, engine="reference")


class Ends:
    """Chooses the first of everything, or the last."""

    def __init__(self, last):
        self.last = last

    def suggest_categorical(self, name, choices):
        return choices[-1 if self.last else 0]

    def suggest_float(self, name, low, high, **_):
        return high if self.last else low


def plain(sampler):
    return Candidate(method_fields(sampler), annealing_of(SETTINGS))


def null_points(sampler):
    dimensions = space.space_of(sampler, "sl", SETTINGS.chain_length, null=True)
    points = [space.propose(dimensions, Ends(last)) for last in (False, True)]
    assert all(
        points[0][name] != points[1][name] for name in ("alpha", "grid", "eps", "eps_end", "mc_ratio", "budget")
    )
    return [without_tilt(candidate_of(point, plain(sampler))) for point in points]


def run(candidates, dataset, settings):
    """The record of each; what was compiled for the first serves them all."""
    methods = [candidate.method(settings.batch_size) for candidate in candidates]
    records = [run_sampler(dataset, 1.0001, method, settings) for method in methods]
    assert all(record.compile_s == 0 for record in records[1:])
    return records


@pytest.mark.parametrize("alpha", ["geom(2,1)", "geom(1,1)", "classic"])
def test_the_tilt_is_exactly_zero(alpha):
    for eps in (1e-4, 1e-1):
        fields = method_fields("sl_gwg") | {"alpha": alpha, "eps": eps, "eps_end": eps, "n_min": 2}
        method = without_tilt(Candidate(fields, annealing_of(SETTINGS))).method(4)
        program = program_of(method, SETTINGS).levels
        assert not program.tilt_scale.any()
        spread = np.sqrt(method.localization.initial_noise() ** 2 + (program.noise.astype(np.float64) ** 2).sum())
        assert 10 * spread + program.drift.sum() < np.finfo(np.float32).max


def test_chains_are_those_of_the_base_sampler(dataset):
    """Whatever the null search chooses; the reference engine rounds acceptances differently, to one part in 1e7."""
    (base,) = run([plain("path_auxiliary")], dataset, SETTINGS)
    for localized in run(null_points("sl_path_auxiliary"), dataset, SETTINGS):
        np.testing.assert_array_equal(localized.trajectory, base.trajectory)
        np.testing.assert_array_equal(localized.hops, base.hops)
        np.testing.assert_allclose(localized.acceptance, base.acceptance, rtol=1e-6)
        for one, other in zip(localized.instances, base.instances, strict=True):
            np.testing.assert_array_equal(one.solution, other.solution)


def test_compiled_loops_have_the_same_law(dataset):
    """Their proposals' temperatures move where levels begin, so that proposals differ by up to 0.6 %."""
    settings = dataclasses.replace(SETTINGS, engine="cpu", batch_size=64)
    (base,) = run([plain("path_auxiliary")], dataset, settings)
    for localized in run(null_points("sl_path_auxiliary"), dataset, settings):
        np.testing.assert_allclose(localized.acceptance, base.acceptance, atol=0.05)
        np.testing.assert_allclose(localized.acceptance[0], base.acceptance[0], atol=6e-3)
        assert [one.best for one in localized.instances] == [one.best for one in base.instances]
