"""Measures what localization costs on our engines, as the run time of sl_NAME divided by that of
NAME.

    python benchmarks/localization.py --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,dmala
    --processes=6

On shared machines run times vary by much more than the few per cent of interest. Therefore short
runs of the two alternate for --seconds, and the result is the median ratio of the pairs. These
medians differ by one or two per cent between processes; the command prints their mean over
--processes with its standard error (for one process, that of the median). Compilation does not
count. `discs_overhead.py` measures the same in DISCS's loop.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64

from cases import CASES, ENGINES, chosen_cases
from contenders import NotPlayed, Own
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.devices import describe_machine, num_cores, one_device_per_core
from sl_discs.experiment.record import measured_by
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset
from sl_discs.samplers import known_samplers
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_file
from sl_discs.support.own_code import import_code, imported
from sl_discs.support.terminal import progress_bar, say

_Result = TypeVar("_Result")

# The smallest number of pairs from which their spread is estimated.
_FEWEST = 3


class Cost(NamedTuple):
    """The cost that localization adds to a sampler.

    For several processes these are means of their medians, the standard error of the mean of
    `added`, and all pairs.
    """

    base_us: float  # median microseconds of one core per chain-step of the base sampler
    added: float  # median over pairs of the added time, as a fraction of the base's time
    error: float  # standard error of `added`, from the median deviation under a normal distribution
    pairs: int  # number of pairs of runs


class Task(NamedTuple):
    """What to measure: graphs of a case, chains a graph, steps a chain, and seconds of runs in a
    process.
    """

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


def measure(
    engine: str, sampler: str, dataset: Dataset, settings: Settings, seconds: float
) -> Cost:
    """The cost of sl_SAMPLER over SAMPLER by runs of about `seconds` together; NotPlayed if the
    engine has none.
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
    with ProcessPoolExecutor(
        1, spawn, _import_all, (tuple(imported()),), max_tasks_per_child=1
    ) as pool:
        return [pool.submit(function, *arguments).result() for _ in range(times)]


def measure_in_processes(task: Task, processes: int) -> Cost:
    """`measure` in so many new processes; NotPlayed likewise."""
    return mean_cost(in_new_processes(processes, _measure_task, task))


_BASES = [name for name in known_samplers() if f"sl_{name}" in known_samplers()]

FLAGS, define = own_flags()
define.list("cases", list(CASES), "Cases.")
define.list("samplers", ["gwg", "path_auxiliary", "dmala"], "Samplers, without sl_.")
define.list("engines", list(ENGINES), "Engines.")
define.integer(
    "steps", 10_000, "Steps per chain, divided into as many levels as fit.", lower_bound=10
)
define.integer("graphs", 1, "Graphs per case.", lower_bound=1)
define.integer("chains", 32, "Chains per graph.", lower_bound=1)
define.float(
    "seconds", 5.0, "Seconds of runs in each process, for each pair of samplers.", lower_bound=0.1
)
define.integer("processes", 4, "Processes for each pair of samplers on each engine.", lower_bound=1)
define.string("output", "bench_localization.json", "File for the results.")


def _line(case: str, engine: str, sampler: str, cost: Cost) -> str:
    return (
        f"  {case:<16} {engine:<6} {sampler:<20} {cost.base_us:>8.3f} {100 * cost.added:>+8.1f} % "
        f"+- {100 * cost.error:<4.1f} {cost.pairs:>6}"
    )


def run(_) -> int:
    check_choice("samplers", FLAGS.samplers, _BASES)
    check_choice("engines", FLAGS.engines, ENGINES)
    cases, output = chosen_cases(FLAGS.cases), check_file(FLAGS.output)
    # In a process of its own, which would otherwise hold most of a GPU's memory while others
    # measure.
    machine = in_new_processes(1, describe_machine)[0]
    say(
        f"{machine}; {FLAGS.graphs} graphs x {FLAGS.chains} chains x {FLAGS.steps:,} steps, "
        f"{FLAGS.processes} processes\n"
        f"  {'case':<16} {'engine':<6} {'sampler':<20} {'us a step':>8} {'sl_ adds':>9}  "
        f"{'error':>8} {'pairs':>6}"
    )
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    with progress_bar(len(cases) * len(FLAGS.engines) * len(FLAGS.samplers), " pairs") as progress:
        for case in cases:
            for engine in FLAGS.engines:
                for sampler in FLAGS.samplers:
                    task = Task(
                        case.name,
                        engine,
                        sampler,
                        FLAGS.graphs,
                        FLAGS.chains,
                        FLAGS.steps,
                        FLAGS.seconds,
                    )
                    try:
                        cost = measure_in_processes(task, FLAGS.processes)
                    except NotPlayed as reason:
                        say(f"  {case.name}, {sampler}: skipped on {engine}: {reason}")
                    else:
                        found.setdefault(case.name, {}).setdefault(sampler, {})[engine] = (
                            cost._asdict()
                        )
                        say(_line(case.name, engine, sampler, cost))
                    progress("localization", 1)
    shape = {
        "graphs": FLAGS.graphs,
        "chains": FLAGS.chains,
        "steps": FLAGS.steps,
        "processes": FLAGS.processes,
    }
    write_json(output, {"measured": measured_by()} | shape | {"cases": found})
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
