"""The engine for CPU cores: compiled loops for quadratic models, each chain on one core.

It plays the same program on the same chains as the reference and targets the same distribution, but not with the same
numbers: keys are those of the reference, while words are numbered and sums are formed in another order.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from sl_discs.engines.compiled import compiled
from sl_discs.engines.contract import Engine, Trace, unknown_to
from sl_discs.engines.cpu.arrays import as_arrays, as_chains, as_targets
from sl_discs.engines.cpu.chunk import make_room, play
from sl_discs.engines.cpu.program import LoopsProgram
from sl_discs.engines.cpu.samplers import ENTRIES
from sl_discs.engines.devices import num_cores

# Tasks a thread, so that one that is slow does not keep the others waiting.
_TASKS_A_THREAD = 4


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call: to start them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


class Cpu(Engine):
    """Plays the samplers of `samplers.ENTRIES`."""

    name = "cpu"
    on_host = True

    def obstacle(self, sampler):
        """Another platform than CPUs, or a sampler without an entry."""
        if jax.default_backend() != "cpu":
            return f"it runs on CPU cores, and JAX on {jax.default_backend()}"
        return unknown_to(ENTRIES, sampler)

    def steps_per_call(self, sampler):
        """Of the sampler's entry."""
        return ENTRIES[type(sampler)].steps_per_call

    def prepare(self, model, sampler, batch, program, mesh, threads):
        """Lays out instances and program once; the first call for new types of arrays compiles the loops."""
        del mesh
        entry = ENTRIES[type(sampler)]
        settings, targets = entry.settings(sampler), as_targets(model, batch)
        whole = LoopsProgram(program, keeps_weights=entry.keeps_weights(sampler))
        threads = threads or num_cores()

        def advance(chains, done, intervals, every):
            arrays = as_arrays(sampler, batch, chains)
            steps = whole.part(done, intervals * every)
            num_chains = len(arrays.spins)
            traces = [np.zeros((intervals, num_chains), np.float32) for _ in range(3)]
            first_step = done + 1

            def play_some(members, steps=steps, traces=traces):
                room = make_room(arrays.spins.shape[1], arrays.coupled.dtype)
                play(settings, steps, targets, arrays, members, room, first_step, *traces)

            def compile_loops():
                play_some(np.arange(0), whole.part(done, 0), [trace[:0] for trace in traces])
                return True

            compiled(("cpu", type(settings), *_types(targets), *_types(arrays)), compile_loops)
            tasks = np.array_split(np.arange(num_chains), min(num_chains, _TASKS_A_THREAD * threads))
            list(_pool(threads).map(play_some, tasks))
            shape = np.shape(chains.best.value)
            return as_chains(sampler, chains, arrays), Trace(*(one.reshape(-1, *shape) for one in traces))

        return advance


def _types(arrays) -> tuple:
    return tuple(leaf.dtype for leaf in jax.tree.leaves(arrays) if isinstance(leaf, np.ndarray))
