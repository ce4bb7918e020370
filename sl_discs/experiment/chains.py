"""Runs the program of a method on one batch after the other, call by call, and resamples its chains."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, UInt32

from sl_discs import keys
from sl_discs.batching import AnyArray, make_mesh, over_chains, over_instances
from sl_discs.engines import compiled
from sl_discs.engines.base import Best, ChainStates, Program, Temperature, Trace, init_chains
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.batches import Layout, Shape, count_devices, parse_layout
from sl_discs.experiment.checkpoint import Checkpoints
from sl_discs.experiment.monitor import Recorder
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import NOT_LOCALIZED, SIGN_OF_Y, Method
from sl_discs.models.base import Model
from sl_discs.samplers.base import Sampler

# Resampling of an instance's chains while they cool, as in population annealing (Hukushima and Iba 2003).
#
# When the temperature has fallen, the chains of an instance are weighted by exp((1/tau_after - 1/tau_before) f), and
# the same number is drawn with these weights: bad chains end, and good ones continue in several places, each with the
# random numbers of its place. If the temperature is constant between two resamplings (`anneal_every` equal to
# `resample_every`), this is population annealing, which is correct at every temperature for many chains. If it falls
# in between, its whole change is treated as one step. A `resample_strength` other than 1 multiplies the exponent,
# which is only useful for optimisation.
#
# Resampling happens on the host between two calls to an engine, so that it is the same on every engine.


def places_after(log_weights: Float[np.ndarray, "B"], uniform: float) -> Int[np.ndarray, "B"]:
    """The chain that continues in each place, by systematic resampling.

    Chain i with normalised weight w_i continues in floor or ceil of B w_i places, B w_i on average, and in its own
    place if in any.

    Args:
      log_weights: of the chains, up to a constant.
      uniform: a uniform number on [0, 1).
    """
    weights = np.exp(log_weights - log_weights.max())
    ends = np.cumsum(weights)
    marks = (np.arange(len(weights)) + uniform) / len(weights)
    copies = np.bincount(np.searchsorted(ends / ends[-1], marks, side="right"), minlength=len(weights))
    chosen = np.arange(len(weights))
    chosen[copies == 0] = np.repeat(chosen, np.maximum(copies - 1, 0))
    return chosen


@jax.jit
def _uniforms(initial_keys: UInt32[Array, "G 2"], step: Int[Array, ""]) -> Float[Array, "G"]:
    """A number for each instance and step; nothing else folds the keys of initial states."""
    return jax.vmap(lambda key: keys.uniforms(keys.fold(key, step)))(initial_keys)


class Population:
    """The resamplings of a run.

    Attributes:
      every: steps between two of them; 0: there are none.
    """

    def __init__(self, settings: Settings, temperature: Temperature):
        self.every = settings.resample_every
        self._strength, self._size = settings.resample_strength, settings.batch_size
        self._temperature = temperature

    def is_due(self, step: int) -> bool:
        """Whether chains are resampled after so many steps."""
        return self.every > 0 and step % self.every == 0 and step < len(self._temperature)

    def resample(
        self, chains: ChainStates, value: Float32[AnyArray, "G B"], initial_keys: UInt32[AnyArray, "G B 2"], step: int
    ) -> ChainStates:
        """The chains after a resampling, on the host; the best states stay with their places.

        Args:
          chains: leaves [G, B, ...]; surplus chains, past the settings' `batch_size`, take no part.
          value: f of each chain now.
          initial_keys: that the chains' initial states were drawn with.
          step: steps done.
        """
        before, after = self._temperature[[max(0, step - self.every), step]].astype(np.float64)
        change = 1 / after - 1 / before
        log_weights = self._strength * change * np.asarray(value, np.float64)[:, : self._size]
        uniforms = np.asarray(_uniforms(np.asarray(initial_keys)[:, 0], np.int32(step)))
        chosen = np.tile(np.arange(np.shape(value)[1]), (len(log_weights), 1))
        for instance, row in enumerate(log_weights):
            chosen[instance, : self._size] = places_after(row, float(uniforms[instance]))

        def taken(leaf):
            return np.asarray(leaf)[np.arange(len(chosen))[:, None], chosen]

        return chains._replace(chain=jax.tree.map(taken, chains.chain))


Progress = Callable[[int], None]
Watch = Callable[[int, Best], bool]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a batch on the host; leading axes [G, B], traces [L, G, B].

    Attributes:
      best: best state over every step and its value.
      best_logged: best state over the logged steps.
      final: the chains' final samples.
      final_is: the kind of final samples: `Method.final_is`, or last states if a watch ended the run.
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
        """The fields by name, for a file."""
        arrays: dict[str, Any] = {
            "final": self.final,
            "final_is": np.array(self.final_is),
            "run_s": np.float64(self.run_s),
        }
        for name in ("best", "best_logged"):
            value, state = getattr(self, name)
            arrays |= {f"{name}_value": value, f"{name}_state": state}
        recorded = {name: leaf for name, leaf in self.trace._asdict().items() if leaf is not None}
        return arrays | {f"trace_{name}": leaf for name, leaf in recorded.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Outcome:
        """The inverse of `as_arrays`."""
        best, logged = ((arrays[f"{name}_value"], arrays[f"{name}_state"]) for name in ("best", "best_logged"))
        recorded = {name: f"trace_{name}" for name in Trace._fields if f"trace_{name}" in arrays}
        trace = Trace(**{name: arrays[entry] for name, entry in recorded.items()})
        return cls(best, logged, arrays["final"], str(arrays["final_is"]), trace, float(arrays["run_s"]))


def compile_program(method: Method, settings: Settings, keeps_states: bool = False) -> Program:
    """The whole program on the host; InputError if a schedule is invalid."""
    localization = method.localization
    levels = None if localization is None else localization.levels(settings.chain_length)
    return Program(settings.temperatures(), levels, keeps_states=keeps_states)


def _slices(settings: Settings, steps_per_call: int):
    """(steps done, intervals, steps per interval) of each call: whole intervals up to a resampling, then the rest."""
    every = settings.log_every_steps
    intervals = settings.chain_length // every
    together = settings.resample_every // every or intervals
    wanted = max(1, steps_per_call // every)
    for first in range(0, intervals, together):
        last = min(first + together, intervals)
        per_call = max(d for d in range(1, min(wanted, last - first) + 1) if (last - first) % d == 0)
        for start in range(first, last, per_call):
            yield start * every, per_call, every
    if intervals * every < settings.chain_length:
        yield intervals * every, 1, settings.chain_length - intervals * every


@functools.partial(jax.jit, static_argnames=("model", "sampler"))
def start_chains(batch, keys, states, noise, *, model: Model, sampler: Sampler) -> ChainStates:
    """The chains before step 1 (see `init_chains`), in the given states or in random ones drawn with `keys`."""
    if states is None:
        states = over_instances(over_chains(model.sites.random, (0, None)))(keys, batch.mask)
    return init_chains(model, sampler, batch, states, noise)


class Player:
    """Runs the program of a method on batches, timing compilation separately; cheap to create.

    Attributes:
      method: the method to run.
      settings: settings of the run.
      engine: the engine used.
      engine_note: why this engine was chosen; empty if the settings name it.
      program: program of the whole run.
      compile_s: seconds spent tracing and compiling so far.
      run_s: seconds of running so far.
      num_devices: number of devices that share a batch; 1 for an engine on the host, which divides work itself.
      layout: division among the devices; None if it depends on the batch.
    """

    def __init__(self, method: Method, settings: Settings, *, keeps_states: bool = False):
        """Chooses the engine; if `keeps_states`, recorders also receive the logged states."""
        self.method, self.settings = method, settings
        self.engine, self.engine_note = choose_engine(settings.engine, method.sampler)
        self.layout = parse_layout(settings.mesh)
        self.num_devices = count_devices(settings.use_devices, self.layout)
        if self.engine.on_host:
            self.layout, self.num_devices = Layout(1, 1), 1
        elif method.sampler.couples_chains:
            # Surplus chains would take part in the shared adaptation.
            self.layout = self.layout or Layout(self.num_devices, 1)
            if settings.batch_size % self.layout.chains:
                raise InputError(
                    f"config.experiment.mesh cuts {settings.batch_size} chains into {self.layout.chains} parts, "
                    "uneven ones; chains that share their adaptation need even parts"
                )
        self.compile_s = self.run_s = 0.0
        self.program = compile_program(method, settings, keeps_states)
        self._population = Population(settings, self.program.temperature)

    @contextlib.contextmanager
    def _timed(self):
        """Times the block, counting compilation separately."""
        begin, compiled_before = time.perf_counter(), compiled.compile_seconds()
        yield
        compile_s = compiled.compile_seconds() - compiled_before
        self.compile_s += compile_s
        self.run_s += time.perf_counter() - begin - compile_s

    def play(
        self,
        model,
        batch,
        keys,
        shape: Shape,
        progress: Progress,
        checkpoints: Checkpoints | None = None,
        part: str = "",
        recorder: Recorder | None = None,
        *,
        states=None,
        watch: Watch | None = None,
        steps_per_call: int | None = None,
    ) -> Outcome:
        """Runs the program on one batch; surplus chains are dropped from the outcome.

        Args:
          model: model of the batch.
          batch: the batch, from `build_batch`.
          keys: keys of the chains' initial states.
          shape: shape of the batch.
          progress: called with the number of steps done.
          checkpoints: checkpoints to resume from and to save to.
          part: the batch's name in the checkpoints.
          recorder: receives the records of each call.
          states: [G, B, N] int8 states before step 1, 0 outside the mask; None: random ones.
          watch: called after each call with the number of steps done and the chains' best states so far; True ends
            the run.
          steps_per_call: about how many steps to run between calls of the watch; None: the engine's number.
        """
        finished = None if checkpoints is None else checkpoints.finished(part)
        if finished is not None:
            outcome = Outcome.from_arrays(finished)
            self.run_s += outcome.run_s
            progress(self.settings.chain_length)
            return outcome
        run_before = self.run_s
        progress(0)  # shows that the run has begun; the first call compiles
        sampler, localization = self.method.sampler, self.method.localization
        with self._timed():
            engine = dataclasses.replace(self.engine, mesh=make_mesh(*shape.layout), threads=self.settings.threads)
            play = engine.prepare(model, sampler, batch, self.program)
        given = batch, keys, states, localization and np.float32(localization.initial_noise())
        middle = None if checkpoints is None else checkpoints.middle(part)
        if middle is None:
            with self._timed():
                chains = compiled.call(start_chains, *given, model=model, sampler=sampler)
            done, earlier = 0, []
        else:
            start = functools.partial(start_chains, model=model, sampler=sampler)
            like = jax.tree.structure(jax.eval_shape(start, *given))
            chains = jax.tree.unflatten(like, [jnp.asarray(leaf) for leaf in middle.chains])
            done, earlier = middle.step, [Trace(*leaves) for leaves in middle.traces]
            self.run_s += middle.run_s
            progress(done)
        traces: list[tuple[int, Trace]] = []
        per_call = steps_per_call or self.engine.steps_per_call(sampler)
        for first, intervals, every in _slices(self.settings, per_call):
            stop = first + intervals * every
            if first < done:
                traces.append((every, earlier[len(traces)]))
                if recorder is not None:
                    recorder.recall(*traces[-1])
                continue
            if checkpoints is not None:
                checkpoints.offer(part, first, chains, [trace for _, trace in traces], self.run_s - run_before)
            begin_s = self.run_s
            with self._timed():
                chains, trace = jax.block_until_ready(play(chains, first, intervals, every))
            # States are only for the recorder; keeping those of all calls would fill the memory.
            traces.append((every, trace._replace(states=None)))
            progress(stop - first)
            if recorder is not None:
                recorder.add(first, stop, every, trace, chains, batch, self.program, self.run_s - begin_s)
            if watch is not None and watch(stop, chains.best):
                break
            if self._population.is_due(stop):
                with self._timed():
                    chains = self._population.resample(chains, trace.value[-1], keys, stop)
        final_is = self.method.final_is
        if final_is == SIGN_OF_Y and stop < self.settings.chain_length:
            final_is = NOT_LOCALIZED
        final = model.sites.decode(chains.chain.state.y) if final_is == SIGN_OF_Y else chains.chain.x
        logged = [trace for every, trace in traces if every == self.settings.log_every_steps]
        trace = jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *logged)
        best, best_logged = jax.device_get((tuple(chains.best), tuple(chains.best_logged)))
        wanted = self.settings.batch_size
        best, best_logged, final = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :wanted], (best, best_logged, final))
        trace = jax.tree.map(lambda leaf: leaf[:, :, :wanted], trace)
        outcome = Outcome(best, best_logged, final, final_is, trace, self.run_s - run_before)
        if checkpoints is not None:
            checkpoints.finish(part, outcome.as_arrays())
        return outcome
