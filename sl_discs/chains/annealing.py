"""Annealing: the temperature of each step of a run, from a schedule, a model's default
temperatures, or the clock.
"""

from __future__ import annotations

import bisect
import dataclasses
import numbers
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Int64

from sl_discs.models.terms import Coefficients, penalties_of
from sl_discs.support.errors import InputError


def check_field(holds: bool, field: str, value: Any, expected: str) -> None:
    """Checks a field of an experiment's config."""
    if not holds:
        raise InputError(f"config.experiment.{field} is {value}; expected {expected}")


# DISCS's temperature schedules: tau after a part of the chain, from 0 to 1, by name.
SCHEDULES = {
    "constant": lambda given, part: np.full(part.shape, given.init_temperature),
    "linear": lambda given, part: (
        given.init_temperature + (given.final_temperature - given.init_temperature) * part
    ),
    "exp_decay": lambda given, part: np.maximum(
        given.init_temperature * given.decay_rate**part, given.final_temperature
    ),
}
# Steps whose temperatures are computed at a time, so that intermediate float64 arrays stay small.
_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Annealing:
    """How the temperature falls along a chain, whatever its length; field names are those of DISCS.

    Attributes:
      t_schedule: `constant`, `linear` or `exp_decay`; or, in a config file, a tuple of
        temperatures, each for an equal part of the chain.
      init_temperature: temperature at step 0.
      final_temperature: last temperature, or floor of `exp_decay`; with `constant` it is set to
        init_temperature, so that records are correct.
      decay_rate: of `exp_decay`, over the whole chain.
      anneal_every: number of consecutive steps with the same temperature; 1 is DISCS's schedule.
    """

    t_schedule: str | tuple = "exp_decay"
    init_temperature: float = 1.0
    final_temperature: float = 1e-4
    decay_rate: float = 0.05
    anneal_every: int = 1

    def __post_init__(self):
        if isinstance(self.t_schedule, tuple):
            table = [
                isinstance(entry, numbers.Real) and 0 < entry < np.inf for entry in self.t_schedule
            ]
            holds = bool(table) and all(table)
            check_field(holds, "t_schedule", self.t_schedule, "temperatures above 0, one or more")
        elif self.t_schedule not in SCHEDULES:
            check_field(False, "t_schedule", repr(self.t_schedule), ", ".join(SCHEDULES))
        for name in ("init_temperature", "final_temperature"):
            # Energies are divided by it, in single precision.
            value = getattr(self, name)
            check_field(1e-30 <= value <= 1e30, name, value, "a number from 1e-30 to 1e30")
        check_field(0 < self.decay_rate <= 1, "decay_rate", self.decay_rate, "a number in (0, 1]")
        if self.t_schedule == "constant":
            object.__setattr__(self, "final_temperature", self.init_temperature)


