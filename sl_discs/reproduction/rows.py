"""The rows of the table as plain values: a cell beside the published numbers and, in pairs, beside its base."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.record import Spread, paired
from sl_discs.experiment.summary import CHAIN_LENGTH, PublishedRow, published_name, published_row, published_tables
from sl_discs.instances.graph import Dataset
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import DEFAULTS, LEVEL, NO_TILT
from sl_discs.reproduction.runs import Done

# Number of combined standard errors beyond which a cell is named.
FAR = 2.5

# Number of graphs below which the standard error of a mean is itself too uncertain for a z.
FEWEST = 8

_UNKNOWN = {"mean": None, "std": None, "se": None}


def z_score(ours: Spread | None, published: PublishedRow | None, published_n: int) -> float | None:
    """Returns (ours - published) over the root of the sum of squared standard errors.

    The paper's error is std/sqrt(published_n). None if one of the two, or our error, is missing, or if two different
    numbers both have an error of zero.
    """
    if ours is None or published is None or ours.se is None:
        return None
    difference = ours.mean - published.mean
    error = math.hypot(ours.se, published.std / math.sqrt(published_n))
    if error == 0:
        return 0.0 if difference == 0 else None
    return difference / error


def in_published_unit(done: Done) -> Float64[np.ndarray, "G"] | None:
    """Returns set sizes of MIS, and per cent of the reference otherwise; None unless every graph has one."""
    values, references = done.result.by_graph(), [graph.reference for graph in done.dataset.graphs]
    if not graph_kind(done.dataset.problem).in_percent:
        return values
    return 100 * values / np.array(references, np.float64) if all(references) else None


def rows_of(done: list[Done], data_root: str | None) -> list[dict[str, Any]]:
    """Returns a row for each cell; `done` has at most one cell of each dataset, method, protocol and setting."""
    found = {(one.dataset.name, one.cell.method, one.cell.protocol, one.cell.setting): one for one in done}
    rows = []
    for (name, method, protocol, setting), one in found.items():
        row = _row(one, data_root)
        of_base = DEFAULTS if protocol in (LEVEL, NO_TILT) else protocol
        base = found.get((name, method.removeprefix("sl_"), of_base, setting))
        if base is not None and base is not one:
            row["gain"] = _gain(one, base)
            row["sl_over_base"] = base.result.chain_steps_per_s / one.result.chain_steps_per_s
        rows.append(row)
    return rows


def _row(done: Done, data_root: str | None) -> dict[str, Any]:
    """Returns the row of a cell alone: in the paper's unit and in that of the objective, z, time, and its command.

    It has the paper's numbers only where they are of the same experiment; `not_compared` says why it has no z.
    """
    cell, dataset, result = done
    name, method, kind = dataset.name, cell.method, graph_kind(dataset.problem)
    differences = _differences(done)
    published = None if differences else published_row(name, method, cell.setting)
    values, absolute = in_published_unit(done), Spread.of(result.by_graph())
    ours = None if values is None else Spread.of(values)
    z = z_score(ours, published, cell.dataset.published_n)
    reason = differences or [
        "no references" if ours is None else "not published" if published is None else "no standard error"
    ]
    published_s = {} if differences else published_tables()["runtime_seconds"].get(name, {})
    seconds, of_base = (published_s.get(published_name(one)) for one in (method, method.removeprefix("sl_")))
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
        "run_s": result.run_s,
        "chain_steps_per_s": result.chain_steps_per_s,
        "sl_over_base": None,
        "published_s": seconds,
        "published_sl_over_base": seconds / of_base if method.startswith("sl_") and seconds and of_base else None,
        "seeds": list(cell.seeds),
        "chain_length": cell.settings.chain_length,
        "num_chains": cell.settings.batch_size,
        "machine": result.machine,
        "command": cell.command(data_root, dataset),
    }


def _differences(done: Done) -> list[str]:
    """Returns in words what makes a cell another experiment than the paper's, or one on too few graphs."""
    settings, graphs = done.cell.settings, len(done.dataset.graphs)
    steps, chains = settings.chain_length, settings.batch_size
    usual = done.cell.dataset.experiment()["batch_size"]  # which the paper does not state
    found = {
        f"{steps:,} steps, published {CHAIN_LENGTH:,}": steps != CHAIN_LENGTH,
        f"{chains} chains, DISCS {usual}": chains != usual,
        f"{graphs} graphs, fewer than {FEWEST}": graphs < FEWEST,
        "graphs of a part of the set": not (done.cell.dataset.is_random() or _is_spread(done.dataset)),
    }
    return [words for words, holds in found.items() if holds]


def _is_spread(dataset: Dataset) -> bool:
    index = dataset.index
    return len(index) > 1 and index[-1] + index[1] - index[0] > 0.9 * dataset.total


def _gain(one: Done, base: Done) -> dict[str, Any]:
    """Returns the mean over graphs of a method minus its base, with its interval, and the published difference.

    It is in the published unit, or else in per cent of the better of the two values on each graph.
    """
    ours, theirs = in_published_unit(one), in_published_unit(base)
    unit = graph_kind(one.dataset.problem).compared_unit
    if ours is None or theirs is None:
        values = np.stack([one.result.by_graph(), base.result.by_graph()])
        (ours, theirs), unit = 100 * values / values.max(axis=0), "% of the better one"
    published = [published_row(cell.dataset.name, cell.method) for cell in (one.cell, base.cell)]
    same = not (_differences(one) or _differences(base))
    known = published[0].mean - published[1].mean if same and published[0] and published[1] else None
    return {**paired(ours, theirs).interval(), "unit": unit, "published": known}


def is_level(row: dict[str, Any]) -> bool:
    """Returns whether a row can be compared with the paper: it has a z."""
    return row["z"] is not None


def level_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the distance of each method from the paper, pooled over sets; `rows` are at defaults.

    A row has the number of `sets` compared, how many lie `within` FAR standard errors, z of those that are `far`, and
    `pooled_z` (Stouffer): the sum of z over the root of their number, where z = 0 of sets on which both means are
    equal without spread does not count.
    """
    levels = []
    for method in dict.fromkeys(row["method"] for row in rows if is_level(row)):
        scores = {row["dataset"]: row["z"] for row in rows if row["method"] == method and is_level(row)}
        free = [z for z in scores.values() if z != 0]
        far = {name: z for name, z in scores.items() if abs(z) > FAR}
        levels.append({
            "method": method, "sets": len(scores), "within": len(scores) - len(far), "far": far,
            "pooled_z": sum(free) / math.sqrt(len(free)) if free else None,
        })  # fmt: skip
    return levels


def at_defaults(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows at default settings, of which levels are pooled."""
    return [row for row in rows if row["protocol"] == DEFAULTS and not row["setting"]]
