"""Instances and programs in the form of the native loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float32

from sl_discs.engines.arrays import levels_of, padded
from sl_discs.engines.base import Batch, ChainStates, Program
from sl_discs.engines.cpu.chain import LoopTarget
from sl_discs.engines.cpu.chunk import ProgramSlice
from sl_discs.engines.cpu.tree import LANES, TILE
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import QuadraticModel

# Couplings are stored as lists rather than rows if fewer than one in this many is not 0.
_LISTED = 12
# Relative to the sum of a site's couplings.
_ROUNDING = 1e-6


def up_to_whole(part: int, number: int) -> int:
    """Returns the number of sites, or of chains, rounded up to a multiple of `part`."""
    return -(-number // part) * part


def as_targets(model: QuadraticModel, batch: Batch, *, in_step: bool = False) -> list[LoopTarget]:
    """Returns the instances in the form of the loops; converting dense ones takes as long as thousands of steps.

    Args:
      model: of f.
      batch: the instances.
      in_step: whether they are for chains in step, which need lists, however many couplings there are, in float32.
    """
    params, num_sites, size = batch.params, model.num_sites, up_to_whole(TILE, model.num_sites)
    mask, linear = padded(batch.mask, bool, size), padded(params.linear, np.float32, size)
    open_ones, matrix = padded(batch.mask, np.float32, size), params.coupling.matrix
    most_listed = len(mask) * num_sites**2 // _LISTED
    dense = matrix is not None and not in_step and int(np.count_nonzero(matrix)) > most_listed
    if dense:
        matrix = np.asarray(matrix)
        rows = padded(matrix, matrix.dtype, size, size)
        counts = np.zeros((len(mask), size), np.int64)
        neighbours, weights = np.zeros(0, np.uint32), np.zeros(0, rows.dtype)
        coupled = rows.any(axis=2)
    else:
        instance, site, neighbours, weights = params.coupling.entries(num_sites)
        counts = np.bincount(instance * size + site, minlength=len(mask) * size).reshape(-1, size)
        rows = np.zeros((len(mask), 1, 1), weights.dtype)
        coupled = counts > 0
    whole, ends = weights.dtype == np.int8, np.cumsum(counts.sum(axis=1))
    neighbours, weights = neighbours.astype(np.uint32), weights.astype(np.float32) if in_step else weights

    def one(g):
        used, here = mask[g] | coupled[g], slice(ends[g] - counts[g].sum(), ends[g])
        length = up_to_whole(LANES, size - int(np.argmax(used[::-1])))
        starts = np.concatenate([[0], np.cumsum(counts[g])]).astype(np.uint64)
        target = LoopTarget(
            linear[g, :length], np.float32(params.scale[g]), dense, rows[g], starts[: length + 1], neighbours[here],
            weights[here], open_ones[g, :length], np.flatnonzero(mask[g]).astype(np.uint32), bool(whole),
        )  # fmt: skip
        return target._replace(symmetric=_is_symmetric(target, counts[g, :length])) if in_step else target

    return [one(g) for g in range(len(mask))]


def _is_symmetric(target: LoopTarget, counts: np.ndarray) -> bool:
    """Returns whether f stays the same if all sites flip; `counts` are the lengths of its lists."""
    # On spins s = 2 x - 1 the fields are half of c + J 1/2; those of real couplings are rounded.
    site = np.repeat(np.arange(len(counts)), counts)
    sums, reach = (np.bincount(site, each, len(counts)) for each in (target.weights, np.abs(target.weights)))
    fields = np.abs(2 * target.linear + target.scale * sums)
    return bool((fields <= _ROUNDING * abs(target.scale) * reach).all() and target.mask[site].all())


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
_NO_LIMIT = np.float32(0)
_NONE = Levels(*(np.zeros(0, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


class ProgramSlices:
    """A whole run's program, which is passed to the loops in parts.

    Args:
      program: program of the run.
      keeps_weights: whether proposals are weighed at temperatures that are constant over many steps, if those of
        the whole run are known; otherwise they are weighed at exactly these.
      coldest: temperature, which replaces lower ones; see `least_temperature`.
    """

    def __init__(self, program: Program, *, keeps_weights: bool, coldest: np.float32 = _NO_LIMIT):
        self._temperature, self._swaps = program.temperature, program.ladder > 1
        self._coldest = coldest
        levels = levels_of(program)
        self._localized = levels is not None
        self._levels = _NONE if levels is None else Levels(*map(np.ascontiguousarray, levels))
        whole = program.temperature.whole() if keeps_weights else None
        self._proposed = None
        if whole is not None:
            self._proposed = proposal_temperatures(np.maximum(whole, coldest), program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> ProgramSlice:
        """Returns the intervals that follow the steps done; weights are recomputed before the first step.

        If chains swap states, they are also recomputed at the start of each interval.
        """
        steps = intervals * every
        rows = np.ascontiguousarray(np.maximum(self._temperature.rows(done, done + steps), self._coldest))
        proposed = rows if self._proposed is None else self._proposed[:, done : done + steps]
        refresh = np.ones(rows.shape, bool)
        refresh[:, 1:] = proposed[:, 1:] != proposed[:, :-1]
        refresh[:, -(done + 1) % _LONGEST_WITHOUT_REFRESH :: _LONGEST_WITHOUT_REFRESH] = True
        begins = self._levels.last + 1 - done
        refresh[:, begins[(begins >= 0) & (begins < steps)]] = True
        if self._swaps:
            refresh[:, ::every] = True
        level = self._levels.at(done) if self._localized else 0
        return ProgramSlice(1 / rows, 1 / proposed, refresh, self._localized, level, self._levels)
