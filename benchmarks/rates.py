"""Measures speed and quality on fixed cases, in one run with the other packages that are installed.

    python benchmarks/rates.py --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,sl_gwg --steps=10000
    --repeats=5

Repetitions of all contenders alternate. A rate is the number of Markov steps of all chains per
second of wall time, without compilation; for simulated annealing, the number of site updates. Peers
such as simulated annealing use one core and get the CPU-seconds that our first engine took, so
qualities compare at equal CPU time. The sampler `tuned` is the best of ours for the case, with
annealing tuned on other graphs (`cases.py`); `tuned-sequential` is the same with a sequential scan
and twice the steps, which take about as long; `default` is `sl_discs.solve` with its defaults.
`discs` needs a checkout of DISCS on PYTHONPATH, and only its speed is measured.
"""

from __future__ import annotations

import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from cases import CASES, ENGINES, TUNED, Case, chosen_cases
from contenders import (
    Contender,
    Default,
    Measurement,
    NotPlayed,
    Own,
    available_peers,
    cpu_clock,
    how_to_get,
)
from sl_discs.commands import launch
from sl_discs.commands.command import Command, refuse_flags
from sl_discs.engines.devices import describe_machine, one_device_per_core
from sl_discs.experiment.record import measured_by, paired
from sl_discs.samplers import known_samplers
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.terminal import progress_bar, say


class Row(NamedTuple):
    """All repetitions of one contender with one sampler on one case."""

    case: str
    sampler: str
    contender: str
    unit: str
    measurements: list[Measurement]

    def rates(self) -> np.ndarray:
        """Chain-steps (or the peer's unit) per second of each repetition."""
        return np.array([one.chain_steps / one.seconds for one in self.measurements])

    def rate_of_core(self) -> float:
        """Median rate per CPU-second, which hardly depends on other work on the machine."""
        return statistics.median(one.chain_steps / one.cpu_seconds for one in self.measurements)

    def flip_rate(self) -> float | None:
        """Median of flips per second, None where they were not counted."""
        flips = [one.flips / one.seconds for one in self.measurements if one.flips is not None]
        return statistics.median(flips) if flips else None

    def bests(self) -> np.ndarray | None:
        """[R, G] verified objectives of each repetition, None where they were not measured."""
        values = [one.best for one in self.measurements if one.best is not None]
        return np.array(values) if values else None

    def mean_best(self) -> float | None:
        """Mean over repetitions and graphs of the verified objective."""
        bests = self.bests()
        return None if bests is None else float(bests.mean())

    def error_of_mean(self) -> float | None:
        """Standard error of that mean over repetitions with fixed graphs; None for a single
        repetition.
        """
        bests = self.bests()
        if bests is None or len(bests) < 2:
            return None
        return float(np.sqrt(bests.var(axis=0, ddof=1).mean() / bests.size))


