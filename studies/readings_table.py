"""The table of the readings: gains, the tilt's part, and what the paper publishes, with both
errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32
from scipy.special import ndtr

sys.path.append(str(Path(__file__).parent / "claim"))
from claim_plan import SAMPLERS, published_gain
from claim_statistics import Interval, holm, interval
from readings_plan import BASE, LEFT_OUT, PRIMARY, READINGS, SETS
from sl_discs.experiment.record import Spread, measured_by
from sl_discs.experiment.summary import published_row
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.reproduction.report import table, z_score
from sl_discs.support.documents import write_json
from sl_discs.support.files import write_text

Values = Int32[np.ndarray, "G"]
Cells = dict[tuple[str, str, str, int], Values]  # by set, sampler, reading and first graph
# In the place of sampler and reading: the references of graphs, where results are per cent of them.
REFERENCES = ("", "references")


class Row(NamedTuple):
    """A reading on a set: differences of the best values of the same graphs, means and standard
    errors.

    Attributes:
      gain: localized minus base.
      tilt: localized minus the same run without tilt.
      published: localized minus base in the paper, None if it is not above zero; its standard error
        is that of as many graphs as the paper has, with the spread of ours.
      level: the published mean of the localized sampler, and how many standard errors of both ours
        is above it; None where results are per cent of references that are not at hand, and for a
        part of given graphs.
      p_zero, p_tilt, p_published: of tests that the gain is 0, that the tilt's part is 0, and, with
        both errors, that the gain is the published one; by Holm's method over all rows.
    """

    dataset: str
    sampler: str
    reading: str
    graphs: int
    base: float
    gain: tuple[float, float]
    tilt: tuple[float, float] | None
    published: tuple[float, float] | None
    level: tuple[float, float] | None
    p_zero: float
    p_tilt: float | None
    p_published: float | None


def rows(cells: Cells) -> list[Row]:
    """Returns a row for each set, sampler and reading with at least two graphs, in the order of the
    plan.
    """
    joined = _joined(cells)
    found = [
        row
        for dataset in SETS
        for sampler in SAMPLERS
        for reading in list(READINGS)[1:]
        if (row := _row(joined, dataset, sampler, reading)) is not None
    ]
    for name in ("p_zero", "p_tilt", "p_published"):
        places = [k for k, row in enumerate(found) if getattr(row, name) is not None]
        for k, p in zip(places, holm([getattr(found[k], name) for k in places]), strict=True):
            found[k] = found[k]._replace(**{name: p})  # type: ignore[arg-type]
    return found


def _joined(cells: Cells) -> dict[tuple[str, str, str], dict[int, int]]:
    """Returns the values by graph, of each set, sampler and reading."""
    joined: dict[tuple[str, str, str], dict[int, int]] = {}
    for (dataset, sampler, reading, first), values in cells.items():
        joined.setdefault((dataset, sampler, reading), {}).update(enumerate(values.tolist(), first))
    return joined


def _differences(
    joined: dict, dataset: str, sampler: str, reading: str, other: str
) -> dict[int, float]:
    """Returns one reading minus another by graph, in nodes or in per cent of the reference (cuts:
    of the base).
    """
    ours, theirs, base = (joined.get((dataset, sampler, one), {}) for one in (reading, other, BASE))
    both = {
        graph: float(best - theirs[graph])
        for graph, best in ours.items()
        if graph in theirs and graph in base
    }
    if not graph_kind(PUBLISHED[dataset].problem).in_percent:
        return both
    whole = joined.get((dataset, *REFERENCES)) or base
    return {graph: 100 * value / whole[graph] for graph, value in both.items()}


def _row(joined: dict, dataset: str, sampler: str, reading: str) -> Row | None:
    def difference(other):
        by_graph = _differences(joined, dataset, sampler, reading, other)
        return interval(np.array(list(by_graph.values()))) if len(by_graph) > 1 else None

    if (gain := difference(BASE)) is None:
        return None
    control = READINGS[reading].control
    tilt = (
        difference(control) if READINGS[reading].tilt is not None and reading != control else None
    )
    published = published_gain(dataset, sampler)
    theirs = None
    if published is not None and published > 0:
        theirs = published, gain.se * math.sqrt(gain.n / PUBLISHED[dataset].published_n)
    values, base = (joined[dataset, sampler, one] for one in (reading, BASE))
    graphs = sorted(values.keys() & base.keys())
    in_percent, references = (
        graph_kind(PUBLISHED[dataset].problem).in_percent,
        joined.get((dataset, *REFERENCES)),
    )
    level, row = None, published_row(dataset, f"sl_{SAMPLERS[sampler].base}")
    all_graphs = PUBLISHED[dataset].is_random() or gain.n == PUBLISHED[dataset].published_n
    if row is not None and all_graphs and (references or not in_percent):
        ours = np.array(
            [100 * values[one] / references[one] if references else values[one] for one in graphs]
        )
        z = z_score(Spread.of(ours.astype(float)), row, PUBLISHED[dataset].published_n)
        level = z if z is None else (row.mean, z)
    return Row(
        dataset, sampler, reading, gain.n, float(np.mean([base[graph] for graph in graphs])), (gain.mean, gain.se),
        tilt and (tilt.mean, tilt.se), theirs, level, gain.p_value(0.0), tilt and tilt.p_value(0.0),
        theirs and _p_equal((gain.mean, gain.se), theirs),
    )  # fmt: skip


def averages(cells: Cells) -> list[dict[str, Any]]:
    """Returns means over the samplers: of each set and main reading the gain and, if there is one,
    the tilt's part.

    The published gain is the mean of the paper's three samplers. Standard errors are those of
    graphs, of which the ones count that all samplers played. The reading None is the mean over
    those readings with a tilt that have a control of their own.
    """
    joined = _joined(cells)
    own = [one for one in PRIMARY if READINGS[one].control not in (one, BASE)]
    found = []
    for dataset in SETS:
        published = float(
            np.mean([published_gain(dataset, one) for one in ("path_auxiliary", "gwg", "dmala")])
        )
        for name in (*PRIMARY[1:], None):
            these = own if name is None else [name]
            gain, tilt = _averaged(joined, dataset, [(one, BASE) for one in these]), None
            if all(READINGS[one].tilt for one in these):
                tilt = _averaged(joined, dataset, [(one, READINGS[one].control) for one in these])
            if gain is not None:
                row = {
                    "dataset": dataset,
                    "reading": name,
                    "graphs": gain.n,
                    "published": published,
                }
                found.append(
                    row | {"gain": [gain.mean, gain.se], "tilt": tilt and [tilt.mean, tilt.se]}
                )
    return found


def _averaged(joined: dict, dataset: str, pairs: list[tuple[str, str]]) -> Interval | None:
    """Returns the mean over samplers and pairs of a reading and another; None for fewer than two
    graphs of all.
    """
    played = [
        by_graph for sampler in SAMPLERS for pair in pairs
        if (by_graph := _differences(joined, dataset, sampler, *pair))
    ]  # fmt: skip
    graphs = set.intersection(*map(set, played)) if played else set()
    if len(graphs) < 2:
        return None
    return interval(
        np.array([np.mean([by_graph[one] for by_graph in played]) for one in sorted(graphs)])
    )


def _p_equal(one: tuple[float, float], other: tuple[float, float]) -> float:
    error = math.hypot(one[1], other[1])
    return float(2 * ndtr(-abs(one[0] - other[0]) / error)) if error else float(one[0] == other[0])


# Standard errors within which a level is the published one; an equal one is missed with probability
# 1.2 %.
_LIMIT = 2.5
_ABOUT = """Differences of the best of all chains on the same graphs, means and standard errors, in nodes or per cent
of the reference (cuts: of the base). The published gain has the standard error of as many graphs as the paper has,
with the spread of ours. z is how many standard errors of both the localized mean is above the published one; 2.5 and
more is a miss. p is by Holm's method over all rows. GWG with one flip stands beside the published GWG."""


