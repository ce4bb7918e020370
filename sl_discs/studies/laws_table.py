"""The tables of the study of laws: errors with intervals, and CPU time for the same error."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from sl_discs.sampling.diagnostics import LEAST_ESS
from sl_discs.studies.laws_cells import ERRORS, Play
from sl_discs.studies.laws_methods import BASELINE

_RESAMPLED, _INTERVAL = 2_000, (2.5, 97.5)
_ROUNDING = 1e-9
# An estimate is wrong if it is off by more than this many standard errors, and by more than this probability.
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
    return np.format_float_positional(number, 2, fractional=False, trim="-") if np.isfinite(number) else str(number)


class Found(NamedTuple):
    """All cells of a target.

    Attributes:
      target: its name.
      size: number of variables.
      width: of the rest of the spectrum.
      evidence: of a truth by long tempering.
      null: errors of the null control.
      plays: runs by method and time limit, one per seed.
      refused: why methods were left out, by method.
    """

    target: str
    size: int
    width: float
    evidence: Mapping[str, float]
    null: Mapping[str, float | None]
    plays: Mapping[str, Mapping[float, list[Play]]]
    refused: Mapping[str, str]

    @property
    def main_error(self) -> str:
        """The main error of the study: that of the mode weight, or of the marginals if there is no mode."""
        return "marginals" if self.null["mode"] is None else "mode"


def points(found: Found, method: str, error: str) -> list[tuple[Float64[np.ndarray, "S"], Float64[np.ndarray, "S"]]]:
    """CPU times and errors of all seeds for each time limit, the shortest first; empty where there are none."""
    chosen = []
    for _, plays in sorted(found.plays.get(method, {}).items()):
        kept = [(one.cpu_s, value) for one in plays if (value := one.errors[error]) is not None]
        if kept:
            times, errors = np.array(kept).T
            chosen.append((times, errors))
    return chosen


def root_mean_square(errors: Float64[np.ndarray, "S"]) -> Interval:
    """The root mean square over seeds."""
    return _bootstrap(lambda one: np.sqrt(np.mean(one**2, axis=-1)), errors)


def speed_up(found: Found, method: str, error: str) -> Interval | None:
    """CPU time of tempering over that of a method for the same error; None if one of them has no such error.

    Squared errors fall as 1/time, so squared error times time is compared, at the longest time of each.
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
      wrong: those of them whose mode weight is off by more than 4 of its own standard errors and more than 0.02, or,
        without a mode, whose marginals are off by more than 0.1 in the root mean square.
    """

    runs: int
    reliable: int
    wrong: int


def verdicts(all_found: list[Found], method: str) -> Verdicts:
    """Verdicts of a method on all targets at all times, allowing for the standard error of a truth by tempering."""
    runs = reliable = wrong = 0
    for found in all_found:
        for play in itertools.chain(*found.plays.get(method, {}).values()):
            error = play.errors[found.main_error]
            own = _LARGEST_ERROR if play.mode_se is None else play.mode_se
            expected = np.hypot(own, found.evidence.get("mode_error", 0.0))
            runs += 1
            reliable += play.reliable
            wrong += play.reliable and error is not None and error > max(_MOST_ERRORS * expected, _LEAST_WRONG)
    return Verdicts(runs, reliable, wrong)


def slope(found: Found, method: str, error: str) -> float | None:
    """The slope of log error in log CPU time: -1/2 for independent draws, 0 for a bias; None for a single time."""
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
    "method", "CPU s", "draws", "reliable", *ERRORS, "slope", "tempering's CPU time over its own, main error",
    "and energy",
)  # fmt: skip


def table(found: Found) -> str:
    """A Markdown table of a target: root mean square errors at the longest time, a row for each method."""
    rule = f"rest {found.width:.2f} wide" + "".join(f", {name} {value:.3g}" for name, value in found.evidence.items())
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
    lines = [f"### {found.target}: N = {found.size}, {rule}", "", *_rows(list(_HEADER), rows), ""]
    return "\n".join(lines + [f"{method} is left out: {why}" for method, why in found.refused.items()])


def _error(found: Found, method: str, error: str) -> str:
    chosen = points(found, method, error)
    return str(root_mean_square(chosen[-1][1])) if chosen else "-"


def _speed_up(found: Found, method: str, error: str) -> str:
    ratio = None if method == BASELINE else speed_up(found, method, error)
    return "-" if ratio is None else str(ratio)


def summary(all_found: list[Found]) -> str:
    """One row a target, one column a method, and a table of the verdicts.

    A method's column has the CPU time of tempering over its own for the same main error, above 1 where it wins and
    below 1 where it loses, with the 95 % interval, and the share of its runs that call themselves reliable.
    """
    methods = list(dict.fromkeys(name for found in all_found for name in (*found.plays, *found.refused)))
    others = [name for name in methods if name != BASELINE]
    lines = _rows(
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
    trust = _rows(
        ["method", "runs", "reliable by their own verdict", "of these wrong"],
        [[name, *map(str, verdicts(all_found, name))] for name in methods],
    )
    return "\n".join([*lines, "", *trust])


def _rows(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(one)} |" for one in (header, ["---"] * len(header), *rows)]


def _with_share(found: Found, method: str, words: str) -> str:
    if method in found.refused:
        return "refuses"
    return f"{words}, {reliable_share(found, method):.0%}" if found.plays.get(method) else "-"


def as_json(found: Found) -> dict[str, Any]:
    """All numbers of a target, for files."""
    plays = {
        method: {f"{seconds:g}": [one._asdict() for one in ones] for seconds, ones in by_time.items()}
        for method, by_time in found.plays.items()
    }
    return found._asdict() | {"evidence": dict(found.evidence), "null": dict(found.null), "plays": plays}
