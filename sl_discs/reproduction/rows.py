"""The rows of the report as plain values: cells beside the published numbers, and SL minus its base in pairs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from sl_discs.reproduction.runner import Done
from sl_discs.reproduction.statistics import Interval, percent, z_score
from sl_discs.results.published import PublishedRow, published_row
from sl_discs.results.summary import OBJECTIVE_UNITS, Spread

_UNKNOWN = {"mean": None, "std": None, "n": None, "se": None}


def cell_row(done: Done, data_root: str | None, published: PublishedRow | None) -> dict[str, Any]:
    """One cell: ours in the paper's unit, in the objective's own, z, time, and the command.

    Args:
      done: the cell.
      data_root: where given graphs come from, for the command.
      published: the paper's row, None where it has none.
    """
    cell, dataset, result = done
    absolute = Spread.of(result.by_graph())
    values = in_published_unit(done)
    ours = None if values is None else Spread.of(values)
    n = len(dataset.graphs)
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
        "unit": "set size" if dataset.problem == "mis" else "% of reference",
        "ours": _UNKNOWN | {"n": n} if ours is None else dataclasses.asdict(ours),
        "ours_absolute": dataclasses.asdict(absolute) | {"unit": OBJECTIVE_UNITS[dataset.problem]},
        "z": z_score(ours, published, cell.dataset.published_n),
        "run_s": result.run_s,
        "chain_steps_per_s": result.chain_steps_per_s,
        "seeds": list(cell.seeds),
        "chain_length": cell.settings.chain_length,
        "num_chains": cell.settings.batch_size,
        "machine": result.machine,
        "command": cell.command(data_root, n),
    }


def in_published_unit(done: Done) -> np.ndarray | None:
    """[G] set sizes of MIS; per cent of the reference otherwise, None unless every graph has one."""
    values = done.result.by_graph()
    return values if done.dataset.problem == "mis" else percent(values, done.result.references)


def pair_rows(done: list[Done]) -> list[dict[str, Any]]:
    """SL minus its base on the same graphs and seeds, of each dataset and protocol.

    A difference on a graph is that of the means over seeds. MIS counts it in set size, the others in per cent: of the
    reference where every graph has one, else of the best value that any cell in `done` met on the graph.
    """
    rows = []
    for name, group in by_dataset(done):
        found = {(one.cell.protocol, one.cell.method): one for one in group}
        best = np.max([one.result.best.max(axis=0) for one in group], axis=0)
        for (protocol, method), base in found.items():
            localized = found.get((protocol, f"sl_{method}"))
            if localized is None:
                continue
            values, unit = _differences(localized, base, best)
            interval = Interval.of(values)
            theirs = [published_row(name, key) for key in (f"sl_{method}", method)]
            rows.append(
                {
                    "dataset": name,
                    "base": method,
                    "protocol": protocol,
                    "mean": interval.mean,
                    "ci95": None if interval.low is None else [interval.low, interval.high],
                    "n": interval.n,
                    "unit": unit,
                    "published": None if None in theirs else theirs[0].mean - theirs[1].mean,
                }
            )
    return rows


def by_dataset(done: Iterable[Done]) -> list[tuple[str, list[Done]]]:
    """Cells grouped by dataset, which come one dataset after the other."""
    return [(name, list(group)) for name, group in itertools.groupby(done, lambda one: one.dataset.name)]


def _differences(localized: Done, base: Done, best: np.ndarray) -> tuple[np.ndarray, str]:
    ours, theirs = (in_published_unit(one) for one in (localized, base))
    if ours is not None:
        return ours - theirs, "set size" if base.dataset.problem == "mis" else "% of reference"
    return 100 * (localized.result.by_graph() - base.result.by_graph()) / best, "% of best in this report"
