"""The space holds valid settings alone, and settings go to points and back."""

import dataclasses
import json

import numpy as np
import pytest

import space
from sl_discs.chains.chains import program_of
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import build_method, method_fields
from sl_discs.reproduction.tuned import Candidate
from sl_discs.samplers.registry import base_samplers
from sl_discs.support.errors import InputError
from space import annealing_of, candidate_of, point_of

SEARCHES = [
    *((base, "all") for base in base_samplers()),
    *(
        (f"sl_{base}", search)
        for base in ("gwg", "path_auxiliary", "dmala")
        for search in space.SEARCHES
    ),
]


class RandomChooser:
    """Chooses as Optuna's trial does, at random."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def suggest_categorical(self, name, choices):
        return choices[self.rng.integers(len(choices))]

    def suggest_float(self, name, low, high, *, log, step):
        if step is not None:
            return low + step * self.rng.integers(round((high - low) / step) + 1)
        return float(
            np.exp(self.rng.uniform(np.log(low), np.log(high)))
            if log
            else self.rng.uniform(low, high)
        )


def default(sampler, **annealing):
    settings = Settings(
        **{"t_schedule": "exp_decay", "decay_rate": 0.05, "final_temperature": 1e-4} | annealing
    )
    return Candidate(method_fields(sampler), annealing_of(settings))


@pytest.mark.parametrize(("sampler", "search"), SEARCHES)
@pytest.mark.parametrize("chain_length", [600, 10_000])
def test_every_point_can_be_played(sampler, search, chain_length):
    dimensions = space.space_of(sampler, search, chain_length)
    start = default(sampler)
    if "K" in start.sampler and chain_length < 1024:
        start.sampler["n_min"] = 2
    settings, chooser, seen = Settings(chain_length=chain_length), RandomChooser(0), []
    for _ in range(50):
        point = space.propose(dimensions, chooser)
        candidate = candidate_of(point, start)
        annealed = candidate.settings(settings)
        program = program_of(build_method(candidate.sampler), annealed)
        temperature = program.temperature.whole()
        assert np.isfinite(temperature).all() and (temperature > 0).all()
        if "t_schedule" in point:
            np.testing.assert_allclose(temperature[-1], annealed.final_temperature, rtol=2e-3)
        if program.levels is not None:
            assert (
                len(program.levels.last) == candidate.sampler["K"]
                and program.levels.last[-1] == chain_length - 1
            )
            assert all(np.isfinite(leaf).all() for leaf in program.levels)
        if chain_length == 600:
            assert candidate.sampler.get("K", 256) == 256 and candidate.sampler.get("n_min", 2) == 2
        seen.append(json.dumps(dataclasses.asdict(candidate)))
    assert len(set(seen)) > 47


ANNEALED = [
    {"t_schedule": "linear", "final_temperature": 0.5},
    {"decay_rate": 0.005, "final_temperature": 1e-5},
    {"t_schedule": "constant", "init_temperature": 0.3},
]


@pytest.mark.parametrize(
    ("sampler", "search", "annealing"),
    [*((*one, {}) for one in SEARCHES), *(("gwg", "all", annealing) for annealing in ANNEALED)],
)
def test_settings_go_to_a_point_and_back(sampler, search, annealing):
    dimensions = space.space_of(sampler, search, 10_000)
    start = default(sampler, **annealing)
    point = space.restricted(dimensions, point_of(start))
    assert all(one.name in point for one in dimensions if one.applies(point)) or annealing
    again = candidate_of(point, start)
    assert again.sampler == start.sampler
    temperatures = [
        one.settings(Settings(chain_length=10_000)).temperatures() for one in (again, start)
    ]
    np.testing.assert_allclose(*temperatures, rtol=1e-6)


@pytest.mark.parametrize(
    ("sampler", "search", "steps", "message"),
    [
        ("gwg", "sl", 10_000, "--sampler=sl_gwg"),
        ("sl_gwg", "sl", 511, "too short for the search of localization"),
    ],
)
def test_impossible_searches_are_refused(sampler, search, steps, message):
    with pytest.raises(InputError, match=message):
        space.space_of(sampler, search, steps)
