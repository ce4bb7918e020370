"""The results of the benchmark as a table and as JSON."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import numpy as np

from sl_discs.benchmark.contenders import Measurement
from sl_discs.results.interval import half_width


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

    def mean_best(self) -> float | None:
        """Mean over repetitions and graphs of the verified objective, None where it was not measured."""
        values = [one.best.mean() for one in self.measurements if one.best is not None]
        return float(np.mean(values)) if values else None

    def best_of_graphs(self) -> np.ndarray | None:
        """[G] means over repetitions of the verified objectives, None where they were not measured."""
        values = [one.best for one in self.measurements if one.best is not None]
        return np.mean(values, axis=0) if values else None

    def error_of_mean(self) -> float | None:
        """Standard error of that mean over repetitions with fixed graphs; None for a single repetition."""
        values = np.array([one.best for one in self.measurements if one.best is not None])
        if len(values) < 2:
            return None
        return float(np.sqrt(values.var(axis=0, ddof=1).mean() / values.size))


class Lead(NamedTuple):
    """How much better the first contender is than another on the same graphs, with a 95 % interval over graphs."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Of the first contender: `ahead` or `behind` where the interval says so, otherwise `level`."""
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "level"


def lead(first: Row, other: Row) -> Lead | None:
    """By Student's t on the differences of each graph; None without objectives or with a single graph."""
    ours, theirs = first.best_of_graphs(), other.best_of_graphs()
    if ours is None or theirs is None or len(ours) < 2:
        return None
    differences = ours - theirs
    mean, half = float(differences.mean()), half_width(differences)
    return Lead(mean, mean - half, mean + half)


def as_json(rows: list[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """`cases -> case -> sampler -> engine or peer -> figures`, and the settings."""
    cases: dict[str, Any] = {}
    for row in rows:
        rates, of_graphs = row.rates(), row.best_of_graphs()
        cases.setdefault(row.case, {}).setdefault(row.sampler, {})[row.contender] = {
            "chain_steps_per_s": float(np.median(rates)),
            "per_cpu_second": row.rate_of_core(),
            "min": float(rates.min()),
            "max": float(rates.max()),
            "unit": row.unit,
            "flips_per_s": row.flip_rate(),
            "mean_best": row.mean_best(),
            "error_of_mean": row.error_of_mean(),
            "best_of_graphs": None if of_graphs is None else of_graphs.tolist(),
            "seconds": [one.seconds for one in row.measurements],
        }
    return {"settings": settings, "cases": cases}


def _ratio(row: Row, first: Row) -> str:
    """The ratio of the first contender's rate to this one's in each repetition, if their units are the same."""
    if row is first or row.unit != first.unit:
        return ""
    ratios = first.rates() / row.rates()
    return f"{first.contender} is {np.median(ratios):,.2f}x ({ratios.min():,.2f} - {ratios.max():,.2f})"


def format_case(rows: list[Row], num_graphs: int) -> str:
    """The table of one case: rates with their spread, quality, seconds a graph, and ratios."""
    lines = [
        f"{rows[0].case}",
        f"  {'sampler':<20} {'on':<15} {'per second':>14} {'(lowest - highest)':>25} {'per CPU-s':>12} "
        f"{'flips/s':>11} {'s a graph':>9} {'mean best':>10} {'(+-)':>6}",
    ]
    for row in rows:
        rates, flips, best, error = row.rates(), row.flip_rate(), row.mean_best(), row.error_of_mean()
        seconds = statistics.median(one.seconds for one in row.measurements) / num_graphs
        first = next(other for other in rows if other.sampler == row.sampler)
        spread = f"({rates.min():,.0f} - {rates.max():,.0f})"
        lines.append(
            f"  {row.sampler:<20} {row.contender:<15} {np.median(rates):>14,.0f} {spread:>25} "
            f"{row.rate_of_core():>12,.0f} "
            f"{f'{flips:,.0f}' if flips is not None else '-':>11} {seconds:>9.2f} "
            f"{f'{best:.2f}' if best is not None else '-':>10} {f'({error:.2f})' if error is not None else '':>6}  "
            f"{_ratio(row, first)}".rstrip()
        )
        if row is not first and (ahead := lead(first, row)):
            lines.append(
                f"  {'':<20} {first.contender} is {ahead.verdict}: mean best larger by {ahead.mean:.2f} "
                f"({ahead.low:.2f} to {ahead.high:.2f} over graphs)"
            )
    return "\n".join(lines)
