"""How much does a base sampler gain if every step counts, and not every 100th as in DISCS?

    python studies/claim/counting.py

A comparison that counted localized runs at every step, and their bases at every 100th, would show
a gain without any. Its size is read from the cells of `claim.py` at the defaults, in nodes or per
cent, and as a share of the published gain. Writes counting.md.
"""

from __future__ import annotations

import itertools
import json
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from claim_plan import SAMPLERS, published_gain
from sl_discs.commands.command import Command, own_flags
from sl_discs.localization.method import method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.reproduction.report import table
from sl_discs.support.files import write_text
from sl_discs.support.terminal import say

HERE = Path(__file__).parent
_ANNEALING = ("t_schedule", "init_temperature", "final_temperature", "decay_rate", "chain_length")


class Played(NamedTuple):
    """A cell: the digest and the number of its graphs, the mean best over all steps, and the mean
    running best at the logged ones.
    """

    block: str
    graphs: int
    every_step: float
    steps: list[int]
    trajectory: list[float]


def cells_at_defaults(prefixes: Sequence[str] = ("",)) -> Iterator[tuple[str, str, Played]]:
    """Yields set, sampler and means of each cell at the defaults: of base samplers, and with the
    prefix `sl_` of localized ones.
    """
    with tarfile.open(HERE / "cells.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None:  # a folder
                continue
            cell = json.load(file)
            played = cell["identity"]
            sampler = {key: value for key, value in played["sampler"].items() if key != "name"}
            annealing = PUBLISHED[played["dataset"]].experiment()
            if any(played["settings"][key] != annealing[key] for key in _ANNEALING):
                continue
            values = Played(
                played["graphs_sha256"],
                len(cell["best"][0]),
                float(np.mean(cell["best"])),
                cell["logged_steps"],
                cell["trajectory"],
            )
            for name, prefix in itertools.product(SAMPLERS, prefixes):
                method = prefix + SAMPLERS[name].base
                defaults = method_fields(method) | SAMPLERS[name].changes
                if played["sampler"]["name"] == method and all(
                    defaults.get(key) == value for key, value in sampler.items()
                ):
                    yield played["dataset"], prefix + name, values


def rows_of(cells: Iterator[tuple[str, str, Played]]) -> list[dict[str, Any]]:
    """Returns a row for each set and sampler: what counting every step adds, and its share."""
    played: dict[tuple[str, str], list[Played]] = defaultdict(list)
    for dataset, sampler, cell in cells:
        played[dataset, sampler].append(cell)
    rows = []
    for (dataset, sampler), found in sorted(played.items()):
        graphs = [cell.graphs for cell in found]
        added = np.average(
            [cell.every_step - cell.trajectory[-1] for cell in found], weights=graphs
        )
        if graph_kind(dataset.partition("/")[0]).in_percent:
            added *= 100 / np.average([cell.every_step for cell in found], weights=graphs)
        published = published_gain(dataset, sampler)
        share = added / published if published and published > 0 else None
        row = {"dataset": dataset, "sampler": sampler, "graphs": sum(graphs)}
        rows.append(row | {"added": float(added), "published": published, "share": share})
    return rows


FLAGS, define = own_flags()
define.string("output", str(HERE / "counting.md"), "File for the table.")


def _main(_) -> int:
    rows = rows_of(cells_at_defaults())
    lines = [
        [
            f"`{row['dataset']}`",
            row["sampler"],
            str(row["graphs"]),
            f"{row['added']:.4f}",
            "-" if row["share"] is None else f"{row['published']:+.3f}",
            "-" if row["share"] is None else f"{row['share']:.2f}",
        ]
        for row in rows
    ]
    titles = ["set", "sampler", "graphs", "added by counting every step", "published gain", "share"]
    text = "\n\n".join(
        [
            "# Every step, or every 100th",
            "What a base sampler gains at its defaults if every step counts instead of every 100th, "
            "in nodes or per cent\n(`python studies/claim/counting.py`).",
            table(titles, lines),
        ]
    )
    say(f"saved: {write_text(Path(FLAGS.output), text + chr(10))}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
