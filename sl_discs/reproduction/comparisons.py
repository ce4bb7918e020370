"""Comparisons beside the main table: differences of methods, and DISCS's best results.

Percentages of a reference depend on its quality, so levels cannot be compared if our references differ from the
paper's. A difference of two methods on the same graphs only changes by the same relative amount as the references,
which is at most 2 %.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sl_discs.experiment.published import published_row
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.best_known import describe
from sl_discs.reproduction.cells import DEFAULTS, HELD_OUT
from sl_discs.reproduction.markdown import bounds, number, table
from sl_discs.reproduction.rows import by_dataset, differences
from sl_discs.reproduction.runs import Done
from sl_discs.tuning.evaluation import paired

MINUS = "path_auxiliary"
# Standard error from rounding of a difference of two means that are published to three digits.
_ROUNDING_SE = 1e-3 * math.sqrt(2 / 12)

_DIFFERENCES_NOTE = f"""\
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


def difference_rows(done: list[Done]) -> list[dict[str, Any]]:
    """Each MaxCut method minus one of them, if every graph has a reference.

    The subtracted method has the same protocol, or default settings if there is no such cell. `done` has at most one
    cell of each dataset, method and protocol.
    """
    rows = []
    for name, group in by_dataset(one for one in done if graph_kind(one.dataset.problem).searched_references):
        found = {(one.cell.protocol, one.cell.method): one for one in group}
        for (protocol, method), one in found.items():
            against = protocol if (protocol, MINUS) in found else DEFAULTS
            base = found.get((against, MINUS))
            values = None if base is None or base is one else differences(one, base)
            if values is None:
                continue
            theirs = published_row(name, method), published_row(name, MINUS)
            known = theirs[0] is not None and theirs[1] is not None
            rows.append({
                "dataset": name, "method": method, "minus": MINUS, "protocol": protocol, "against": against,
                **paired(values),
                "published": theirs[0].mean - theirs[1].mean if theirs[0] and theirs[1] else None,
                **(_scores(values, *theirs, one.cell.dataset.published_n) if known else {"z": None, "z_apart": None}),
            })  # fmt: skip
    return rows


def _scores(values: np.ndarray, first, second, published_n: int) -> dict[str, float | None]:
    """z, assuming that the published difference varies over graphs as ours does, or is one of independent means."""
    if len(values) < 2:
        return {"z": None, "z_apart": None}
    scatter, root = float(np.std(values, ddof=1)), math.sqrt(published_n)
    difference = float(values.mean()) - (first.mean - second.mean)
    ours_se = scatter / math.sqrt(len(values))
    return {
        "z": difference / math.hypot(ours_se, scatter / root, _ROUNDING_SE) if scatter else None,
        "z_apart": difference / math.hypot(ours_se, math.hypot(first.std, second.std) / root, _ROUNDING_SE),
    }


def differences_text(rows: list[dict], done: list[Done]) -> str:
    """The section: a table per dataset with a note on its references, or why there is none; empty without MaxCut."""
    sets = {one.dataset.name: one.dataset for one in done if graph_kind(one.dataset.problem).searched_references}
    if not sets:
        return ""
    blocks = [f"## MaxCut methods minus {MINUS}", _DIFFERENCES_NOTE]
    titles = ["method", "protocol", "against", "ours", "95% interval", "n", "published", "z", "z, apart"]
    for name, dataset in sets.items():
        said = describe(dataset)
        blocks.append(f"### {name}" + (f"\n\n{said}." if said else ""))
        chosen = [row for row in rows if row["dataset"] == name]
        if chosen:
            blocks.append(table(titles, map(_line, chosen)))
    return "\n\n".join(blocks)


def _line(row: dict) -> list[str]:
    return [
        row["method"], row["protocol"], row["against"], number(row["mean"], 4, "+"), bounds(row, 4), str(row["n"]),
        number(row["published"], 3, "+"), number(row["z"], 2, "+"), number(row["z_apart"], 2, "+"),
    ]  # fmt: skip


# The best results in DISCS's own tables, reached with many more steps, as targets for the paper's 10,000 steps.

# Best result of DISCS's samplers (Goshvadi et al., NeurIPS 2023) on each set, at 20,000 to 500,000 steps: set sizes
# for MIS, per cent of the reference otherwise.
MARKS = {
    "mis/er_density/r-0.05": 105.06,
    "mis/er_density/r-0.10": 62.25,
    "mis/er_density/r-0.20": 34.81,
    "mis/er_density/r-0.25": 28.50,
    "mis/ertest/r-800": 44.57,
    "mis/satlib": 424.14,
    "maxclique/rb": 87.8,
    "maxcut/ba/r-ba-4-n-1024-1100": 101.8,
    "maxcut/er/r-er-0.15-n-256-300": 102.1,
}

_MARKS_NOTE = """\
The highest mean of any method here at the paper's number of steps, compared with the best of DISCS's own tables,
reached with 20,000 to 500,000 steps. Only the method is chosen on these graphs, not its settings. A mark counts as
reached if our mean is at most one standard error below it. Cuts of generated graphs are in per cent of this project's
own references, which no cut exceeds by much, so these rows give the distance from the best known cut, 100, rather
than from the mark."""


def marks_rows(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best cell of each dataset that has a mark, of rows of `cell_row`."""
    rows = []
    for dataset, mark in MARKS.items():
        honest = [
            row
            for row in cells
            if (row["dataset"], row["ours"]["mean"] is not None) == (dataset, True)
            and row["protocol"] in (DEFAULTS, HELD_OUT)
        ]
        if not honest:
            continue
        best = max(honest, key=lambda row: row["ours"]["mean"])
        mean, error = best["ours"]["mean"], best["ours"]["se"]
        comparable = not best["reference_is_ours"]
        distance = mean - mark if comparable else mean - 100
        rows.append({
            "dataset": dataset, "mark": mark, "method": best["method"], "protocol": best["protocol"], "mean": mean,
            "se": error, "n": best["ours"]["n"], "chain_length": best["chain_length"], "distance": distance,
            "reached": bool(distance >= -(error or 0)) if comparable else None,
        })  # fmt: skip
    return rows


def marks_text(rows: list[dict[str, Any]]) -> str:
    """The section; empty without rows."""
    if not rows:
        return ""
    titles = ["dataset", "mark", "best here", "protocol", "steps", "n", "mean", "se", "distance", "reached"]
    words = {True: "yes", False: "no", None: "-"}
    lines = (
        [
            row["dataset"], number(row["mark"], 2), row["method"], row["protocol"], f"{row['chain_length']:,}",
            str(row["n"]), number(row["mean"]), number(row["se"]), number(row["distance"], 3, "+"),
            words[row["reached"]],
        ]
        for row in rows
    )  # fmt: skip
    return "\n\n".join(["## Marks", _MARKS_NOTE, table(titles, lines)])
