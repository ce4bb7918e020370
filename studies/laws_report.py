"""The tables and figures of the study of laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from laws_cells import BASELINE, ERRORS, METHODS, Play
from laws_targets import PLANE
from sl_discs.reproduction.report import table
from sl_discs.sampling.diagnostics import LEAST_ESS
from sl_discs.sampling.directions import NARROW
from sl_discs.support.figures import COLOURS, save_figure

_RESAMPLED, _INTERVAL = 2_000, (2.5, 97.5)
_ROUNDING = 1e-9
# An estimate is wrong if it is off by more than this many standard errors, and by more than this
# probability.
_MOST_ERRORS, _LEAST_WRONG = 4, 0.02
# A verdict allows no larger standard error of a probability.
_LARGEST_ERROR = 0.5 / np.sqrt(LEAST_ESS)


class Interval(NamedTuple):
    """An estimate with its 95 % bootstrap interval over seeds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "{} ({}-{})".format(*map(plain, self))


def plain(number: float) -> str:
    """Two significant digits, without an exponent; rounding errors are shown as 0."""
    if abs(number) < _ROUNDING:
        return "0"
    return (
        np.format_float_positional(number, 2, fractional=False, trim="-")
        if np.isfinite(number)
        else str(number)
    )


class Found(NamedTuple):
    target: str  # its name
    size: int  # number of variables
    width: float  # of the rest of the spectrum
    evidence: Mapping[str, float]  # of a truth by long tempering
    null: Mapping[str, float | None]  # errors of the null control
    plays: Mapping[str, Mapping[float, list[Play]]]  # runs by method and time limit, one per seed
    refused: Mapping[str, str]  # why methods were left out, by method

    @property
    def main_error(self) -> str:
        """The main error of the study: that of the mode weight, or of the marginals if there is no
        mode.
        """
        return "marginals" if self.null["mode"] is None else "mode"


def points(
    found: Found, method: str, error: str
) -> list[tuple[Float64[np.ndarray, "S"], Float64[np.ndarray, "S"]]]:
    """CPU times and errors of all seeds for each time limit, the shortest first; empty where there
    are none.
    """
    chosen = []
    for _, plays in sorted(found.plays.get(method, {}).items()):
        kept = [(one.cpu_s, value) for one in plays if (value := one.errors[error]) is not None]
        if kept:
            times, errors = np.array(kept).T
            chosen.append((times, errors))
    return chosen


def root_mean_square(errors: Float64[np.ndarray, "S"]) -> Interval:
    return _bootstrap(lambda one: np.sqrt(np.mean(one**2, axis=-1)), errors)


def speed_up(found: Found, method: str, error: str) -> Interval | None:
    """CPU time of tempering over that of a method for the same error; None if one of them has no
    such error.

    Squared errors fall as 1/time, so squared error times time is compared, at the longest time of
    each.
    """
    both = [points(found, name, error) for name in (BASELINE, method)]
    if not all(both):
        return None
    costs = [times * errors**2 for times, errors in (one[-1] for one in both)]
    return _bootstrap(lambda base, other: base.mean(axis=-1) / other.mean(axis=-1), *costs)


def reliable_share(found: Found, method: str) -> float:
    """The share of runs at the longest time whose own verdict is reliable."""
    plays = found.plays[method]
    return float(np.mean([one.reliable for one in plays[max(plays)]]))


class Verdicts(NamedTuple):
    """How far the verdicts of a method can be trusted, over all its runs.

    Attributes:
      runs: how many.
      reliable: those that call themselves reliable.
      wrong: those of them whose mode weight is off by more than 4 of its own standard errors and
        more than 0.02, or, without a mode, whose marginals are off by more than 0.1 in the root
        mean square.
    """

    runs: int
    reliable: int
    wrong: int


def verdicts(all_found: list[Found], method: str) -> Verdicts:
    """Verdicts of a method on all targets at all times, allowing for the standard error of a truth
    by tempering.
    """
    runs = reliable = wrong = 0
    for found in all_found:
        for play in itertools.chain(*found.plays.get(method, {}).values()):
            error = play.errors[found.main_error]
            own = _LARGEST_ERROR if play.mode_se is None else play.mode_se
            expected = np.hypot(own, found.evidence.get("mode_error", 0.0))
            runs += 1
            reliable += play.reliable
            wrong += (
                play.reliable
                and error is not None
                and bool(error > max(_MOST_ERRORS * expected, _LEAST_WRONG))
            )
    return Verdicts(runs, reliable, wrong)


