"""The numbers of the ICML 2025 paper, for comparison.

They are means and standard deviations over instances: of the set size for MIS, and of the percentage of the
instance's reference for MaxCut and MaxClique. Every chain took 10,000 steps.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import NamedTuple

CHAIN_LENGTH = 10_000

_NAMES = {"gwg": "GWG", "path_auxiliary": "PAS", "dmala": "DMALA"}


class PublishedRow(NamedTuple):
    """One entry of the paper's main table: mean and standard deviation over instances."""

    mean: float
    std: float


def published_name(sampler_name: str) -> str | None:
    """The paper's name of a sampler, such as `SL-PAS` for `sl_path_auxiliary`, or None if it has none."""
    base = _NAMES.get(sampler_name.removeprefix("sl_"))
    return f"SL-{base}" if base and sampler_name.startswith("sl_") else base


def _row(table: dict, sampler_name: str) -> PublishedRow | None:
    row = table.get(published_name(sampler_name))
    return None if row is None else PublishedRow(row["mean"], row["std"])


def published_row(dataset_name: str, sampler_name: str) -> PublishedRow | None:
    """The paper's result of a sampler on a dataset such as `mis/er_density/r-0.10`, or None if there is none."""
    return _row(_tables()["main"].get(dataset_name, {}), sampler_name)


def published_cells() -> int:
    """The number of entries of the paper's main table."""
    return sum(len(row) for row in _tables()["main"].values())


def published_seconds(dataset_name: str, sampler_name: str) -> float | None:
    """The paper's run time of a sampler on a whole dataset, or None if there is none."""
    return _tables()["runtime_seconds"].get(dataset_name, {}).get(published_name(sampler_name))


def published_ablation(dataset_name: str, setting: str, sampler_name: str) -> PublishedRow | None:
    """The paper's result of an `sl_` sampler with a setting such as `GEOM(2,1)` or `sigma=5`; None if not given."""
    return _row(_tables()["ablation"].get(dataset_name, {}).get(setting, {}), sampler_name)


def has_ablation(dataset_name: str) -> bool:
    """Whether the paper's ablation has the dataset."""
    return dataset_name in _tables()["ablation"]


@functools.cache
def _tables() -> dict:
    text = resources.files("sl_discs.experiment").joinpath("published_icml2025.json").read_text(encoding="utf-8")
    return json.loads(text)
