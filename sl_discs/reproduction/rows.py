"""The rows of the report as plain values: cells with the published numbers, and SL minus its base in pairs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.published import CHAIN_LENGTH, PublishedRow, published_row, published_seconds
from sl_discs.experiment.record import Spread
from sl_discs.instances.dataset import Dataset
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import DEFAULTS, HELD_OUT
from sl_discs.reproduction.runs import Done
from sl_discs.tuning.evaluation import paired


def z_score(ours: Spread | None, published: PublishedRow | None, published_n: int) -> float | None:
    """(ours - published) over the root of the sum of squared standard errors; the paper's is std/sqrt(published_n).

    None if one of them, or our error, is missing, or if two different numbers both have an error of zero.
    """
    if ours is None or published is None or ours.se is None:
        return None
    difference = ours.mean - published.mean
    error = math.hypot(ours.se, published.std / math.sqrt(published_n))
    if error == 0:
        return 0.0 if difference == 0 else None
    return difference / error


def percent(
    values: Float64[np.ndarray, "G"], references: Float64[np.ndarray, "G"]
) -> Float64[np.ndarray, "G"] | None:
    """100 values / references; None unless every graph has a reference other than zero."""
    if not np.all(np.isfinite(references) & (references != 0)):
        return None
    return 100 * values / references


# Number of combined standard errors beyond which a cell is named.
FAR = 2.5

_UNKNOWN = {"mean": None, "std": None, "n": None, "se": None}


def cell_row(done: Done, data_root: str | None, published: PublishedRow | None) -> dict[str, Any]:
    """The row of a cell: our result in the paper's unit and in that of the objective, z, time, and the command."""
    cell, dataset, result = done
    kind = graph_kind(dataset.problem)
    absolute = Spread.of(result.by_graph())
    values = in_published_unit(done)
    ours = None if values is None else Spread.of(values)
    n = len(dataset.graphs)
    # A part of a set cannot be compared with the whole.
    comparable = cell.dataset.is_random() or _is_spread(dataset)
    return {
        "dataset": dataset.name,
        "method": cell.method,
        "protocol": cell.protocol,
        "setting": cell.setting,
        "published": {
            "mean": published and published.mean,
            "std": published and published.std,
            "n": cell.dataset.published_n if published else None,
        },
        "unit": kind.compared_unit,
        "ours": _UNKNOWN | {"n": n} if ours is None else dataclasses.asdict(ours),
        "ours_absolute": dataclasses.asdict(absolute) | {"unit": kind.unit},
        "z": z_score(ours, published, cell.dataset.published_n) if comparable else None,
        "run_s": result.run_s,
        "chain_steps_per_s": result.chain_steps_per_s,
        "seeds": list(cell.seeds),
        "chain_length": cell.settings.chain_length,
        "num_chains": cell.settings.batch_size,
        "machine": result.machine,
        "command": cell.command(data_root, dataset),
    }


def is_level(row: dict[str, Any]) -> bool:
    """Whether a row of `cell_row` can be compared with the paper: it has a z, and chains as long as published."""
    return row["z"] is not None and row["chain_length"] == CHAIN_LENGTH