@dataclasses.dataclass(frozen=True)
class TemperatureSchedule:
    """Temperature of each step of a run, a sequence of float32 [T] that is indexed like an array.

    Temperatures are computed on request, so chains of any length take no memory for them. Those of
    `exp_decay` are init_temperature decay_rate^(step/T), but never below final_temperature, which
    is thus only a floor.

    Attributes:
      annealing: how the temperature falls.
      steps: T.
      last: number of the last step, counted from 0, of each of A annealings, which all go from the
        first temperature to the last one; None: there is one, over the run.
    """

    annealing: Annealing
    steps: int
    last: Int[np.ndarray, "A"] | None = None

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index) -> Float32[np.ndarray, "*S"]:
        """Temperatures at positions from 0 on: a number, an array of them, or a slice."""
        if not isinstance(index, slice):
            return self._at(np.asarray(range(len(self))[index] if np.ndim(index) == 0 else index))
        steps = range(len(self))[index]
        every = self.annealing.anneal_every
        if every > 1 and steps.step == 1 and self.last is None:
            # Each temperature is computed once.
            first = steps.start // every * every
            return np.repeat(self._at(np.arange(first, steps.stop, every)), every)[
                steps.start - first :
            ][: len(steps)]
        temperatures = np.empty(len(steps), np.float32)
        for begin in range(0, len(steps), _BLOCK):
            block = steps[begin : begin + _BLOCK]
            temperatures[begin : begin + len(block)] = self._at(
                np.arange(block.start, block.stop, block.step)
            )
        return temperatures

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or np.float32, copy=False)

    def position(self, part: np.ndarray | np.floating) -> np.ndarray | np.floating:
        """Returns the position in the schedule after this part of an annealing, both from 0
        to 1.
        """
        return part

    def _at(self, indices: np.ndarray) -> Float32[np.ndarray, "*S"]:
        annealing = self.annealing
        # The first position of the annealing that each position belongs to, and its steps.
        begin: int | np.ndarray = 0
        length: int | np.ndarray = len(self)
        if self.last is not None:
            number = np.searchsorted(self.last, indices)
            begin = np.concatenate([[0], self.last + 1])[number]
            length = self.last[number] + 1 - begin
        schedule = annealing.t_schedule
        part = self.position(
            ((indices - begin) // annealing.anneal_every * annealing.anneal_every + 1) / length
        )
        if isinstance(schedule, tuple):
            steps = np.rint(part * length).astype(np.int64) - 1
            values = np.asarray(schedule)[np.maximum(steps, 0) * len(schedule) // length]
        else:
            values = SCHEDULES[schedule](annealing, part)
        return np.asarray(values, np.float32)


@dataclasses.dataclass(frozen=True)
class ChainSettings(Annealing):
    """The chains of a run beside its annealing; field names are those of DISCS where it has them.

    Attributes:
      batch_size: chains per instance.
      chain_length: MCMC steps of each chain.
      log_every_steps: steps between logged ones.
      use_devices: number of devices for instances and chains, divided as evenly as each batch
        allows; 0: all.
    """

    batch_size: int = 32
    chain_length: int = 10_000
    log_every_steps: int = 100
    use_devices: int = 0

    def __post_init__(self):
        if self.log_every_steps > self.chain_length:
            raise InputError(
                f"config.experiment.log_every_steps is {self.log_every_steps}, more than "
                f"config.experiment.chain_length = {self.chain_length}; log more often or run "
                "longer"
            )
        super().__post_init__()

    def logged_steps(self) -> Int64[np.ndarray, "L"]:
        """Returns the numbers of the logged steps, from 1 on."""
        return np.arange(self.log_every_steps, self.chain_length + 1, self.log_every_steps)

    def temperatures(self, last: Int[np.ndarray, "A"] | None = None) -> TemperatureSchedule:
        """Returns the temperatures of steps 1..T; `last` as in `TemperatureSchedule`."""
        return TemperatureSchedule(self, self.chain_length, last)


# Temperatures that follow the clock.

# The number of calls to the engine that the rate is measured over.
_RECENT = 3


class Plan(NamedTuple):
    """A plan after `done` steps: the seconds left, the part of the schedule behind, and that of a
    step.
    """

    done: int
    left: float
    behind: float
    rate: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimedSchedule(TemperatureSchedule):
    """Temperatures that follow the time: what is left of the schedule is spread over the steps that
    still fit in.

    This is planned anew before each call to the engine, so that the chains are cold when the time
    is over, even if the rate has changed.

    Attributes:
      seconds_per_step: as far as they are known before the first step.
      plans: that were made, in order.
    """

    seconds_per_step: float
    plans: tuple[Plan, ...] = ()

    def planned(self, done: int, left: float) -> TimedSchedule:
        """Returns these temperatures with another plan, for the steps after the first `done` and
        `left` seconds.
        """
        behind = 0.0
        seconds = self.seconds_per_step
        if self.plans:
            earlier = self.plans[-_RECENT:][0]
            behind = float(self._behind(done))
            seconds = max(earlier.left - left, 1e-9) / (done - earlier.done)
        fitting = min(max(left / seconds, 1.0), max(len(self) - done, 1))
        return dataclasses.replace(
            self, plans=(*self.plans, Plan(done, left, behind, (1 - behind) / fitting))
        )

    def _behind(self, steps: np.ndarray | np.floating | int) -> np.ndarray | np.floating:
        """Returns the part of the schedule that is behind after `steps` steps."""
        # Mostly the latest alone, of many in a long run.
        first = bisect.bisect_right(self.plans, np.min(steps), key=lambda plan: plan.done) - 1
        done, _, behind, rate = map(np.array, zip(*self.plans[first:], strict=True))
        row = np.searchsorted(done, steps, side="right") - 1
        return np.minimum(behind[row] + (steps - done[row]) * rate[row], 1.0)

    def position(self, part: np.ndarray | np.floating) -> np.ndarray | np.floating:
        return self._behind(part * len(self))


# Default temperatures for annealing a model, from the gains of its flips.
#
# A few random states are quenched: half of the sites whose flips gain are flipped at a time, until
# hardly any are left. All flips then lose, by amounts that are typical of good states. Losses below
# a thousandth of the mean are ignored, because they are accepted at any temperature. Annealing
# starts at half the lower quartile of the other losses, where small losses are still often
# accepted, and ends where the smallest relevant ones, their 1 % quantile, are nearly frozen: at
# temperature loss / log N about one of them is accepted in a sweep over all N sites.
#
# To begin where losses are accepted and to end where small ones are frozen is White's rule
# ("Concepts of scale in simulated annealing", 1984); D-Wave's `SimulatedAnnealingSampler` derives
# both temperatures from the coefficients. Losses at quenched states are used instead so that a
# penalty, a hub, or the smallest of many coefficients does not decide. White begins at the spread
# of the values, which wastes most of a short run: with half a second for each of eight graphs, half
# the lower quartile gave independent sets larger by 3.75 (ER-0.05) and 1.1 (SATLIB-like) than the
# mean loss did, and cuts smaller by 1.75 of 3,159 (BA-1024).

_NEGLIGIBLE = 1e-3
_QUANTILE = 0.01


def temperature_range(terms: Coefficients) -> tuple[float, float]:
    """Returns the temperatures at which annealing begins and ends, in the units of the terms; 1
    where all are 0.
    """
    losses = terms.losses(np.random.default_rng(0))
    num_sites = terms.num_sites
    mean = float(losses.mean())
    if mean == 0:
        # No move changes the quenched states, so the coefficients are the only scale left.
        mean = terms.largest() or 1.0
        return mean, mean / _sweep(num_sites)
    smallest, small = np.quantile(losses[losses > _NEGLIGIBLE * mean], (_QUANTILE, 0.25))
    final = float(smallest) / _sweep(num_sites)
    return max(float(small) / 2, final), final


def _sweep(num_sites: int) -> float:
    """Returns log N, and at least 4, so that small models also end cold."""
    return max(4.0, float(np.log(num_sites)))


def complete_annealing(given: Mapping[str, Any], terms: Coefficients) -> Annealing:
    """Returns the annealing with these fields: by default, exponential decay in the terms'
    `temperature_range`.
    """
    ends = ("init_temperature", "final_temperature")
    fields = dict(given)
    if not set(ends) <= set(given):
        fields = dict(zip(ends, temperature_range(terms), strict=True)) | fields
    rate = min(1.0, fields["final_temperature"] / fields["init_temperature"])
    return Annealing(**{"decay_rate": rate, **fields})


# The terms that are annealed: within the range and the precision of the numbers of chains.

# Sums of terms between these sizes stay finite in float32, and the smallest terms do not vanish.
_LARGEST, _SMALLEST = 1e30, 1e-30


def checked_terms(name: str, terms: Coefficients) -> Coefficients:
    """Returns the terms of the problem `name`; InputError if they are beyond the range of 32-bit
    numbers.
    """
    largest = terms.largest()
    if not (largest == 0 or _SMALLEST < largest < _LARGEST):
        raise InputError(
            f"{name}: the largest coefficient is {largest:g}; multiply all of them by one number "
            f"so that it lies between {_SMALLEST:g} and {_LARGEST:g}"
        )
    return terms


# Part of what a flip changes costs by that chains should tell apart, and the precision of their
# values.
_TOLD_APART = 1e-2
_PRECISION = 2.0**-24


def annealed_terms(name: str, terms: Coefficients, annealing: Mapping[str, Any]) -> Coefficients:
    """Returns the terms that chains maximise, with penalties far above the costs lowered to their
    scale.

    Where temperatures are given, penalties stay as they are, and a warning says so if they hide the
    costs. InputError as `checked_terms`.
    """
    checked_terms(name, terms)
    penalties = penalties_of(terms)
    if penalties is None:
        return terms
    if not annealing:
        return penalties.lowered
    if abs(penalties.largest) * _PRECISION > _TOLD_APART * penalties.gain:
        warnings.warn(
            f"{name}: chains have values of 32 bits, which cannot tell costs of up to "
            f"{penalties.gain:.3g} apart beside penalties of {abs(penalties.largest):.3g}; lower "
            "the penalties, or leave annealing out",
            stacklevel=6,
        )
    return terms
