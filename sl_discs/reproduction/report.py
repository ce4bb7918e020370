"""The report of `sl-discs reproduce`: rows as plain values, their table, and what stands out in
it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.record import Spread, how_measured, paired
from sl_discs.experiment.summary import (
    PUBLISHED_NAMES,
    PublishedRow,
    other_than_published,
    published_cells,
    published_row,
    published_tables,
)
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import (
    DEFAULTS,
    LEVEL,
    NO_TILT,
    UNCHANGED,
    stride_of,
)
from sl_discs.reproduction.runs import Done
from sl_discs.support.documents import write_json
from sl_discs.support.files import write_text

# The rows of the table as plain values: a cell beside the published numbers and, in pairs, beside
# its base.

# Number of combined standard errors beyond which a cell is named.
FAR = 2.5

_UNKNOWN = {"mean": None, "std": None, "se": None}


def z_score(ours: Spread | None, published: PublishedRow | None, published_n: int) -> float | None:
    """Returns (ours - published) over the root of the sum of squared standard errors.

    The paper's error is std/sqrt(published_n). None if one of the two, or our error, is missing, or
    if two different numbers both have an error of zero.
    """
    if ours is None or published is None or ours.se is None:
        return None
    difference = ours.mean - published.mean
    error = math.hypot(ours.se, published.std / math.sqrt(published_n))
    if error == 0:
        return 0.0 if difference == 0 else None
    return difference / error


def in_published_unit(done: Done) -> Float64[np.ndarray, "G"] | None:
    """Returns set sizes of MIS, and per cent of the reference otherwise; None unless every graph
    has one.
    """
    values = done.result.by_graph()
    references = [graph.reference for graph in done.dataset.graphs]
    if not graph_kind(done.dataset.problem).in_percent:
        return values
    return 100 * values / np.array(references, np.float64) if all(references) else None


def rows_of(done: list[Done], data_root: str | None) -> list[dict[str, Any]]:
    """Returns a row for each cell; `done` has at most one cell of each dataset, method, protocol
    and setting.
    """
    results = {
        (cell.dataset.name, cell.cell.method, cell.cell.protocol, cell.cell.setting): cell
        for cell in done
    }
    rows = []
    for (name, method, protocol, setting), cell in results.items():
        row = _row(cell, data_root)
        of_base = DEFAULTS if protocol in (LEVEL, NO_TILT) else protocol
        base = results.get((name, method.removeprefix("sl_"), of_base, setting))
        if base is not None and base is not cell:
            row["gain"] = _gain(cell, base)
            row["sl_over_base"] = base.result.chain_steps_per_s / cell.result.chain_steps_per_s
        unchanged = results.get((name, method, protocol, UNCHANGED))
        if unchanged is not None:
            row["change"] = _change(cell, unchanged)
        rows.append(row)
    return rows


def _row(done: Done, data_root: str | None) -> dict[str, Any]:
    """Returns the row of a cell alone: in the paper's unit and in that of the objective, z, time,
    and its command.

    It has the paper's numbers only where they are of the same experiment; `not_compared` says why
    it has no z.
    """
    cell, dataset, result = done
    name = dataset.name
    method = cell.method
    kind = graph_kind(dataset.problem)
    differences = _differences(done)
    published = None if differences else published_row(name, method, cell.setting)
    values = in_published_unit(done)
    absolute = Spread.of(result.by_graph())
    ours = None if values is None else Spread.of(values)
    z = z_score(ours, published, cell.dataset.published_n)
    reason = differences or [
        "no references"
        if ours is None
        else "not published"
        if published is None
        else "no standard error"
    ]
    published_s = {} if differences else published_tables()["runtime_seconds"].get(name, {})
    seconds, of_base = (
        published_s.get(PUBLISHED_NAMES.get(method_name))
        for method_name in (method, method.removeprefix("sl_"))
    )
    return {
        "dataset": name,
        "method": method,
        "protocol": cell.protocol,
        "setting": cell.setting,
        "published": {"mean": published and published.mean, "std": published and published.std},
        "unit": kind.compared_unit,
        "n": len(dataset.graphs),
        "generated": dataset.generated,
        "ours": _UNKNOWN if ours is None else {key: getattr(ours, key) for key in _UNKNOWN},
        "ours_absolute": dataclasses.asdict(absolute) | {"unit": kind.unit},
        "z": z,
        "not_compared": "" if z is not None else "; ".join(reason),
        "gain": None,
        "change": None,
        "run_s": result.run_s,
        "chain_steps_per_s": result.chain_steps_per_s,
        "sl_over_base": None,
        "published_s": seconds,
        "published_sl_over_base": seconds / of_base
        if method.startswith("sl_") and seconds and of_base
        else None,
        "seeds": list(cell.seeds),
        "chain_length": cell.settings.chain_length,
        "num_chains": cell.settings.batch_size,
        "machine": result.machine,
        "command": cell.command(data_root, dataset),
    }


def _differences(done: Done) -> list[str]:
    """Returns in words what makes a cell another experiment than the paper's.

    Its annealing may be that of a search.
    """
    dataset = done.dataset
    fields = {name: getattr(done.cell.settings, name) for name in ("chain_length", "batch_size")}
    return other_than_published(dataset, len(dataset.graphs), stride_of(dataset), fields)


def _gain(localized: Done, base: Done) -> dict[str, Any]:
    """Returns the mean over graphs of a method minus its base, with its interval, and the published
    difference.

    It is in the published unit, or else in per cent of the better of the two values on each graph.
    """
    ours = in_published_unit(localized)
    theirs = in_published_unit(base)
    unit = graph_kind(localized.dataset.problem).compared_unit
    if ours is None or theirs is None:
        values = np.stack([localized.result.by_graph(), base.result.by_graph()])
        ours, theirs = 100 * values / values.max(axis=0)
        unit = "% of the better one"
    published = [
        published_row(cell.dataset.name, cell.method) for cell in (localized.cell, base.cell)
    ]
    same = not (_differences(localized) or _differences(base))
    known = (
        published[0].mean - published[1].mean if same and published[0] and published[1] else None
    )
    return {**paired(ours, theirs).interval(), "unit": unit, "published": known}


def _change(changed: Done, unchanged: Done) -> dict[str, Any]:
    """Returns the mean over graphs of a setting minus the defaults, and the published one, in per
    cent of the mean at the defaults.
    """
    values = unchanged.result.by_graph()
    scale = 100 / values.mean()
    name = changed.dataset.name
    method = changed.cell.method
    published = [
        published_row(name, method, cell.setting) for cell in (changed.cell, unchanged.cell)
    ]
    known = (
        100 * (published[0].mean / published[1].mean - 1) if published[0] and published[1] else None
    )
    change = paired(scale * changed.result.by_graph(), scale * values)
    return {"mean": change.mean, "se": change.se, "published": known}


def is_level(row: dict[str, Any]) -> bool:
    """Returns whether a row can be compared with the paper: it has a z."""
    return row["z"] is not None


def level_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the distance of each method from the paper, pooled over sets; `rows` are at defaults.

    A row has the number of `sets` compared, how many lie `within` FAR standard errors, z of those
    that are `far`, and `pooled_z` (Stouffer): the sum of z over the root of their number, where z =
    0 of sets on which both means are equal without spread does not count.
    """
    levels = []
    for method in dict.fromkeys(row["method"] for row in rows if is_level(row)):
        scores = {
            row["dataset"]: row["z"] for row in rows if row["method"] == method and is_level(row)
        }
        free = [z for z in scores.values() if z != 0]
        far = {name: z for name, z in scores.items() if abs(z) > FAR}
        levels.append(
            {
                "method": method,
                "sets": len(scores),
                "within": len(scores) - len(far),
                "far": far,
                "pooled_z": sum(free) / math.sqrt(len(free)) if free else None,
            }
        )
    return levels


