"""The arrays of a kernel on the host, and their conversion from and to the data of `engines.base`."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Num

from sl_discs.engines.base import Batch, ChainStates, Program, states_after
from sl_discs.engines.cuda.chain import LEAST_RATE, LOWEST
from sl_discs.engines.cuda.play import Found, Instances, Steps, WarpChains
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import Coupling, QuadraticField
from sl_discs.samplers.base import Sampler

_NO_LEVELS = Levels(*(np.zeros(1, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


def _padded(array: Any, size: int, dtype: Any) -> np.ndarray:
    """Returns a copy whose last axis is padded to `size` with 0."""
    array = np.asarray(array)
    found = np.zeros((*array.shape[:-1], size), dtype)
    found[..., : array.shape[-1]] = array
    return found


def _flat(array: Any) -> np.ndarray:
    """Returns [G, B, ...] as [G B, ...]."""
    array = np.asarray(array)
    return array.reshape(-1, *array.shape[2:])


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
        padded = _padded(one, sites * threads, np.int8 if whole else np.float32)
        if whole:
            # The bytes w_k + 128 make a number that is too large by 128 in each of them.
            padded = (padded.view(np.uint8) ^ np.uint8(128)).view("<u4") - np.uint32(0x80808080)
        packed[:] = padded.reshape(-1, threads, kept).swapaxes(1, 2)
    return found.reshape(len(rows), -1)


def as_instances(batch: Batch, num_sites: int, sites: int, threads: int) -> tuple[Instances, int]:
    """Returns the targets of a batch for lanes of these sites, and the largest whole coupling."""
    rows = _dense_rows(batch.params.coupling, num_sites)
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0))) if rows.dtype == np.int8 else 0
    size, mask = sites * threads, np.asarray(batch.mask)
    instances = Instances(
        rows=pack_rows(rows, sites, threads),
        linear=_padded(batch.params.linear, size, np.float32),
        scale=np.array(batch.params.scale, np.float32),
        is_open=_padded(mask, size, np.int8),
        open_sites=_padded(np.argsort(~mask, axis=1, kind="stable"), size, np.int32),
        num_open=mask.sum(axis=1, dtype=np.int32),
        num_sites=np.int32(num_sites),
    )
    return instances, largest


def as_chains(sampler: Sampler, batch: Batch, states: ChainStates, size: int, localized: bool) -> WarpChains:
    """Returns copies of the chains, padded to `size` sites."""
    chain = states.chain
    state = chain.state.base if localized else chain.state
    count = np.size(chain.field.linear)

    def numbers(leaf, dtype=np.float32):
        return np.array(leaf, dtype).reshape(count)

    def sites(leaf, dtype=np.float32):
        return _padded(_flat(leaf), size, dtype)

    def values(best):
        return np.maximum(numbers(best.value), LOWEST)

    return WarpChains(
        keys=np.array(_flat(batch.keys.mcmc)),
        observation_keys=np.array(_flat(batch.keys.observation)),
        x=sites(chain.x, np.int8),
        coupled=sites(chain.field.coupled),
        linear=numbers(chain.field.linear),
        pairs=numbers(chain.field.pairs),
        pace=numbers(getattr(state, sampler.adapts) if sampler.adapts else np.zeros(count)),
        steps=numbers(state.steps, np.int32),
        y=sites(chain.state.y) if localized else np.zeros((count, 1), np.float32),
        mean=sites(chain.state.mean) if localized else np.zeros((count, 1), np.float32),
        best=values(states.best),
        best_x=sites(states.best.x, np.int8),
        logged=values(states.best_logged),
        logged_x=sites(states.best_logged.x, np.int8),
    )


def as_states(
    sampler: Sampler, before: ChainStates, chains: WarpChains, levels: Levels | None, num_steps: int
) -> ChainStates:
    """Returns the chains in the form of the reference engine, `num_steps` steps after `before`."""

    def values(found):
        return np.where(found <= LOWEST, np.float32(-np.inf), found)

    return states_after(
        sampler, before, levels, num_steps, x=chains.x,
        field=QuadraticField(chains.coupled, chains.linear, chains.pairs), pace=chains.pace, y=chains.y,
        mean=chains.mean, best=(values(chains.best), chains.best_x),
        best_logged=(values(chains.logged), chains.logged_x),
    )  # fmt: skip


def as_steps(program: Program, done: int, intervals: int, every: int) -> Steps:
    """Returns the part of a program after `done` steps."""
    temperature = np.atleast_2d(np.asarray(program.temperature[done : done + intervals * every], np.float32).T)
    levels = _NO_LEVELS if program.levels is None else program.levels
    half_rate = np.maximum(np.float32(0.5) / temperature, LEAST_RATE)
    leaves = {name: np.ascontiguousarray(leaf) for name, leaf in levels._asdict().items()}
    return Steps(
        np.ascontiguousarray(half_rate), np.int32(every), np.int32(done), np.int32(levels.at(done)), **leaves
    )


def make_found(program: Program, intervals: int, x: np.ndarray) -> Found:
    """Allocates the records of a call for chains with these states."""
    value, acceptance, hops = (np.zeros((intervals, len(x)), np.float32) for _ in range(3))
    return Found(value, acceptance, hops, np.zeros((intervals if program.keeps_states else 0, *x.shape), np.int8))
