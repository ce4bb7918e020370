"""Chains on an engine: the driver under `run`, `solve` and `sample`.

`Chains` binds the arrays of a batch, a sampler and an engine, and advances the chains by parts of a
program. `anneal` runs the whole program of a method on them, with records, checkpoints and a watch.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import jax
import numpy as np
from jaxtyping import Int8

from sl_discs.chains.annealing import ChainSettings, TemperatureSchedule
from sl_discs.chains.batches import Shape, build_batch, step_keys
from sl_discs.chains.budget import Budget
from sl_discs.chains.checkpoint import Checkpoints, Middle
from sl_discs.engines.program import (
    Best,
    ChainStates,
    ClockTemperatures,
    Engine,
    Program,
    StepTemperatures,
    Trace,
    init_chains,
)
from sl_discs.localization.method import NOT_LOCALIZED, SIGN_OF_Y, Method
from sl_discs.models.batching import make_mesh
from sl_discs.models.functions import Terms
from sl_discs.models.keys import Stream, chain_keys
from sl_discs.samplers.sampler import Sampler

Progress = Callable[[int], None]
Watch = Callable[[int, Best], bool]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a batch on the host; leading axes [G, B], traces [L, G, B].

    Attributes:
      best: best state over every step and its value.
      best_logged: best state over the logged steps.
      final: the chains' final samples.
      final_is: the kind of final samples: `Method.final_is`, or last states if a watch ended the
        run.
      trace: records of the logged steps.
      run_s: seconds of running.
    """

    best: tuple[np.ndarray, np.ndarray]
    best_logged: tuple[np.ndarray, np.ndarray]
    final: np.ndarray
    final_is: str
    trace: Trace
    run_s: float

    def as_arrays(self) -> dict[str, Any]:
        """Returns the fields by name, for a file."""
        arrays: dict[str, Any] = {
            "final": self.final,
            "final_is": self.final_is,
            "run_s": self.run_s,
        }
        for name in ("best", "best_logged"):
            arrays[f"{name}_value"], arrays[f"{name}_state"] = getattr(self, name)
        return arrays | {
            f"trace_{name}": leaf for name, leaf in self.trace._asdict().items() if leaf is not None
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], num_logged: int, sizes: tuple[int, int, int]
    ) -> Outcome:
        """Returns the inverse of `as_arrays`; ValueError or KeyError unless there are L logged
        steps of G, B, N.
        """
        best, logged = (
            (arrays[f"{name}_value"], arrays[f"{name}_state"]) for name in ("best", "best_logged")
        )
        trace = Trace(
            **{name: arrays[f"trace_{name}"] for name in Trace._fields if f"trace_{name}" in arrays}
        )
        outcome = cls(
            best, logged, arrays["final"], str(arrays["final_is"]), trace, float(arrays["run_s"])
        )
        if any(leaf.shape != sizes for leaf in (outcome.final, best[1], logged[1])):
            raise ValueError(f"states of other sizes than {sizes}")
        if any(leaf.shape != sizes[:2] for leaf in (best[0], logged[0])):
            raise ValueError(f"values of other sizes than {sizes[:2]}")
        if any(
            np.shape(leaf) != (num_logged, *sizes[:2])
            for leaf in (trace.value, trace.acceptance, trace.hops)
        ):
            raise ValueError(f"records of other sizes than {(num_logged, *sizes[:2])}")
        return outcome


