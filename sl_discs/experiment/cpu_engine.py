"""The engine for CPU cores: `advance` in compiled loops (`sl_discs.native`), for quadratic models.

It plays the same program on the same chains as the reference engine and leaves the same law, not the same numbers:
keys are those of the reference, but words are numbered and sums are formed in another order.

Proposal weights of the samplers that draw sites by weight and test what they propose are formed at temperatures that
stay the same for many steps (`proposal_temperatures`), so that they can be kept.
"""

from __future__ import annotations

import functools
import importlib.util
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from jaxtyping import Float32

from sl_discs.experiment.devices import num_cores
from sl_discs.experiment.engine import Batch, Chains, Trace
from sl_discs.experiment.native_arrays import as_arrays, as_chains, as_native_program, as_targets
from sl_discs.experiment.proposal_temperatures import proposal_temperatures
from sl_discs.experiment.sampler_states import unknown_to
from sl_discs.localization.transition import ProgramStep
from sl_discs.models.quadratic import QuadraticModel
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path import PathSampler
from sl_discs.samplers.path_auxiliary import PathAuxiliary

_KNOWN = (GWG, PathAuxiliary, DMALA, Gibbs, Metropolis)

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


def prepare_temperatures(sampler: Sampler, program: ProgramStep) -> Float32[np.ndarray, "T"]:
    """The temperature of the sampler's proposals at each step of a whole program, leaves [T]."""
    weighs_nothing = isinstance(sampler, Gibbs | Metropolis)
    # Without an acceptance test the proposal is the whole kernel, and the target's own temperature belongs to it.
    untested = isinstance(sampler, DMALA) and not sampler.adjusted
    return np.asarray(program.temperature) if weighs_nothing or untested else proposal_temperatures(program)


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
      targets: of `as_targets`, for many calls; None: prepared for this one.
      proposed: `prepare_temperatures` of the run; None: the program is the whole of it.
    """
    from sl_discs.native.chunk import make_room, play

    arrays = as_arrays(batch, chains)
    if proposed is None:
        proposed = prepare_temperatures(sampler, jax.tree.map(np.ravel, program))
    else:
        proposed = proposed[first_step - 1 :]
    slice_ = as_native_program(program, proposed, int(first_step))
    shape = np.asarray(chains.chain.x).shape[:2]
    traces = [np.zeros((np.shape(program.temperature)[0], len(arrays.spins)), np.float32) for _ in range(3)]
    targets, settings = targets or as_targets(model, batch), _settings(sampler)
    everyone = np.arange(len(arrays.spins))

    def play_some(members):
        room = make_room(arrays.spins.shape[1], arrays.coupled.dtype)
        play(settings, slice_, targets, arrays, members, room, int(first_step), *traces)

    if slice_.rate.size == 0:
        play_some(everyone)
    else:
        threads = threads or num_cores()
        tasks = np.array_split(everyone, min(len(everyone), _TASKS_A_THREAD * threads))
        list(_pool(threads).map(play_some, tasks))
    trace = Trace(*(one.reshape(-1, *shape) for one in traces))
    return as_chains(chains, arrays), trace
