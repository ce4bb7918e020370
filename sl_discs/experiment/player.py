"""Plays the program of a method on one batch after the other, call by call, compiling each shape once."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.batching import over_chains, over_instances
from sl_discs.errors import InputError
from sl_discs.experiment import cpu_engine, gpu_engine
from sl_discs.experiment.checkpoint import Checkpoints
from sl_discs.experiment.engine import Best, Chains, Trace, advance, compiler_options, init_chains
from sl_discs.experiment.mesh import Layout, count_devices, make_mesh, parse_layout
from sl_discs.experiment.monitor import Recorder
from sl_discs.experiment.native_arrays import as_targets
from sl_discs.experiment.packing import Shape
from sl_discs.experiment.population import Population
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import NOT_LOCALIZED, SIGN_OF_Y, Method
from sl_discs.localization.observation import final_sample
from sl_discs.localization.transition import ProgramStep, initial_state
from sl_discs.samplers.base import Sampler

# An interval of logged steps is the unit of a call; about so many steps pass between progress reports.
_STEPS_PER_CALL = 1_000

Progress = Callable[[int], None]
Watch = Callable[[int, Best], bool]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a batch leaves on the host; leading axes [G, B], traces [L, G, B].

    Attributes:
      best: best state over every step and its value.
      best_logged: best state over the logged steps.
      final: the chains' final samples.
      final_is: what these are: `Method.final_is`, or the states where a watch ended the run.
      trace: what the logged steps recorded.
      run_s: seconds that it took.
    """

    best: tuple[np.ndarray, np.ndarray]
    best_logged: tuple[np.ndarray, np.ndarray]
    final: np.ndarray
    final_is: str
    trace: Trace
    run_s: float

    def as_arrays(self) -> dict[str, np.ndarray]:
        """By name, for a file."""
        arrays = {"final": self.final, "final_is": np.array(self.final_is), "run_s": np.float64(self.run_s)}
        for name in ("best", "best_logged"):
            value, state = getattr(self, name)
            arrays |= {f"{name}_value": value, f"{name}_state": state}
        return arrays | {f"trace_{name}": leaf for name, leaf in self.trace._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Outcome:
        """Of `as_arrays`."""
        best, logged = ((arrays[f"{name}_value"], arrays[f"{name}_state"]) for name in ("best", "best_logged"))
        trace = Trace(*(arrays[f"trace_{name}"] for name in Trace._fields))
        return cls(best, logged, arrays["final"], str(arrays["final_is"]), trace, float(arrays["run_s"]))


def choose_engine(wanted: str, sampler: Sampler) -> tuple[str, str]:
    """The engine that plays a sampler, and why it is that one (empty if it was asked for by name)."""
    if wanted == "xla":
        return "xla", ""
    if wanted == "gpu":
        obstacle = gpu_engine.why_not(sampler)
        return ("gpu", "") if obstacle is None else ("xla", f"not gpu: {obstacle}")
    obstacle = cpu_engine.why_not(sampler)
    if obstacle is not None:
        return "xla", f"not cpu: {obstacle}"
    return "cpu", "auto: the fastest on CPU cores" if wanted == "auto" else ""


def compile_program(method: Method, settings: Settings) -> ProgramStep:
    """The whole program on the host, sequences [T]; InputError where a schedule is impossible."""
    localization = method.localization and method.localization.compile(settings.chain_length)
    return ProgramStep(settings.temperatures(), localization)


def _slices(settings: Settings, steps_per_call: int):
    """(start, stop, steps an interval): calls of whole intervals up to each resampling, then what is left."""
    every = settings.log_every_steps
    intervals = settings.chain_length // every
    together = settings.resample_every // every or intervals
    wanted = max(1, steps_per_call // every)
    for first in range(0, intervals, together):
        last = min(first + together, intervals)
        per_call = max(d for d in range(1, min(wanted, last - first) + 1) if (last - first) % d == 0)
        for start in range(first, last, per_call):
            yield start * every, (start + per_call) * every, every
    if intervals * every < settings.chain_length:
        yield intervals * every, settings.chain_length, settings.chain_length - intervals * every


class Player:
    """Compiles each program shape of a method once and plays batches, keeping compile time apart.

    Attributes:
      engine: what plays: `xla`, `cpu` or `gpu`.
      engine_note: why that one; empty if the settings ask for it.
      compile_s: seconds spent tracing and compiling so far.
      run_s: seconds of running so far.
      num_devices: that a batch is spread over; native loops share the cores in their own way.
      layout: how, None where the batch decides.
    """

    def __init__(self, method: Method, settings: Settings):
        self.engine, self.engine_note = choose_engine(settings.engine, method.sampler)
        self.layout = parse_layout(settings.mesh)
        self.num_devices = count_devices(settings.use_devices, self.layout)
        if self.engine == "cpu":
            self.layout, self.num_devices = Layout(1, 1), 1
        elif method.sampler.couples_chains:
            # Surplus chains would take part in what the chains share.
            self.layout = self.layout or Layout(self.num_devices, 1)
            if settings.batch_size % self.layout.chains:
                raise InputError(
                    f"config.experiment.mesh cuts {settings.batch_size} chains into {self.layout.chains} parts, "
                    "uneven ones; chains that share their adaptation need even parts"
                )
        self.compiled = {}
        self.compile_s = self.run_s = 0.0
        self.load(method, settings)

    def load(self, method: Method, settings: Settings) -> None:
        """Plays other schedules from now on: of localization, of temperature. Nothing is compiled anew.

        Args:
          method: with the sampler that the player was made for, localized or not as before.
          settings: with as many chains as before; calls of another shape are compiled when they come.
        """
        self.method, self.settings = method, settings
        self.program = compile_program(method, settings)
        if self.engine == "cpu":
            self.proposed = cpu_engine.prepare_temperatures(method.sampler, self.program)
        self.population = Population(settings, self.program.temperature)
        self.noise = method.localization and method.localization.initial_noise()

    def _slice(self, start: int, stop: int, every: int) -> ProgramStep:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf[start:stop].reshape(-1, every)), self.program)

    def _steps_per_call(self) -> int:
        return cpu_engine.steps_per_call(self.method.sampler) if self.engine == "cpu" else _STEPS_PER_CALL

    def _start(self, model, batch, keys, states, noise) -> Chains:
        if states is None:
            states = over_instances(over_chains(initial_state, (0, None)))(keys, batch.mask)
        return init_chains(model, self.method.sampler, batch, states, noise)

    def _executable(self, name, shape, function, *arguments, **keywords):
        dtypes = tuple(leaf.dtype for leaf in jax.tree.leaves(arguments) if hasattr(leaf, "dtype"))
        if (name, shape, dtypes) not in self.compiled:
            begin = time.perf_counter()
            self.compiled[name, shape, dtypes] = function.lower(*arguments, **keywords).compile(
                compiler_options=compiler_options()
            )
            self.compile_s += time.perf_counter() - begin
        return self.compiled[name, shape, dtypes]

    def _advance_jax(self, advance, model, batch, chains, rows, step, shape):
        call = self._executable(
            rows.temperature.shape,
            shape,
            advance,
            model,
            self.method.sampler,
            batch,
            chains,
            rows,
            step,
            mesh=make_mesh(shape.layout),
        )
        jax.block_until_ready(chains)
        begin = time.perf_counter()
        result = jax.block_until_ready(call(batch, chains, rows, step))
        self.run_s += time.perf_counter() - begin
        return result

    def _prepare_cpu(self, model, batch):
        begin = time.perf_counter()
        targets = as_targets(model, batch)
        self.run_s += time.perf_counter() - begin
        return functools.partial(self._advance_cpu, targets)

    def _advance_cpu(self, targets, model, batch, chains, rows, step, shape):
        arguments = (model, self.method.sampler, batch, chains)
        if ("cpu", model, shape) not in self.compiled:
            begin = time.perf_counter()
            none = jax.tree.map(lambda leaf: leaf[:0], rows)
            cpu_engine.advance(*arguments, none, step, targets=targets, proposed=self.proposed)
            self.compiled["cpu", model, shape] = True
            self.compile_s += time.perf_counter() - begin
        begin = time.perf_counter()
        result = cpu_engine.advance(*arguments, rows, step, self.settings.threads, targets, self.proposed)
        self.run_s += time.perf_counter() - begin
        return result

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
        """Plays the program on one batch, and keeps the chains that were asked for.

        Args:
          model: of the batch.
          batch: of `build_batch`.
          keys: of the chains' initial states.
          shape: of the batch.
          progress: called with the number of steps that were played.
          checkpoints: where to go on from, and to save to.
          part: the batch's name there.
          recorder: told what each call has recorded.
          states: [G, B, N] int8 states before step 1, 0 outside the mask; None: random ones.
          watch: called after each call with the number of steps done and the chains' best states so far; True ends
            the run there.
          steps_per_call: about how many steps pass between two looks at the watch; None: as many as are fast.
        """
        finished = checkpoints and checkpoints.finished(part)
        if finished is not None:
            outcome = Outcome.from_arrays(finished)
            self.run_s += outcome.run_s
            progress(self.settings.chain_length)
            return outcome
        run_before = self.run_s
        progress(0)  # shows that it has begun; the first call compiles
        if self.engine == "cpu":
            play = self._prepare_cpu(model, batch)
        else:
            play = functools.partial(self._advance_jax, gpu_engine.advance if self.engine == "gpu" else advance)
        start = jax.jit(lambda *arguments: self._start(model, *arguments))
        given = batch, keys, states, None if self.noise is None else jnp.float32(self.noise)
        middle = checkpoints and checkpoints.middle(part)
        if middle is None:
            chains = self._executable(("start", model, states is None), shape, start, *given)(*given)
            done, earlier = 0, []
        else:
            like = jax.tree.structure(jax.eval_shape(start, *given))
            chains = jax.tree.unflatten(like, [jnp.asarray(leaf) for leaf in middle.chains])
            done, earlier = middle.step, [Trace(*leaves) for leaves in middle.traces]
            self.run_s += middle.run_s
            progress(done)
        traces = []
        for first, stop, every in _slices(self.settings, steps_per_call or self._steps_per_call()):
            if first < done:
                traces.append((every, earlier[len(traces)]))
                if recorder is not None:
                    recorder.recall(*traces[-1])
                continue
            if checkpoints is not None:
                checkpoints.offer(part, first, chains, [trace for _, trace in traces], self.run_s - run_before)
            rows, begin_s = self._slice(first, stop, every), self.run_s
            chains, trace = play(model, batch, chains, rows, jnp.int32(first + 1), shape)
            traces.append((every, trace))
            progress(stop - first)
            if recorder is not None:
                recorder.add(first, stop, every, trace, chains, batch, self.program, self.run_s - begin_s)
            if watch is not None and watch(stop, chains.best):
                break
            if self.population.is_due(stop):
                begin = time.perf_counter()
                chains = self.population.resample(chains, trace.value[-1], keys, stop)
                self.run_s += time.perf_counter() - begin
        final_is = self.method.final_is
        if final_is == SIGN_OF_Y and stop < self.settings.chain_length:
            final_is = NOT_LOCALIZED
        final = final_sample(chains.chain.observation) if final_is == SIGN_OF_Y else chains.chain.x
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
