"""The search spaces as data: annealing, the base sampler's own fields, and stochastic localization.

A space is a tuple of dimensions and contains no invalid combinations: the final temperature is a fraction of the
initial one, and each number of levels K has its own choices of n_min, those that fit into the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sl_discs.errors import InputError
from sl_discs.samplers.registry import Dimension, Value, base_name, is_localized, search_space

SEARCHES = ("annealing", "sl", "all")

Point = dict[str, Any]


class Chooser(Protocol):
    """The part of Optuna's Trial that choosing needs."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """One of the choices."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool, step: float | None) -> float:
        """A number."""


_TEMPERATURES = (
    Dimension("t_schedule", ("exp_decay", "linear", "constant")),
    Dimension("init_temperature", low=0.05, high=5.0, log=True),
    # final temperature / initial temperature
    Dimension("cooling", low=0.003, high=1.0, log=True, only_if=("t_schedule", ("exp_decay", "linear"))),
)

# Choices for the number of logged intervals between resamplings of the chains.
_RESAMPLE_INTERVALS = (1, 2, 5)

_LEVELS = (256, 512, 1024)
_N_MIN = (2, 4, 6, 8, 16, 32)
_SIGMA = Dimension("sigma", (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0))
_SCHEDULES = (
    Dimension("alpha", ("geom(2,1)", "geom(1,1)", "classic")),
    Dimension("grid", ("uniform", "log_snr")),
    Dimension("eps", low=1e-4, high=1e-1, log=True),
    Dimension("eps_end", low=1e-4, high=1e-1, log=True),
    Dimension("mc_ratio", low=0.1, high=1.0, step=0.1),
    Dimension("budget", ("exp_decay", "identical")),
    Dimension("r", low=1e-4, high=1e-1, log=True, only_if=("budget", ("exp_decay",))),
)


def _annealing(chain_length: int, log_every_steps: int) -> tuple[Dimension, ...]:
    every = tuple(k * log_every_steps for k in _RESAMPLE_INTERVALS if k * log_every_steps < chain_length)
    if not every:
        return _TEMPERATURES
    strength = Dimension("resample_strength", (1.0, 3.0), only_if=("resample_every", every))
    return (*_TEMPERATURES, Dimension("resample_every", (0, *every)), strength)


def n_min_name(levels: int) -> str:
    """The name of the dimension n_min for this number of levels."""
    return f"n_min_{levels}"


def _localization(chain_length: int) -> tuple[Dimension, ...]:
    fitting = {levels: tuple(n for n in _N_MIN if levels * n <= chain_length) for levels in _LEVELS}
    fitting = {levels: choices for levels, choices in fitting.items() if choices}
    if not fitting:
        raise InputError(
            f"chain_length {chain_length} is too short for the search of localization, which takes at least "
            f"{_LEVELS[0]} levels of {_N_MIN[0]} steps: {_LEVELS[0] * _N_MIN[0]}"
        )
    n_min = (Dimension(n_min_name(levels), choices, only_if=("K", (levels,))) for levels, choices in fitting.items())
    return (Dimension("K", tuple(fitting)), _SIGMA, *_SCHEDULES, *n_min)


def space_of(
    sampler: str, search: str, chain_length: int, log_every_steps: int = 100, *, null: bool = False
) -> tuple[Dimension, ...]:
    """The dimensions of a search.

    Args:
      sampler: base sampler or `sl_` variant.
      search: `annealing` (temperatures, resampling and the base sampler's own fields), `sl` (localization), or `all`.
      chain_length: number of steps, which limits levels and n_min.
      log_every_steps: steps between logged ones, after which chains can be resampled.
      null: whether this is the null control, in which sigma has no effect.

    Raises:
      InputError: an unknown sampler or search, a search that does not fit the sampler, or too few steps.
    """
    base = base_name(sampler)
    if search not in SEARCHES:
        raise InputError(f"--search={search} is unknown; known: {', '.join(SEARCHES)}")
    localized = is_localized(sampler)
    if search == "sl" and not localized:
        raise InputError(f"--search=sl needs a localized sampler, such as --sampler=sl_{sampler}, not {sampler}")
    if null and (search != "sl" or not localized):
        raise InputError(f"--null goes with --search=sl and a localized sampler, not {search} and {sampler}")
    annealed = (*_annealing(chain_length, log_every_steps), *search_space(base)) if search != "sl" else ()
    schedules = _localization(chain_length) if localized and search != "annealing" else ()
    return annealed + tuple(one for one in schedules if not (null and one == _SIGMA))


def propose(space: tuple[Dimension, ...], chooser: Chooser) -> Point:
    """A point of the space, each choice made by the chooser."""
    point: Point = {}
    for one in space:
        if not one.applies(point):
            continue
        if one.choices:
            point[one.name] = chooser.suggest_categorical(one.name, one.choices)
        else:
            point[one.name] = chooser.suggest_float(one.name, one.low, one.high, log=one.log, step=one.step)
    return point


def restricted(space: tuple[Dimension, ...], point: Mapping[str, Value]) -> Point:
    """The part of a point that lies in the space; the search chooses the rest."""
    kept: Point = {}
    for one in space:
        if one.applies(kept) and one.name in point and one.contains(point[one.name]):
            kept[one.name] = point[one.name]
    return kept
