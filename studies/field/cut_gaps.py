"""How far below the best known cuts are the paper's six methods?

    python studies/field/cut_gaps.py --graphs=32

Each method of Table 3 runs at this package's defaults, with DISCS's steps and chains, on the first
graphs of the generated sets, whose best known cuts are in `references/`. The gap of a graph is what
the best cut of a run lacks, in per cent of the best known one. Published percentages have another
reference, so the paper's own gaps are counted from the best of its six methods. Finished methods
are kept in cut_gaps.json, and a stopped command continues; cut_gaps.md is the table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import sl_discs
from best_known import load_references
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import how_measured, measured_by
from sl_discs.experiment.summary import published_row
from sl_discs.instances.dataset import load_dataset
from sl_discs.reproduction.report import table
from sl_discs.samplers.registry import own_name
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import write_text
from sl_discs.support.terminal import say

HERE = Path(__file__).parent
SETS = [
    f"maxcut/{name}"
    for name in (
        "er/r-er-0.15-n-256-300",
        "er/r-er-0.15-n-512-600",
        "er/r-er-0.15-n-1024-1100",
        "ba/r-ba-4-n-256-300",
        "ba/r-ba-4-n-512-600",
        "ba/r-ba-4-n-1024-1100",
    )
]
FLAGS, define = own_flags()
define.integer("graphs", 32, "Graphs of each set.", lower_bound=2)
METHODS = ("PAS", "SL-PAS", "GWG", "SL-GWG", "DMALA", "SL-DMALA")


def gaps_of(dataset: str, method: str, graphs: int) -> dict[str, Any]:
    """Runs a method on the first graphs of a set; returns the mean gap in per cent, its standard
    error, and how many runs reach the best known cut.
    """
    name, graph_type, cfg_str = dataset.split("/")
    drawn = load_dataset(name, graph_type, cfg_str, num_instances=graphs)
    references = load_references(dataset, data_seed=0)
    known = [references.find(place, graph) for place, graph in enumerate(drawn.graphs)]
    cuts = np.array([one.cut for one in known if one is not None])
    if len(cuts) < graphs:
        raise InputError(f"{dataset}: {len(cuts)} graphs have a best known cut; run best_known.py")
    result = sl_discs.run(
        [method], name=name, graph_type=graph_type, cfg_str=cfg_str, num_instances=graphs
    )
    gaps = 100 * (1 - result.to_dataframe()["best"].to_numpy(float) / cuts)
    return {
        "dataset": dataset,
        "method": method,
        "graphs": graphs,
        "gap": float(gaps.mean()),
        "se": float(gaps.std(ddof=1) / np.sqrt(graphs)),
        "reached": int((gaps <= 0).sum()),
    }


def table_of(cells: dict[str, dict[str, Any]], graphs: int) -> str:
    """Returns a row for each set and a column for each method: our gap, and the paper's."""
    rows = []
    for dataset in SETS:
        table_3 = {method: published_row(dataset, own_name(method)) for method in METHODS}
        published = {method: row.mean for method, row in table_3.items() if row is not None}
        best = max(published.values())
        row = [f"`{dataset}`"]
        for method in METHODS:
            cell = cells.get(f"{dataset} {method} {graphs}")
            ours = "-" if cell is None else f"{cell['gap']:.3f} ({cell['se']:.3f})"
            row.append(f"{ours}; {best - published[method]:.3f}")
        rows.append(row)
    return table(["set", *METHODS], rows)


def _main(_) -> int:
    """Runs the methods that are not finished, and writes the table."""
    path = HERE / "cut_gaps.json"
    saved = json.loads(path.read_text()) if path.exists() else {"cells": {}}
    for dataset in SETS:
        for method in METHODS:
            name = f"{dataset} {method} {FLAGS.graphs}"
            if name not in saved["cells"]:
                saved["cells"][name] = gaps_of(dataset, method, FLAGS.graphs)
                command = f"python studies/field/cut_gaps.py --graphs={FLAGS.graphs}"
                saved["measured"] = measured_by(command=command)
                write_json(path, saved)
                say(f"{name}: {saved['cells'][name]['gap']:.4f}")
    write_text(
        HERE / "cut_gaps.md",
        "# Gaps to the best known cuts\n\n"
        f"Per cent of the best known cut that is missing, on the first {FLAGS.graphs} graphs of each "
        "set, with standard errors; after the\nsemicolon, how far the published mean lies below that "
        "of the best of the paper's six methods, in per cent of its reference.\n\n"
        f"{table_of(saved['cells'], FLAGS.graphs)}\n\n{how_measured(saved['measured'])}\n",
    )
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
