"""DISCS's temperature schedules, optionally with reheating: tau at steps 1..chain_length."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float32

from sl_discs.errors import InputError

SCHEDULES = ("constant", "linear", "exp_decay")
# Steps whose temperatures are computed at a time, so that intermediate float64 arrays stay small.
_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Temperatures:
    """Temperature of each step, a sequence of float32 [T] that is indexed like an array.

    Temperatures are computed on request, so chains of any length take no memory for them.

    Attributes:
      schedule: `constant` (initial), `linear` (initial to final), or `exp_decay`: initial decay_rate^(step/T),
        but never below final, which is thus only a floor, reached if initial decay_rate is below it. A tuple of
        temperatures is also allowed, each for an equal part of the chain; the other numbers are then ignored.
      chain_length: T.
      initial: temperature at step 0.
      final: last temperature or floor.
      decay_rate: for `exp_decay`.
      every: number of consecutive steps that share the temperature of the first of them; 1 is DISCS's schedule.
      reheats: how often the schedule, having come to its end, goes back and cools again (Li and Zhang, Reheated
        gradient-based discrete sampling for combinatorial optimization, TMLR 2025). All coolings have the same rate
        per step. The paper goes back when the objective stalls, to the temperature at which its variance over the
        squared temperature was largest; here the positions are fixed, as a schedule is known before the run.
      reheat_from: position in the schedule to which it goes back, from 0 (its start) to below 1.

    Raises:
      InputError: an unknown schedule, a temperature that is not positive, or a rate or length out of range.
    """

    schedule: str | tuple[float, ...]
    chain_length: int
    initial: float
    final: float
    decay_rate: float
    every: int = 1
    reheats: int = 0
    reheat_from: float = 0.5

    def __post_init__(self):
        if isinstance(self.schedule, tuple):
            table = np.asarray(self.schedule, np.float64)
            if not (table.ndim == 1 and len(table) and (np.isfinite(table) & (table > 0)).all()):
                raise InputError(
                    "config.experiment.t_schedule: a tuple of temperatures holds one that is not above 0, or none"
                )
        elif self.schedule not in SCHEDULES:
            raise InputError(f"config.experiment.t_schedule is {self.schedule!r}; known: {', '.join(SCHEDULES)}")
        if self.chain_length < 1:
            raise InputError(f"config.experiment.chain_length is {self.chain_length}; expected at least 1")
        for name, value in (("init_temperature", self.initial), ("final_temperature", self.final)):
            if not 1e-30 <= value <= 1e30:  # energies are divided by it, in single precision
                raise InputError(f"config.experiment.{name} is {value}; expected a number from 1e-30 to 1e30")
        if not 0 < self.decay_rate <= 1:
            raise InputError(f"config.experiment.decay_rate is {self.decay_rate}; expected a number in (0, 1]")
        if not 0 <= self.reheats < self.chain_length:
            raise InputError(f"config.experiment.reheats is {self.reheats}; expected 0 to below chain_length")
        if self.reheats and self.schedule not in ("linear", "exp_decay"):
            raise InputError("config.experiment.reheats is only for t_schedule linear and exp_decay; set it to 0")
        if not 0 <= self.reheat_from < 1:
            raise InputError(f"config.experiment.reheat_from is {self.reheat_from}; expected a number in [0, 1)")

    def __len__(self) -> int:
        return self.chain_length

    def __getitem__(self, places) -> Float32[np.ndarray, "*S"]:
        """Temperatures at positions from 0 on: a number, an array of them, or a slice."""
        if not isinstance(places, slice):
            return self._at(np.asarray(range(self.chain_length)[places] if np.ndim(places) == 0 else places))
        steps = range(self.chain_length)[places]
        found = np.empty(len(steps), np.float32)
        for begin in range(0, len(steps), _BLOCK):
            block = steps[begin : begin + _BLOCK]
            found[begin : begin + len(block)] = self._at(np.arange(block.start, block.stop, block.step))
        return found

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or np.float32, copy=False)

    def _position(self, part: np.ndarray | np.floating) -> np.ndarray | np.floating:
        """The position in the schedule after this part of the chain, both from 0 to 1."""
        if not self.reheats:
            return part
        again = 1 - self.reheat_from
        later = part * (1 + self.reheats * again) - 1
        # Rounding must not add a reheating at the end.
        done = np.maximum(np.ceil(later / again - 1e-9), 1) - 1
        return np.where(later <= 0, 1 + later, self.reheat_from + later - done * again)

    def _at(self, places: np.ndarray) -> Float32[np.ndarray, "*S"]:
        places = places // self.every * self.every
        part = self._position((places + 1) / self.chain_length)
        if isinstance(self.schedule, tuple):
            values = np.asarray(self.schedule)[places * len(self.schedule) // self.chain_length]
        elif self.schedule == "constant":
            values = np.full(part.shape, self.initial)
        elif self.schedule == "linear":
            values = self.initial + (self.final - self.initial) * part
        else:
            values = np.maximum(self.initial * self.decay_rate**part, self.final)
        return np.asarray(values, np.float32)
