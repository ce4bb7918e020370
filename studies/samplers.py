"""Compares all base samplers on graphs, at equal steps and at equal CPU time, and on an Ising
lattice.

    python studies/samplers.py [--output=results/samplers] [--samplers=metropolis,gwg]
    [--cases=mis-er-0.05]

The temperatures of each sampler are chosen on other graphs of the same family; its other settings
are the defaults. Finished cells are kept in OUTPUT/cells, so that a stopped command continues where
it left off. Times are CPU times of the whole process without compilation.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from finished import finished
from sl_discs.chains.budget import Budget
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.compiled import compile_cpu_seconds
from sl_discs.experiment.record import Spread, measured_by
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import build_method
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.report import table
from sl_discs.samplers.registry import base_samplers, known_samplers
from sl_discs.sampling.draw_samples import METHODS
from sl_discs.sampling.drawn import Request
from sl_discs.sampling.plain_chains import ordered_method
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say
from truths import ising_torus

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from cases import CASES, Case
from contenders import timed
from sampling import play

# Initial and final temperatures, in units of the problem's smallest change of value, by problem.
_GRID = ((0.2, 0.05), (0.2, 0.1), (0.4, 0.05), (0.4, 0.15), (1.0, 0.05), (1.0, 0.2))
UNITS = {"mis": 1.0, "maxcut": 2.0}
_SIDE, _TEMPERATURE = 32, 2.6
LATTICE = f"Ising {_SIDE} x {_SIDE}"
_BUDGETS = ("steps", "seconds")
# The fewest steps of a chain, however slow they are.
_LEAST = 100


class Size(NamedTuple):
    cases: tuple[str, ...] = (
        "mis-er-0.05", "mis-er-0.10", "mis-er-0.20", "mis-er-0.25", "mis-satlib-like", "maxcut-ba-512",
    )  # fmt: skip
    steps: int = 10_000  # of a chain, at equal steps
    seconds: float = 0.5  # of CPU time per graph, at equal time
    chains: int = 16  # per graph
    tuning: int = 2  # graphs that temperatures are chosen on
    graphs: int = 8  # other graphs, which are measured
    draws: int = 64  # of each of `chains` chains on the lattice
    seeds: int = 4  # repetitions on the lattice


FULL = Size()


@dataclasses.dataclass(frozen=True)
class Cell:
    """A sampler on a family of graphs, in plain values, each keyed by the budget `steps` or
    `seconds`.
    """

    temperatures: dict[str, Sequence[float]]  # the chosen initial and final one
    steps: dict[str, int]  # of a chain
    cpu_s: dict[str, float]  # CPU-seconds per graph, without compilation
    best: dict[str, list[float]]  # the best verified objective of each measured graph


def run(folder: Path, samplers: Sequence[str], size: Size = FULL) -> str:
    """Runs all cells and writes samplers.md and samplers.json into the folder; returns the text."""
    cells: dict[str, dict[str, Cell]] = {}
    for name in size.cases:
        cells[name] = {}
        for sampler in samplers:
            cells[name][sampler] = cell = _cell(folder / "cells", CASES[name], sampler, size)
            means = ", ".join(
                f"{np.mean(cell.best[budget]):.2f} at equal {budget}" for budget in _BUDGETS
            )
            say(f"{name}, {sampler}: {means}")
    drawn = {}
    for sampler in samplers:
        drawn[sampler] = _drawn(folder / "cells", sampler, size)
        rate = np.mean([min(one["effective"]) / one["cpu_s"] for one in drawn[sampler]])
        say(f"{LATTICE}, {sampler}: {rate:.3g} effective draws per CPU-second")
    found = summary(cells, drawn)
    write_json(
        folder / "samplers.json",
        {"measured": measured_by(), **size._asdict(), **found},
        allow_nan=False,
    )
    text = page(found, size)
    write_text(folder / "samplers.md", text)
    return text


def _cell(folder: Path, case: Case, sampler: str, size: Size) -> Cell:
    identity = {
        "kind": "samplers", "case": case.name, "sampler": sampler, "steps": size.steps, "seconds": size.seconds,
        "chains": size.chains, "tuning": size.tuning, "graphs": size.graphs, "grid": list(map(list, _GRID)),
    }  # fmt: skip
    return Cell(
        **finished(folder, identity, lambda: dataclasses.asdict(_measured(case, sampler, size)))
    )


def _measured(case: Case, sampler: str, size: Size) -> Cell:
    every = case.dataset(size.graphs + size.tuning)
    measured, tuning = (
        _part(every, range(size.graphs)),
        _part(every, range(size.graphs, len(every.graphs))),
    )
    cell = Cell({}, {}, {}, {})
    steps = size.steps
    for budget in _BUDGETS:
        if budget == "seconds":  # the run at equal steps has shown the rate
            steps = max(_LEAST, round(size.steps * size.seconds / cell.cpu_s["steps"]))
        tried = {
            pair: _played(case, tuning, sampler, steps, pair, size.chains, 0)[0].mean()
            for pair in _GRID
        }
        chosen = max(tried, key=lambda pair: tried[pair])
        best, seconds = _played(case, measured, sampler, steps, chosen, size.chains, 1)
        cell.temperatures[budget], cell.steps[budget] = (
            [one * UNITS[case.problem] for one in chosen],
            steps,
        )
        cell.cpu_s[budget], cell.best[budget] = seconds, best.tolist()
    return cell


def _part(dataset: Dataset, which: range) -> Dataset:
    graphs = [dataset.graphs[place] for place in which]
    return dataclasses.replace(dataset, graphs=graphs, index=list(which))


def _played(
    case: Case,
    dataset: Dataset,
    sampler: str,
    steps: int,
    pair: tuple[float, float],
    chains: int,
    seed: int,
) -> tuple[np.ndarray, float]:
    """Best verified objective of each graph, and CPU-seconds per graph."""
    initial, final = (one * UNITS[case.problem] for one in pair)
    settings = dataclasses.replace(
        case.settings(len(dataset.graphs), chains, steps),
        t_schedule="exp_decay", init_temperature=initial, final_temperature=final, decay_rate=final / initial,
        engine="auto", seed=seed,
    )  # fmt: skip
    method, compiling = build_method({"name": sampler}), compile_cpu_seconds()
    cpu_s, _, record = timed(run_sampler, plan_of(dataset, PENALTY, method, settings))
    cpu_s -= compile_cpu_seconds() - compiling
    return np.array([one.best for one in record.instances]), cpu_s / len(dataset.graphs)


def _drawn(folder: Path, sampler: str, size: Size) -> list[dict[str, Any]]:
    """Steps, CPU-seconds, effective draws of each observable and the largest R-hat, for
    each seed.
    """
    terms = ising_torus(_SIDE, _TEMPERATURE).problem.terms()

    def draw(seed: int):
        request = Request(
            terms, _TEMPERATURE, size.draws, size.chains, ordered_method(sampler, {}), "auto", seed
        )
        return METHODS["chain"](request, Budget())

    def compute(seed: int) -> dict[str, Any]:
        played = play(draw, seed, terms)
        return {
            "steps": played.steps, "cpu_s": played.cpu_seconds, "effective": list(played.effective or ()),
            "r_hat": played.r_hat,
        }  # fmt: skip

    identity = {"kind": "lattice", "sampler": sampler, "side": _SIDE, "temperature": _TEMPERATURE}
    identity |= {"chains": size.chains, "draws": size.draws}
    return [
        finished(folder, identity | {"seed": seed}, functools.partial(compute, seed))
        for seed in range(size.seeds)
    ]


def summary(
    cells: dict[str, dict[str, Cell]], drawn: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The numbers of the page, which have no unit other than those of the objective and of draws.

    `best` has by budget, family and sampler the mean, and the difference from the largest mean with
    the half width of its 95 % interval; `drawn` has by sampler effective draws per million steps
    and per CPU-second, each with its half width, and the largest R-hat.
    """
    best = {
        budget: {
            name: _behind({s: cell.best[budget] for s, cell in column.items()})
            for name, column in cells.items()
        }
        for budget in _BUDGETS
    }
    effective = {}
    for name, runs in drawn.items():
        least = np.array([min(one["effective"]) for one in runs])
        rates = {
            f"per_{of}": _estimate(least / [one[of] for one in runs]) for of in ("steps", "cpu_s")
        }
        effective[name] = rates | {"r_hat": max(one["r_hat"] for one in runs)}
    return {"best": best, "drawn": effective}


