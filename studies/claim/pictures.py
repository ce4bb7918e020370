"""Draws the pictures of pages from stored numbers: the gains of each arm, the levels of the tables,
and the paper's Figures 1 and 2 on this project's sets.

    python studies/claim/pictures.py

Nothing is run. `report.json` has gains and levels, `../reproduction/ablation.json` the ablations
(16 graphs a set), and `cells.tar.xz` the trajectories of the comparison's runs at the defaults.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from claim_plan import SAMPLERS
from claim_report import draw_forest
from counting import Played, cells_at_defaults
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.summary import published_row
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.support.figures import COLOURS, save_figure
from sl_discs.support.terminal import say

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
_NAMES = {"path_auxiliary": "PAS", "gwg": "GWG", "dmala": "DMALA"}
_FAMILIES = {
    "ER, MIS": "mis/er_density",
    "SATLIB": "mis/satlib",
    "RB": "maxclique/rb",
    "cuts, ER": "maxcut/er",
    "cuts, BA": "maxcut/ba",
}
# Of Figure 1: the settings of a panel, each against GEOM(2,1).
_SETTINGS = {
    "schedule": ("CLASSIC", "GEOM(1,1)", "GEOM(2,1)"),
    "levels": ("K=256", "K=512", "K=1024"),
    "noise": ("sigma=1", "sigma=5", "sigma=10"),
}
_SHOWN = {
    "mis/er_density/r-0.10": "MIS, ER-0.10: nodes",
    "maxclique/rb": "cliques, RB: nodes",
    "maxcut/ba/r-ba-4-n-512-600": "cuts, BA-512: edges",
}


def draw_levels(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """A panel for each set: published means and ours, with 95 % intervals."""
    methods = [f"{sl}{name}" for name in _NAMES for sl in ("", "sl_")]
    sets = [name for name in PUBLISHED if name.partition("/")[0] != "maxcut"]

    def paint(figure):
        for place, dataset in enumerate(sets):
            axes = figure.add_subplot(3, 3, place + 1)
            mine = {row["method"]: row for row in rows if row["dataset"] == dataset}
            for height, method in enumerate(methods):
                paper, ours = published_row(dataset, method), mine[method]
                half = 1.96 * paper.std / math.sqrt(PUBLISHED[dataset].published_n)
                for mean, error, marker, colour, shift in (
                    (paper.mean, half, "s", "0.6", -0.15),
                    (ours["mean"], 1.96 * ours["se"], "o", "black", 0.15),
                ):
                    style = {"fmt": marker, "color": colour, "markersize": 3.5, "linewidth": 1}
                    axes.errorbar(mean, height + shift, xerr=error, **style)
            labels = [method.replace("sl_", "SL-") for method in methods] if place % 3 == 0 else []
            for base, name in _NAMES.items():
                labels = [label.replace(base, name) for label in labels]
            axes.set_yticks(range(len(methods)), labels)
            axes.set_ylim(len(methods) - 0.4, -0.6)
            axes.locator_params(axis="x", nbins=4)
            axes.ticklabel_format(axis="x", useOffset=False)
            counts = sorted({mine[method]["n"] for method in methods})
            graphs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            axes.set_title(f"{dataset}, {graphs} graphs", fontsize=7.5)
            percent = ours["unit"] == "%"
            axes.set_xlabel("% of the best known size" if percent else "nodes")
        for marker, colour, label in (("s", "0.6", "published"), ("o", "black", "ours")):
            axes.plot([], [], f"{marker}-", color=colour, label=f"{label}, 95 % interval")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)

    return save_figure(path, (8.7, 7.7), paint)


def draw_ablations(cells: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Figure 1: each setting minus GEOM(2,1) in per cent, published and ours, by family of sets."""

    def paint(figure):
        panels = figure.subplots(len(_FAMILIES), len(_SETTINGS), sharex="col")
        for row, (family, prefix) in zip(panels, _FAMILIES.items(), strict=True):
            for axes, (title, settings) in zip(row, _SETTINGS.items(), strict=True):
                for place, setting in enumerate(settings):
                    changes = [
                        cell["change"]
                        for cell in cells
                        if cell["setting"] == setting and cell["dataset"].startswith(prefix)
                    ]
                    ours = np.mean([change["mean"] for change in changes])
                    error = np.sqrt(sum(change["se"] ** 2 for change in changes)) / len(changes)
                    published = np.mean([change["published"] for change in changes])
                    axes.plot(place - 0.12, published, "s", color="0.6", markersize=4)
                    style = {"fmt": "o", "color": "black", "markersize": 3.5, "linewidth": 1}
                    axes.errorbar(place + 0.12, ours, yerr=1.96 * error, **style)
                axes.axhline(0, color="grey", linewidth=0.6)
                axes.margins(y=0.15)
                axes.set_xticks(range(len(settings)), settings, fontsize=7)
                axes.set_xlim(-0.5, len(settings) - 0.5)
                if family == "ER, MIS":
                    axes.set_title(title)
            row[0].set_ylabel(f"{family}, %")
        axes.plot([], [], "s", color="0.6", label="published (no error given)")
        axes.plot([], [], "o-", color="black", label="ours, 16 graphs a set, 95 % interval")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)

    return save_figure(path, (7.0, 7.4), paint)


