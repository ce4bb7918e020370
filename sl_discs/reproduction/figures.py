"""The figures of the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.experiment.figures import COLOURS, save_figure
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import DEFAULTS
from sl_discs.reproduction.rows import by_dataset, in_published_unit
from sl_discs.reproduction.runs import Done

_COLUMNS = 3
_PANEL = (2.9, 2.3)
_LEGEND = 0.4


def _draw(
    path: Path,
    groups: list[tuple[str, int, list]],
    panel: Callable[[Any, list], None],
    legend: Sequence[tuple[str, str, str]] = (),
    legend_columns: int = 2,
    legend_rows: int = 1,
) -> Path:
    """A panel for each dataset, of a name, a number of graphs and what `panel` draws."""
    columns = min(_COLUMNS, len(groups))
    rows = math.ceil(len(groups) / columns)
    size = max(4.6, _PANEL[0] * columns), _PANEL[1] * rows + _LEGEND * legend_rows

    def paint(figure):
        for place, (name, count, group) in enumerate(groups):
            axes = figure.add_subplot(rows, columns, place + 1)
            panel(axes, group)
            axes.set_title(f"{name}, n = {count}", fontsize=7.5)
        for colour, marker, label in legend:
            axes.plot([], [], marker, color=colour, label=label)
        handles = axes.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=legend_columns, frameon=False)

    return save_figure(path, size, paint)


def draw_main(cells: list[dict], path: Path) -> Path:
    """Published mean and deviation (grey) and ours (black), one panel per dataset; rows are from `cell_row`."""
    chosen = [row for row in cells if row["protocol"] == DEFAULTS]
    groups = []
    for name in dict.fromkeys(row["dataset"] for row in chosen):
        rows = [row for row in chosen if row["dataset"] == name]
        groups.append((name, rows[0]["ours"]["n"], rows))

    def panel(axes, rows):
        comparable = rows[0]["ours"]["mean"] is not None
        for row_number, row in enumerate(rows):
            if comparable:
                _point(axes, row["published"], row_number - 0.15, "0.6", "s")
            _point(axes, row["ours"] if comparable else row["ours_absolute"], row_number + 0.15, "black", "o")
        names = [row["method"] for row in rows] if axes.get_subplotspec().is_first_col() else []
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(rows[0]["unit"] if comparable else rows[0]["ours_absolute"]["unit"])

    return _draw(path, groups, panel, [("0.6", "s", "published ± std"), ("black", "o", "ours ± std")])


def _point(axes, values: dict, height: float, colour: str, marker: str) -> None:
    if values["mean"] is not None:
        axes.errorbar(
            values["mean"], height, xerr=values["std"], fmt=marker, color=colour, markersize=3.5, linewidth=1
        )


def _grouped(done: list[Done]) -> list[tuple[str, int, list[Done]]]:
    return [(name, len(group[0].dataset.graphs), group) for name, group in by_dataset(done)]


def draw_trajectories(done: list[Done], path: Path) -> Path:
    """Running best over steps, mean and standard error over graphs, one panel per dataset; bases are dashed."""
    groups = _grouped([one for one in done if one.cell.protocol == DEFAULTS])

    def panel(axes, group):
        # A base sampler and its SL variant share a colour.
        bases = list(dict.fromkeys(one.cell.method.removeprefix("sl_") for one in group))
        for one in group:
            result, method = one.result, one.cell.method
            steps, mean, error = result.logged_steps, result.trajectory, result.trajectory_se
            colour = COLOURS[bases.index(method.removeprefix("sl_")) % len(COLOURS)]
            line = "-" if method.startswith("sl_") else (0, (4, 2))
            axes.plot(steps, mean, label=method, linewidth=1.1, color=colour, linestyle=line)
            axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
        _show_the_end(axes, [one.result.trajectory for one in group])
        axes.set_ylabel(f"running best ({graph_kind(group[0].dataset.problem).unit})", fontsize=7)
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("MCMC step")

    return _draw(path, groups, panel, legend_columns=3, legend_rows=2)


def _show_the_end(axes, trajectories: list[np.ndarray]) -> None:
    """Limits the axis to 15 % below the lowest final value, since the first steps may be thousands below."""
    ends = [trajectory[-1] for trajectory in trajectories]
    bottom = max(min(ends) - 0.15 * abs(min(ends)), min(trajectory.min() for trajectory in trajectories))
    margin = 0.08 * (max(ends) - bottom) or 1.0
    axes.set_ylim(bottom - margin, max(ends) + margin)


def draw_allocation(done: list[Done], path: Path) -> Path:
    """Bars of mean and standard error for each budget and grid, one panel per dataset; a method's best is hatched."""
    settings = list(dict.fromkeys(one.cell.setting for one in done))
    legend = [(colour, "s", setting) for colour, setting in zip(COLOURS, settings, strict=False)]
    return _draw(path, _grouped(done), _draw_bars, legend, legend_rows=2)


def _draw_bars(axes, group: list[Done]) -> None:
    methods = list(dict.fromkeys(one.cell.method for one in group))
    settings = list(dict.fromkeys(one.cell.setting for one in group))
    comparable = all(in_published_unit(one) is not None for one in group)
    heights = {}
    for one in group:
        published = in_published_unit(one) if comparable else None
        values = one.result.by_graph() if published is None else published
        heights[one.cell.method, one.cell.setting] = values.mean(), values.std(ddof=min(1, len(values) - 1))
    width = 0.8 / len(settings)
    root = math.sqrt(len(group[0].dataset.graphs))
    for number, setting in enumerate(settings):
        for place, method in enumerate(methods):
            if (method, setting) not in heights:
                continue
            mean, deviation = heights[method, setting]
            best = max(heights[method, other][0] for other in settings if (method, other) in heights)
            axes.bar(
                place + (number - (len(settings) - 1) / 2) * width,
                mean,
                width,
                yerr=deviation / root,
                color=COLOURS[number],
                edgecolor="white",
                hatch="///" if mean == best else None,
                error_kw={"linewidth": 0.8},
            )
    ends = [mean + sign * deviation / root for mean, deviation in heights.values() for sign in (-1, 1)]
    margin = 0.3 * (max(ends) - min(ends)) or 1.0
    axes.set_ylim(min(ends) - margin, max(ends) + margin)
    axes.set_xticks(range(len(methods)), methods, fontsize=6.5)
    kind = graph_kind(group[0].dataset.problem)
    axes.set_ylabel(kind.compared_unit if comparable else kind.unit)
