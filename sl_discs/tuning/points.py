"""Conversion of points of the search space to settings of a run, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import Method, build_method
from sl_discs.tuning.space import Point, n_min_name

TEMPERATURE_FIELDS = ("t_schedule", "init_temperature", "final_temperature", "decay_rate")
RESAMPLING_FIELDS = ("resample_every", "resample_strength")
ANNEALING_FIELDS = TEMPERATURE_FIELDS + RESAMPLING_FIELDS

_DIGITS = 4


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Settings to try.

    Attributes:
      sampler: config fields of the sampler, including its name.
      experiment: the annealing fields of `Settings`.
    """

    sampler: dict[str, Any]
    experiment: dict[str, Any]

    def method(self, num_chains: int) -> Method:
        """The method that these fields define; InputError if they are invalid."""
        return build_method(self.sampler, num_chains)

    def settings(self, settings: Settings) -> Settings:
        """The given settings with this candidate's annealing."""
        return dataclasses.replace(settings, **self.experiment)


def annealing_of(settings: Settings) -> dict[str, Any]:
    """The annealing fields of settings."""
    return {name: getattr(settings, name) for name in ANNEALING_FIELDS}


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def candidate_of(point: Point, start: Candidate) -> Candidate:
    """The settings that a point represents.

    Args:
      point: a point of any space of the sampler.
      start: settings for everything that the point omits.
    """
    sampler, experiment = dict(start.sampler), dict(start.experiment)
    for name, value in point.items():
        if name == "t_schedule":
            experiment |= _temperatures(point)
        elif name in RESAMPLING_FIELDS:
            experiment[name] = value
        elif name == "K":
            sampler |= {"K": value, "n_min": point[n_min_name(value)]}
        elif name in sampler:
            sampler[name] = _rounded(value) if isinstance(value, float) else value
    return Candidate(sampler, experiment)


def _temperatures(point: Point) -> dict[str, Any]:
    initial, cooling = _rounded(point["init_temperature"]), point.get("cooling", 1.0)
    return {
        "t_schedule": point["t_schedule"],
        "init_temperature": initial,
        "final_temperature": _rounded(initial * cooling),
        "decay_rate": _rounded(cooling),
    }


def without_tilt(candidate: Candidate) -> Candidate:
    """The candidate with the tilt switched off (see `Localization.tilt`)."""
    return Candidate(candidate.sampler | {"tilt": False}, candidate.experiment)


def point_of(candidate: Candidate) -> Point:
    """The point that represents the settings, in a space without bounds."""
    annealing: Mapping[str, Any] = candidate.experiment
    initial, final = annealing["init_temperature"], annealing["final_temperature"]
    if annealing["t_schedule"] == "exp_decay":
        # The temperature that is reached: `final_temperature` is only a floor for this schedule.
        final = max(initial * annealing["decay_rate"], final)
    point: Point = {"t_schedule": annealing["t_schedule"], "init_temperature": initial, "cooling": final / initial}
    point |= {name: annealing[name] for name in RESAMPLING_FIELDS}
    point |= {name: value for name, value in candidate.sampler.items() if value is not None and name != "name"}
    if "K" in point:
        point[n_min_name(point["K"])] = point["n_min"]
    return point
