"""Instances and programs in the form of the native loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float32

from sl_discs.engines.base import Batch, ChainStates, Program
from sl_discs.engines.cpu.arithmetic import aligned_zeros
from sl_discs.engines.cpu.chunk import ProgramSlice, Targets
from sl_discs.engines.cpu.tree import LANES, TILE
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import QuadraticModel

# Couplings are stored as lists rather than rows if fewer than one in this many is not 0.
_LISTED = 12


def up_to_whole(part: int, num_sites: int) -> int:
    """Returns the number of sites, or of chains, rounded up to a multiple of `part`."""
    return -(-num_sites // part) * part


def native_size(num_sites: int) -> int:
    """Returns the padded number of sites in the arrays."""
    return up_to_whole(TILE, num_sites)


def _padded(array, size: int, dtype) -> np.ndarray:
    """Returns a copy whose last axis is padded to `size` with 0."""
    array = np.asarray(array)
    found = aligned_zeros((*array.shape[:-1], size), dtype)
    found[..., : array.shape[-1]] = array
    return found


def _padded_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """Returns a copy of matrices [G, N, N] with both axes padded to `size` with 0."""
    found = aligned_zeros((len(rows), size, size), rows.dtype)
    found[:, : rows.shape[1], : rows.shape[2]] = rows
    return found


def as_targets(model: QuadraticModel, batch: Batch, *, listed: bool = False) -> Targets:
    """Returns the instances in the form of the loops; converting dense ones takes as long as thousands of steps.

    Args:
      model: of f.
      batch: the instances.
      listed: whether couplings are stored as lists, however many there are.
    """
    params, num_sites, size = batch.params, model.num_sites, native_size(model.num_sites)
    mask = _padded(batch.mask, size, bool)
    closed_last = np.argsort(~mask, axis=1, kind="stable").astype(np.uint32)
    linear, scale = _padded(params.linear, size, np.float32), np.array(params.scale, np.float32)
    matrix = params.coupling.matrix
    most_listed = len(mask) * num_sites**2 // _LISTED
    dense = matrix is not None and not listed and int(np.count_nonzero(matrix)) > most_listed
    used = mask.copy()
    if dense:
        rows = _padded_rows(np.asarray(matrix), size)
        used |= rows.any(axis=2)
        counts = np.zeros((len(mask), size + 1), np.int64)
        neighbour, weight = np.zeros(0, np.uint32), np.zeros(0, rows.dtype)
    else:
        instance, site, neighbour, weight = params.coupling.entries(num_sites)
        used[instance, site] = True
        counts = np.bincount(instance * (size + 1) + site + 1, minlength=len(mask) * (size + 1))
        counts = counts.reshape(len(mask), -1)
        rows = np.zeros((1, 1, 1), weight.dtype)
    first = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    lists = np.cumsum(counts, axis=1, dtype=np.uint64), neighbour.astype(np.uint32), weight, first
    num_open = mask.sum(axis=1, dtype=np.int64)
    sizes = np.array([up_to_whole(LANES, size - int(np.argmax(one[::-1]))) for one in used])
    open_ones = _padded(batch.mask, size, np.float32)
    return Targets(linear, scale, dense, rows, *lists, open_ones, closed_last, num_open, sizes)


def sums_dtype(batch: Batch, states: ChainStates) -> Any:
    """Returns the type of the loops' sums Kx, see `chain.flip`."""
    if np.asarray(states.chain.field.coupled).dtype == np.int16:
        return np.int16
    return np.int32 if np.asarray(batch.params.coupling[-1]).dtype == np.int8 else np.float64


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
    """Returns the proposal's temperature at each step of a whole run; a run without levels counts as one level."""
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

    def __init__(self, program: Program, *, keeps_weights: bool):
        self._temperature, self._localized = program.temperature, program.levels is not None
        self._exchanges = program.ladder > 1
        self._levels = _NONE if program.levels is None else Levels(*map(np.ascontiguousarray, program.levels))
        self._proposed = None
        if keeps_weights and program.temperature[:0].ndim == 1:
            self._proposed = proposal_temperatures(program.temperature[:], program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> ProgramSlice:
        """Returns the intervals that follow the steps done; weights are recomputed before the first step.

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
