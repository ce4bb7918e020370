"""Runs samplers on the instances of a dataset and verifies what they found."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.batching import over_chains, over_instances
from sl_discs.errors import InputError
from sl_discs.experiment import cpu_engine, gpu_engine
from sl_discs.experiment.engine import Chains, Trace, advance, compiler_options, init_chains
from sl_discs.experiment.mesh import Layout, count_devices, make_mesh, parse_layout
from sl_discs.experiment.packing import Pack, Shape, build_batch, initial_keys, plan
from sl_discs.experiment.settings import Settings
from sl_discs.experiment.verification import Verifier
from sl_discs.instances.dataset import Dataset
from sl_discs.localization.method import Method
from sl_discs.localization.observation import final_sample
from sl_discs.localization.transition import ProgramStep, initial_state
from sl_discs.results.record import InstanceRecord, SamplerRecord
from sl_discs.samplers.base import Sampler

# An interval of logged steps is the unit of a call; about so many steps pass between progress reports.
_STEPS_PER_CALL = 1_000

Progress = Callable[[int], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a batch leaves on the host; leading axes [G, B], traces [L, G, B].

    Attributes:
      best: best state over every step and its value.
      best_logged: best state over the logged steps.
      final: the last state, or sign(Y_K/alpha) of a localized chain.
      trace: what the logged steps recorded.
    """

    best: tuple[np.ndarray, np.ndarray]
    best_logged: tuple[np.ndarray, np.ndarray]
    final: np.ndarray
    trace: Trace


def choose_engine(wanted: str, sampler: Sampler) -> tuple[str, str]:
    """The engine that plays a sampler, and why it is not the one that was asked for (empty if it is)."""
    if wanted == "xla":
        return "xla", ""
    if wanted == "gpu":
        obstacle = gpu_engine.why_not(sampler)
        return ("gpu", "") if obstacle is None else ("xla", f"not gpu: {obstacle}")
    obstacle = cpu_engine.why_not(sampler)
    return ("cpu", "") if obstacle is None else ("xla", f"not cpu: {obstacle}")


def compile_program(method: Method, settings: Settings) -> ProgramStep:
    """The whole program on the host, leaves [T]; InputError where a schedule is impossible."""
    localization = method.localization and method.localization.compile(settings.chain_length)
    return ProgramStep(settings.temperatures(), localization)


def _slices(settings: Settings, steps_per_call: int):
    """(start, stop, steps an interval): calls of whole intervals, then what is left of the chain."""
    every = settings.log_every_steps
    intervals = settings.chain_length // every
    wanted = max(1, steps_per_call // every)
    per_call = max(d for d in range(1, min(wanted, intervals) + 1) if intervals % d == 0)
    for start in range(0, intervals * every, per_call * every):
        yield start, start + per_call * every, every
    if intervals * every < settings.chain_length:
        yield intervals * every, settings.chain_length, settings.chain_length - intervals * every


class Player:
    """Compiles each program shape of a method once and plays batches, keeping compile time apart.

    Attributes:
      engine: what plays: `xla`, `cpu` or `gpu`.
      engine_note: why not what the settings ask for.
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
          settings: with as many chains, steps and logged steps as before.
        """
        self.method, self.settings = method, settings
        self.program = compile_program(method, settings)
        self.noise = method.localization and method.localization.initial_noise()

    def _slice(self, start: int, stop: int, every: int) -> ProgramStep:
        return jax.tree.map(lambda leaf: jnp.asarray(leaf[start:stop].reshape(-1, every)), self.program)

    def _steps_per_call(self) -> int:
        return cpu_engine.steps_per_call(self.method.sampler) if self.engine == "cpu" else _STEPS_PER_CALL

    def _start(self, model, batch, keys, noise) -> Chains:
        states = over_instances(over_chains(initial_state, (0, None)))(keys, batch.mask)
        return init_chains(model, self.method.sampler, batch, states, noise)

    def _executable(self, name, shape, function, *arguments, **keywords):
        if (name, shape) not in self.compiled:
            begin = time.perf_counter()
            self.compiled[name, shape] = function.lower(*arguments, **keywords).compile(
                compiler_options=compiler_options()
            )
            self.compile_s += time.perf_counter() - begin
        return self.compiled[name, shape]

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

    def _advance_cpu(self, model, batch, chains, rows, step, shape):
        arguments = (model, self.method.sampler, batch, chains)
        if ("cpu", shape) not in self.compiled:
            begin = time.perf_counter()
            cpu_engine.advance(*arguments, jax.tree.map(lambda leaf: leaf[:0], rows), step)
            self.compiled["cpu", shape] = True
            self.compile_s += time.perf_counter() - begin
        begin = time.perf_counter()
        result = cpu_engine.advance(*arguments, rows, step, self.settings.threads)
        self.run_s += time.perf_counter() - begin
        return result

    def play(self, model, batch, keys, shape: Shape, progress: Progress) -> Outcome:
        """Plays the whole program on one batch, and keeps the chains that were asked for."""
        play = {
            "xla": functools.partial(self._advance_jax, advance),
            "cpu": self._advance_cpu,
            "gpu": functools.partial(self._advance_jax, gpu_engine.advance),
        }[self.engine]
        start = jax.jit(lambda batch, keys, noise: self._start(model, batch, keys, noise))
        noise = None if self.noise is None else jnp.float32(self.noise)
        chains = self._executable("start", shape, start, batch, keys, noise)(batch, keys, noise)
        traces = []
        for first, stop, every in _slices(self.settings, self._steps_per_call()):
            rows = self._slice(first, stop, every)
            chains, trace = play(model, batch, chains, rows, jnp.int32(first + 1), shape)
            traces.append((every, trace))
            progress(stop - first)
        observation = chains.chain.observation
        final = chains.chain.x if observation is None else final_sample(observation)
        logged = [trace for every, trace in traces if every == self.settings.log_every_steps]
        trace = jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *logged)
        best, best_logged = jax.device_get((tuple(chains.best), tuple(chains.best_logged)))
        wanted = self.settings.batch_size
        best, best_logged, final = jax.tree.map(lambda leaf: np.asarray(leaf)[:, :wanted], (best, best_logged, final))
        return Outcome(best, best_logged, final, jax.tree.map(lambda leaf: leaf[:, :, :wanted], trace))


