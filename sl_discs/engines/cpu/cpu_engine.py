"""The engine for CPU cores: compiled loops for quadratic models, one chain after the other, or many
in step.

It runs the same program on the same chains as the reference and targets the same distribution, but
its numbers differ: it uses the reference's keys, but numbers random words differently and sums in
another order.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

from sl_discs.engines.arrays import (
    Records,
    as_arrays,
    as_states,
    as_trace,
    least_temperature,
    make_records,
)
from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu import layout
from sl_discs.engines.cpu.chain_state import LoopTarget
from sl_discs.engines.cpu.chunk import ENTRIES, make_workspace, play
from sl_discs.engines.cpu.layout import ProgramSlices, as_targets, sums_dtype
from sl_discs.engines.devices import in_threads, num_cores
from sl_discs.engines.program import Batch, Engine, Play, Program, check_ladder, loop_obstacle
from sl_discs.samplers.sampler import Sampler
from sl_discs.support.errors import NotSupported

# Tasks per thread, so that a slow thread does not keep the others waiting.
_TASKS_A_THREAD = 4
# The smallest work of a task, in steps times sites: starting one takes a tenth of a millisecond.
_WORK_A_TASK = 1 << 18


def _take(tree, chosen: np.ndarray):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], tree)


class LoadedTargets(NamedTuple):
    """Instances whose chains are played in one way.

    Attributes:
      chosen: [M] their places in the batch.
      in_step: whether all chains of an instance try the same site at a time, or one chain is played
        after the other.
      targets: M instances in the form of the loops.
    """

    chosen: np.ndarray
    in_step: bool
    targets: list[LoopTarget]


def _instance_parts(parts: list[tuple[np.ndarray, Play]]) -> Play:
    """Plays the instances in parts, each in its own way."""
    order = np.argsort(np.concatenate([chosen for chosen, _ in parts]))

    def advance(chains, done, intervals, every):
        played = [play(_take(chains, chosen), done, intervals, every) for chosen, play in parts]
        chains, trace = (list(each) for each in zip(*played, strict=True))
        return (
            jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *chains),
            jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, order], *trace),
        )

    return advance


@dataclasses.dataclass(frozen=True)
class Cpu(Engine):
    """Runs the samplers of `chunk.ENTRIES`."""

    name = "cpu"
    on_host = True

    def obstacle(self, sampler, num_sites=0):
        if getattr(sampler, "scaling", "normalized") != "normalized":
            return "it only supports the normalized step size"
        return loop_obstacle(sampler, ENTRIES)

    def steps_per_call(self, sampler):
        return ENTRIES[type(sampler)].steps_per_call

    def visible_steps(self, sampler, length):
        return min(self.steps_per_call(sampler), max(1_000, length // 10))

    def has_clusters(self, sampler, batch):
        return bool(layout.in_step(sampler, batch).all())

    def load(self, model, sampler, batch):
        """Lays the instances out for the loops, which takes as long as thousands of steps."""
        batch = batch._replace(loaded=None)
        in_step = layout.in_step(sampler, batch)
        parts = []
        for together in (True, False):
            chosen = np.flatnonzero(in_step == together)
            if len(chosen):
                targets = as_targets(model, _take(batch, chosen), in_step=together)
                parts.append(LoadedTargets(chosen, together, targets))
        return batch._replace(loaded=parts)

    def prepare(self, model, sampler, batch, program):
        """Lays out the program; the first call for new types of arrays compiles the loops."""
        if obstacle := self.obstacle(sampler):
            raise NotSupported(f"engine=cpu: {obstacle}", "engine")
        check_ladder(program, batch.keys.mcmc.shape[1])
        loaded: list[LoadedTargets] = (
            batch if batch.loaded else self.load(model, sampler, batch)
        ).loaded
        batch = batch._replace(loaded=None)
        threads = self.threads or num_cores()
        prepare = {True: layout.prepare_in_step, False: prepare_in_turn}
        if len(loaded) == 1:
            return prepare[loaded[0].in_step](loaded[0].targets, sampler, batch, program, threads)
        parts = []
        for chosen, together, targets in loaded:
            some = (
                program if program.field is None else program._replace(field=program.field[chosen])
            )
            play = prepare[together](targets, sampler, _take(batch, chosen), some, threads)
            parts.append((chosen, play))
        return _instance_parts(parts)


def prepare_in_turn(
    targets: list[LoopTarget], sampler: Sampler, batch: Batch, program: Program, threads: int
) -> Play:
    """Prepares as `Engine.prepare`, for loops that play one chain after the other."""
    entry = ENTRIES[type(sampler)]
    settings = entry.settings(sampler)
    keeps = entry.keeps_weights(sampler)
    coldest = least_temperature(batch)
    part = ProgramSlices(program, keeps_weights=keeps, coldest=coldest).part
    ladder = program.ladder

    def advance(chains, done, intervals, every):
        *shape, size = np.shape(chains.chain.x)
        coupled = sums_dtype(batch, chains)
        arrays = as_arrays(sampler, batch, chains, program, size, np.float64, coupled)
        ladders = np.arange(len(arrays.x) // ladder)
        steps = part(done, intervals, every)
        records = make_records(program, intervals, len(arrays.x), size)

        def play_some(ladders, steps=steps, records=records):
            workspace = functools.cache(lambda size: make_workspace(size, arrays.coupled.dtype))
            instances = ladders * ladder // shape[1]
            for g in np.unique(instances):
                chosen = ladders[instances == g]
                memory = workspace(len(targets[g].linear))
                play(settings, steps, targets[g], arrays, ladder, chosen, memory, done + 1, records)

        def compile_loops():
            play_some(ladders[:1], part(done, 0, every), Records(*(leaf[:0] for leaf in records)))
            return True

        compiled(("cpu", type(settings), *_types(targets[0]), *_types(arrays)), compile_loops)
        worth = arrays.x.size * intervals * every // _WORK_A_TASK
        tasks = np.array_split(ladders, max(1, min(len(ladders), _TASKS_A_THREAD * threads, worth)))
        in_threads(play_some, tasks, threads)
        after = as_states(sampler, chains, arrays, program.levels, intervals * every)
        return after, as_trace(program, records, *shape, size)

    return advance


def _types(arrays) -> tuple:
    return tuple(leaf.dtype for leaf in jax.tree.leaves(arrays) if isinstance(leaf, np.ndarray))