def in_short(found: list[Row], by: str) -> str:
    """Returns a line for each reading or dataset, as `by` names it: in how many of its rows
    something is excluded.
    """
    lines = []
    for name in dict.fromkeys(getattr(row, by) for row in found):
        these = [row for row in found if getattr(row, by) == name]
        sure = [row for row in these if row.p_zero < 0.05]
        above = sum(row.gain[0] > 0 for row in sure)
        words = f"gain above zero in {above} of {len(these)} rows, below in {len(sure) - above}"
        with_tilt = [row for row in these if row.p_tilt is not None]
        if with_tilt:
            parts = [
                row.tilt[0] > 0
                for row in with_tilt
                if row.tilt and row.p_tilt is not None and row.p_tilt < 0.05
            ]
            words += (
                f"; the tilt's part above zero in {sum(parts)}, below in {len(parts) - sum(parts)}"
            )
        compared = [(row.gain, row.published, row.p_published) for row in these]
        known = [
            (gain, there, p) for gain, there, p in compared if there is not None and p is not None
        ]
        apart = [gain[0] < there[0] for gain, there, p in known if p < 0.05]
        words += (
            f"; the published gain excluded in {len(apart)} of {len(known)}, as too large in "
            f"{sum(apart)}"
        )
        levels = [row.level[1] for row in these if row.level is not None]
        below, above = (sum(sign * z > _LIMIT for z in levels) for sign in (-1, 1))
        if levels:
            words += (
                f"; the published level of the localized sampler missed in {below + above} of "
                f"{len(levels)}"
            )
            words += f", from below in {below}"
        lines.append(f"- {name}: {words}.")
    return "\n".join(lines)


