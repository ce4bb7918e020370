"""The search spaces as data: annealing, the base sampler's own fields, and stochastic localization.

A space is a tuple of dimensions and contains no invalid combinations: the final temperature is a
fraction of the initial one, and each number of levels K has its own choices of n_min, those that
fit into the chain.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from sl_discs.experiment.settings import Settings
from sl_discs.reproduction.tuned import ANNEALING_FIELDS, Candidate
from sl_discs.samplers.langevin import SOLVERS
from sl_discs.samplers.registry import is_localized, registered
from sl_discs.support.errors import InputError

SEARCHES = ("annealing", "sl", "all")

Point = dict[str, Any]

Value = float | int | str


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One number or name to choose.

    Attributes:
      name: name in the storage; a field of the sampler, or a quantity that `candidate_of` converts
        to fields.
      choices: the possible values; empty for a number between low and high.
      low: smallest value.
      high: largest value.
      log: whether the scale is logarithmic.
      step: distance between neighbouring values; None: any value.
      only_if: (name, values) of an earlier dimension, which must have one of these values.
    """

    name: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    only_if: tuple[str, tuple[Value, ...]] | None = None

    def applies(self, point: Mapping[str, Value]) -> bool:
        """Returns whether a point with these earlier choices has this dimension."""
        return self.only_if is None or point.get(self.only_if[0]) in self.only_if[1]

    def contains(self, value: Value) -> bool:
        """Returns whether this value is possible."""
        if self.choices:
            return value in self.choices
        return not isinstance(value, str) and self.low <= value <= self.high


_TEMPERATURES = (
    Dimension("t_schedule", ("exp_decay", "linear", "constant")),
    Dimension("init_temperature", low=0.05, high=5.0, log=True),
    # final temperature / initial temperature
    Dimension(
        "cooling", low=0.003, high=1.0, log=True, only_if=("t_schedule", ("exp_decay", "linear"))
    ),
)

_TARGET = Dimension("target_acceptance_rate", low=0.274, high=0.874, step=0.05)
_flips = functools.partial(Dimension, low=1.0, high=12.0, step=0.5)
# Of each base sampler's own fields, those that are searched; a sampler of your own may add some.
# Few choices or large steps are best, as a sampler's fields are compiled into its program.
SEARCHED: dict[str, tuple[Dimension, ...]] = {
    "gwg": (_TARGET,),
    "path_auxiliary": (_TARGET,),
    "dmala": (_flips("expected_flips"),),
    "exchange": (Dimension("single", (0.1, 0.3, 0.5, 0.7, 0.9)),),
    "dlmc": (_flips("n"), Dimension("solver", SOLVERS)),
}

_LEVELS = (256, 512, 1024)
_N_MIN = (2, 4, 6, 8, 16, 32)
_SCHEDULES = (
    Dimension("sigma", (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0)),
    Dimension("alpha", ("geom(2,1)", "geom(1,1)", "classic")),
    Dimension("grid", ("uniform", "log_snr")),
    Dimension("eps", low=1e-4, high=1e-1, log=True),
    Dimension("eps_end", low=1e-4, high=1e-1, log=True),
    Dimension("mc_ratio", low=0.1, high=1.0, step=0.1),
    Dimension("budget", ("exp_decay", "identical")),
    Dimension("r", low=1e-4, high=1e-1, log=True, only_if=("budget", ("exp_decay",))),
)


def _localization(chain_length: int) -> tuple[Dimension, ...]:
    fitting = {levels: tuple(n for n in _N_MIN if levels * n <= chain_length) for levels in _LEVELS}
    fitting = {levels: choices for levels, choices in fitting.items() if choices}
    if not fitting:
        raise InputError(
            f"chain_length {chain_length} is too short for the search of localization, which takes "
            "at least "
            f"{_LEVELS[0]} levels of {_N_MIN[0]} steps: {_LEVELS[0] * _N_MIN[0]}"
        )
    n_min = (
        Dimension(f"n_min_{levels}", choices, only_if=("K", (levels,)))
        for levels, choices in fitting.items()
    )
    return (Dimension("K", tuple(fitting)), *_SCHEDULES, *n_min)


