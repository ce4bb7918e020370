"""The arrays of a kernel on the host, and their conversion from and to the data of `engines.base`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Num

from sl_discs.engines.arrays import ChainArrays, as_arrays, padded
from sl_discs.engines.base import Batch, ChainStates, Program
from sl_discs.engines.cuda.chain import LEAST_RATE, LOWEST
from sl_discs.engines.cuda.play import Instances, Steps
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import Coupling
from sl_discs.samplers.base import Sampler

_NO_LEVELS = Levels(*(np.zeros(1, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


def _dense_rows(coupling: Coupling, num_sites: int) -> Num[np.ndarray, "G N N"]:
    """Returns the couplings as matrices."""
    if coupling.matrix is not None:
        return np.asarray(coupling.matrix)
    instance, site, neighbour, weight = coupling.entries(num_sites)
    rows = np.zeros((len(np.asarray(coupling[-1])), num_sites, num_sites), weight.dtype)
    rows[instance, site, neighbour] = weight
    return rows


def pack_rows(rows: Num[np.ndarray, "G N N"], sites: int, threads: int) -> Num[np.ndarray, "G entries"]:
    """Returns rows in the order of the lanes, see `Instances.rows`; those of int8 as words of four."""
    whole = rows.dtype == np.int8
    kept = sites // 4 if whole else sites
    found = np.zeros((len(rows), rows.shape[1], kept, threads), np.uint32 if whole else np.float32)
    for one, packed in zip(rows, found, strict=True):
        row = padded(one, sites * threads, np.int8 if whole else np.float32)
        if whole:
            # The bytes w_k + 128 make a number that is too large by 128 in each of them.
            row = (row.view(np.uint8) ^ np.uint8(128)).view("<u4") - np.uint32(0x80808080)
        packed[:] = row.reshape(-1, threads, kept).swapaxes(1, 2)
    return found.reshape(len(rows), -1)


def as_instances(batch: Batch, num_sites: int, sites: int, threads: int) -> tuple[Instances, int]:
    """Returns the targets of a batch for lanes of these sites, and the largest whole coupling."""
    rows = _dense_rows(batch.params.coupling, num_sites)
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0))) if rows.dtype == np.int8 else 0
    size, mask = sites * threads, np.asarray(batch.mask)
    instances = Instances(
        rows=pack_rows(rows, sites, threads),
        linear=padded(batch.params.linear, size, np.float32),
        scale=np.array(batch.params.scale, np.float32),
        is_open=padded(mask, size, np.int8),
        open_sites=padded(np.argsort(~mask, axis=1, kind="stable"), size, np.int32),
        num_open=mask.sum(axis=1, dtype=np.int32),
        num_sites=np.int32(num_sites),
    )
    return instances, largest


def as_chains(sampler: Sampler, batch: Batch, states: ChainStates, size: int, localized: bool) -> ChainArrays:
    """Returns copies of the chains, padded to `size` sites; their values are finite."""
    chains = as_arrays(sampler, batch, states, localized, size, np.float32, np.float32)
    return chains._replace(best=np.maximum(chains.best, LOWEST), best_logged=np.maximum(chains.best_logged, LOWEST))


def with_infinite(chains: ChainArrays) -> ChainArrays:
    """Returns the chains with the values of before: minus infinity where no state counts yet."""
    best, logged = (
        np.where(found <= LOWEST, np.float32(-np.inf), found) for found in (chains.best, chains.best_logged)
    )
    return chains._replace(best=best, best_logged=logged)


def as_steps(program: Program, done: int, intervals: int, every: int) -> Steps:
    """Returns the part of a program after `done` steps."""
    temperature = np.atleast_2d(np.asarray(program.temperature[done : done + intervals * every], np.float32).T)
    levels = _NO_LEVELS if program.levels is None else program.levels
    half_rate = np.maximum(np.float32(0.5) / temperature, LEAST_RATE)
    leaves = {name: np.ascontiguousarray(leaf) for name, leaf in levels._asdict().items()}
    return Steps(
        np.ascontiguousarray(half_rate), np.int32(every), np.int32(done), np.int32(levels.at(done)), **leaves
    )
