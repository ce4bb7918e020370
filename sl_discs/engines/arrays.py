"""Chains and records as arrays with one axis for the chains of all instances, for the compiled
engines; and back.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from sl_discs.engines.program import Batch, Best, ChainStates, Program, Trace
from sl_discs.localization.algorithm import LocalizedState
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import QuadraticField
from sl_discs.samplers.sampler import Chain, Sampler


class ChainArrays(NamedTuple):
    """The complete state of C = G B chains, modified in place; N may be padded.

    Attributes:
      keys: [C, 2] keys of the chains' Markov steps.
      observation_keys: [C, 2] keys of their observations.
      x: [C, N] int8.
      coupled: [C, N] Kx.
      linear: [C] c.x.
      pairs: [C] x'Kx/2.
      pace: [C] what the sampler adapts: the radius or the expected number of flips.
      steps: [C] steps of the sampler.
      y: [C, N] observation or external field; [C, 1] without both, like `mean`.
      mean: [C, N] partial posterior mean of the spins.
      best: [C] highest value over every step.
      best_x: [C, N] state with that value.
      best_logged: [C] highest value over logged steps.
      best_logged_x: [C, N] state with that value.
    """

    keys: Any
    observation_keys: Any
    x: Any
    coupled: Any
    linear: Any
    pairs: Any
    pace: Any
    steps: Any
    y: Any
    mean: Any
    best: Any
    best_x: Any
    best_logged: Any
    best_logged_x: Any


class Records(NamedTuple):
    """The records of L intervals of C chains in ladders of R; `swaps` and `states` are empty if not
    needed.

    Attributes:
      value: [L, C] f at the end of each interval.
      acceptance: [L, C] mean acceptance probability over the interval.
      hops: [L, C] mean number of flipped sites per step over the interval.
      swaps: [L, C] whether a chain swaps its state with the next one.
      states: [L, C/R, N] int8 states of the first place of each ladder.
    """

    value: Any
    acceptance: Any
    hops: Any
    swaps: Any
    states: Any


# NumPy aligns its arrays to 16 bytes only, so by chance every second vector access may cross a
# cache line. Without alignment, steps of `sl_gwg` on the engine `cpu` with 16-bit sums took up to
# 14 % longer.
_LINE = 64


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Returns `np.zeros`, aligned to cache lines."""
    dtype = np.dtype(dtype)
    shape = shape if isinstance(shape, tuple) else (shape,)
    # Each call of the loops makes dozens of arrays; np.prod alone would take longer than the rest
    # of this function.
    num_bytes = math.prod(shape) * dtype.itemsize
    workspace = np.zeros(num_bytes + _LINE, np.uint8)
    first = -workspace.ctypes.data % _LINE
    return workspace[first : first + num_bytes].view(dtype).reshape(shape)


def padded(array: Any, dtype: Any, *sizes: int) -> np.ndarray:
    """Returns an aligned copy whose last axes are padded to `sizes` with 0."""
    array = np.asarray(array)
    kept = array.ndim - len(sizes)
    result = aligned_zeros((*array.shape[:kept], *sizes), dtype)
    result[tuple(map(slice, array.shape))] = array
    return result


def flat(array: Any) -> np.ndarray:
    """Returns [G, B, ...] as [G B, ...], a copy."""
    array = np.array(array)
    return array.reshape(-1, *array.shape[2:])


def no_levels(count: int) -> Levels:
    """Returns `count` levels of zeros, for loops that play no levels but take arrays of them."""
    types = (np.float32, np.int32, np.int32, np.float32, np.float32, np.float32)
    return Levels(*(np.zeros(count, dtype) for dtype in types))


def levels_of(program: Program) -> Levels | None:
    """Returns the levels that loops play: those of the program, or one without end whose tilt is
    its field.
    """
    if program.field is None:
        return program.levels
    zero = np.zeros(1, np.float32)
    return Levels(
        np.ones(1, np.float32),
        np.array([2**31 - 2], np.int32),
        np.ones(1, np.int32),
        drift=zero,
        noise=zero,
        first_noise=zero[0],
    )