def level_rows(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The distance of each method from the paper, pooled over sets; `cells` are rows of `cell_row` at defaults.

    A row has the number of `sets` compared, how many lie `within` FAR standard errors, z of those that are `far`, and
    `pooled_z` (Stouffer): the sum of z over the root of their number, where z = 0 of sets on which both means are
    equal without spread does not count.
    """
    rows = []
    for method in dict.fromkeys(row["method"] for row in cells if is_level(row)):
        scores = {row["dataset"]: row["z"] for row in cells if row["method"] == method and is_level(row)}
        free = [z for z in scores.values() if z != 0]
        far = {name: z for name, z in scores.items() if abs(z) > FAR}
        rows.append({
            "method": method, "sets": len(scores), "within": len(scores) - len(far), "far": far,
            "pooled_z": sum(free) / math.sqrt(len(free)) if free else None,
        })  # fmt: skip
    return rows


def _is_spread(dataset: Dataset) -> bool:
    index = dataset.index
    return len(index) > 1 and index[-1] + index[1] - index[0] > 0.9 * dataset.total


def in_published_unit(done: Done) -> np.ndarray | None:
    """[G] set sizes of MIS; per cent of the reference otherwise, None unless every graph has one."""
    values = done.result.by_graph()
    return percent(values, done.result.references) if graph_kind(done.dataset.problem).in_percent else values


def pair_rows(done: list[Done]) -> list[dict[str, Any]]:
    """SL minus its base on the same graphs, of each dataset and protocol.

    `against` names the protocol of the subtracted base: always the base at its defaults and, for settings tuned on
    training graphs, in a second row, a base that was tuned in the same way.

    A difference on a graph is that of the means over seeds. It is in set size for MIS and otherwise in per cent of
    the reference if every graph has one, else of the best value that any cell in `done` found on the graph.

    Args:
      done: at most one cell of each dataset, method and protocol. A cell with fewer graphs than the base at its
        defaults has the first of them.
    """
    rows = []
    for name, group in by_dataset(done):
        found = {(one.cell.protocol, one.cell.method): one for one in group}
        # Of any of these cells on each graph, for the cell with the most graphs.
        best = np.full(max(len(one.dataset.graphs) for one in group), -np.inf)
        for one in group:
            n = len(one.dataset.graphs)
            best[:n] = np.maximum(best[:n], one.result.best.max(axis=0))
        for (protocol, method), localized in found.items():
            if not method.startswith("sl_"):
                continue
            base = method.removeprefix("sl_")
            likewise = (HELD_OUT, base) if protocol == HELD_OUT else None
            for key in filter(None, ((DEFAULTS, base), likewise)):
                if key in found:
                    values, unit = _values_and_unit(localized, found[key], best)
                    theirs = published_row(name, method), published_row(name, base)
                    rows.append({
                        "dataset": name, "base": base, "protocol": protocol, "against": key[0], **paired(values),
                        "unit": unit,
                        "published": theirs[0].mean - theirs[1].mean if theirs[0] and theirs[1] else None,
                    })  # fmt: skip
    return rows


def _values_and_unit(localized: Done, base: Done, best: np.ndarray) -> tuple[np.ndarray, str]:
    values = differences(localized, base)
    if values is not None:
        return values, graph_kind(base.dataset.problem).compared_unit
    ours, theirs = (one.result.by_graph() for one in (localized, base))
    n = len(ours)
    return 100 * (ours - theirs[:n]) / best[:n], "% of best in this report"


def by_dataset(done: Iterable[Done]) -> list[tuple[str, list[Done]]]:
    """Cells grouped by dataset; the cells of a dataset must be consecutive."""
    return [(name, list(group)) for name, group in itertools.groupby(done, lambda one: one.dataset.name)]


def differences(one: Done, base: Done) -> np.ndarray | None:
    """[G] differences on the common graphs, in the published unit; None if a graph has none."""
    ours, theirs = in_published_unit(one), in_published_unit(base)
    if ours is None or theirs is None:
        return None
    places = dict(zip(one.dataset.index, ours, strict=True))
    shared = [(places[k], value) for k, value in zip(base.dataset.index, theirs, strict=True) if k in places]
    return np.subtract(*np.array(shared).T) if shared else None


# Run times compared with the paper's: seconds, chain-steps per second, and the overhead of localization.


def overhead_rows(done: list[Done]) -> list[dict[str, Any]]:
    """One row per cell at default settings: our seconds and the paper's, and both ratios of SL to its base.

    Our ratio is that of seconds per chain-step, so it does not depend on the size of the runs.
    """
    rows = []
    for name, group in by_dataset(done):
        found = {one.cell.method: one for one in group if one.cell.protocol == DEFAULTS}
        for method, one in found.items():
            base = found.get(method.removeprefix("sl_")) if method.startswith("sl_") else None
            seconds = published_seconds(name, method)
            of_base = published_seconds(name, method.removeprefix("sl_"))
            rows.append({
                "dataset": name, "method": method, "n": len(one.dataset.graphs), "run_s": one.result.run_s,
                "chain_steps_per_s": one.result.chain_steps_per_s,
                "sl_over_base": base and base.result.chain_steps_per_s / one.result.chain_steps_per_s,
                "published_s": seconds,
                "published_sl_over_base": seconds / of_base if base and seconds and of_base else None,
            })  # fmt: skip
    return rows