def run_sampler(
    problem: str,
    dataset: Dataset,
    penalty: float,
    method: Method,
    settings: Settings,
    progress: Progress,
    player: Player | None = None,
) -> SamplerRecord:
    """Runs one method on all instances of a dataset.

    Args:
      problem: `mis`, `maxcut` or `maxclique`.
      dataset: the instances.
      penalty: of the problem's model.
      method: the sampler and its localization.
      settings: chains, steps, annealing, seed.
      progress: called with the number of chain-steps that were played.
      player: of this method and these settings (another seed apart), to compile nothing twice.

    Returns:
      the record, with every solution verified on the host.
    """
    player = player or Player(method, settings)
    packs = plan(
        problem,
        dataset.graphs,
        penalty,
        settings.instances_per_batch,
        settings.batch_size,
        player.num_devices,
        player.layout,
    )
    compiled_before, run_before = player.compile_s, player.run_s
    records: dict[int, InstanceRecord] = {}
    traces: dict[int, Trace] = {}
    for pack in packs:
        model, batch = build_batch(problem, dataset.graphs, dataset.index, penalty, pack, settings.seed)
        keys = initial_keys(dataset.index, pack, settings.seed)

        def report(steps, pack=pack):
            progress(steps * settings.batch_size * len(pack.members))

        outcome = player.play(model, batch, keys, pack.shape, report)
        _verify(problem, dataset, pack, outcome, records)
        for place, position in enumerate(pack.members):
            traces[position] = jax.tree.map(lambda leaf, place=place: leaf[:, place], outcome.trace)

    order = range(len(dataset.graphs))
    value = np.stack([traces[k].value.max(axis=1) for k in order], axis=1).astype(np.float64)
    steps = settings.chain_length * settings.batch_size * len(dataset.graphs)
    return SamplerRecord(
        instances=[records[k] for k in order],
        trajectory=np.maximum.accumulate(value, axis=0),
        acceptance=np.stack([traces[k].acceptance.mean(axis=1, dtype=np.float64) for k in order], axis=1),
        hops=np.stack([traces[k].hops.mean(axis=1, dtype=np.float64) for k in order], axis=1),
        chain_steps_per_s=steps / (player.run_s - run_before),
        compile_s=player.compile_s - compiled_before,
        run_s=player.run_s - run_before,
        engine=player.engine + (f" ({player.engine_note})" if player.engine_note else ""),
    )


def _verify(problem: str, dataset: Dataset, pack: Pack, outcome: Outcome, records: dict[int, InstanceRecord]) -> None:
    """Exact evaluation of the best, best logged and final states of each instance's chains."""
    for place, position in enumerate(pack.members):
        graph = dataset.graphs[position]
        verifier = Verifier(problem, graph)

        def best_of(values, states, verifier=verifier, size=graph.num_nodes):
            return verifier(states[int(np.argmax(values))][:size])

        best = best_of(outcome.best[0][place], outcome.best[1][place])
        logged = best_of(outcome.best_logged[0][place], outcome.best_logged[1][place])
        final = max((verifier(state[: graph.num_nodes]) for state in outcome.final[place]), key=lambda v: v.objective)
        records[position] = InstanceRecord(
            name=graph.name,
            best=best.objective,
            best_logged=logged.objective,
            final=final.objective,
            feasible=best.feasible,
            reference=graph.reference,
            solution=best.solution,
        )


def total_chain_steps(dataset: Dataset, settings: Settings) -> int:
    """Chain-steps of one sampler, for a progress bar."""
    return settings.chain_length * settings.batch_size * len(dataset.graphs)


def check_methods(methods: list[Method], settings: Settings) -> None:
    """Raises InputError where a method is named twice or its schedules are impossible with these settings."""
    for first, second in itertools.combinations(methods, 2):
        if first.name == second.name:
            raise InputError(f"sampler {first.name!r} is named twice; name each once")
    for method in methods:
        compile_program(method, settings)


def run_methods(problem, dataset, penalty, methods: list[Method], settings, progress) -> dict[str, SamplerRecord]:
    """`run_sampler` for each method, on the same instances and seeds.

    Args:
      problem: as in `run_sampler`.
      dataset: likewise.
      penalty: likewise.
      methods: with distinct names.
      settings: likewise.
      progress: called with (name, chain-steps).
    """
    check_methods(methods, settings)
    return {
        method.name: run_sampler(
            problem, dataset, penalty, method, settings, lambda steps, name=method.name: progress(name, steps)
        )
        for method in methods
    }