def draw_trajectories(path: Path) -> Path:
    """Figure 2: the running best by step, over all graphs of the comparison's runs at defaults."""
    played: dict[tuple[str, str], list[Played]] = {}
    for dataset, sampler, cell in cells_at_defaults(("", "sl_")):
        if dataset in _SHOWN and sampler.removeprefix("sl_") in _NAMES:
            played.setdefault((dataset, sampler), []).append(cell)
    # All methods of a set on equally many graphs: cells have the same blocks of graphs.
    blocks = {
        dataset: set.intersection(
            *({cell.block for cell in cells} for key, cells in played.items() if key[0] == dataset)
        )
        for dataset in _SHOWN
    }

    def paint(figure):
        for axes, (dataset, title) in zip(figure.subplots(1, 3), _SHOWN.items(), strict=True):
            levels = []
            for colour, base in zip(COLOURS, _NAMES, strict=False):
                for prefix, line in (("", (0, (4, 2))), ("sl_", "-")):
                    cells = [
                        cell
                        for cell in played[dataset, prefix + base]
                        if cell.block in blocks[dataset]
                    ]
                    graphs = [cell.graphs for cell in cells]
                    mean = np.average([cell.trajectory for cell in cells], axis=0, weights=graphs)
                    levels += [mean[len(mean) // 2], mean[-1]]
                    name = ("SL-" if prefix else "") + _NAMES[base]
                    axes.plot(cells[0].steps, mean, color=colour, linestyle=line, label=name)
            margin = 0.05 * (max(levels) - min(levels))
            axes.set_ylim(min(levels), max(levels) + margin)
            axes.set_xlim(cells[0].steps[-1] * 0.4, cells[0].steps[-1])
            axes.set_title(f"{title}, {sum(graphs)} graphs", fontsize=8)
            axes.set_xlabel("MCMC step")
        handles = axes.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False)

    return save_figure(path, (9.0, 3.4), paint)


FLAGS, define = own_flags()
define.string("output", str(DOCS), "Folder of the pictures.")


def _main(_) -> int:
    folder = Path(FLAGS.output)
    claim = json.loads((HERE / "report.json").read_text())["claim"]
    ablation = json.loads((HERE.parent / "reproduction" / "ablation.json").read_text())
    assert set(SAMPLERS) >= set(_NAMES)
    drawn = (
        draw_forest(claim["gains"], folder / "claim.png"),
        draw_levels(claim["levels"], folder / "levels.png"),
        draw_ablations(ablation["cells"], folder / "paper" / "figure1.png"),
        draw_trajectories(folder / "paper" / "figure2.png"),
    )
    for path in drawn:
        say(f"saved: {path}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
