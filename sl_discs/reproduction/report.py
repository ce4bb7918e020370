"""The sections of the report for each subcommand, made from finished cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sl_discs.errors import InputError
from sl_discs.experiment.figures import can_draw, or_warn
from sl_discs.experiment.published import published_ablation, published_row
from sl_discs.files import Damaged, read_json, write_json, write_text
from sl_discs.reproduction import figures, markdown
from sl_discs.reproduction.cells import DEFAULTS, HELD_OUT
from sl_discs.reproduction.rows import cell_row, level_rows, overhead_rows, pair_rows
from sl_discs.reproduction.runs import Done

# The report in a folder: each subcommand writes its section, and report.md and report.json contain all of them.

ORDER = ("main", "runtime", "ablation", "allocation", "trajectories")


class Section(NamedTuple):
    """The section of one subcommand: its markdown, its part of report.json, and PNG files beside the report."""

    text: str
    data: dict[str, Any]
    figures: list[str]


def write_report(folder: Path, sections: dict[str, Section], made_by: dict[str, Any]) -> tuple[Path, Path]:
    """Saves these sections, and writes report.md and report.json with those of earlier commands in this folder.

    `made_by` says how these sections were made: command, profile, commit, version.
    """
    for name, section in sections.items():
        content = section._asdict() | {"made_by": made_by}
        write_json(folder / "sections" / f"{name}.json", content, allow_nan=False)
    blocks = ["# The paper's numbers beside ours"]
    report: dict[str, Any] = {"cells": [], "pairs": [], "made_by": {}}
    for name in ORDER:
        try:
            content = read_json(folder / "sections" / f"{name}.json")
        except Damaged as error:
            raise InputError(f"{error}; remove it and run its command again") from error
        if content is None:
            continue
        how = ", ".join(f"{key} {value}" for key, value in content["made_by"].items() if key != "command")
        figures = "".join(f"\n\n![{figure}]({figure})" for figure in content["figures"])
        blocks.append(f"{content['text']}{figures}\n\n`{content['made_by']['command']}`: {how}.")
        report |= content["data"]
        report["made_by"][name] = content["made_by"]
    return (
        write_text(folder / "report.md", "\n\n".join(blocks) + "\n"),
        write_json(folder / "report.json", report, allow_nan=False),
    )


_ABLATION_NOTE = """\
Ours are mean ± standard error; published are mean ± standard deviation. One setting is varied at a time, and all
others have this project's defaults (GEOM(2,1), K=256, sigma=10); the paper does not state its other settings."""

_ALLOCATION_NOTE = """\
The allocation of steps to levels (`exp_decay`, `identical`) and of levels to time (`uniform`, `log_snr`): mean ±
standard error. The best of each method is hatched in the figure."""

_TRAJECTORY_NOTE = """\
Best state found so far, at logged steps: mean and standard error over graphs. Base samplers are dashed; their
localized variants have the same colour."""


class Composer:
    """Makes the sections of a subcommand, with figures in `folder`, if these can be drawn."""

    def __init__(self, folder: Path, data_root: str | None):
        self.folder, self.data_root = folder, data_root
        self.draw = can_draw()

    def compose(self, what: str, done: list[Done], left_out: list[str], *, final: bool) -> dict[str, Section]:
        """Sections by name; figures are only drawn if this is the final call."""

        def drawn(name: str, draw: Callable[[list, Path], Path], rows: list) -> list[str]:
            if not (final and self.draw):
                return []
            return [name] if or_warn(lambda: draw(rows, self.folder / name)) is not None else []

        if what == "main":
            section = self._main(done, left_out)
            section.figures.extend(drawn("main.png", figures.draw_main, section.data["cells"]))
            return {"main": section, "runtime": _runtime(done)}
        if what == "runtime":
            return {"runtime": _runtime(done)}
        if what == "trajectories":
            names = drawn("trajectories.png", figures.draw_trajectories, done)
            return {what: Section(f"## Trajectories\n\n{_TRAJECTORY_NOTE}", {}, names)}
        title, note, names = "Ablation", _ABLATION_NOTE, []
        if what == "allocation":
            title, note = "Allocation of steps and levels", _ALLOCATION_NOTE
            names = drawn("allocation.png", figures.draw_allocation, done)
        rows = []
        for one in done:
            published = published_ablation(one.dataset.name, one.cell.setting, one.cell.method)
            rows.append(cell_row(one, self.data_root, published))
        return {what: Section(markdown.settings_text(title, note, rows, left_out), {what: rows}, names)}

    def _main(self, done: list[Done], left_out: list[str]) -> Section:
        cells = [cell_row(one, self.data_root, published_row(one.dataset.name, one.cell.method)) for one in done]
        pairs = pair_rows(done)
        blocks = [
            "## In short\n\n" + markdown.in_short(cells, pairs),
            markdown.main_text(cells, [row for row in pairs if row["protocol"] in (DEFAULTS, HELD_OUT)], left_out),
            markdown.commands_text(cells),
        ]
        levels = level_rows([row for row in cells if row["protocol"] == DEFAULTS])
        data = {
            "cells": cells, "levels": levels, "pairs": pairs, "left_out": left_out,
        }  # fmt: skip
        return Section("\n\n".join(filter(None, blocks)), data, [])


def _runtime(done: list[Done]) -> Section:
    rows = overhead_rows(done)
    return Section(markdown.runtime_text(rows), {"runtime": rows}, [])
