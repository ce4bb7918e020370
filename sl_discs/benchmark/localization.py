"""The cost of localization: alternating short runs of a sampler and of its localized variant, compared in pairs.

Within a process the ratio of the two is measured to a few tenths of a per cent, but it differs by one to two per cent
between processes, even for two copies of one program; the cause is unknown. The measurement is therefore repeated in
several processes, and the error is that of their mean.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64

from sl_discs.benchmark.cases import CASES
from sl_discs.benchmark.contenders import Own
from sl_discs.engines.devices import num_cores, one_device_per_core
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.own_code import import_code, imported

_Result = TypeVar("_Result")

# The smallest number of pairs from which their spread is estimated.
_FEWEST = 3


class Cost(NamedTuple):
    """The cost that localization adds to a sampler.

    Attributes:
      base_us: median microseconds of one core per chain-step of the base sampler.
      added: median over pairs of the added time, as a fraction of the base's time.
      error: standard error of `added`, from the median deviation under a normal distribution.
      pairs: number of pairs of runs.

    For several processes these are means of their medians, the standard error of the mean of `added`, and all pairs.
    """

    base_us: float
    added: float
    error: float
    pairs: int


class Task(NamedTuple):
    """What to measure: graphs of a case, chains a graph, steps a chain, and seconds of runs in a process."""

    case: str
    engine: str
    sampler: str
    graphs: int
    chains: int
    steps: int
    seconds: float


def cost_of(base: Float64[np.ndarray, "P"], localized: Float64[np.ndarray, "P"]) -> Cost:
    """The cost from microseconds a chain-step of P pairs of runs."""
    ratios = localized / base
    middle = np.median(ratios)
    deviation = 1.4826 * np.median(np.abs(ratios - middle))
    error = np.sqrt(np.pi / 2) * deviation / np.sqrt(len(ratios))
    return Cost(float(np.median(base)), float(middle - 1), float(error), len(ratios))


def measure(engine: str, sampler: str, dataset: Dataset, settings: Settings, seconds: float) -> Cost:
    """The cost of sl_SAMPLER over SAMPLER by runs of about `seconds` together, compilation apart.

    Raises:
      NotPlayed: the engine does not know the sampler.
    """
    pair = [Own(engine, name, dataset, settings) for name in (sampler, f"sl_{sampler}")]
    for one in pair:
        one.play(0)  # compiles
    times: list[list[float]] = [[], []]
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[0]) < _FEWEST:
        for one, mine in zip(pair, times, strict=True):
            done = one.play(len(mine) + 1)
            mine.append(1e6 * num_cores() * done.seconds / done.chain_steps)
    return cost_of(*np.array(times))


def mean_cost(costs: Sequence[Cost]) -> Cost:
    """The cost by several processes; of one alone its own."""
    if len(costs) == 1:
        return costs[0]
    added = np.array([cost.added for cost in costs])
    return Cost(
        base_us=float(np.mean([cost.base_us for cost in costs])),
        added=float(added.mean()),
        error=float(added.std(ddof=1) / np.sqrt(len(costs))),
        pairs=sum(cost.pairs for cost in costs),
    )


def _measure_task(task: Task) -> Cost:
    one_device_per_core()
    case = CASES[task.case]
    settings = case.settings(task.graphs, task.chains, task.steps)
    return measure(task.engine, task.sampler, case.dataset(task.graphs), settings, task.seconds)


def _import_all(codes: tuple[str, ...]) -> None:
    for code in codes:
        import_code(code)


def in_new_processes(times: int, function: Callable[..., _Result], *arguments) -> list[_Result]:
    """function(*arguments) so many times, each in a process of its own, one after the other."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, _import_all, (tuple(imported()),), max_tasks_per_child=1) as pool:
        return [pool.submit(function, *arguments).result() for _ in range(times)]


def measure_in_processes(task: Task, processes: int) -> Cost:
    """`measure` in so many new processes; NotPlayed likewise."""
    return mean_cost(in_new_processes(processes, _measure_task, task))