def slope(found: Found, method: str, error: str) -> float | None:
    """The slope of log error in log CPU time: -1/2 for independent draws, 0 for a bias; None for a
    single time.
    """
    chosen = points(found, method, error)
    if len(chosen) < 2:
        return None
    cpu = np.log([times.mean() for times, _ in chosen])
    rms = np.log([max(root_mean_square(errors).value, 1e-300) for _, errors in chosen])
    return float(np.polyfit(cpu, rms, 1)[0])


def _bootstrap(statistic, *samples: Float64[np.ndarray, "S"]) -> Interval:
    rng = np.random.default_rng(0)
    drawn = [one[rng.integers(len(one), size=(_RESAMPLED, len(one)))] for one in samples]
    with np.errstate(divide="ignore", invalid="ignore"):
        value, (low, high) = statistic(*samples), np.nanpercentile(statistic(*drawn), _INTERVAL)
    return Interval(float(value), float(low), float(high))


_HEADER = (
    "method", "CPU s", "draws", "reliable", *ERRORS, "slope", "tempering's CPU time over its own, "
        "main error",
    "and energy",
)  # fmt: skip


def target_table(found: Found) -> str:
    """A Markdown table of a target: root mean square errors at the longest time, a row for each
    method.
    """
    rule = f"rest {found.width:.2f} wide" + "".join(
        f", {name} {value:.3g}" for name, value in found.evidence.items()
    )
    rows, main = [], found.main_error
    for method, plays in found.plays.items():
        if not plays:
            continue
        last = plays[max(plays)]
        fitted = slope(found, method, main)
        cells = [
            method, f"{np.mean([one.cpu_s for one in last]):.2f}", f"{np.mean([one.draws for one in last]):.0f}",
            f"{reliable_share(found, method):.0%}", *(_error(found, method, error) for error in ERRORS),
            "-" if fitted is None else f"{fitted:.2f}",
            *(_speed_up(found, method, error) for error in (main, "energy")),
        ]  # fmt: skip
        rows.append(cells)
    null = ["-" if (one := found.null[error]) is None else plain(one) for error in ERRORS]
    rows.append(["null: a fair coin", "-", "-", "-", *null, "-", "-", "-"])
    lines = [f"### {found.target}: N = {found.size}, {rule}", "", table(_HEADER, rows), ""]
    return "\n".join(
        lines + [f"{method} is left out: {why}" for method, why in found.refused.items()]
    )


def _error(found: Found, method: str, error: str) -> str:
    chosen = points(found, method, error)
    return str(root_mean_square(chosen[-1][1])) if chosen else "-"


def _speed_up(found: Found, method: str, error: str) -> str:
    ratio = None if method == BASELINE else speed_up(found, method, error)
    return "-" if ratio is None else str(ratio)


def summary(all_found: list[Found]) -> str:
    """One row a target, one column a method, and a table of the verdicts.

    A method's column has the CPU time of tempering over its own for the same main error, above 1
    where it wins and below 1 where it loses, with the 95 % interval, and the share of its runs that
    call themselves reliable.
    """
    methods = list(
        dict.fromkeys(name for found in all_found for name in (*found.plays, *found.refused))
    )
    others = [name for name in methods if name != BASELINE]
    by_target = table(
        ["target", "N", "rest", "error", "null", f"{BASELINE}: rms error, reliable", *others],
        [
            [
                found.target, str(found.size), f"{found.width:.2f}", found.main_error,
                "-" if (null := found.null[found.main_error]) is None else plain(null),
                _with_share(found, BASELINE, _error(found, BASELINE, found.main_error)),
                *(_with_share(found, name, _speed_up(found, name, found.main_error)) for name in others),
            ]
            for found in sorted(all_found, key=lambda one: one.width)
        ],
    )  # fmt: skip
    trust = table(
        ["method", "runs", "reliable by their own verdict", "of these wrong"],
        [[name, *map(str, verdicts(all_found, name))] for name in methods],
    )
    return f"{by_target}\n\n{trust}"


def _with_share(found: Found, method: str, words: str) -> str:
    if method in found.refused:
        return "refuses"
    return f"{words}, {reliable_share(found, method):.0%}" if found.plays.get(method) else "-"


