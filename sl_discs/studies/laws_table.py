"""What the cells of the study of laws amount to: errors with intervals, and CPU time for the same error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from sl_discs.studies.laws_cells import ERRORS, Play
from sl_discs.studies.laws_methods import BASELINE

_RESAMPLED, _INTERVAL = 2_000, (2.5, 97.5)


class Interval(NamedTuple):
    """An estimate with its 95 % bootstrap interval over seeds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2g} ({self.low:.2g}-{self.high:.2g})"


class Found(NamedTuple):
    """All cells of a target.

    Attributes:
      target: its name.
      size: number of variables.
      width: of the rest of the spectrum.
      evidence: of a truth by long tempering.
      null: errors of the null control.
      plays: by method and time limit, one a seed.
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
        """The error that the study is about: of the mode weight, of the marginals where there is no mode."""
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
    """Over seeds."""
    return _bootstrap(lambda one: np.sqrt(np.mean(one**2, axis=-1)), errors)


def speed_up(found: Found, method: str, error: str) -> Interval | None:
    """CPU time of tempering over that of a method for the same error; None where one of them has no such error.

    Squares of errors fall as 1/time, so that square times time is what is compared, at the longest time of each.
    """
    both = [points(found, name, error) for name in (BASELINE, method)]
    if not all(both):
        return None
    costs = [times * errors**2 for times, errors in (one[-1] for one in both)]
    return _bootstrap(lambda base, other: base.mean(axis=-1) / other.mean(axis=-1), *costs)


def slope(found: Found, method: str, error: str) -> float | None:
    """Of log error by log CPU time, -1/2 for independent draws and 0 for a bias; None for fewer than two times."""
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


_HEADER = "method", "CPU s", "draws", *ERRORS, "slope", "speed-up (mode or marginals)", "speed-up (energy)"


def table(found: Found) -> str:
    """A Markdown table of a target: root mean square errors at the longest time, a row for each method."""
    rule = f"rest {found.width:.2f} wide" + "".join(f", {name} {value:.3g}" for name, value in found.evidence.items())
    lines = [
        f"### {found.target}: N = {found.size}, {rule}", "",
        f"| {' | '.join(_HEADER)} |", f"|{' --- |' * len(_HEADER)}",
    ]  # fmt: skip
    main = found.main_error
    for method, plays in found.plays.items():
        if not plays:
            continue
        last = plays[max(plays)]
        fitted = slope(found, method, main)
        cells = [
            method, f"{np.mean([one.cpu_s for one in last]):.2f}", f"{np.mean([one.draws for one in last]):.0f}",
            *(_error(found, method, error) for error in ERRORS), "-" if fitted is None else f"{fitted:.2f}",
            *(_speed_up(found, method, error) for error in (main, "energy")),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    null = ["-" if (one := found.null[error]) is None else f"{one:.2g}" for error in ERRORS]
    lines.append(f"| {' | '.join(['null: a fair coin', '-', '-', *null, '-', '-', '-'])} |")
    lines += ["", *(f"{method} is left out: {why}" for method, why in found.refused.items())]
    return "\n".join(lines)


def _error(found: Found, method: str, error: str) -> str:
    chosen = points(found, method, error)
    return str(root_mean_square(chosen[-1][1])) if chosen else "-"


def _speed_up(found: Found, method: str, error: str) -> str:
    ratio = None if method == BASELINE else speed_up(found, method, error)
    return "-" if ratio is None else str(ratio)


def summary(all_found: list[Found]) -> str:
    """One row a target, one column a method: CPU time of tempering over the method's for the same main error."""
    methods = list(dict.fromkeys(name for found in all_found for name in found.plays if name != BASELINE))
    header = ["target", "N", "rest", "error", f"{BASELINE}", *methods, "null"]
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for found in sorted(all_found, key=lambda one: one.width):
        main = found.main_error
        null = found.null[main]
        cells = [
            found.target, str(found.size), f"{found.width:.2f}", main, _error(found, BASELINE, main),
            *(_speed_up(found, method, main) for method in methods), "-" if null is None else f"{null:.2g}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def as_json(found: Found) -> dict[str, Any]:
    """All numbers of a target, for files."""
    plays = {
        method: {f"{seconds:g}": [one._asdict() for one in ones] for seconds, ones in by_time.items()}
        for method, by_time in found.plays.items()
    }
    return found._asdict() | {"evidence": dict(found.evidence), "null": dict(found.null), "plays": plays}
