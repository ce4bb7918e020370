"""The engine for CPU cores: compiled loops for quadratic models, each chain on one core.

It runs the same program on the same chains as the reference and targets the same distribution, but its numbers
differ: it uses the reference's keys, but numbers random words differently and sums in another order.
"""

from __future__ import annotations

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from jaxtyping import Float32

from sl_discs.engines import base
from sl_discs.engines.base import Engine, check_ladder
from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu import blocks
from sl_discs.engines.cpu.arrays import as_arrays, as_chains, as_targets, as_trace, make_recorded
from sl_discs.engines.cpu.chunk import Program, Recorded, make_workspace, play
from sl_discs.engines.cpu.samplers import ENTRIES
from sl_discs.engines.registry import num_cores
from sl_discs.localization.schedule import Levels

# The temperatures at which the CPU engine weighs proposals: constant over many steps, so that weights can be kept.
#
# A level of localization changes the tilt, so all weights are recomputed there. Proposal temperatures therefore
# change where levels begin and, within a level, in equal steps of about 1/256 of the logarithm, so that they are at
# most 0.3 % off. The Metropolis-Hastings test uses the same weights as the proposal and the target's own temperature,
# so each step leaves its target invariant, whatever the proposal's temperature.

# Number of steps per factor e of temperature.
_AN_E_FOLD = 256
# Replaces an infinite temperature, where energies below 1e30 make no difference.
_HIGHEST = 1e38


def proposal_temperatures(temperature: Float32[np.ndarray, "T"], levels: Levels | None) -> Float32[np.ndarray, "T"]:
    """The proposal's temperature at each step of a whole run; a run without levels counts as one level."""
    logarithm = np.log(np.minimum(np.asarray(temperature, np.float64), _HIGHEST))
    steps = logarithm.size
    ends = [] if levels is None else np.minimum(levels.last.astype(np.int64) + 1, steps)
    # Every level ends where the next begins; the last ends with the run.
    edges = np.unique(np.concatenate([[0], ends, [steps]]).astype(int))
    begins, lengths = logarithm[edges[:-1]], np.diff(edges)
    falls = begins - logarithm[np.minimum(edges[1:], steps - 1)]
    parts = np.rint(np.abs(falls) * _AN_E_FOLD)
    moves = parts > 0
    width = np.where(moves, falls / np.maximum(parts, 1), 1 / _AN_E_FOLD)
    # The middle of a part; in a level of constant temperature, that temperature itself.
    middle = np.where(moves, 0.5, 0.0)
    begins, width, middle = (np.repeat(one, lengths) for one in (begins, width, middle))
    part = np.floor((begins - logarithm) / width + 0.5 - middle)
    return np.exp(begins - (part + middle) * width).astype(np.float32)


# A run's program in the form of the loops.

