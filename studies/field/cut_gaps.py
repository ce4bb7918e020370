"""How far below the best known cuts are the paper's six methods?

    python studies/field/cut_gaps.py --graphs=32 --data_root=FOLDER

Each method of Table 3 runs at this package's defaults, with DISCS's annealing, steps and chains of
the set, on the first graphs of the generated sets, whose best known cuts are in `references/`, and on Optsicom's ten
graphs, whose optimal cuts come with them. The gap of a graph is what the best cut of a run lacks,
in per cent of the best known one. Published percentages have another reference, so the paper's own
gaps are counted from the best of its six methods. Finished methods are kept in cut_gaps.json, and a
stopped command continues; cut_gaps.md is the table.
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
from sl_discs.instances.graph import Graph
from sl_discs.reproduction.cells import PUBLISHED
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
        "optsicom/r-b",
    )
]
GIVEN = SETS[-1]
FLAGS, define = own_flags()
define.integer("graphs", 32, "Graphs of each generated set.", lower_bound=2)
words = "Folder of Optsicom's graphs, as DISCS's file or an archive; without it they are left out."
define.string("data_root", "", words)
METHODS = ("PAS", "SL-PAS", "GWG", "SL-GWG", "DMALA", "SL-DMALA")


def best_known_cuts(dataset: str, graphs: list[Graph]) -> list[float]:
    """Returns the best known cut of each graph; InputError unless each has one."""
    if dataset == GIVEN:
        known = [graph.reference for graph in graphs]
    else:
        references = load_references(dataset, data_seed=0)
        found = [references.find(place, graph) for place, graph in enumerate(graphs)]
        known = [one and one.cut for one in found]
    cuts = [cut for cut in known if cut]
    if len(cuts) < len(graphs):
        raise InputError(f"{dataset}: {len(cuts)} graphs have a best known cut; run best_known.py")
    return cuts


def gaps_of(dataset: str, method: str, graphs: int | None, data_root: str) -> dict[str, Any]:
    """Runs a method on the first graphs of a set; returns the mean gap in per cent, its standard
    error, and how many runs reach the best known cut.
    """
    name, graph_type, cfg_str = dataset.split("/")
    drawn = load_dataset(name, graph_type, cfg_str, data_root, num_instances=graphs)
    cuts = np.array(best_known_cuts(dataset, drawn.graphs))
    graphs = len(cuts)
    result = sl_discs.run(
        [method],
        {"experiment": PUBLISHED[dataset].experiment()},
        name=name,
        graph_type=graph_type,
        cfg_str=cfg_str,
        data_root=data_root,
        num_instances=graphs,
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
        # The references of Optsicom's graphs are their optimal cuts, in the paper as well.
        best = 100.0 if dataset == GIVEN else max(published.values())
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
        is_given = dataset == GIVEN
        for method in METHODS:
            name = f"{dataset} {method} {FLAGS.graphs}"
            if name not in saved["cells"] and (FLAGS.data_root or not is_given):
                count = None if is_given else FLAGS.graphs
                root = FLAGS.data_root if is_given else ""
                saved["cells"][name] = gaps_of(dataset, method, count, root)
                command = f"python studies/field/cut_gaps.py --graphs={FLAGS.graphs}"
                saved["measured"] = measured_by(command=f"{command} --data_root=FOLDER")
                write_json(path, saved)
                say(f"{name}: {saved['cells'][name]['gap']:.4f}")
    write_text(
        HERE / "cut_gaps.md",
        "# Gaps to the best known cuts\n\n"
        f"Per cent of the best known cut that is missing, on the first {FLAGS.graphs} graphs of each "
        "generated set and on Optsicom's ten,\nwith standard errors; after the semicolon, how far the "
        "published mean lies below that of the best of the paper's six methods, in per\ncent of its "
        "reference. Optsicom's references are optimal cuts, and the paper's numbers are counted from "
        "them.\n\n"
        f"{table_of(saved['cells'], FLAGS.graphs)}\n\n{how_measured(saved['measured'])}\n",
    )
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
