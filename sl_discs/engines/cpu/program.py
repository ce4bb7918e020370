"""A run's program in the form of the loops."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from sl_discs.engines import contract
from sl_discs.engines.cpu.chunk import Program
from sl_discs.engines.cpu.proposal_temperatures import proposal_temperatures
from sl_discs.localization.schedule import Levels

# Sums of weights are recomputed at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
_NONE = Levels(*(np.zeros(0, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


class LoopsProgram:
    """A whole run's program, which is passed to the loops in parts.

    Args:
      program: program of the run.
      keeps_weights: whether proposals are weighed at temperatures that are constant over many steps. This applies to
        schedules [T] only: temperatures [T, B] may change between calls, so proposals are weighed at exactly these.
    """

    def __init__(self, program: contract.Program, *, keeps_weights: bool):
        self._temperature, self._localized = program.temperature, program.levels is not None
        self._exchanges = program.ladder > 1
        self._levels = _NONE if program.levels is None else Levels(*map(np.ascontiguousarray, program.levels))
        self._proposed = None
        if keeps_weights and program.temperature[:0].ndim == 1:
            self._proposed = proposal_temperatures(program.temperature[:], program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> Program:
        """The intervals that follow the steps done; weights are recomputed before the first step.

        If chains exchange states, they are also recomputed at the start of each interval.
        """
        steps = intervals * every
        here = slice(done, done + steps)
        rows = _rows(self._temperature[here])
        proposed = rows if self._proposed is None else self._proposed[:, here]
        refresh = np.ones(rows.shape, bool)
        refresh[:, 1:] = proposed[:, 1:] != proposed[:, :-1]
        refresh[:, -(done + 1) % _LONGEST_WITHOUT_REFRESH :: _LONGEST_WITHOUT_REFRESH] = True
        begins = self._levels.last + 1 - done
        refresh[:, begins[(begins >= 0) & (begins < steps)]] = True
        if self._exchanges:
            refresh[:, ::every] = True
        level = self._levels.at(done) if self._localized else 0
        return Program(1 / rows, 1 / proposed, refresh, self._localized, level, self._levels)


def _rows(temperature) -> Float32[np.ndarray, "R T"]:
    """Temperatures [T] or [T, B] as rows, of which chain c has row c modulo R.

    If [T, B] is one row broadcast over the steps, R is the smallest period of that row: filling B rows of T steps
    would take a fifth of the time of running them.
    """
    temperature = np.atleast_2d(np.asarray(temperature, np.float32).T)
    chains = len(temperature)
    if chains > 1 and temperature.size and temperature.strides[1] == 0:
        first = temperature[:, 0]
        periods = (r for r in range(1, chains + 1) if chains % r == 0)
        temperature = temperature[: next(r for r in periods if (first.reshape(-1, r) == first[:r]).all())]
    return np.ascontiguousarray(temperature)
