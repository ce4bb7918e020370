"""Puts the default `solve` beside published results of others on the sets that they share.

    python studies/field/field.py --profile=cpu --data_root=FOLDER --output=results/field

`solve` has a budget of CPU seconds for each graph. A set and a budget are a cell: a file of rows,
one a graph, in OUTPUT/rows, so that a stopped command continues after the last one. docs/field.md
has what came of it.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs import __version__
from sl_discs.commands.command import Command, Given, own_flags
from sl_discs.engines.compiled import compile_seconds, keep_programs
from sl_discs.engines.devices import num_cores, one_device_per_core
from sl_discs.experiment.record import Spread, how_measured, measured_by
from sl_discs.instances.dataset import check_data_root
from sl_discs.instances.graph import Dataset
from sl_discs.problems import Problem
from sl_discs.reproduction.cells import PublishedSet
from sl_discs.reproduction.report import number, table
from sl_discs.solving.solver import solve
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import Damaged, read_json, write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import progress_bar, say

PUBLISHED = Path(__file__).with_name("field.json")
# Of each set the number of graphs, and whether given ones are the very graphs of the published
# results.
SETS = {
    "mis/ertest/r-800": (128, True),
    "mis/satlib": (500, True),
    "mis/rb/r-200": (500, False),
    "mis/rb/r-800": (500, False),
    "maxcut/ba/r-ba-4-n-200-300": (500, False),
    "maxcut/ba/r-ba-4-n-800-1200": (500, False),
}


@dataclasses.dataclass(frozen=True)
class Size:
    """A size by its name in `--profile`: CPU seconds a graph, numbers of graphs of drawn and given
    sets.
    """

    seconds: tuple[float, ...]
    drawn: int
    given: int


SIZES = {
    "smoke": Size((0.5,), 2, 2),
    "cpu": Size((1.0, 4.0), 100, 500),
    "full": Size((1.0, 4.0, 20.0), 500, 500),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A set with a budget of CPU seconds a graph, shared by the cores that this process may use."""

    dataset: str
    seconds: float

    def path(self, folder: Path) -> Path:
        """The file of its rows."""
        return folder / f"{self.dataset.replace('/', '-')}-{self.seconds:g}s.json"

    def identity(self) -> dict[str, Any]:
        """Everything that the rows depend on, beside the machine."""
        return {**dataclasses.asdict(self), "cores": num_cores(), "version": __version__}

    def read(self, folder: Path) -> list[dict[str, Any]]:
        """The finished rows; InputError where the file is damaged, or is of another number of cores
        or version.
        """
        path = self.path(folder)
        try:
            saved = read_json(path)
        except Damaged as error:
            raise InputError(f"{error}; remove it and run the command again") from error
        if saved is None:
            return []
        if saved["identity"] != self.identity():
            raise InputError(
                f"{path} is of {saved['identity']}, not of {self.identity()}; choose another "
                "--output"
            )
        return saved["rows"]

    def write(self, folder: Path, rows: list[dict[str, Any]]) -> None:
        """Saves rows, atomically."""
        write_json(self.path(folder), {"identity": self.identity(), "rows": rows}, indent=None)


def play(
    cell: Cell, graphs: Dataset, folder: Path, done: Callable[[], None]
) -> list[dict[str, Any]]:
    """The rows of all graphs, of which those that are missing are run; `done` hears of each."""
    rows = cell.read(folder)
    if any(row["graph"] != graph.name for row, graph in zip(rows, graphs.graphs, strict=False)):
        raise InputError(
            f"{cell.path(folder)} has other graphs than {graphs.detail}; choose another --output"
        )
    for _ in rows[: len(graphs.graphs)]:
        done()
    limit = cell.seconds / num_cores()
    for graph in graphs.graphs[len(rows) :]:
        problem = Problem(graphs.problem, graph.name, range(graph.num_nodes), graph)
        while True:
            compiled, cpu, wall = compile_seconds(), time.process_time(), time.perf_counter()
            found = solve(problem, time_limit=limit, seed=len(rows))
            cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
            if compile_seconds() == compiled:
                break
        rows.append(
            {
                "graph": graph.name, "source": graphs.source,
                "value": found.best_value, "bound": found.bound, "optimal": found.optimal,
                "by": found.bound_by, "sampler": found.sampler, "cpu_s": cpu_s, "wall_s": wall_s,
            }
        )  # fmt: skip
        cell.write(folder, rows)
        done()
    return rows[: len(graphs.graphs)]


