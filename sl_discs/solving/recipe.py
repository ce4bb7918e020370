"""Defaults for what the user leaves open: sampler, steps, levels, annealing, logged steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sl_discs.engines.registry import choose_engine, num_cores
from sl_discs.errors import InputError, real, whole
from sl_discs.experiment.settings import ENGINES, SCHEDULES, Settings, settings_from
from sl_discs.localization.method import Method, build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.terms import Terms
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.samplers.registry import base_name, counts_sweeps, is_localized
from sl_discs.samplers.single_site import SEQUENTIAL, Metropolis

AUTO = "auto"
SWEEPS = 1_000
CHAINS = 32
# Approximate site updates of a core per second, and the number of sweeps in which a chain cools slowly enough.
_UPDATES_PER_SECOND, _SLOW_SWEEPS = 5e7, 20_000
# The temperatures of so many steps take a few hundred megabytes.
MOST_STEPS = 10_000_000
# Seconds of a bound, and the part of a time limit.
_MOST_BOUND_S, _BOUND_PART = 2.0, 0.05
_FEWEST_INFORMED, _MOST_INFORMED = 2_000, 20_000

_ANNEALING = ("t_schedule", "init_temperature", "final_temperature", "decay_rate", "anneal_every")


def choose_sampler(sampler: str, engine: str, fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """A known sampler's name, and the fields of its config.

    `auto` is `metropolis` if the CPU engine can run it, else `path_auxiliary`. Metropolis then scans the sites in
    order, which takes half the time of a random scan and finds better answers in the same number of steps.

    Args:
      sampler: its name, or `auto`.
      engine: the requested one.
      fields: the given fields of its config.

    Raises:
      InputError: an unknown sampler or engine.
    """
    if engine not in ENGINES:
        raise InputError(f"engine is {engine!r}; known: {', '.join(ENGINES)}", "engine")
    if sampler == AUTO:
        if choose_engine(engine, Metropolis())[0].name == "cpu":
            return "metropolis", {"scan": SEQUENTIAL, **fields}
        return "path_auxiliary", fields
    if not isinstance(sampler, str):
        raise InputError(f"sampler is {sampler!r}; expected a name such as 'sl_path_auxiliary', or 'auto'", "sampler")
    base_name(sampler)
    return sampler, fields


def rivals(problem: Problem, recipe: Recipe) -> list[tuple[Problem, Recipe]]:
    """What `auto` also tries under a time limit, beside its first choice, if the CPU engine can run it.

    That is `exchange`, where it helps on this kind of problem, with a penalty of its own, unless the problem's owner
    has chosen one.
    """
    kind = KINDS[problem.kind]
    if not tries_one_site(recipe.sampler) or kind.exchange_penalty is None:
        return []
    penalty = kind.exchange_penalty if problem.penalty == kind.penalty else problem.penalty
    exchange = dataclasses.replace(recipe, sampler="exchange", fields={})
    return [(dataclasses.replace(problem, penalty=penalty), exchange)]


def tries_one_site(sampler: str) -> bool:
    """Whether a sampler tries one site a step, or a pair, so that its steps are counted in sweeps."""
    return counts_sweeps(sampler)


def default_chains(sampler: str, num_sites: int, time_limit: float | None) -> int:
    """32, or under a time limit fewer, so that each chain can cool slowly, but at least one per core.

    This only applies to samplers that try one site per step, whose number of sweeps in a given time is predictable.
    """
    if time_limit is None or not tries_one_site(sampler):
        return CHAINS
    cores = num_cores()
    sweeps = time_limit * cores * _UPDATES_PER_SECOND / num_sites
    return int(min(max(sweeps / _SLOW_SWEEPS // cores * cores, cores), CHAINS))


def seconds_for_bound(time_limit: float | None) -> float:
    """So many seconds a bound may take: a twentieth of a time limit, and at most two."""
    return _MOST_BOUND_S if time_limit is None else min(_BOUND_PART * time_limit, _MOST_BOUND_S)


def default_steps(sampler: str, num_sites: int) -> int:
    """1,000 sweeps, but at most 10 million steps, for samplers that try one site per step; ten steps per site, but
    2,000 to 20,000, for others, which consider all sites.
    """  # fmt: skip
    if tries_one_site(sampler):
        return min(SWEEPS * num_sites, MOST_STEPS)
    return min(max(_FEWEST_INFORMED, 10 * num_sites), _MOST_INFORMED)


def given_annealing(annealing: Any) -> dict[str, Any]:
    """Checks the user's annealing.

    Args:
      annealing: None; (initial, final) temperatures; or a dict of t_schedule, init_temperature, final_temperature,
        decay_rate, anneal_every, any of which may be omitted. A t_schedule of temperatures includes the initial and
        final one.

    Returns:
      the given fields of `Settings`.

    Raises:
      InputError: it is none of these, or a field is out of range.
    """
    if annealing is not None and not isinstance(annealing, Mapping):
        if not isinstance(annealing, Sequence | np.ndarray) or isinstance(annealing, str) or len(annealing) != 2:
            raise InputError(
                f"annealing is {annealing!r}; expected (initial, final) temperatures or a dict of "
                + ", ".join(_ANNEALING)
            )
        initial, final = (real("annealing: a temperature", one, above=0) for one in annealing)
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
        given["anneal_every"] = whole("annealing: anneal_every", given["anneal_every"], 1)
    schedule = given.get("t_schedule", SCHEDULES[0])
    if isinstance(schedule, list | tuple | np.ndarray) and len(schedule):
        table = tuple(real("annealing: a temperature of t_schedule", one, above=0) for one in schedule)
        given |= {"t_schedule": table, "init_temperature": table[0], "final_temperature": table[-1]}
    elif schedule not in SCHEDULES:
        raise InputError(f"annealing: t_schedule is {given['t_schedule']!r}; known: {', '.join(SCHEDULES)}")
    return given


def complete_annealing(given: Mapping[str, Any], found: Callable[[], tuple[float, float]]) -> dict[str, Any]:
    """Fields of `Settings` for the temperature.

    Args:
      given: of `given_annealing`; the default is exponential decay.
      found: finds the initial and final temperature, asked if one of them is not given.
    """
    if {"init_temperature", "final_temperature"} <= set(given):
        initial, final = given["init_temperature"], given["final_temperature"]
    else:
        hot, cold = found()
        initial, final = given.get("init_temperature", hot), given.get("final_temperature", cold)
    return {
        "t_schedule": "exp_decay",
        "init_temperature": initial,
        "final_temperature": final,
        "decay_rate": min(1.0, final / initial),
        **given,
    }


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The settings that do not depend on the length of chains.

    Attributes:
      sampler: a known name.
      fields: the given fields of the sampler's config.
      chains: their number.
      engine: the requested one.
      annealing: fields of `Settings`.
      seed: of the chains.
    """

    sampler: str
    fields: Mapping[str, Any]
    chains: int
    engine: str
    annealing: Mapping[str, Any]
    seed: int

    @property
    def n_min(self) -> int:
        """The least number of steps of a level of localization; 1 without localization."""
        least = self.fields.get("n_min", Localization.n_min) if is_localized(self.sampler) else 1
        return least if isinstance(least, int) else 1

    def method(self, steps: int, *, fit: bool = False) -> Method:
        """The sampler for chains of so many steps.

        Args:
          steps: of a chain.
          fit: whether to lower a given number of levels K if the steps do not suffice; a default K is always lowered.
        """
        fields = {"name": self.sampler, **self.fields}
        if is_localized(self.sampler):
            levels = fields.get("K", Localization.K)
            if (fit or "K" not in fields) and isinstance(levels, int):
                fields["K"] = max(1, min(levels, steps // max(self.n_min, 1)))
        return build_method(fields, self.chains)

    def settings(self, steps: int, every: int = 1) -> Settings:
        """A run of so many steps, which logs every `every`-th of them."""
        return settings_from(
            {
                "batch_size": self.chains,
                "chain_length": steps,
                "log_every_steps": every,
                "engine": self.engine,
                "seed": self.seed,
                **self.annealing,
            }
        )


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
