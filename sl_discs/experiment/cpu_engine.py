"""The engine for CPU cores: `advance` in compiled loops (`sl_discs.native`), for quadratic models.

It plays the same program on the same chains as the reference engine and leaves the same law, not the same numbers:
keys are those of the reference, but words are numbered and sums are formed in another order.

Proposal weights of the samplers that draw sites by weight are formed at temperatures that stay the same for many
steps (`proposal_temperatures`), so that they can be kept.
"""

from __future__ import annotations

import functools
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32

from sl_discs.experiment.devices import num_cores
from sl_discs.experiment.engine import Batch, Best, Chains, Trace
from sl_discs.experiment.proposal_temperatures import proposal_temperatures
from sl_discs.experiment.sampler_states import CALLS, SCALES, unknown_to
from sl_discs.localization.observation import Observation
from sl_discs.localization.schedule import LocalizationStep
from sl_discs.localization.transition import Chain, ProgramStep
from sl_discs.models.coupling import Dense, Sparse
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path import PathSampler
from sl_discs.samplers.path_auxiliary import PathAuxiliary

_KNOWN = (GWG, PathAuxiliary, DMALA, Gibbs, Metropolis)

# Sums of weights are formed anew at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
# Couplings are listed rather than stored as rows if fewer than one in so many is not 0.
_LISTED = 12
# Tasks a thread, so that one that is slow does not keep the others waiting.
_TASKS_A_THREAD = 4


def why_not(sampler: Sampler) -> str | None:
    """Why this engine cannot play a sampler here; None if it can."""
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed: pip install 'sl_discs[cpu]'"
    if jax.default_backend() != "cpu":
        return f"it runs on CPU cores, and JAX on {jax.default_backend()}"
    return unknown_to(_KNOWN, sampler)


def steps_per_call(sampler: Sampler) -> int:
    """About how many steps are worth a call: well below a second of them, well above the copies that a call makes."""
    return 500_000 if isinstance(sampler, Gibbs | Metropolis) else 10_000


def _padded(array, size: int, fill=0) -> np.ndarray:
    """The array with its last axis filled up to `size`."""
    array = np.asarray(array)
    widths = [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])]
    return np.ascontiguousarray(np.pad(array, widths, constant_values=fill))


def _flat(array) -> np.ndarray:
    """[G, B, ...] as [G B, ...], a copy."""
    array = np.array(array)
    return array.reshape(-1, *array.shape[2:])


def _settings(sampler: Sampler):
    from sl_discs.native.independent import IndependentSettings
    from sl_discs.native.langevin import LangevinSettings
    from sl_discs.native.path import PathSettings
    from sl_discs.native.single_site import SingleSiteSettings

    if isinstance(sampler, PathSampler):
        return PathSettings(
            sampler.replacement,
            sampler.num_flips,
            sampler.adaptive,
            np.float32(sampler.target_acceptance_rate),
            sampler.adapt_until or 0,
        )
    if isinstance(sampler, DMALA) and sampler.scaling == "fixed":
        return IndependentSettings(sampler.adjusted, np.float32(-np.log2(np.e) / (2 * sampler.step_size)))
    if isinstance(sampler, DMALA):
        return LangevinSettings(
            sampler.adaptive,
            np.float32(sampler.target_acceptance_rate),
            sampler.adapt_until or 0,
            sampler.adjusted,
        )
    return SingleSiteSettings(isinstance(sampler, Gibbs))


def _pace(state) -> np.ndarray:
    name = SCALES.get(type(state))
    return np.asarray(getattr(state, name) if name else np.zeros(np.shape(state.steps), np.float32))


def is_listed(entries: int, places: float) -> bool:
    """Whether so many couplings in matrices of so many places are kept as lists."""
    return _LISTED * entries <= places


def _entries(coupling: Dense | Sparse, num_sites: int):
    """The couplings that are not 0: instance, site, neighbour and weight of each, sorted by the first two."""
    if isinstance(coupling, Dense):
        rows = np.asarray(coupling.rows)
        # Four times as fast as np.nonzero (11 and 2.7 ms for 4 x 832 x 832), which a short run notices.
        place = np.flatnonzero(rows.ravel() if rows.dtype != np.int8 else rows.ravel().view(np.bool_))
        row, neighbour = np.divmod(place, num_sites)
        return row // num_sites, row % num_sites, neighbour, rows.ravel()[place]
    neighbours, weights = (np.asarray(leaf) for leaf in coupling)
    instance, site, place = np.nonzero(neighbours < num_sites)
    return instance, site, neighbours[instance, site, place], weights[instance, site, place]


