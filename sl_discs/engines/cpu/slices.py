"""Slices of a program: what one call to the loops plays, with the temperatures of target and proposal."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from sl_discs.engines import base
from sl_discs.engines.cpu.chunk import ProgramSlice
from sl_discs.localization.schedule import Levels

# The temperatures at which the CPU engine weighs proposals: constant over many steps, so that weights can be kept.
#
# A level of localization changes the tilt, so all weights are recomputed there. Proposal temperatures therefore
# change where levels begin and, within a level, in equal steps of about 1/256 of the logarithm, so that they are at
# most 0.3 % off. The Metropolis-Hastings test uses the same weights as the proposal and the target's own temperature,
# so each step leaves its target invariant, whatever the proposal's temperature.

# Number of steps per factor e of temperature.
_AN_E_FOLD = 256
# Replaces an infinite temperature, where energies below 1e30 make no difference.
_HIGHEST = 1e38


def proposal_temperatures(temperature: Float32[np.ndarray, "T"], levels: Levels | None) -> Float32[np.ndarray, "T"]:
    """The proposal's temperature at each step of a whole run; a run without levels counts as one level."""
    logarithm = np.log(np.minimum(np.asarray(temperature, np.float64), _HIGHEST))
    steps = logarithm.size
    ends = [] if levels is None else np.minimum(levels.last.astype(np.int64) + 1, steps)
    # Every level ends where the next begins; the last ends with the run.
    edges = np.unique(np.concatenate([[0], ends, [steps]]).astype(int))
    begins, lengths = logarithm[edges[:-1]], np.diff(edges)
    falls = begins - logarithm[np.minimum(edges[1:], steps - 1)]
    parts = np.rint(np.abs(falls) * _AN_E_FOLD)
    moves = parts > 0
    width = np.where(moves, falls / np.maximum(parts, 1), 1 / _AN_E_FOLD)
    # The middle of a part; in a level of constant temperature, that temperature itself.
    middle = np.where(moves, 0.5, 0.0)
    begins, width, middle = (np.repeat(one, lengths) for one in (begins, width, middle))
    part = np.floor((begins - logarithm) / width + 0.5 - middle)
    return np.exp(begins - (part + middle) * width).astype(np.float32)


# A run's program in the form of the loops.

# Sums of weights are recomputed at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
_NONE = Levels(*(np.zeros(0, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


class ProgramSlices:
    """A whole run's program, which is passed to the loops in parts.

    Args:
      program: program of the run.
      keeps_weights: whether proposals are weighed at temperatures that are constant over many steps. This applies to
        schedules [T] only: temperatures [T, B] may change between calls, so proposals are weighed at exactly these.
    """

    def __init__(self, program: base.Program, *, keeps_weights: bool):
        self._temperature, self._localized = program.temperature, program.levels is not None
        self._exchanges = program.ladder > 1
        self._levels = _NONE if program.levels is None else Levels(*map(np.ascontiguousarray, program.levels))
        self._proposed = None
        if keeps_weights and program.temperature[:0].ndim == 1:
            self._proposed = proposal_temperatures(program.temperature[:], program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> ProgramSlice:
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
        return ProgramSlice(1 / rows, 1 / proposed, refresh, self._localized, level, self._levels)


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
