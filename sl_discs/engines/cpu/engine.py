"""The engine for CPU cores: compiled loops for quadratic models, each chain on one core.

It runs the same program on the same chains as the reference and targets the same distribution, but its numbers
differ: it uses the reference's keys, but numbers random words differently and sums in another order.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from sl_discs.engines.compiled import compiled
from sl_discs.engines.contract import Engine, check_ladder
from sl_discs.engines.cpu.arrays import as_arrays, as_chains, as_targets, as_trace, make_recorded
from sl_discs.engines.cpu.chunk import Recorded, make_room, play
from sl_discs.engines.cpu.program import LoopsProgram
from sl_discs.engines.cpu.samplers import ENTRIES
from sl_discs.engines.devices import num_cores

# Tasks per thread, so that a slow thread does not keep the others waiting.
_TASKS_A_THREAD = 4
# The smallest work of a task, in steps times sites: starting one takes a tenth of a millisecond.
_WORK_A_TASK = 1 << 18


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call, since starting them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


class Cpu(Engine):
    """Runs the samplers of `samplers.ENTRIES`."""

    name = "cpu"
    on_host = True

    def obstacle(self, sampler):
        """A platform other than CPUs, or a sampler without an entry; a subclass of one with an entry may differ."""
        if jax.default_backend() != "cpu":
            return f"it runs on CPU cores, and JAX on {jax.default_backend()}"
        if type(sampler) not in ENTRIES:
            return f"it only supports {', '.join(kind.__name__ for kind in ENTRIES)}"
        if getattr(sampler, "balancing_fn_type", "SQRT") != "SQRT":
            return "it only supports balancing_fn_type SQRT"
        if sampler.couples_chains:
            return "its chains are independent: no shared_adaptation, no shared_scale"
        return None

    def steps_per_call(self, sampler):
        """The number in the sampler's entry."""
        return ENTRIES[type(sampler)].steps_per_call

    def prepare(self, model, sampler, batch, program, mesh, threads):
        """Lays out instances and program once; the first call for new types of arrays compiles the loops."""
        del mesh
        check_ladder(program, batch.keys.mcmc.shape[1])
        entry = ENTRIES[type(sampler)]
        settings, targets = entry.settings(sampler), as_targets(model, batch)
        whole = LoopsProgram(program, keeps_weights=entry.keeps_weights(sampler))
        threads = threads or num_cores()
        ladder = program.ladder

        def advance(chains, done, intervals, every):
            arrays = as_arrays(sampler, batch, chains)
            steps = whole.part(done, intervals, every)
            num_ladders = len(arrays.spins) // ladder
            found = make_recorded(program, intervals, *np.shape(chains.chain.x))

            def play_some(members, steps=steps, found=found):
                room = make_room(arrays.spins.shape[1], arrays.coupled.dtype)
                play(settings, steps, targets, arrays, ladder, members, room, done + 1, found)

            def compile_loops():
                play_some(np.arange(0), whole.part(done, 0, every), Recorded(*(leaf[:0] for leaf in found)))
                return True

            compiled(("cpu", type(settings), *_types(targets), *_types(arrays)), compile_loops)
            worth = arrays.spins.size * intervals * every // _WORK_A_TASK
            tasks = np.array_split(np.arange(num_ladders), max(1, min(num_ladders, _TASKS_A_THREAD * threads, worth)))
            list(map(play_some, tasks) if len(tasks) == 1 else _pool(threads).map(play_some, tasks))
            return as_chains(sampler, chains, arrays), as_trace(program, found, *np.shape(chains.chain.x))

        return advance


def _types(arrays) -> tuple:
    return tuple(leaf.dtype for leaf in jax.tree.leaves(arrays) if isinstance(leaf, np.ndarray))