def _instances(batch: Batch, num_sites: int, size: int):
    from sl_discs.native.chunk import Targets
    from sl_discs.native.tree import LANES

    params = batch.params
    mask = _padded(batch.mask, size)
    closed_last = np.argsort(~mask, axis=1, kind="stable").astype(np.uint32)
    linear, scale = _padded(params.linear, size).astype(np.float32), np.array(params.scale, np.float32)
    instance, site, neighbour, weight = _entries(params.coupling, num_sites)
    counts = np.bincount(instance * (size + 1) + site + 1, minlength=len(mask) * (size + 1)).reshape(len(mask), -1)
    dense = not is_listed(len(weight), len(mask) * num_sites**2)
    if dense:
        rows = np.zeros((len(mask), size, size), weight.dtype)
        rows[instance, site, neighbour] = weight
        neighbour, weight, counts = neighbour[:0], weight[:0], np.zeros_like(counts)
    else:
        rows = np.zeros((1, 1, 1), weight.dtype)
    first = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    lists = np.cumsum(counts, axis=1, dtype=np.uint64), neighbour.astype(np.uint32), weight, first
    num_open = mask.sum(axis=1, dtype=np.int64)
    used = mask.copy()
    used[instance, site] = True
    sizes = np.array([_up_to_whole(LANES, size - int(np.argmax(one[::-1]))) for one in used])
    return Targets(linear, scale, dense, rows, *lists, mask.astype(np.float32), closed_last, num_open, sizes)


def _chain_arrays(batch: Batch, chains: Chains, size: int):
    from sl_discs.native.chunk import ChainArrays

    def spins(x):
        x = np.asarray(x)
        found = np.full((x.shape[0] * x.shape[1], size), -1, np.float32)
        found[:, : x.shape[2]] += 2 * x.reshape(len(found), -1)
        return found

    chain = chains.chain
    x = np.asarray(chain.x)
    observation = chain.observation
    empty = np.zeros((x.shape[0] * x.shape[1], 0), np.float32)
    whole = np.asarray(jax.tree.leaves(batch.params.coupling)[-1]).dtype == np.int8
    return ChainArrays(
        instance=np.repeat(np.arange(x.shape[0]), x.shape[1]),
        keys=_flat(batch.keys.mcmc),
        observation_keys=_flat(batch.keys.observation),
        spins=spins(x),
        coupled=_padded(_flat(chain.field.coupled), size).astype(np.int32 if whole else np.float64),
        linear=_flat(chain.field.linear).astype(np.float64),
        pairs=_flat(chain.field.pairs).astype(np.float64),
        pace=_pace(chain.sampler).reshape(-1).copy(),
        steps=_flat(chain.sampler.steps),
        y=empty if observation is None else _padded(_flat(observation.y), size),
        mean=empty if observation is None else _padded(_flat(observation.mean), size),
        best=_flat(chains.best.value).astype(np.float64),
        best_spins=spins(chains.best.x),
        best_logged=_flat(chains.best_logged.value).astype(np.float64),
        best_logged_spins=spins(chains.best_logged.x),
    )


def prepare_temperatures(sampler: Sampler, program: ProgramStep) -> Float32[np.ndarray, "T"]:
    """The temperature of the sampler's proposals at each step of a whole program, leaves [T]."""
    weighs_nothing = isinstance(sampler, Gibbs | Metropolis)
    return np.asarray(program.temperature) if weighs_nothing else proposal_temperatures(program)


def _program(program: ProgramStep, proposed: Float32[np.ndarray, "T"], first_step: int):
    from sl_discs.native.chunk import Program

    temperature = np.ravel(program.temperature)
    proposed = proposed[: temperature.size]
    refresh = np.ones(temperature.size, bool)
    refresh[1:] = np.diff(proposed) != 0
    refresh[-first_step % _LONGEST_WITHOUT_REFRESH :: _LONGEST_WITHOUT_REFRESH] = True
    rates = (1 / temperature).astype(np.float32), (1 / proposed).astype(np.float32)
    if program.localization is None:
        empty = np.zeros(0, np.float32)
        return Program(*rates, refresh, False, empty, empty, empty.astype(bool), empty, empty)
    localization = LocalizationStep(*(np.array(leaf).ravel() for leaf in program.localization))
    refresh[1:] |= localization.boundary[:-1]
    return Program(*rates, refresh, True, *localization)