def as_json(found: Found) -> dict[str, Any]:
    """A target's errors and gains with their intervals, and what the verdicts were; the runs are in
    the cells.
    """
    methods = {}
    for method, plays in found.plays.items():
        chosen = points(found, method, found.main_error)
        methods[method] = {
            "cpu_s": None if not chosen else float(chosen[-1][0].mean()),
            "error": None if not chosen else root_mean_square(chosen[-1][1]),
            "gain": None if method == BASELINE else speed_up(found, method, found.main_error),
            "gain of energy": None if method == BASELINE else speed_up(found, method, "energy"),
            "gain of log Z": None if method == BASELINE else speed_up(found, method, "log_z"),
            "reliable": reliable_share(found, method),
            "verdicts": verdicts([found], method),
            "seeds": len(plays[max(plays)]),
        }
    return {
        "target": found.target, "size": found.size, "width": found.width, "evidence": dict(found.evidence),
        "error": found.main_error, "null": found.null[found.main_error], "methods": methods, "refused": found.refused,
    }  # fmt: skip


_COLUMNS, _PANEL = 5, (1.4, 1.5)
# Smaller errors are indistinguishable from the truth's own error, or from noise with few seeds.
_LEAST_SHOWN = 3e-4


def draw_errors(all_found: list[Found], path: Path) -> Path:
    """A panel for each target: the main error of each method against its CPU time, with intervals,
    and the null.
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
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False
        )
        figure.axes[0].set(
            xlim=(min(0.1, figure.axes[0].get_xlim()[0]), None), ylim=(_LEAST_SHOWN, None)
        )

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
        axes.errorbar(
            times,
            bars[0],
            yerr=np.abs(bars[1:] - bars[0]),
            color=colour,
            label=method,
            marker=".",
            lw=1,
        )
    null = found.null[error]
    if null:
        axes.axhline(null, color="0.5", linestyle=":", linewidth=1, label="null: a fair coin")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"{found.target}\n{error}, rest {found.width:.2f}", fontsize=7)
    axes.tick_params(which="both", labelsize=6)
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)


class Place(NamedTuple):
    """A target of the plane."""

    width: float  # of the rest
    ratio: Interval  # CPU time of tempering over that of the method, for the same error of the mode weight
    reliable: float  # share of the method's runs that call themselves so


def border(all_found: list[Found], method: str) -> dict[str, Place]:
    """The places of all targets of the plane that have both methods, by target."""
    ratios = {}
    for found in all_found:
        if found.target in PLANE and (ratio := speed_up(found, method, "mode")) is not None:
            ratios[found.target] = Place(found.width, ratio, reliable_share(found, method))
    return ratios


def draw_border(places: dict[str, Place], method: str, path: Path) -> Path:
    """A map of the plane: how much less CPU time than tempering a method needs for the same error
    of the mode weight.

    Left of the dashed line the rest is narrow enough for the method's proof.
    """
    strengths, glasses = (
        sorted(values) for values in map(set, zip(*(PLANE[name] for name in places), strict=True))
    )

    def paint(figure):
        axes = figure.add_subplot()
        table = np.full((len(strengths), len(glasses)), np.nan)
        widths: dict[float, list[float]] = {glass: [] for glass in glasses}
        for name, (width, ratio, share) in places.items():
            strength, glass = PLANE[name]
            row, column = strengths.index(strength), glasses.index(glass)
            table[row, column] = np.log10(np.clip(ratio.value, 1e-3, 1e4))
            widths[glass].append(width)
            text = (
                f"{plain(ratio.value)}\n({plain(ratio.low)}-{plain(ratio.high)})\n{share:.0%} "
                "reliable"
            )
            axes.text(column, row, text, ha="center", va="center", fontsize=6)
        shown = axes.imshow(
            table, origin="lower", aspect="auto", cmap="RdBu", vmin=-2.5, vmax=2.5, alpha=0.7
        )
        axes.set_xticks(range(len(glasses)), [f"{np.mean(widths[glass]):.2g}" for glass in glasses])
        axes.set_yticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
        axes.set_xlabel("width of the rest's spectrum")
        axes.set_ylabel("strength of the direction")
        axes.set_title(
            f"CPU time of tempering over that of {method}, same error of the mode weight",
            fontsize=7,
        )
        narrow = sum(np.mean(widths[glass]) < NARROW for glass in glasses)
        axes.axvline(narrow - 0.5, color="0", linestyle="--", linewidth=1)
        bar = figure.colorbar(shown, ax=axes)
        bar.set_ticks([-2, -1, 0, 1, 2], labels=["0.01", "0.1", "1", "10", "100"])

    return save_figure(path, (4.3, 2.9), paint)