def as_arrays(
    sampler: Sampler,
    batch: Batch,
    states: ChainStates,
    program: Program,
    size: int,
    sums: Any,
    coupled: Any,
) -> ChainArrays:
    """Returns copies of the chains; of a program with an external field, that is their observation.

    Args:
      sampler: the base sampler.
      batch: its keys.
      states: the chains.
      program: that they run.
      size: number of sites of the arrays, N or more.
      sums: type of sums and values.
      coupled: type of Kx.
    """

    def sites(leaf, dtype):
        return padded(np.asarray(leaf).reshape(-1, np.shape(leaf)[-1]), dtype, size)

    chain = states.chain
    state = chain.state
    y = program.field
    mean = None
    if program.levels is not None:
        state = chain.state.base
        y = chain.state.y
        mean = chain.state.mean
    empty = np.zeros((np.size(chain.field.linear), 1), np.float32)
    observation = empty if y is None else sites(y, np.float32)
    return ChainArrays(
        keys=flat(batch.keys.mcmc),
        observation_keys=flat(batch.keys.observation),
        x=sites(chain.x, np.int8),
        coupled=sites(chain.field.coupled, coupled),
        linear=flat(chain.field.linear).astype(sums),
        pairs=flat(chain.field.pairs).astype(sums),
        pace=flat(getattr(state, sampler.adapts)) if sampler.adapts else empty[:, 0].copy(),
        steps=flat(state.steps),
        y=observation,
        mean=aligned_zeros(observation.shape, np.float32)
        if mean is None
        else sites(mean, np.float32),
        best=flat(states.best.value).astype(sums),
        best_x=sites(states.best.x, np.int8),
        best_logged=flat(states.best_logged.value).astype(sums),
        best_logged_x=sites(states.best_logged.x, np.int8),
    )


def as_states(
    sampler: Sampler,
    before: ChainStates,
    chains: ChainArrays,
    levels: Levels | None,
    num_steps: int,
) -> ChainStates:
    """Returns the chains `num_steps` steps after `before`, whose shapes and types they have."""

    def like(leaf, array):
        shape = np.shape(leaf)
        array = np.asarray(array)
        if array.ndim < len(shape):
            array = array.reshape(*shape[:2], *array.shape[1:])
        return np.ascontiguousarray(array[..., : shape[-1]], np.asarray(leaf).dtype)

    moved = np.int32(num_steps)
    state: Any = before.chain.state if levels is None else before.chain.state.base
    scale = {sampler.adapts: chains.pace} if sampler.adapts else {}
    state = state._replace(steps=state.steps + moved, **scale)
    if levels is not None:
        step = np.asarray(before.chain.state.step) + moved
        level: Any = np.minimum(np.searchsorted(levels.last, step), len(levels.last) - 1)
        state = LocalizedState(state, level, step, chains.y, chains.mean)
    field = QuadraticField(chains.coupled, chains.linear, chains.pairs)
    best = Best(chains.best, chains.best_x)
    logged = Best(chains.best_logged, chains.best_logged_x)
    return jax.tree.map(like, before, ChainStates(Chain(chains.x, field, state), best, logged))


# Logits have a factor log2(e)/2 and sums of a few of them; all must be finite in float32.
_LARGEST_LOGIT = np.float64(1e36)


def least_temperature(batch: Batch) -> np.float32:
    """Returns the temperature below which a gain divided by it could leave the range of float32.

    Colder targets are the same in single precision: only gains below 1e-36 of the largest would
    still differ.
    """
    params = batch.params
    num_sites = np.shape(batch.mask)[1]
    linear, scale, coupling = (
        float(np.abs(np.asarray(leaf)).max(initial=0))
        for leaf in (params.linear, params.scale, params.coupling[-1])
    )
    return np.float32((linear + scale * num_sites * coupling) / _LARGEST_LOGIT)


def make_records(program: Program, intervals: int, num_chains: int, num_sites: int) -> Records:
    """Allocates the records of a call: `num_chains` chains of all instances, with `intervals`
    records each.
    """
    value, acceptance, hops = (np.zeros((intervals, num_chains), np.float32) for _ in range(3))
    swaps = np.zeros((intervals if program.ladder > 1 else 0, num_chains), bool)
    kept = intervals if program.keeps_states else 0
    states = np.zeros((kept, num_chains // program.ladder, num_sites), np.int8)
    return Records(value, acceptance, hops, swaps, states)


def as_trace(
    program: Program, records: Records, instances: int, chains: int, num_sites: int
) -> Trace:
    """Returns the records in the form of the reference engine."""
    swaps = None
    states = None
    if program.ladder > 1:
        swaps = records.swaps.reshape(-1, instances, chains)
    if program.keeps_states:
        states = records.states[..., :num_sites].reshape(
            -1, instances, chains // program.ladder, num_sites
        )
    value, acceptance, hops = (leaf.reshape(-1, instances, chains) for leaf in records[:3])
    return Trace(value, acceptance, hops, states, swaps)