def at_defaults(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows at default settings, of which levels are pooled."""
    return [row for row in rows if row["protocol"] == DEFAULTS and not row["setting"]]


# The table, with what stands out in it.

_NOTE = """\
Published and ours are mean ± standard deviation over graphs (divisor n); cuts of generated graphs, which have no
reference, are in edges. z is (ours - published) over the combined standard error. The paper's is its deviation over
the root of the number of its graphs, which it does not state and which is taken from DISCS's configs: 32 for
er_density, 500 for satlib and rb, 196 for twitter, 1,000 for each MaxCut er and ba set, 10 for optsicom. On the
paper's own graphs z is too small. Generated graphs belong to the same family as the paper's, but are not the same
graphs. A part of a given set is spread over the whole set. Rows with other numbers of steps or chains than published,
of fewer than 8 graphs or of another part of a set have neither z nor published numbers.

`settings`: `defaults` are this project's with DISCS's annealing, chosen without a search; `held out` were tuned on
training graphs; `level` has the annealing anew in each of 512 levels, with sigma=15, and `level, no tilt` is the same
run without localization; others differ from the defaults (GEOM(2,1), sigma=10, K=256 or as many levels as fit into the
steps) in what they name. `minus base` is localization minus its base with the same settings (of `level`, minus the base at defaults), graphs and seeds, with
Student's 95 % interval over graphs, in the unit of the set or, without references, in per cent of the better one; the
paper gives no error of its difference.
Seconds are for all graphs, without compilation; SL/base compares seconds per chain-step. The paper's seconds are for
its whole sets on its GPU."""  # noqa: E501


def write_report(
    folder: Path,
    what: str,
    rows: list[dict[str, Any]],
    left_out: list[str],
    measured: dict[str, Any],
) -> tuple[Path, Path]:
    """Writes WHAT.md and WHAT.json; `measured` is of `measured_by`."""
    blocks = [
        f"# The paper's numbers and ours: {what}",
        *summary(rows),
        _NOTE,
        main_table(rows),
        "\n".join(f"- left out: {reason}" for reason in left_out),
        f"{how_measured(measured)} The command of each cell is in `{what}.json`.",
    ]
    # Without z pooled over sets, which takes the graphs of studies/claim to tell anything.
    levels = [
        {name: row[name] for name in row if name != "pooled_z"}
        for row in level_rows(at_defaults(rows))
    ]
    content = {"measured": measured, "cells": rows, "levels": levels, "left_out": left_out}
    return (
        write_text(folder / f"{what}.md", "\n\n".join(filter(None, blocks)) + "\n"),
        write_json(folder / f"{what}.json", content, allow_nan=False),
    )


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Returns what stands out: levels beside the paper's by method, and gains whose intervals
    exclude zero.
    """
    blocks = []
    defaults = at_defaults(rows)
    if defaults:
        compared = [row for row in defaults if is_level(row)]
        sets = {row["dataset"]: row["generated"] for row in compared}
        not_compared = {
            row["dataset"]: row["not_compared"] for row in defaults if row["dataset"] not in sets
        }
        reasons = [f"{name} ({reason})" for name, reason in not_compared.items()]
        text = f"{len(compared)} of the {published_cells()} published cells are compared here"
        if compared:
            counts = sorted({row["n"] for row in compared})
            sizes = " to ".join(map(str, sorted({counts[0], counts[-1]})))
            text += (
                f": this project's defaults with DISCS's annealing, on {len(sets)} of the paper's "
                f"sets, {sizes} graphs each"
            )
        text += f"{listed(reasons, '; not compared: ')}."
        if compared:
            drawn = [name for name, generated in sets.items() if generated]
            text += f" Drawn anew from the paper's distribution: {', '.join(drawn) or 'none'}."
        blocks += [text, levels_table(defaults)]
    # Equal differences on all graphs have an interval of width zero, which means nothing.
    gains = [
        row
        for row in rows
        if row["gain"] and row["gain"]["ci95"] and len({*row["gain"]["ci95"]}) == 2
    ]
    gains = [row for row in gains if row["protocol"] != NO_TILT]
    lines = []
    for text, end, sign in ("above", 0, 1), ("below", 1, -1):
        chosen = [row for row in gains if sign * row["gain"]["ci95"][end] > 0]
        names = [f"{row['dataset']} {row['method']} ({row['protocol']})" for row in chosen]
        lines.append(
            f"- Localization's 95 % interval lies {text} zero in {len(chosen)} of {len(gains)} "
            f"pairs{listed(names, ': ')} (one in forty is by chance)."
        )
    return [*blocks, "\n".join(lines if gains else [])]


def levels_table(rows: list[dict[str, Any]], *, pooled: bool = False) -> str:
    """Returns `level_rows` as a table, perhaps with z pooled over sets; empty if no row can be
    compared.
    """
    titles = ["method", f"sets within {FAR} standard errors", "not within"]
    lines = []
    for row in level_rows(rows):
        far = [f"{name} ({z:+.1f})" for name, z in row["far"].items()]
        line = [row["method"], f"{row['within']} of {row['sets']}", ", ".join(far) or "-"]
        if pooled:
            line.insert(-1, number(row["pooled_z"], 1, "+"))
        lines.append(line)
    if pooled:
        titles.insert(-1, "pooled z")
    return table(titles, lines) if lines else ""


def main_table(rows: list[dict[str, Any]]) -> str:
    """Returns the table of all cells."""
    titles = [
        "dataset",
        "method",
        "settings",
        "graphs",
        "chains × steps",
        "published",
        "ours",
        "z",
        "minus base",
        "published",
        "run s",
        "chain-steps/s",
        "SL/base",
        "paper's s",
        "paper's SL/base",
    ]
    return table(titles, map(_line, rows))


def _line(row: dict[str, Any]) -> list[str]:
    gain = row["gain"]
    size = f"{row['num_chains']} × {row['chain_length']:,}"
    known = row["ours"]["mean"] is not None
    if len(row["seeds"]) > 1:
        size += f", {len(row['seeds'])} seeds"
    return [
        row["dataset"],
        row["method"],
        row["setting"] or row["protocol"],
        str(row["n"]),
        size,
        plus_minus(row["published"]),
        plus_minus(row["ours"] if known else row["ours_absolute"]),
        number(row["z"], 2, "+"),
        "-" if gain is None else f"{number(gain['mean'], 3, '+')} {bounds(gain, 3)}",
        number(gain and gain["published"], 3, "+"),
        f"{row['run_s']:.2f}",
        f"{row['chain_steps_per_s']:,.0f}",
        number(row["sl_over_base"]),
        number(row["published_s"]),
        number(row["published_sl_over_base"]),
    ]


def table(titles: Sequence[str], rows) -> str:
    """Returns a table in Markdown."""
    lines = [list(titles), ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float | None, digits: int = 3, sign: str = "") -> str:
    """Returns a number as text, or `-` for None."""
    return "-" if value is None else f"{value:{sign},.{digits}f}"


def plus_minus(values: dict[str, Any]) -> str:
    """Returns mean ± standard deviation, or `-` if there is none."""
    return (
        "-" if values["mean"] is None else f"{number(values['mean'])} ± {number(values['std'], 2)}"
    )


def bounds(row: dict[str, Any], digits: int) -> str:
    """Returns the interval of a row, or `-` if it has none."""
    return (
        "-"
        if row["ci95"] is None
        else f"[{', '.join(number(end, digits, '+') for end in row['ci95'])}]"
    )


def listed(names: list[str], before: str) -> str:
    """Returns the names, preceded by `before`; empty if there are none."""
    return before + ", ".join(names) if names else ""
