"""The engine for CPU cores: `advance` in compiled loops (`sl_discs.native`), for quadratic models and path samplers.

It plays the same program on the same chains as the reference engine and leaves the same law, not the same numbers:
keys are those of the reference, but sums are formed in another order.
"""

from __future__ import annotations

import importlib.util
import os

import jax
import numpy as np

from sl_discs.experiment.engine import Batch, Best, Chains, Trace
from sl_discs.localization.observation import Observation
from sl_discs.localization.transition import Chain, ProgramStep
from sl_discs.models.coupling import Dense
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.path import PathSampler, PathState


def why_not(sampler: Sampler) -> str | None:
    """Why this engine cannot play a sampler; None if it can."""
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed: pip install 'sl_discs[cpu]'"
    if jax.default_backend() != "cpu":
        return f"it runs on CPU cores, and JAX on {jax.default_backend()}"
    if not isinstance(sampler, PathSampler):
        return "it knows gwg and path_auxiliary alone"
    if sampler.balancing_fn_type != "SQRT" or sampler.shared_adaptation:
        return "it knows balancing_fn_type SQRT and adaptation of each chain alone"
    return None


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _padded(array, size: int, fill=0) -> np.ndarray:
    """The array with its last axis filled up to `size`."""
    array = np.asarray(array)
    widths = [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])]
    return np.ascontiguousarray(np.pad(array, widths, constant_values=fill))


def _flat(array) -> np.ndarray:
    """[G, B, ...] as [G B, ...], a copy."""
    array = np.array(array)
    return array.reshape(-1, *array.shape[2:])


def _instances(batch: Batch, num_sites: int, size: int):
    from sl_discs.native.coupling import Target

    params = batch.params
    linear, mask = _padded(params.linear, size).astype(np.float32), _padded(batch.mask, size).astype(np.float32)
    scale = np.asarray(params.scale, np.float32)
    nothing = np.zeros((1, 1, 1), np.int32)
    if isinstance(params.coupling, Dense):
        rows = np.asarray(params.coupling.rows)
        rows = _padded(rows, size)
        return Target(linear, scale, True, rows, nothing, np.zeros((1, 1, 1), rows.dtype), num_sites, mask)
    neighbours, weights = (np.ascontiguousarray(leaf) for leaf in params.coupling)
    return Target(linear, scale, False, np.zeros((1, 1, 1), weights.dtype), neighbours, weights, num_sites, mask)


def _chain_arrays(batch: Batch, chains: Chains, size: int):
    from sl_discs.native.chunk import ChainArrays

    def spins(x):
        return _padded(2.0 * _flat(x) - 1.0, size, -1.0).astype(np.float32)

    chain = chains.chain
    x = np.asarray(chain.x)
    observation = chain.observation
    empty = np.zeros((x.shape[0] * x.shape[1], 0), np.float32)
    return ChainArrays(
        instance=np.repeat(np.arange(x.shape[0]), x.shape[1]),
        keys=_flat(batch.keys.mcmc),
        observation_keys=_flat(batch.keys.observation),
        spins=spins(x),
        coupled=_padded(_flat(chain.field.coupled), size),
        linear=_flat(chain.field.linear).astype(np.float64),
        pairs=_flat(chain.field.pairs).astype(np.float64),
        radius=_flat(chain.sampler.radius),
        steps=_flat(chain.sampler.steps),
        y=empty if observation is None else _padded(_flat(observation.y), size),
        mean=empty if observation is None else _padded(_flat(observation.mean), size),
        best=_flat(chains.best.value).astype(np.float64),
        best_spins=spins(chains.best.x),
        best_logged=_flat(chains.best_logged.value).astype(np.float64),
        best_logged_spins=spins(chains.best_logged.x),
    )


def _program(program: ProgramStep):
    from sl_discs.native.chunk import Program

    temperature = np.asarray(program.temperature)
    if program.localization is None:
        empty = np.zeros((0, 0), np.float32)
        return Program(temperature, False, empty, empty, empty.astype(bool), empty, empty)
    return Program(temperature, True, *(np.asarray(leaf) for leaf in program.localization))


def _as_chains(before: Chains, arrays, num_sites: int) -> Chains:
    """The chains that the arrays hold, in the form of the reference engine."""
    shape = np.asarray(before.chain.x).shape[:2]

    def back(array, dtype=np.float32):
        array = array.reshape(*shape, *array.shape[1:])
        return (array if array.ndim == 2 else array[..., :num_sites]).astype(dtype)

    def states(spins):
        return (back(spins) > 0).astype(np.int8)

    field = QuadraticField(back(arrays.coupled), back(arrays.linear), back(arrays.pairs))
    steps = back(arrays.steps, np.int32)
    done = steps - np.asarray(before.chain.sampler.steps)
    sampler = PathState(steps, np.asarray(before.chain.sampler.num_ll_calls) + 4 * done, back(arrays.radius))
    localized = before.chain.observation is not None
    observation = Observation(back(arrays.y), back(arrays.mean)) if localized else None
    return Chains(
        Chain(states(arrays.spins), field, sampler, observation),
        Best(back(arrays.best), states(arrays.best_spins)),
        Best(back(arrays.best_logged), states(arrays.best_logged_spins)),
    )


def advance(
    model: QuadraticModel, sampler: PathSampler, batch: Batch, chains: Chains, program: ProgramStep, first_step: int
) -> tuple[Chains, Trace]:
    """As `engine.advance`, with arrays on the host.

    Args:
      model: any quadratic model.
      sampler: with `why_not(sampler)` None.
      batch: instances and keys.
      chains: before the first step.
      program: leaves [L, E]: L logged intervals of E steps.
      first_step: number of the first step.
    """
    import numba

    from sl_discs.native.chunk import PathSettings, play
    from sl_discs.native.weights import WIDTH

    numba.set_num_threads(min(num_cores(), numba.config.NUMBA_NUM_THREADS))
    num_sites = model.num_sites
    size = -(-num_sites // WIDTH) * WIDTH
    settings = PathSettings(
        sampler.replacement,
        sampler.num_flips,
        sampler.adaptive,
        np.float32(sampler.target_acceptance_rate),
        sampler.adapt_until or 0,
    )
    arrays = _chain_arrays(batch, chains, size)
    rows = _program(program)
    shape = np.asarray(chains.chain.x).shape[:2]
    traces = [np.zeros((rows.temperature.shape[0], len(arrays.spins)), np.float32) for _ in range(3)]
    play(settings, rows, _instances(batch, num_sites, size), arrays, int(first_step), *traces)
    trace = Trace(*(one.reshape(-1, *shape) for one in traces))
    return _as_chains(chains, arrays, num_sites), trace
