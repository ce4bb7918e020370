"""The check of the engine `gpu`: tasks in parts, each with its share of the time.

Tasks are called in another process with plain values; the engine's kernel is compiled there, or interpreted if there
is no GPU (`interpreted`).
"""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jaxlib

from sl_discs.benchmark.cases import Case
from sl_discs.benchmark.contenders import Own
from sl_discs.benchmark.report import Row
from sl_discs.benchmark.worker import Outcome
from sl_discs.engines.gpu.engine import Gpu
from sl_discs.engines.registry import get_engine
from sl_discs.testing.agreement import check_agreement
from sl_discs.testing.engine_laws import SAMPLERS, check_single_steps
from sl_discs.testing.engines import known_to
from sl_discs.testing.localized import BASES, check_localized_law

ENGINES = ("gpu", "reference")
METHODS = ("gwg", "path_auxiliary", "dmala", "sl_gwg", "sl_path_auxiliary", "sl_dmala")
CASES = ("mis-er-0.05", "mis-er-0.25", "maxcut-ba-512", "maxcut-er-256")
# Each part, and when it must have ended, as a fraction of the whole time; unused time goes to later parts.
PARTS = {"steps": 0.25, "localized": 0.35, "agreement": 0.45, "bench": 0.85, "reference": 0.93, "published": 1.0}
# The parts that the verdict needs.
REQUIRED = ("steps", "localized", "agreement", "bench")
# Time limit of a task; no correct task takes longer, even if it is compiled twice.
_TASK_S = 120.0


class Sizes(NamedTuple):
    """How much is run.

    Attributes:
      steps: options of `check_single_steps`.
      localized: options of `check_localized_law`.
      agreement: options of `check_agreement`.
      graphs: graphs per case.
      chains: chains per graph.
      length: steps of a timed chain.
      repeats: repetitions of a timed run.
    """

    steps: Mapping[str, Any]
    localized: Mapping[str, Any]
    agreement: Mapping[str, Any]
    graphs: int
    chains: int
    length: int
    repeats: int


# Vectors of more than 1,024 sites take eight warps; those of the small targets take part of one.
ON_GPU = Sizes(
    {"copies": 1024},
    {},
    {"cfg_str": "r-ba-4-n-1024-1100", "num_chains": 256},
    graphs=8,
    chains=32,
    length=1_000,
    repeats=3,
)
# The interpreter copies all chains for each chain.
INTERPRETED = Sizes(
    {"copies": 64, "num_sites": 3, "temperatures": (0.7,)},
    {"count": 250, "bound": 0.15},
    {"num_chains": 24, "num_steps": 20},
    graphs=1,
    chains=2,
    length=10,
    repeats=1,
)


class Task(NamedTuple):
    """One check, or one rate.

    Attributes:
      part: one of `PARTS`.
      name: of the sampler, and of the graphs.
      engine: one of `ENGINES`.
      function: that is called.
      arguments: its arguments.
    """

    part: str
    name: str
    engine: str
    function: Callable
    arguments: tuple

    def label(self) -> str:
        """In a list of tasks."""
        return f"{self.part}: {self.name} on {self.engine}"


class Result(NamedTuple):
    """A task and its outcome, None where it was not called."""

    task: Task
    outcome: Outcome | None

    @property
    def status(self) -> str:
        """`passed`, `failed` or `left out`."""
        if self.outcome is None:
            return "left out"
        return "passed" if self.outcome.error is None else "failed"


class Compared(NamedTuple):
    """A case of the paper's run-time table: how it is run, and what the table says."""

    case: Case
    fields: Mapping[str, Mapping[str, Any]]
    seconds: Mapping[str, float | None]
    num_graphs: int


def use_gpu() -> None:
    """Prepares a process that runs checks."""


def interpreted() -> None:
    """Prepares a process without a GPU: JAX uses the CPU, and the engine `gpu` of this process is interpreted."""
    jax.config.update("jax_platforms", "cpu")
    gpu = get_engine("gpu")
    assert isinstance(gpu, Gpu)
    gpu.way = "interpret"


def describe_device() -> dict[str, Any]:
    """The device that JAX uses here; initialises it."""
    device = jax.devices()[0]
    return {
        "platform": jax.default_backend(),
        "device": device.device_kind,
        "devices": jax.device_count(),
        "runtime": " ".join(device.client.platform_version.split()),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
    }