# Sums of weights are recomputed at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
_NONE = Levels(*(np.zeros(0, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


class LoopsProgram:
    """A whole run's program, which is passed to the loops in parts.

    Args:
      program: program of the run.
      keeps_weights: whether proposals are weighed at temperatures that are constant over many steps. This applies to
        schedules [T] only: temperatures [T, B] may change between calls, so proposals are weighed at exactly these.
    """

    def __init__(self, program: base.Program, *, keeps_weights: bool):
        self._temperature, self._localized = program.temperature, program.levels is not None
        self._exchanges = program.ladder > 1
        self._levels = _NONE if program.levels is None else Levels(*map(np.ascontiguousarray, program.levels))
        self._proposed = None
        if keeps_weights and program.temperature[:0].ndim == 1:
            self._proposed = proposal_temperatures(program.temperature[:], program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> Program:
        """The intervals that follow the steps done; weights are recomputed before the first step.

        If chains exchange states, they are also recomputed at the start of each interval.
        """
        steps = intervals * every
        here = slice(done, done + steps)
        rows = _rows(self._temperature[here])
        proposed = rows if self._proposed is None else self._proposed[:, here]
        refresh = np.ones(rows.shape, bool)
        refresh[:, 1:] = proposed[:, 1:] != proposed[:, :-1]
        refresh[:, -(done + 1) % _LONGEST_WITHOUT_REFRESH :: _LONGEST_WITHOUT_REFRESH] = True
        begins = self._levels.last + 1 - done
        refresh[:, begins[(begins >= 0) & (begins < steps)]] = True
        if self._exchanges:
            refresh[:, ::every] = True
        level = self._levels.at(done) if self._localized else 0
        return Program(1 / rows, 1 / proposed, refresh, self._localized, level, self._levels)


def _rows(temperature) -> Float32[np.ndarray, "R T"]:
    """Temperatures [T] or [T, B] as rows, of which chain c has row c modulo R.

    If [T, B] is one row broadcast over the steps, R is the smallest period of that row: filling B rows of T steps
    would take a fifth of the time of running them.
    """
    temperature = np.atleast_2d(np.asarray(temperature, np.float32).T)
    chains = len(temperature)
    if chains > 1 and temperature.size and temperature.strides[1] == 0:
        first = temperature[:, 0]
        periods = (r for r in range(1, chains + 1) if chains % r == 0)
        temperature = temperature[: next(r for r in periods if (first.reshape(-1, r) == first[:r]).all())]
    return np.ascontiguousarray(temperature)


# Tasks per thread, so that a slow thread does not keep the others waiting.
_TASKS_A_THREAD = 4
# The smallest work of a task, in steps times sites: starting one takes a tenth of a millisecond.
_WORK_A_TASK = 1 << 18


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call, since starting them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


def _map(play_some, tasks, threads: int) -> None:
    """Plays tasks in threads."""
    list(map(play_some, tasks) if len(tasks) == 1 else _pool(threads).map(play_some, tasks))


def _take(tree, chosen: np.ndarray):
    """Some of the instances."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], tree)


def _instance_parts(parts: list[tuple[np.ndarray, base.Play]]) -> base.Play:
    """Plays the instances in parts, each in its own way."""
    order = np.argsort(np.concatenate([chosen for chosen, _ in parts]))

    def advance(chains, done, intervals, every):
        found = [play(_take(chains, chosen), done, intervals, every) for chosen, play in parts]
        chains, trace = (list(each) for each in zip(*found, strict=True))
        return (
            jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *chains),
            jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, order], *trace),
        )

    return advance


@dataclasses.dataclass(frozen=True)
class Cpu(Engine):
    """Runs the samplers of `samplers.ENTRIES`."""

    name = "cpu"
    on_host = True

    def obstacle(self, sampler, several_values=False):
        """A platform other than CPUs, or a sampler without an entry; a subclass of one with an entry may differ."""
        if several_values:
            return "it only supports variables of two values"
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
        return ENTRIES[type(sampler)].steps_per_call

    def prepare(self, model, sampler, batch, program):
        """Lays out instances and program once; the first call for new types of arrays compiles the loops."""
        check_ladder(program, batch.keys.mcmc.shape[1])
        in_step = blocks.in_step(sampler, batch)
        parts = [
            (np.flatnonzero(chosen), play)
            for chosen, play in ((in_step, self._prepare_in_step), (~in_step, self._prepare_in_turn))
            if chosen.any()
        ]
        if len(parts) == 1:
            return parts[0][1](model, sampler, batch, program)
        return _instance_parts(
            [(chosen, play(model, sampler, _take(batch, chosen), program)) for chosen, play in parts]
        )

    def _prepare_in_step(self, model, sampler, batch, program):
        """All chains of an instance try the same site at a time."""
        part = LoopsProgram(program, keeps_weights=False).part
        return blocks.make_play(model, sampler, batch, program, part, self.threads or num_cores(), _map)

    def _prepare_in_turn(self, model, sampler, batch, program):
        """One chain after the other."""
        entry = ENTRIES[type(sampler)]
        settings, targets = entry.settings(sampler), as_targets(model, batch)
        whole = LoopsProgram(program, keeps_weights=entry.keeps_weights(sampler))
        threads = self.threads or num_cores()
        ladder = program.ladder

        def advance(chains, done, intervals, every):
            arrays = as_arrays(sampler, batch, chains, localized=program.levels is not None)
            steps = whole.part(done, intervals, every)
            num_ladders = len(arrays.spins) // ladder
            found = make_recorded(program, intervals, *np.shape(chains.chain.x))

            def play_some(members, steps=steps, found=found):
                workspace = make_workspace(arrays.spins.shape[1], arrays.coupled.dtype)
                play(settings, steps, targets, arrays, ladder, members, workspace, done + 1, found)

            def compile_loops():
                play_some(np.arange(0), whole.part(done, 0, every), Recorded(*(leaf[:0] for leaf in found)))
                return True

            compiled(("cpu", type(settings), *_types(targets), *_types(arrays)), compile_loops)
            worth = arrays.spins.size * intervals * every // _WORK_A_TASK
            tasks = np.array_split(np.arange(num_ladders), max(1, min(num_ladders, _TASKS_A_THREAD * threads, worth)))
            _map(play_some, tasks, threads)
            after = as_chains(sampler, chains, arrays, program.levels, intervals * every)
            return after, as_trace(program, found, *np.shape(chains.chain.x))

        return advance


def _types(arrays) -> tuple:
    return tuple(leaf.dtype for leaf in jax.tree.leaves(arrays) if isinstance(leaf, np.ndarray))
