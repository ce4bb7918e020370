"""The cells that each table needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sl_discs.errors import InputError
from sl_discs.reproduction.cell import HELD_OUT, Cell, Choice
from sl_discs.reproduction.datasets import PublishedSet
from sl_discs.reproduction.tuned import load_tuned

METHODS = ("gwg", "sl_gwg", "path_auxiliary", "sl_path_auxiliary", "dmala", "sl_dmala")

# The paper's names of the settings that its ablation varies one at a time, the others at their defaults.
ABLATION = {
    "CLASSIC": {"alpha": "classic"},
    "GEOM(1,1)": {"alpha": "geom(1,1)"},
    "GEOM(2,1)": {"alpha": "geom(2,1)"},
    "K=256": {"K": 256},
    "K=512": {"K": 512},
    "K=1024": {"K": 1024},
    "sigma=1": {"sigma": 1.0},
    "sigma=5": {"sigma": 5.0},
    "sigma=10": {"sigma": 10.0},
}
ALLOCATION = {
    f"{budget}, {grid}": {"budget": budget, "grid": grid}
    for budget in ("exp_decay", "identical")
    for grid in ("uniform", "log_snr")
}


def main_cells(choice: Choice, dataset: PublishedSet, methods: list[str], held_out: bool) -> list[Cell]:
    """Every method with its default settings and, if `held_out`, with tuned ones where a search has found them."""
    cells = [choice.cell(dataset, method) for method in methods]
    for method in methods if held_out else ():
        tuned = load_tuned(dataset.name, method)
        if tuned is not None:
            cells.append(choice.cell(dataset, method, protocol=HELD_OUT, tuned=tuned))
    return cells


def varied_cells(
    choice: Choice, dataset: PublishedSet, methods: list[str], settings: Mapping[str, Any]
) -> tuple[list[Cell], list[str]]:
    """The `sl_` methods under each setting, and why some of them cannot be run."""
    cells, left_out = [], []
    for setting, changes in settings.items():
        try:
            cells += [
                choice.cell(dataset, method, changes=changes, setting=setting)
                for method in methods
                if method.startswith("sl_")
            ]
        except InputError as error:
            left_out.append(f"{dataset.name} {setting}: left out: {error}")
    return cells, left_out