def _behind(best: dict[str, list[float]]) -> dict[str, list[float]]:
    means = {name: float(np.mean(values)) for name, values in best.items()}
    first = max(means, key=lambda name: means[name])
    return {
        name: [means[name], *_estimate(np.subtract(values, best[first]))]
        for name, values in best.items()
    }


def _estimate(values: np.ndarray) -> list[float]:
    return [float(values.mean()), float(Spread.of(values).half_width)]


def page(found: dict[str, Any], size: Size) -> str:
    amounts = dict(
        zip(_BUDGETS, (f"{size.steps:,} steps", f"{size.seconds:g} CPU-seconds"), strict=True)
    )
    parts = []
    for budget, columns in found["best"].items():
        samplers = dict.fromkeys(name for column in columns.values() for name in column)
        rows = [
            [name, *("{:,.1f} ({:.1f} ± {:.1f})".format(*one[name]) for one in columns.values())]
            for name in samplers
        ]
        parts += [
            f"Best objective after {amounts[budget]} per graph:",
            table(["sampler", *columns], rows),
        ]
    units = (("per_steps", 1e6), ("per_cpu_s", 1))
    rows = [
        [
            name,
            *("{:,.3g} ± {:,.2g}".format(*np.multiply(scale, one[of])) for of, scale in units),
            f"{one['r_hat']:.2f}",
        ]
        for name, one in found["drawn"].items()
    ]
    titles = ["sampler", "effective draws per million steps", "per CPU-second", "R-hat"]
    return (
        "\n\n".join([*parts, f"{LATTICE}, temperature {_TEMPERATURE:g}:", table(titles, rows)])
        + "\n"
    )


FLAGS, define = own_flags()
define.string("output", "results/samplers", "Folder of the page, its numbers and the cells.")
define.list("samplers", None, "Samplers; default: all base samplers.")
define.list("cases", list(FULL.cases), "Families of graphs.")


def _main(_) -> int:
    chosen = FLAGS.samplers or base_samplers()
    check_choice("samplers", chosen, known_samplers())
    check_choice("cases", FLAGS.cases, [name for name in CASES if CASES[name].problem in UNITS])
    folder = check_writable(FLAGS.output)
    text = run(folder, chosen, FULL._replace(cases=tuple(FLAGS.cases)))
    say(f"\n{text}\nsaved {folder / 'samplers.md'}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