def _calls(settings: ChainSettings, steps_per_call: int) -> Iterator[tuple[int, int]]:
    """Yields intervals, and steps per interval, of each call to the engine: whole intervals, then
    the rest.
    """
    every = settings.log_every_steps
    intervals = settings.chain_length // every
    wanted = max(1, steps_per_call // every)
    per_call = max(d for d in range(1, min(wanted, intervals) + 1) if intervals % d == 0)
    yield from itertools.repeat((per_call, every), intervals // per_call)
    if rest := settings.chain_length - intervals * every:
        yield 1, rest


class Chains:
    """Chains of a sampler on the instances of a batch; each call runs a part of a program.

    Attributes:
      model: of the batch.
      batch: its arrays and the keys of the chains' steps.
      shape: of the batch.
      sampler: the base sampler.
      engine: that runs them, bound to the devices of the shape.
      program: that they run, from `start` on.
      states: of the chains, from `start` on.
      done: steps of the program that have been run.
      compile_s: seconds spent tracing and compiling so far.
      run_s: seconds of running steps so far, without compilation.
    """

    program: Program
    states: ChainStates

    def __init__(
        self,
        terms: Sequence[Terms],
        instance_ids: Sequence[int],
        shape: Shape,
        sampler: Sampler,
        engine: Engine,
        seed: int,
    ):
        """Lays out the arrays; the arguments are those of `build_batch`."""
        self.shape = shape
        self.sampler = sampler
        self._terms = terms
        self._seed = seed
        self.engine = (
            engine if engine.on_host else dataclasses.replace(engine, mesh=make_mesh(*shape.layout))
        )
        self.model, batch = build_batch(terms, instance_ids, shape, seed, sampler)
        self.batch = (
            self.engine.load(self.model, sampler, batch)
            if engine.on_host
            else jax.device_put(batch)
        )
        self._instance_ids = instance_ids
        self.done, self.compile_s, self.run_s = 0, 0.0, 0.0

    @classmethod
    def of_one(
        cls,
        terms: Terms,
        instance_id: int,
        shape: Shape,
        sampler: Sampler,
        engine: Engine,
        seed: int,
    ) -> Chains:
        """Chains of one instance in a shape of `batches.shape_of_one`."""
        count = shape.num_instances
        return cls([terms] * count, [instance_id] * count, shape, sampler, engine, seed)

    def set_instance_ids(self, instance_ids: Sequence[int]) -> None:
        """Gives the chains the random numbers of other instances, from the next `start` on."""
        self.batch = self.batch._replace(keys=step_keys(instance_ids, self.shape, self._seed))
        self._instance_ids = instance_ids

    def start(
        self,
        program: Program,
        states: Int8[np.ndarray, "R N"] | None = None,
    ) -> None:
        """Puts the chains before step 1 of a program.

        Args:
          program: to run.
          states: initial states of each instance's chains, in turn; None: random ones.
            `Terms.supported` replaces those from which chains cannot start.
        """
        if states is not None:
            places = self.shape.num_instances
            num_chains = self.shape.num_chains
            padded = np.zeros((places, num_chains, self.shape.num_sites), np.int8)
            padded[:, :, : states.shape[1]] = np.resize(states, (num_chains, states.shape[1]))
            states = padded
        with self._counting():
            self.prepare(program, 0)
            if states is None:
                keys = chain_keys(
                    self._seed,
                    Stream.INITIAL_STATE,
                    np.array(self._instance_ids),
                    self.shape.num_chains,
                )
                of_instances = zip(keys, np.asarray(self.batch.mask), strict=True)
                states = np.stack(
                    [np.asarray(self.model.sites.random(*one)) for one in of_instances]
                )
            states = np.stack(
                [terms.supported(one) for terms, one in zip(self._terms, states, strict=True)]
            )
            self.states = init_chains(self.model, self.sampler, self.batch, states, program.levels)

    def resume(self, program: Program, leaves: Sequence[np.ndarray], done: int) -> None:
        """Puts the chains after `done` steps of a program, into the states with these leaves.

        ValueError: they are leaves of other chains.
        """
        # Any start has the structure of the states: one that draws no states will do.
        self.start(program, np.zeros((1, self.shape.num_sites), np.int8))
        own, structure = jax.tree.flatten(self.states)
        if [*map(np.shape, own)] != [*map(np.shape, leaves)]:
            raise ValueError("chains of other sizes")
        self.states = jax.tree.unflatten(structure, leaves)
        self.done = done

    def prepare(self, program: Program, done: int) -> None:
        """Goes on with another program, of which `done` steps count as run; random numbers are
        numbered by steps.
        """
        self.program = program
        self.done = done
        self._play = self.engine.prepare(self.model, self.sampler, self.batch, program)

    def advance(self, intervals: int, every: int) -> Trace:
        """Runs `intervals` times `every` more steps of the program; returns the records of the
        intervals' ends.
        """
        spent = Budget()
        with self._counting():
            self.states, trace = jax.block_until_ready(
                self._play(self.states, self.done, intervals, every)
            )
        self.run_s += spent()
        self.done += intervals * every
        return trace

    @contextmanager
    def _counting(self):
        """Counts the seconds of compilation in the block, in which an engine on the host has JAX's
        arrays there.
        """
        on_host = self.engine.on_host
        spent = Budget()
        with jax.default_device(jax.local_devices(backend="cpu")[0]) if on_host else nullcontext():
            yield
        self.compile_s += spent.compiling()


def program_of(method: Method, settings: ChainSettings) -> Program:
    """Returns the whole program of a method on the host; InputError if a schedule is invalid."""
    localization = method.localization
    levels = None if localization is None else localization.levels(settings.chain_length)
    return Program(StepTemperatures(schedule_of(method, settings)), levels)


def schedule_of(method: Method, settings: ChainSettings) -> TemperatureSchedule:
    """Returns the temperature of each step of a method: over the run, or anew in each level of
    localization.
    """
    localization = method.localization
    if localization is None or localization.anneal != "level":
        return settings.temperatures()
    return settings.temperatures(np.asarray(localization.levels(settings.chain_length).last))


def anneal(
    chains: Chains,
    method: Method,
    settings: ChainSettings,
    progress: Progress = lambda steps: None,
    *,
    states: Int8[np.ndarray, "R N"] | None = None,
    checkpoints: Checkpoints | None = None,
    part: str = "",
    watch: Watch | None = None,
    steps_per_call: int | None = None,
    temperatures: Callable[[int], ClockTemperatures] | None = None,
) -> Outcome:
    """Runs the whole program of a method; surplus chains are dropped from the outcome.

    Args:
      chains: of the method's sampler.
      method: the sampler and its localization.
      settings: chains, steps, annealing.
      progress: called with the number of steps done.
      states: initial states, as in `Chains.start`.
      checkpoints: checkpoints to resume from and to save to.
      part: the batch's name in the checkpoints.
      watch: called after each call, before `progress`, with the number of steps done and the
        chains' best states so far; True ends the run.
      steps_per_call: about how many steps to run between calls of the watch; None: the engine's
        number.
      temperatures: instead of those of the settings; called with the number of steps done before
        each call to the engine.
    """
    logged = settings.chain_length // settings.log_every_steps
    wanted = settings.batch_size
    if checkpoints is not None:
        sizes = chains.shape.num_instances, wanted, chains.shape.num_sites
        outcome = checkpoints.finished(
            part, lambda arrays: Outcome.from_arrays(arrays, logged, sizes)
        )
        if outcome is not None:
            chains.run_s += outcome.run_s
            progress(settings.chain_length)
            return outcome
    run_before = chains.run_s
    progress(0)  # shows that the run has begun; the first call compiles
    program = program_of(method, settings)
    traces: list[Trace] = []

    def resume(middle: Middle) -> None:
        chains.resume(program, middle.chains, middle.step)
        traces[:] = [Trace(*leaves) for leaves in middle.traces]

    middle = None if checkpoints is None else checkpoints.middle(part, resume)
    if middle is None:
        traces.clear()
        chains.start(program, states)
    else:
        chains.run_s += middle.run_s
        progress(middle.step)
    calls = _calls(settings, steps_per_call or chains.engine.steps_per_call(chains.sampler))
    for intervals, every in itertools.islice(calls, len(traces), None):
        if checkpoints is not None:
            checkpoints.offer(part, chains.done, chains.states, traces, chains.run_s - run_before)
        if temperatures is not None:
            chains.prepare(program._replace(temperature=temperatures(chains.done)), chains.done)
        traces.append(chains.advance(intervals, every))
        over = watch is not None and watch(chains.done, chains.states.best)
        progress(intervals * every)
        if over:
            break
    final_is = method.final_is
    if final_is == SIGN_OF_Y and chains.done < settings.chain_length:
        final_is = NOT_LOCALIZED
    final = (
        chains.model.sites.decode(chains.states.chain.state.y)
        if final_is == SIGN_OF_Y
        else chains.states.chain.x
    )
    # Without the steps after the last logged one, which are an interval of their own.
    trace = jax.tree.map(
        lambda *leaves: np.concatenate([*map(np.asarray, leaves)])[:logged, :, :wanted], *traces
    )
    incumbent = tuple(chains.states.best), tuple(chains.states.best_logged), final
    best, best_logged, final = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :wanted], incumbent)
    outcome = Outcome(best, best_logged, final, final_is, trace, chains.run_s - run_before)
    if checkpoints is not None:
        checkpoints.finish(part, outcome.as_arrays())
    return outcome
