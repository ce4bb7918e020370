"""Conversion between the reference engine's data and the arrays of the native loops.

The loops use one axis for the chains of all instances, and sums in double precision.
"""

from __future__ import annotations

import numpy as np

from sl_discs.engines.base import Batch, ChainStates, Program, Trace, states_after
from sl_discs.engines.cpu.arithmetic import aligned_zeros
from sl_discs.engines.cpu.chunk import ChainArrays, Records, Targets
from sl_discs.engines.cpu.tree import LANES, TILE
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.base import Sampler

# Couplings are stored as lists rather than rows if fewer than one in this many is not 0.
_LISTED = 12


def up_to_whole(part: int, num_sites: int) -> int:
    """The number of sites, or of chains, rounded up to a multiple of `part`."""
    return -(-num_sites // part) * part


def native_size(num_sites: int) -> int:
    """The padded number of sites in the arrays."""
    return up_to_whole(TILE, num_sites)


def _padded(array, size: int, dtype) -> np.ndarray:
    """A copy whose last axis is padded to `size` with 0."""
    array = np.asarray(array)
    found = aligned_zeros((*array.shape[:-1], size), dtype)
    found[..., : array.shape[-1]] = array
    return found


def flat(array) -> np.ndarray:
    """[G, B, ...] as [G B, ...], a copy."""
    array = np.array(array)
    return array.reshape(-1, *array.shape[2:])


def _padded_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """A copy of matrices [G, N, N] with both axes padded to `size` with 0."""
    found = aligned_zeros((len(rows), size, size), rows.dtype)
    found[:, : rows.shape[1], : rows.shape[2]] = rows
    return found


def as_targets(model: QuadraticModel, batch: Batch, *, listed: bool = False) -> Targets:
    """The instances in the form of the loops; converting dense ones takes as long as thousands of steps.

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


def as_arrays(sampler: Sampler, batch: Batch, chains: ChainStates, *, localized: bool) -> ChainArrays:
    """Copies of the chains in the form of the loops."""
    chain = chains.chain
    state = chain.state.base if localized else chain.state
    instances, count = np.shape(chain.x)[:2]
    coupled = np.asarray(chain.field.coupled)
    whole = np.asarray(batch.params.coupling[-1]).dtype == np.int8
    coupled_dtype = np.int16 if coupled.dtype == np.int16 else np.int32 if whole else np.float64
    none = np.zeros((instances * count, 0), np.float32)
    return ChainArrays(
        instance=np.repeat(np.arange(instances), count),
        keys=flat(batch.keys.mcmc),
        observation_keys=flat(batch.keys.observation),
        x=flat(chain.x),
        coupled=flat(coupled).astype(coupled_dtype),
        linear=flat(chain.field.linear).astype(np.float64),
        pairs=flat(chain.field.pairs).astype(np.float64),
        pace=flat(getattr(state, sampler.adapts) if sampler.adapts else np.zeros(state.steps.shape, np.float32)),
        steps=flat(state.steps),
        y=flat(chain.state.y) if localized else none,
        mean=flat(chain.state.mean) if localized else none,
        best=flat(chains.best.value).astype(np.float64),
        best_x=flat(chains.best.x),
        best_logged=flat(chains.best_logged.value).astype(np.float64),
        best_logged_x=flat(chains.best_logged.x),
    )


def as_chains(
    sampler: Sampler, before: ChainStates, arrays: ChainArrays, levels: Levels | None, num_steps: int
) -> ChainStates:
    """The chains in the arrays, in the form of the reference engine, after `num_steps` steps."""
    return states_after(
        sampler, before, levels, num_steps, x=arrays.x,
        field=QuadraticField(arrays.coupled, arrays.linear, arrays.pairs), pace=arrays.pace, y=arrays.y,
        mean=arrays.mean, best=(arrays.best, arrays.best_x), best_logged=(arrays.best_logged, arrays.best_logged_x),
    )  # fmt: skip


def make_recorded(program: Program, intervals: int, instances: int, chains: int, num_sites: int) -> Records:
    """Allocates the arrays that the loops record in one call."""
    count = instances * chains
    values, acceptances, hops = (np.zeros((intervals, count), np.float32) for _ in range(3))
    exchanged = np.zeros((intervals if program.ladder > 1 else 0, count), bool)
    kept = intervals if program.keeps_states else 0
    return Records(
        values, acceptances, hops, exchanged, np.zeros((kept, count // program.ladder, num_sites), np.int8)
    )


def as_trace(program: Program, recorded: Records, instances: int, chains: int, num_sites: int) -> Trace:
    """The loops' records in the form of the reference engine."""
    exchanged, states = None, None
    if program.ladder > 1:
        exchanged = recorded.exchanged.reshape(-1, instances, chains)
    if program.keeps_states:
        states = recorded.states.reshape(-1, instances, chains // program.ladder, num_sites)
    numbers = (recorded.values, recorded.acceptances, recorded.hops)
    value, acceptance, hops = (leaf.reshape(-1, instances, chains) for leaf in numbers)
    return Trace(value, acceptance, hops, exchanged, states)