class Lead(NamedTuple):
    """How much better the first contender is than another on the same graphs, with a 95 % interval
    over graphs.
    """

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Of the first contender: `ahead` or `behind` where the interval says so, otherwise
        `level`.
        """
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "level"


def lead(first: Row, other: Row) -> Lead | None:
    """By Student's t on the differences of each graph; None without objectives or with a single
    graph.
    """
    ours, theirs = first.bests(), other.bests()
    if ours is None or theirs is None or ours.shape[1] < 2:
        return None
    found = paired(ours.mean(axis=0), theirs.mean(axis=0))
    return Lead(found.mean, found.mean - found.half_width, found.mean + found.half_width)


def as_json(rows: list[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """`cases -> case -> sampler -> engine or peer -> figures`, and the settings."""
    cases: dict[str, Any] = {}
    for row in rows:
        rates, bests = row.rates(), row.bests()
        first = next(one for one in rows if (one.case, one.sampler) == (row.case, row.sampler))
        cases.setdefault(row.case, {}).setdefault(row.sampler, {})[row.contender] = {
            "chain_steps_per_s": float(np.median(rates)),
            "per_cpu_second": row.rate_of_core(),
            "min": float(rates.min()),
            "max": float(rates.max()),
            "unit": row.unit,
            "flips_per_s": row.flip_rate(),
            "mean_best": row.mean_best(),
            "error_of_mean": row.error_of_mean(),
            "best_of_graphs": None if bests is None else bests.mean(axis=0).tolist(),
            "lead_of_first": None if row is first else lead(first, row),
            "seconds": [one.seconds for one in row.measurements],
        }
    return {"settings": settings, "cases": cases}


def _ratio(row: Row, first: Row) -> str:
    """The ratio of the first contender's rate to this one's in each repetition, if their units are
    the same.
    """
    if row is first or row.unit != first.unit:
        return ""
    ratios = first.rates() / row.rates()
    return (
        f"{first.contender} is {np.median(ratios):,.2f}x ({ratios.min():,.2f} - "
        f"{ratios.max():,.2f})"
    )


def format_case(rows: list[Row], num_graphs: int) -> str:
    """The table of one case: rates with their spread, quality, seconds a graph, and ratios."""
    lines = [
        f"{rows[0].case}",
        f"  {'sampler':<20} {'on':<15} {'per second':>14} {'(lowest - highest)':>25} "
        f"{'per CPU-s':>12} "
        f"{'flips/s':>11} {'s a graph':>9} {'mean best':>10} {'(+-)':>6}",
    ]
    for row in rows:
        rates, flips, best, error = (
            row.rates(),
            row.flip_rate(),
            row.mean_best(),
            row.error_of_mean(),
        )
        seconds = statistics.median(one.seconds for one in row.measurements) / num_graphs
        first = next(other for other in rows if other.sampler == row.sampler)
        spread = f"({rates.min():,.0f} - {rates.max():,.0f})"
        lines.append(
            f"  {row.sampler:<20} {row.contender:<15} {np.median(rates):>14,.0f} {spread:>25} "
            f"{row.rate_of_core():>12,.0f} "
            f"{f'{flips:,.0f}' if flips is not None else '-':>11} {seconds:>9.2f} "
            f"{f'{best:.2f}' if best is not None else '-':>10} "
            f"{f'({error:.2f})' if error is not None else '':>6}  "
            f"{_ratio(row, first)}".rstrip()
        )
        if row is not first and (ahead := lead(first, row)):
            lines.append(
                f"  {'':<20} {first.contender} is {ahead.verdict}: mean best larger by "
                f"{ahead.mean:.2f} "
                f"({ahead.low:.2f} to {ahead.high:.2f} over graphs)"
            )
    return "\n".join(lines)


FLAGS, define = launch.own_flags()
define.list("cases", list(CASES), "Cases.")
define.list(
    "samplers",
    ["gwg", "path_auxiliary", "dmala", "sl_path_auxiliary", "tuned", "default"],
    "Samplers of this package. `tuned` is the best of them for the case, with annealing tuned on "
    "other graphs; "
    "`tuned-sequential` is the same with scan=sequential and twice the steps, for about the same "
    "time; "
    "`default` is sl_discs.solve with its defaults, for --seconds.",
)
define.list("engines", None, "Engines and other packages; default: all that are available.")
define.integer("steps", 10_000, "Steps per chain.", lower_bound=10)
define.integer("repeats", 3, "Repetitions, with different seeds.", lower_bound=1)
define.integer("graphs", 4, "Graphs per case.", lower_bound=1)
define.integer("chains", 32, "Chains or reads per graph.", lower_bound=1)
define.float("seconds", 1.0, "Seconds of wall time per graph for `default`.", lower_bound=0.01)
define.boolean("cpu_clock", False, "Whether seconds are of CPU time, where there is other work.")
define.string("output", "bench.json", "File for the results.")


def _contenders() -> list[str]:
    """Names of the chosen engines and peers; our own engines come first, since they set the time of
    the peers.
    """
    peers = available_peers()
    available = [*ENGINES, *peers]
    chosen = FLAGS.engines or available
    missing = how_to_get()
    for name in chosen:
        if name in missing:
            raise InputError(f"--engines: {name} needs {missing[name]}")
    check_choice("engines", chosen, available)
    if not set(chosen) & set(ENGINES):
        raise InputError(
            f"--engines: add one of {', '.join(ENGINES)}; peers get the time that the engine takes"
        )
    return [name for name in available if name in chosen]


def _run_case(case: Case, names: list[str], progress) -> list[Row]:
    dataset = case.dataset(FLAGS.graphs)
    settings = case.settings(FLAGS.graphs, FLAGS.chains, FLAGS.steps)
    peers = available_peers()
    contenders: dict[tuple[str, str], Contender] = {}
    for sampler in FLAGS.samplers:
        for name in names:
            own = name in ENGINES
            build = (lambda *args, name=name: Own(name, *args)) if own else peers[name]
            try:
                if own and sampler == "default":
                    contenders[sampler, name] = Default(name, dataset, FLAGS.seconds)
                elif own and sampler in TUNED and case.tuned is not None:
                    if name != "cpu":
                        raise NotPlayed(
                            "it is given the time of other samplers only on the CPU engine"
                        )
                    fields, pace = TUNED[sampler]
                    annealing = case.tuned.settings(settings, pace)
                    contenders[sampler, name] = build(
                        case.tuned.sampler, dataset, annealing, fields
                    )
                else:
                    contenders[sampler, name] = build(sampler, dataset, settings)
            except NotPlayed as reason:
                say(f"{case.name}, {sampler}: skipped on {name}: {reason}")
    own = [contender for (_, name), contender in contenders.items() if name in ENGINES]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda contender: contender.play(0), own))  # compiles
    rows = {key: Row(case.name, *key, contender.unit, []) for key, contender in contenders.items()}
    for seed in range(1, FLAGS.repeats + 1):
        seconds: dict[str, float] = {}
        for (sampler, name), contender in contenders.items():
            measured = contender.play(seed, seconds.get(sampler))
            # Where ours ends early with a proof, peers have the time all the same.
            least = FLAGS.seconds * FLAGS.graphs if sampler == "default" else 0.0
            seconds.setdefault(sampler, max(measured.cpu_seconds, least))
            rows[sampler, name].measurements.append(measured)
            progress("benchmark", 1)
    return list(rows.values())


def run(_) -> int:
    one_device_per_core()
    if FLAGS.cpu_clock:
        cpu_clock()
    check_choice("samplers", FLAGS.samplers, [*TUNED, "default", *known_samplers()])
    cases = chosen_cases(FLAGS.cases)
    names, output = _contenders(), check_file(FLAGS.output)
    if "discs" in names:
        launch.register_from_flags(FLAGS)
    else:
        refuse_flags(FLAGS, ["fixes"], "unless --engines includes discs")
    if "default" not in FLAGS.samplers:
        refuse_flags(FLAGS, ["seconds"], "unless --samplers includes default")
    machine = describe_machine()
    say(
        f"{machine}; {FLAGS.graphs} graphs x {FLAGS.chains} chains x {FLAGS.steps:,} steps, "
        f"{FLAGS.repeats} repetitions of {', '.join(names)}"
    )
    rows = []
    with progress_bar(
        len(cases) * len(FLAGS.samplers) * len(names) * FLAGS.repeats, " repetitions"
    ) as progress:
        for case in cases:
            found = _run_case(case, names, progress)
            say("\n" + format_case(found, FLAGS.graphs))
            rows += found
            settings = {
                "graphs": FLAGS.graphs, "chains": FLAGS.chains, "steps": FLAGS.steps, "repeats": FLAGS.repeats,
            }  # fmt: skip
            write_json(output, {"measured": measured_by()} | as_json(rows, settings))
    say(f"\nsaved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
