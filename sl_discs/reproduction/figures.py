"""The figures of the report: means beside the published ones, and the best value so far against steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sl_discs.experiment.figures import COLOURS, save_figure
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import DEFAULTS, PUBLISHED
from sl_discs.reproduction.rows import at_defaults
from sl_discs.reproduction.runs import Done

_COLUMNS = 3
_PANEL = (2.9, 2.3)
_LEGEND = 0.8


def _draw(path: Path, groups: dict[str, list], panel: Callable[[Any, list], None]) -> Path:
    """Draws a panel for each dataset, with one legend below."""
    rows = math.ceil(len(groups) / _COLUMNS)
    size = max(4.6, _PANEL[0] * min(_COLUMNS, len(groups))), _PANEL[1] * rows + _LEGEND

    def paint(figure):
        for place, (name, group) in enumerate(groups.items()):
            axes = figure.add_subplot(rows, min(_COLUMNS, len(groups)), place + 1)
            panel(axes, group)
            axes.set_title(name, fontsize=7.5)
        shown = {
            label: line for one in figure.axes for line, label in zip(*one.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown, loc="outside lower center", ncols=3, frameon=False)

    return save_figure(path, size, paint)


def draw_levels(rows: list[dict[str, Any]], path: Path) -> Path:
    """Draws published means (grey) and ours (black) at default settings, with their 95 % intervals."""
    groups: dict[str, list] = {}
    for row in at_defaults(rows):
        groups.setdefault(f"{row['dataset']}, n = {row['n']}", []).append(row)

    def panel(axes, rows):
        known = rows[0]["ours"]["mean"] is not None
        for place, row in enumerate(rows):
            # Absolute cuts stand alone: the published ones are percentages.
            if known and row["published"]["mean"] is not None:
                error = row["published"]["std"] / math.sqrt(PUBLISHED[row["dataset"]].published_n)
                _point(axes, row["published"]["mean"], error, place - 0.15, "0.6", "s", "published, 95 % interval")
            ours = row["ours"] if known else row["ours_absolute"]
            _point(axes, ours["mean"], ours["se"] or 0.0, place + 0.15, "black", "o", "ours, 95 % interval")
        names = [row["method"] for row in rows] if axes.get_subplotspec().is_first_col() else []
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(rows[0]["unit"] if known else rows[0]["ours_absolute"]["unit"])

    return _draw(path, groups, panel)


def _point(axes, mean: float, error: float, height: float, colour: str, marker: str, label: str) -> None:
    style = {"fmt": marker, "color": colour, "markersize": 3.5, "linewidth": 1, "label": label}
    axes.errorbar(mean, height, xerr=1.96 * error, **style)


def draw_trajectories(done: list[Done], path: Path) -> Path:
    """Draws running best over steps at defaults, mean and standard error over graphs; bases are dashed."""
    groups: dict[str, list[Done]] = {}
    for one in done:
        if one.cell.protocol == DEFAULTS and not one.cell.setting:
            groups.setdefault(f"{one.dataset.name}, n = {len(one.dataset.graphs)}", []).append(one)

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
        # From 15 % below the lowest final value, since the first steps may be thousands below.
        ends = [one.result.trajectory[-1] for one in group]
        lowest = max(min(ends) - 0.15 * abs(min(ends)), min(one.result.trajectory.min() for one in group))
        margin = 0.08 * (max(ends) - lowest) or 1.0
        axes.set_ylim(lowest - margin, max(ends) + margin)
        axes.set_ylabel(f"best so far ({graph_kind(group[0].dataset.problem).unit})", fontsize=7)
        axes.set_xlabel("MCMC step")

    return _draw(path, groups, panel)