def driver_version() -> str:
    """The version of NVIDIA's driver, from `nvidia-smi`."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.splitlines()[0].strip() if said.strip() else "unknown"


def steps_task(engine: str, sampler: str, options: Mapping[str, Any]) -> None:
    """The single step of a sampler of `engine_laws.SAMPLERS`; AssertionError if it is wrong."""
    check_single_steps(get_engine(engine), SAMPLERS[sampler], **options)


def localized_task(engine: str, base: str, options: Mapping[str, Any]) -> float:
    """The law of localized runs with a base of `localized.BASES`; its distance from the target."""
    return check_localized_law(get_engine(engine), BASES[base], **options)


def agreement_task(engine: str, sampler: str, options: Mapping[str, Any]) -> None:
    """Means of an engine on larger graphs; AssertionError if they are not those of the reference."""
    check_agreement(get_engine(engine), SAMPLERS[sampler], **options)


def speed_task(engine: str, method: str, case: Case, fields: Mapping[str, Any], sizes: Sizes) -> Row:
    """The rate of a method on one device, after a run that compiles."""
    dataset = case.dataset(sizes.graphs)
    settings = case.settings(sizes.graphs, sizes.chains, sizes.length)
    own = Own(engine, method, dataset, dataclasses.replace(settings, use_devices=1), fields)
    own.play(0)
    return Row(case.name, method, engine, own.unit, [own.play(1 + k) for k in range(sizes.repeats)])


def plan_tasks(
    sizes: Sizes, cases: Sequence[Case], compared: Sequence[Compared], methods: Sequence[str], parts: Sequence[str]
) -> list[Task]:
    """All tasks, the most important ones first.

    Args:
      sizes: how much is run.
      cases: of the benchmark.
      compared: of the paper's table.
      methods: that are timed; laws are checked of their base samplers, and of all samplers if they are `METHODS`.
      parts: some of `PARTS`.
    """
    bases = {method.removeprefix("sl_") for method in methods}
    every = set(METHODS) <= set(methods)

    def chosen(names):
        return [name for name in names if every or name.partition(",")[0] in bases]

    tasks: list[Task] = []
    arguments: tuple
    for engine, steps, localized in (("gpu", "steps", "localized"), ("reference", "reference", "reference")):
        for name in chosen(known_to(engine, SAMPLERS)):
            tasks.append(Task(steps, name, engine, steps_task, (engine, name, sizes.steps)))
        for name in chosen(known_to(engine, BASES)):
            tasks.append(Task(localized, f"sl_{name}", engine, localized_task, (engine, name, sizes.localized)))
    for name in chosen(known_to("gpu", BASES)):
        tasks.append(Task("agreement", name, "gpu", agreement_task, ("gpu", name, sizes.agreement)))
    for case in cases:
        for method in methods:
            for engine in ENGINES:
                arguments = (engine, method, case, {}, sizes)
                tasks.append(Task("bench", f"{method}, {case.name}", engine, speed_task, arguments))
    for method in methods:
        for one in compared:
            for engine in ENGINES:
                arguments = (engine, method, one.case, one.fields[method], sizes)
                tasks.append(Task("published", f"{method}, {one.case.name}", engine, speed_task, arguments))
    order = list(PARTS)
    return sorted((task for task in tasks if task.part in parts), key=lambda task: order.index(task.part))


def run_tasks(
    tasks: Sequence[Task],
    call: Callable[[Callable, tuple, float], Outcome],
    begin: float,
    minutes: float,
    report: Callable[[list[Result]], None],
) -> list[Result]:
    """Calls the tasks of each part while there is time for it.

    Args:
      tasks: part by part.
      call: (function, arguments, limit in seconds), such as `Worker.call`.
      begin: time.monotonic() when time began to count.
      minutes: of all tasks.
      report: is told of the results so far after each task.
    """
    results: list[Result] = []
    for task in tasks:
        left = {part: begin + 60 * minutes * share - time.monotonic() for part, share in PARTS.items()}
        outcome = None
        if left[task.part] > 0:
            limit_s = min(_TASK_S, max(left.values()))
            outcome = call(task.function, task.arguments, limit_s)
            if outcome.ended and limit_s < _TASK_S:
                outcome = None  # it was not slow, but started late
        results.append(Result(task, outcome))
        report(results)
    return results