def summary(cell: Cell, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of a cell."""
    values = np.array([row["value"] for row in rows], np.float64)
    return {
        "dataset": cell.dataset, "seconds": cell.seconds, "n": len(rows), "mean": float(values.mean()),
        "half_width": Spread.of(values).half_width if len(rows) > 1 else None,
        "optimal": sum(row["optimal"] for row in rows),
        "cpu_s": float(np.mean([row["cpu_s"] for row in rows])),
    }  # fmt: skip


_NOTE = """\
The default `solve`, with a budget of CPU seconds for each graph. Ours: the mean over graphs with its 95 % interval,
how many values are proved to be optimal, and the CPU seconds that a graph took. On the graphs of the published means
the interval only says how much graphs differ. Other sets are drawn anew from the distributions that the papers name,
so that means differ by the interval, and by that of the published mean. Published times are those of other machines,
many of a GPU that plays many graphs at a time."""


def report(cells: list[tuple[Cell, list[dict[str, Any]]]]) -> tuple[str, list[dict[str, Any]]]:
    """The text, of each set our rows and those of others, from the best mean down; and our
    means.
    """
    published = read_json(PUBLISHED)
    assert published is not None
    summaries, blocks = [], ["# The field's table", _NOTE]
    for name in dict.fromkeys(cell.dataset for cell, _ in cells):
        ours = [summary(cell, rows) for cell, rows in cells if cell.dataset == name and rows]
        if not ours:
            continue
        summaries += ours
        lines = [
            (
                row["mean"],
                [
                    f"**`solve`, {row['seconds']:g} s**",
                    f"{row['mean']:,.2f}" + (" ± "
                        f"{row['half_width']:.2f}" if row["half_width"] else ""),
                    f"{row['cpu_s']:.2f}", f"{row['optimal']} of {row['n']}", "",
                ],
            )
            for row in ours
        ]  # fmt: skip
        lines += [
            (
                row["mean"],
                [
                    row["method"],
                    f"{row['mean']:,.2f}",
                    number(row.get("seconds"), 2),
                    "",
                    published["sources"][row["source"]],
                ],
            )
            for row in published["sets"][name]
        ]
        lines.sort(key=lambda line: -line[0])
        graphs = f"{ours[0]['n']} of {SETS[name][0]} graphs"
        drawn = any(
            row.get("source") == "generated"
            for cell, rows in cells
            if cell.dataset == name
            for row in rows
        )
        kind = "the published ones" if SETS[name][1] and not drawn else "drawn anew"
        titles = ["method", "mean", "seconds a graph", "proved", "source"]
        blocks.append(
            f"## {name}\n\n{graphs}, {kind}.\n\n" + table(titles, [cells for _, cells in lines])
        )
    return "\n\n".join(blocks), summaries


FLAGS, define = own_flags()
define.enum(
    "profile",
    "smoke",
    list(SIZES),
    "Size: smoke, a minute or two; cpu, 1 and 4 CPU seconds a graph; full.",
)
define.list("datasets", list(SETS), "Datasets, such as mis/ertest/r-800.")
define.string(
    "data_root",
    None,
    "Folder of given instances. Default: none; sets that are not random are left out.",
)
define.integer("instances", None, "Graphs per dataset instead of the profile's.", 1)
define.string("output", "results/field", "Folder of rows and report.")


def _main(given: Given) -> int:
    """Solves what is left of the sets, and reports after each of them on all rows in the folder."""
    one_device_per_core()
    keep_programs()
    check_choice("datasets", FLAGS.datasets, SETS)
    check_data_root(FLAGS.data_root)
    size, folder = SIZES[FLAGS.profile], check_writable(FLAGS.output)
    measured = measured_by(command=given.typed)
    cells = {name: [Cell(name, seconds) for seconds in size.seconds] for name in SETS}
    path = None
    for name in FLAGS.datasets:
        count, same = SETS[name]
        dataset = PublishedSet(name, count)
        if (reason := dataset.absent(FLAGS.data_root)) is not None:
            say(f"{name}: left out: {reason}")
            continue
        graphs = dataset.load(
            FLAGS.data_root, FLAGS.instances or min(count, size.given if same else size.drawn)
        )
        for cell in cells[name]:
            with progress_bar(len(graphs.graphs), " graphs") as progress:
                rows = play(cell, graphs, folder / "rows", functools.partial(progress, name, 1))
            found = summary(cell, rows)
            say(
                f"{name}, {cell.seconds:g} CPU s: mean {found['mean']:,.2f} of {found['n']} "
                "graphs, "
                f"{found['optimal']} proved optimal, {found['cpu_s']:.2f} CPU s a graph"
            )
            text, means = report(
                [(one, one.read(folder / "rows")) for each in cells.values() for one in each]
            )
            path = write_text(folder / "report.md", f"{text}\n\n{how_measured(measured)}\n")
            write_json(
                folder / "report.json", {"measured": measured, "field": means}, allow_nan=False
            )
    if path is None:
        raise InputError("no set is left to solve; give --data_root, or choose other --datasets")
    say(f"saved: {path}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
