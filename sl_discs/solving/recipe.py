"""How a problem is sampled where its owner leaves it open: sampler, steps, levels, annealing, logged steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sl_discs.checks import real, whole
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.annealing import SCHEDULES
from sl_discs.experiment.settings import ENGINES, Settings, settings_from
from sl_discs.localization.method import Method, build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.coefficients import Coefficients
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.registry import base_name, counts_sweeps, is_localized
from sl_discs.solving.scale import temperature_range

AUTO = "auto"
SWEEPS = 1_000
# Temperatures of that many steps take a few hundred megabytes.
MOST_STEPS = 10_000_000
_FEWEST_INFORMED, _MOST_INFORMED = 2_000, 20_000

_ANNEALING = ("t_schedule", "init_temperature", "final_temperature", "decay_rate", "anneal_every")


def choose_sampler(sampler: str, engine: str) -> str:
    """A known sampler's name; `auto` is `metropolis` where the CPU engine can play it, else `path_auxiliary`.

    Raises:
      InputError: an unknown sampler or engine.
    """
    if engine not in ENGINES:
        raise InputError(f"engine is {engine!r}; known: {', '.join(ENGINES)}", "engine")
    if sampler == AUTO:
        return "metropolis" if choose_engine(engine, Metropolis())[0].name == "cpu" else "path_auxiliary"
    if not isinstance(sampler, str):
        raise InputError(f"sampler is {sampler!r}; expected a name such as 'sl_path_auxiliary', or 'auto'", "sampler")
    base_name(sampler)
    return sampler


def tries_one_site(sampler: str) -> bool:
    """Whether a sampler tries one site a step, or a pair, so that its steps are counted in sweeps."""
    return counts_sweeps(sampler)


def default_steps(sampler: str, num_sites: int) -> int:
    """1,000 sweeps of a sampler that tries one site a step, at most 10 million steps; ten steps a site of others,
    which look at all sites each, but 2,000 to 20,000.
    """  # fmt: skip
    if tries_one_site(sampler):
        return min(SWEEPS * num_sites, MOST_STEPS)
    return min(max(_FEWEST_INFORMED, 10 * num_sites), _MOST_INFORMED)


def given_annealing(annealing: Any) -> dict[str, Any]:
    """Checks what a user says of the annealing.

    Args:
      annealing: None; (initial, final) temperatures; or a dict of t_schedule, init_temperature, final_temperature,
        decay_rate, anneal_every, any of which may be left out. A t_schedule of temperatures says both others, too.

    Returns:
      fields of `Settings`, those that are given.

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


def complete_annealing(given: Mapping[str, Any], terms: Coefficients) -> dict[str, Any]:
    """Fields of `Settings` for the temperature.

    Args:
      given: of `given_annealing`; what is left out is exponential decay over the `temperature_range` of the terms.
      terms: of the model.
    """
    if {"init_temperature", "final_temperature"} <= set(given):
        initial, final = given["init_temperature"], given["final_temperature"]
    else:
        found = temperature_range(terms)
        initial, final = given.get("init_temperature", found[0]), given.get("final_temperature", found[1])
    return {
        "t_schedule": "exp_decay",
        "init_temperature": initial,
        "final_temperature": final,
        "decay_rate": min(1.0, final / initial),
        **given,
    }


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What is the same for chains of any length.

    Attributes:
      sampler: a known name.
      fields: of the sampler's config that are given.
      chains: number of them.
      engine: wanted.
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
        """Steps that a level of localization takes at least; 1 without it."""
        least = self.fields.get("n_min", Localization.n_min) if is_localized(self.sampler) else 1
        return least if isinstance(least, int) else 1

    def method(self, steps: int, *, fit: bool = False) -> Method:
        """The sampler for chains of so many steps.

        Args:
          steps: of a chain.
          fit: lowers a number of levels K that is given where the steps do not suffice; K that is not given is
            lowered always.
        """
        fields = {"name": self.sampler, **self.fields}
        if is_localized(self.sampler):
            levels = fields.get("K", Localization.K)
            if (fit or "K" not in fields) and isinstance(levels, int):
                fields["K"] = max(1, min(levels, steps // max(self.n_min, 1)))
        return build_method(fields, self.chains)

    def settings(self, steps: int, every: int = 1) -> Settings:
        """The run of so many steps, one in `every` of which is logged."""
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
