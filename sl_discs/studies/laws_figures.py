"""Figures of the study of laws: error against CPU time, and the border between a method and tempering."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sl_discs.results.canvas import COLOURS, save_figure
from sl_discs.sampling.directions import NARROW
from sl_discs.studies.laws_methods import METHODS
from sl_discs.studies.laws_table import Found, Interval, plain, points, reliable_share, root_mean_square, speed_up
from sl_discs.studies.laws_targets import PLANE

_COLUMNS, _PANEL = 5, (1.4, 1.5)
# Smaller errors are indistinguishable from the truth's own error, or from noise with few seeds.
_LEAST_SHOWN = 3e-4


def draw_errors(all_found: list[Found], path: Path) -> Path:
    """A panel for each target: the main error of each method against its CPU time, with intervals, and the null.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
    rows = math.ceil(len(all_found) / _COLUMNS)
    # All panels have the same axes, for easy comparison.

    def paint(figure):
        for number, found in enumerate(sorted(all_found, key=lambda one: one.width)):
            first = figure.axes[0] if number else None
            axes = figure.add_subplot(rows, _COLUMNS, number + 1, sharex=first, sharey=first)
            _draw_target(axes, found)
            axes.label_outer()
        figure.supxlabel("CPU seconds", fontsize=9)
        figure.supylabel("rms error", fontsize=9)
        labelled = (axes.get_legend_handles_labels() for axes in figure.axes)
        handles = {label: one for both in labelled for one, label in zip(*both, strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False)
        figure.axes[0].set(xlim=(min(0.1, figure.axes[0].get_xlim()[0]), None), ylim=(_LEAST_SHOWN, None))

    width, height = _PANEL
    return save_figure(path, (width * _COLUMNS, height * rows + 0.6), paint)


def _draw_target(axes, found: Found) -> None:
    error = found.main_error
    for method in found.plays:
        chosen = points(found, method, error)
        if not chosen:
            continue
        bars = np.array([root_mean_square(errors) for _, errors in chosen]).T
        times = [times.mean() for times, _ in chosen]
        colour = COLOURS[list(METHODS).index(method) % len(COLOURS)]
        axes.errorbar(times, bars[0], yerr=np.abs(bars[1:] - bars[0]), color=colour, label=method, marker=".", lw=1)
    null = found.null[error]
    if null:
        axes.axhline(null, color="0.5", linestyle=":", linewidth=1, label="null: a fair coin")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"{found.target}\n{error}, rest {found.width:.2f}", fontsize=7)
    axes.tick_params(which="both", labelsize=6)
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)


class Place(NamedTuple):
    """A target of the plane.

    Attributes:
      width: of the rest.
      ratio: CPU time of tempering over that of the method, for the same error of the mode weight.
      reliable: share of the method's runs that call themselves so.
    """

    width: float
    ratio: Interval
    reliable: float


def border(all_found: list[Found], method: str) -> dict[str, Place]:
    """The places of all targets of the plane that have both methods, by target."""
    ratios = {}
    for found in all_found:
        if found.target in PLANE and (ratio := speed_up(found, method, "mode")) is not None:
            ratios[found.target] = Place(found.width, ratio, reliable_share(found, method))
    return ratios


def draw_border(places: dict[str, Place], method: str, path: Path) -> Path:
    """A map of the plane: how much less CPU time than tempering a method needs for the same error of the mode weight.

    Left of the dashed line the rest is narrow enough for the method's proof.

    Args:
      places: of `border`, at least one.
      method: what they belong to.
      path: of the PNG file.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
    strengths, glasses = (sorted(values) for values in map(set, zip(*(PLANE[name] for name in places), strict=True)))

    def paint(figure):
        axes = figure.add_subplot()
        table = np.full((len(strengths), len(glasses)), np.nan)
        widths: dict[float, list[float]] = {glass: [] for glass in glasses}
        for name, (width, ratio, share) in places.items():
            strength, glass = PLANE[name]
            row, column = strengths.index(strength), glasses.index(glass)
            table[row, column] = np.log10(np.clip(ratio.value, 1e-3, 1e4))
            widths[glass].append(width)
            text = f"{plain(ratio.value)}\n({plain(ratio.low)}-{plain(ratio.high)})\n{share:.0%} reliable"
            axes.text(column, row, text, ha="center", va="center", fontsize=6)
        shown = axes.imshow(table, origin="lower", aspect="auto", cmap="RdBu", vmin=-2.5, vmax=2.5, alpha=0.7)
        axes.set_xticks(range(len(glasses)), [f"{np.mean(widths[glass]):.2g}" for glass in glasses])
        axes.set_yticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
        axes.set_xlabel("width of the rest's spectrum")
        axes.set_ylabel("strength of the direction")
        axes.set_title(f"CPU time of tempering over that of {method}, same error of the mode weight", fontsize=7)
        narrow = sum(np.mean(widths[glass]) < NARROW for glass in glasses)
        axes.axvline(narrow - 0.5, color="0", linestyle="--", linewidth=1)
        bar = figure.colorbar(shown, ax=axes)
        bar.set_ticks([-2, -1, 0, 1, 2], labels=["0.01", "0.1", "1", "10", "100"])

    return save_figure(path, (4.3, 2.9), paint)