def text_of(found: list[Row]) -> str:
    """Returns the table in Markdown."""
    titles = [
        "set", "sampler", "reading", "graphs", "localized minus "
            "base", "tilt minus no tilt", "published", "level, z",
        "p, no gain", "p, no part of the tilt", "p, gain as published",
    ]  # fmt: skip
    lines = []
    for row in found:
        pairs = [_words(row.dataset, pair) for pair in (row.gain, row.tilt, row.published)]
        tests = [
            "-" if p is None else f"{p:.3f}" for p in (row.p_zero, row.p_tilt, row.p_published)
        ]
        level = "-" if row.level is None else f"{row.level[1]:+.1f}"
        lines.append(
            [row.dataset, row.sampler, row.reading, str(row.graphs), *pairs, level, *tests]
        )
    return table(titles, lines)


def text_of_averages(means: list[dict[str, Any]]) -> str:
    """Returns the table of the means over samplers in Markdown."""
    titles = ["set", "reading", "graphs", "localized minus base", "tilt minus no tilt", "published"]
    lines = []
    for row in means:
        name, published = row["dataset"], (row["published"],)
        pairs = [_words(name, pair) for pair in (row["gain"], row["tilt"], published)]
        lines.append(
            [name, row["reading"] or "all with a control of their own", str(row["graphs"]), *pairs]
        )
    return table(titles, lines)


def _words(dataset: str, pair: Sequence[float] | None) -> str:
    """Returns a number, with its standard error if there is one."""
    if pair is None:
        return "-"
    digits = 3 if PUBLISHED[dataset].problem != "maxcut" else 4
    return f"{pair[0]:+.{digits}f}" + "".join(f" ({error:.{digits}f})" for error in pair[1:])


def report(cells: Cells, folder: Path, made: dict[str, Any]) -> str:
    """Writes readings.md and readings.json into a folder; returns the text."""
    found, means = rows(cells), averages(cells)
    left_out = "; ".join(f"{name} ({why})" for name, why in LEFT_OUT.items())
    text = "\n\n".join([
        in_short(found, "reading"), in_short(found, "dataset"), f"Not played: {left_out}.",
        f"Means over samplers:\n\n{text_of_averages(means)}", text_of(found),
    ])  # fmt: skip
    write_text(folder / "readings.md", f"# Readings of the paper\n\n{_ABOUT}\n\n{text}\n")
    shown = [row._asdict() | {"primary": row.reading in PRIMARY} for row in found]
    write_json(
        folder / "readings.json",
        made | {"measured": measured_by(), "averages": means, "rows": shown},
    )
    return text