def _sampler_state(before: Any, steps: np.ndarray, pace: np.ndarray):
    """The sampler's state after so many steps; it counts likelihood calls as the reference does."""
    calls = np.asarray(before.num_ll_calls) + CALLS[type(before)] * (steps - np.asarray(before.steps))
    scale = {SCALES[type(before)]: pace} if type(before) in SCALES else {}
    return before._replace(steps=steps, num_ll_calls=calls, **scale)


def _as_chains(before: Chains, arrays, num_sites: int) -> Chains:
    """The chains that the arrays hold, in the form of the reference engine."""
    shape = np.asarray(before.chain.x).shape[:2]

    def back(array, dtype=np.float32):
        array = array.reshape(*shape, *array.shape[1:])
        return (array if array.ndim == 2 else array[..., :num_sites]).astype(dtype)

    def states(spins):
        return (back(spins) > 0).astype(np.int8)

    field = QuadraticField(back(arrays.coupled), back(arrays.linear), back(arrays.pairs))
    sampler = _sampler_state(before.chain.sampler, back(arrays.steps, np.int32), back(arrays.pace))
    localized = before.chain.observation is not None
    observation = Observation(back(arrays.y), back(arrays.mean)) if localized else None
    return Chains(
        Chain(states(arrays.spins), field, sampler, observation),
        Best(back(arrays.best), states(arrays.best_spins)),
        Best(back(arrays.best_logged), states(arrays.best_logged_spins)),
    )


def prepare(model: QuadraticModel, batch: Batch):
    """The instances in the form of the loops; dense ones take as long to prepare as thousands of steps to play."""
    from sl_discs.native.tree import TILE

    return _instances(batch, model.num_sites, _up_to_whole(TILE, model.num_sites))


def _up_to_whole(part: int, num_sites: int) -> int:
    return -(-num_sites // part) * part


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call: to start them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


def advance(
    model: QuadraticModel,
    sampler: Sampler,
    batch: Batch,
    chains: Chains,
    program: ProgramStep,
    first_step: int,
    threads: int = 0,
    targets=None,
    proposed: Float32[np.ndarray, "T"] | None = None,
) -> tuple[Chains, Trace]:
    """As `engine.advance`, with arrays on the host.

    Args:
      model: any quadratic model.
      sampler: with `why_not(sampler)` None.
      batch: instances and keys.
      chains: before the first step.
      program: leaves [L, E]: L logged intervals of E steps.
      first_step: number of the first step.
      threads: 0 for as many as there are cores.
      targets: of `prepare`, for many calls; None: prepared for this one.
      proposed: `prepare_temperatures` of the run; None: the program is the whole of it.
    """
    from sl_discs.native.chunk import make_room, play
    from sl_discs.native.tree import TILE

    num_sites = model.num_sites
    size = _up_to_whole(TILE, num_sites)
    arrays = _chain_arrays(batch, chains, size)
    if proposed is None:
        proposed = prepare_temperatures(sampler, jax.tree.map(np.ravel, program))
    else:
        proposed = proposed[first_step - 1 :]
    slice_ = _program(program, proposed, int(first_step))
    shape = np.asarray(chains.chain.x).shape[:2]
    traces = [np.zeros((np.shape(program.temperature)[0], len(arrays.spins)), np.float32) for _ in range(3)]
    targets, settings = targets or prepare(model, batch), _settings(sampler)
    everyone = np.arange(len(arrays.spins))

    def play_some(members):
        room = make_room(size, arrays.coupled.dtype)
        play(settings, slice_, targets, arrays, members, room, int(first_step), *traces)

    if slice_.rate.size == 0:
        play_some(everyone)
    else:
        threads = threads or num_cores()
        tasks = np.array_split(everyone, min(len(everyone), _TASKS_A_THREAD * threads))
        list(_pool(threads).map(play_some, tasks))
    trace = Trace(*(one.reshape(-1, *shape) for one in traces))
    return _as_chains(chains, arrays, num_sites), trace
