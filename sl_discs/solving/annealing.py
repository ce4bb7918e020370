"""The annealing of `sl_discs.solve`: what the user gives of it, and default temperatures from the gains of flips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sl_discs.errors import InputError, integer, real, real_array
from sl_discs.experiment.settings import SCHEDULES, Annealing
from sl_discs.models.terms import Terms
from sl_discs.problems import Problem

_ANNEALING = ("t_schedule", "init_temperature", "final_temperature", "decay_rate", "anneal_every")


# Sums of terms between these sizes stay finite in float32, and the smallest terms do not vanish.
_LARGEST, _SMALLEST = 1e30, 1e-30


def objective_of(problem: Problem) -> Terms:
    """The terms of what is maximised; InputError if they are beyond the range of the model's 32-bit numbers."""
    terms = problem.terms()
    largest = terms.largest()
    if not (largest == 0 or _SMALLEST < largest < _LARGEST):
        raise InputError(
            f"{problem.name}: the largest coefficient is {largest:g}; multiply all of them by one number so that it "
            f"lies between {_SMALLEST:g} and {_LARGEST:g}"
        )
    return terms


def given_annealing(annealing: Any) -> dict[str, Any]:
    """The given fields of `Annealing`, from what `sl_discs.solve` takes; a t_schedule of temperatures includes the
    initial and final one. InputError for anything else, or a field out of range.
    """
    if annealing is not None and not isinstance(annealing, Mapping):
        given = annealing.tolist() if isinstance(annealing, np.ndarray) else annealing
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise InputError(
                f"annealing is {annealing!r}; expected (initial, final) temperatures or a dict of "
                + ", ".join(_ANNEALING)
            )
        initial, final = (real("annealing: a temperature", one, above=0) for one in given)
        if final > initial:
            raise InputError(f"annealing goes from {initial} to {final}; expected initial >= final > 0", "annealing")
        return {"init_temperature": initial, "final_temperature": final}
    given = dict(annealing or {})
    unknown = [name for name in given if name not in _ANNEALING]
    if unknown:
        raise InputError(f"annealing has no field {unknown[0]!r}; known: {', '.join(_ANNEALING)}")
    for name in {"init_temperature", "final_temperature", "decay_rate"} & set(given):
        given[name] = real(f"annealing: {name}", given[name], above=0)
    if given.get("decay_rate", 1) > 1:
        raise InputError(f"annealing: decay_rate is {given['decay_rate']}; expected a number in (0, 1]")
    if "anneal_every" in given:
        given["anneal_every"] = integer("annealing: anneal_every", given["anneal_every"], 1)
    schedule = given.get("t_schedule", SCHEDULES[0])
    if isinstance(schedule, list | tuple | np.ndarray) and len(schedule):
        temperatures = real_array("annealing: t_schedule", schedule)
        if temperatures.ndim != 1 or not (np.isfinite(temperatures) & (temperatures > 0)).all():
            raise InputError("annealing: t_schedule: expected finite temperatures [T] above 0")
        table = tuple(temperatures.tolist())
        given |= {"t_schedule": table, "init_temperature": table[0], "final_temperature": table[-1]}
    elif schedule not in SCHEDULES:
        raise InputError(f"annealing: t_schedule is {given['t_schedule']!r}; known: {', '.join(SCHEDULES)}")
    return given


def complete_annealing(given: Mapping[str, Any], terms: Terms) -> Annealing:
    """Returns the annealing with these fields: by default, exponential decay in the terms' `temperature_range`."""
    if {"init_temperature", "final_temperature"} <= set(given):
        initial, final = given["init_temperature"], given["final_temperature"]
    else:
        hot, cold = temperature_range(terms)
        initial, final = given.get("init_temperature", hot), given.get("final_temperature", cold)
    default = {"init_temperature": initial, "final_temperature": final, "decay_rate": min(1.0, final / initial)}
    return Annealing(**{**default, **given})


# Default temperatures for annealing a model, from the gains of its flips.
#
# A few random states are quenched: half of the sites whose flips gain are flipped at a time, until hardly any are
# left. All flips then lose, by amounts that are typical of good states. Losses below a thousandth of the mean are
# ignored, because they are accepted at any temperature. Annealing starts at half the lower quartile of the other
# losses, where small losses are still often accepted, and ends where the smallest relevant ones, their 1 % quantile,
# are nearly frozen: at temperature loss / log N about one of them is accepted in a sweep over all N sites.
#
# To begin where losses are accepted and to end where small ones are frozen is White's rule ("Concepts of scale in
# simulated annealing", 1984); D-Wave's `SimulatedAnnealingSampler` derives both temperatures from the coefficients.
# Losses at quenched states are used instead so that a penalty, a hub, or the smallest of many coefficients does not
# decide. White begins at the spread of the values, which wastes most of a short run: with half a second for each of
# eight graphs, half the lower quartile gave independent sets larger by 3.75 (ER-0.05) and 1.1 (SATLIB-like) than the
# mean loss did, and cuts smaller by 1.75 of 3,159 (BA-1024).

_NEGLIGIBLE = 1e-3
_QUANTILE = 0.01


def temperature_range(terms: Terms) -> tuple[float, float]:
    """The temperatures at which annealing begins and ends, in the units of the terms; (1, 1) where all are 0."""
    losses, num_sites = terms.losses(np.random.default_rng(0)), terms.num_sites
    mean = float(losses.mean())
    if mean == 0:
        # No move changes the quenched states, so the coefficients are the only scale left.
        mean = terms.largest() or 1.0
        return mean, mean / _sweep(num_sites)
    smallest, small = np.quantile(losses[losses > _NEGLIGIBLE * mean], (_QUANTILE, 0.25))
    final = float(smallest) / _sweep(num_sites)
    return max(float(small) / 2, final), final


def _sweep(num_sites: int) -> float:
    """log N, and at least 4, so that small models also end cold."""
    return max(4.0, float(np.log(num_sites)))
