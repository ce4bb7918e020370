"""Differences between MaxCut methods, compared with the published differences; they hardly depend on references.

Percentages of a reference depend on its quality, so levels cannot be compared if our references differ from the
paper's. A difference of two methods on the same graphs only changes by the same relative amount as the references,
which is at most 2 %.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sl_discs.experiment.published import PublishedRow, published_row
from sl_discs.models.kinds import graph_kind
from sl_discs.reproduction.cell import DEFAULTS
from sl_discs.reproduction.markdown import number, table
from sl_discs.reproduction.references.use import describe
from sl_discs.reproduction.rows import by_dataset, in_published_unit
from sl_discs.reproduction.runner import Done
from sl_discs.reproduction.statistics import Interval

MINUS = "path_auxiliary"
# Standard error from rounding of a difference of two means that are published to three digits.
_ROUNDING_SE = 1e-3 * math.sqrt(2 / 12)

_NOTE = f"""\
A method minus {MINUS} on the same graphs, in per cent of each graph's reference, with Student's interval over graphs.
For generated graphs the reference is this project's: the best cut of a long annealing from several starts
(docs/references.md). The paper's is that of a solver with a time limit, so its percentages exceed 100 if a sampler
beats the solver; ours can exceed 100 only if the reference can be improved. Levels therefore cannot be compared, and
have no z. Differences of methods can be compared: they change by at most 2 % of themselves between the references.
The paper gives no error of a difference. `z` uses the standard deviation of our differences over graphs in place of
the paper's, divided by the root of the number of its graphs. `z, apart` uses the published deviations of the two
methods instead, as if they had been run on different graphs. They were not, and much of these deviations comes from
the references, so this error is too large. Both add the error of rounding. Chains shorter or longer than the paper's
are other methods. There is no `z` if our difference is the same on every graph."""


def difference_rows(done: list[Done], minus: str = MINUS) -> list[dict[str, Any]]:
    """Each MaxCut method minus one of them, if every graph has a reference.

    The subtracted method has the same protocol, or default settings if there is no such cell.

    Args:
      done: at most one cell of each dataset, method and protocol.
      minus: the subtracted method.
    """
    rows = []
    for name, group in by_dataset(one for one in done if graph_kind(one.dataset.problem).searched_references):
        found = {(one.cell.protocol, one.cell.method): one for one in group}
        for (protocol, method), one in found.items():
            against = protocol if (protocol, minus) in found else DEFAULTS
            base = found.get((against, minus))
            values = None if base is None or base is one else _differences(one, base)
            if values is not None:
                rows.append(_row(name, method, minus, protocol, against, values, one.cell.dataset.published_n))
    return rows


def _row(name, method, minus, protocol, against, values: np.ndarray, published_n: int) -> dict[str, Any]:
    interval = Interval.of(values)
    found = [published_row(name, key) for key in (method, minus)]
    theirs = [row for row in found if row is not None]
    known = len(theirs) == len(found)
    return {
        "dataset": name,
        "method": method,
        "minus": minus,
        "protocol": protocol,
        "against": against,
        "mean": interval.mean,
        "ci95": None if interval.low is None else [interval.low, interval.high],
        "n": interval.n,
        "published": theirs[0].mean - theirs[1].mean if known else None,
        "z": _z(values, theirs, published_n) if known else None,
        "z_apart": _z_apart(values, theirs, published_n) if known else None,
    }


def _differences(one: Done, base: Done) -> np.ndarray | None:
    """[G] differences on the common graphs, in per cent of the reference; None if a graph has none."""
    ours, theirs = in_published_unit(one), in_published_unit(base)
    if ours is None or theirs is None:
        return None
    places = dict(zip(one.dataset.index, ours, strict=True))
    shared = [(places[k], value) for k, value in zip(base.dataset.index, theirs, strict=True) if k in places]
    return np.subtract(*np.array(shared).T) if shared else None


def _z(values: np.ndarray, theirs: list[PublishedRow], published_n: int) -> float | None:
    """z, assuming that the published difference varies over graphs as ours does."""
    if len(values) < 2:
        return None
    scatter = float(np.std(values, ddof=1))
    if scatter == 0:
        return None
    return _over(values, theirs, scatter / math.sqrt(published_n))


def _z_apart(values: np.ndarray, theirs: list[PublishedRow], published_n: int) -> float | None:
    """z with the error of the difference of two independent means."""
    if len(values) < 2:
        return None
    return _over(values, theirs, math.hypot(*(row.std for row in theirs)) / math.sqrt(published_n))


def _over(values: np.ndarray, theirs: list[PublishedRow], published_se: float) -> float:
    ours_se = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    difference = float(values.mean()) - (theirs[0].mean - theirs[1].mean)
    return difference / math.hypot(ours_se, published_se, _ROUNDING_SE)


def differences_text(rows: list[dict], done: list[Done]) -> str:
    """The section: a table per dataset with a note on its references, or why there is none; empty without MaxCut."""
    sets = {one.dataset.name: one.dataset for one in done if graph_kind(one.dataset.problem).searched_references}
    if not sets:
        return ""
    blocks = [f"## MaxCut methods minus {MINUS}", _NOTE]
    titles = ["method", "protocol", "against", "ours", "95% interval", "n", "published", "z", "z, apart"]
    for name, dataset in sets.items():
        said = describe(dataset)
        blocks.append(f"### {name}" + (f"\n\n{said}." if said else ""))
        chosen = [row for row in rows if row["dataset"] == name]
        if chosen:
            blocks.append(table(titles, map(_line, chosen)))
    return "\n\n".join(blocks)


def _line(row: dict) -> list[str]:
    interval = row["ci95"]
    return [
        row["method"],
        row["protocol"],
        row["against"],
        number(row["mean"], 4, "+"),
        "-" if interval is None else f"[{interval[0]:+.4f}, {interval[1]:+.4f}]",
        str(row["n"]),
        number(row["published"], 3, "+"),
        number(row["z"], 2, "+"),
        number(row["z_apart"], 2, "+"),
    ]