def space_of(sampler: str, search: str, chain_length: int) -> tuple[Dimension, ...]:
    """Returns the dimensions of a search; InputError if it does not fit the sampler or the number
    of steps.

    Args:
      sampler: base sampler or `sl_` variant.
      search: `annealing` (temperatures and the base sampler's own fields), `sl` (localization), or
        `all`.
      chain_length: number of steps, which limits levels and n_min.
    """
    base = registered(sampler).name
    if search not in SEARCHES:
        raise InputError(f"--search={search} is unknown; known: {', '.join(SEARCHES)}")
    localized = is_localized(sampler)
    if search == "sl" and not localized:
        raise InputError(
            f"--search=sl needs a localized sampler, such as --sampler=sl_{sampler}, not {sampler}"
        )
    annealed = (*_TEMPERATURES, *SEARCHED.get(base, ())) if search != "sl" else ()
    schedules = _localization(chain_length) if localized and search != "annealing" else ()
    return annealed + schedules


def propose(space: tuple[Dimension, ...], trial: Any) -> Point:
    """Returns a point of the space, each choice made by an Optuna trial, or by what has its two
    methods.
    """
    point: Point = {}
    for one in space:
        if one.applies(point) and one.choices:
            point[one.name] = trial.suggest_categorical(one.name, one.choices)
        elif one.applies(point):
            point[one.name] = trial.suggest_float(
                one.name, one.low, one.high, log=one.log, step=one.step
            )
    return point


def restricted(space: tuple[Dimension, ...], point: Mapping[str, Value]) -> Point:
    """Returns the part of a point that lies in the space; the search chooses the rest."""
    kept: Point = {}
    for one in space:
        if one.applies(kept) and one.name in point and one.contains(point[one.name]):
            kept[one.name] = point[one.name]
    return kept


# Conversion of points of the search space to settings of a run, and back.


def annealing_of(settings: Settings) -> dict[str, Any]:
    """Returns the annealing fields of settings."""
    return {name: getattr(settings, name) for name in ANNEALING_FIELDS}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def candidate_of(point: Point, start: Candidate) -> Candidate:
    """Returns the settings that a point of any space of the sampler represents, and `start` for
    everything that it omits.
    """
    sampler, experiment = dict(start.sampler), dict(start.experiment)
    for name, value in point.items():
        if name == "t_schedule":
            initial, cooling = _rounded(point["init_temperature"]), point.get("cooling", 1.0)
            experiment |= {"t_schedule": value, "init_temperature": initial}
            experiment |= {
                "final_temperature": _rounded(initial * cooling),
                "decay_rate": _rounded(cooling),
            }
        elif name == "K":
            sampler |= {"K": value, "n_min": point[f"n_min_{value}"]}
        elif name in sampler:
            sampler[name] = _rounded(value) if isinstance(value, float) else value
    return Candidate(sampler, experiment)


def point_of(candidate: Candidate) -> Point:
    """Returns the point that represents the settings, in a space without bounds."""
    annealing: Mapping[str, Any] = candidate.experiment
    initial, final = annealing["init_temperature"], annealing["final_temperature"]
    if annealing["t_schedule"] == "exp_decay":
        # The temperature that is reached: `final_temperature` is only a floor for this schedule.
        final = max(initial * annealing["decay_rate"], final)
    point: Point = {
        "t_schedule": annealing["t_schedule"],
        "init_temperature": initial,
        "cooling": final / initial,
    }
    point |= {
        name: value
        for name, value in candidate.sampler.items()
        if value is not None and name != "name"
    }
    if "K" in point:
        point[f"n_min_{point['K']}"] = point["n_min"]
    return point
