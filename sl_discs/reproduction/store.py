"""Finished cells on disk, each a small JSON file named by a digest of everything that its numbers depend on.

A cell with other settings, graphs, seeds, engine or package version has another name, so cells are never confused,
and the same cell is found again whichever table needs it.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.engines.registry import choose_engine
from sl_discs.finished_work import Damaged, digest, read_json, write_json
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.digest import dataset_digest
from sl_discs.models.kind import PENALTY
from sl_discs.reproduction.cell import Cell
from sl_discs.samplers.registry import code_of
from sl_discs.version import __version__

# Fields of `Settings` that only affect speed, memory, or the location of results.
_WITHOUT_EFFECT = {
    "save_root", "seed", "num_instances", "first_instance", "instance_stride", "instances_per_batch", "use_devices",
    "mesh", "threads", "checkpoint_every_s", "events", "memory_gib", "ess_ratio",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes:
      best: [S, G] verified objective of the best state over every step, one row per seed.
      references: [G] the reference of each graph, NaN if it has none.
      run_s: seconds of running, all seeds, after compilation.
      chain_steps_per_s: while running.
      logged_steps: [L] step numbers.
      trajectory: [L] running best over the logged steps, mean over graphs, of the first seed.
      trajectory_se: [L] its standard error; zero for a single graph.
      machine: device, engine, versions and commit of the run.
      identity: everything that the numbers depend on.
    """

    best: np.ndarray
    references: np.ndarray
    run_s: float
    chain_steps_per_s: float
    logged_steps: np.ndarray
    trajectory: np.ndarray
    trajectory_se: np.ndarray
    machine: dict[str, str]
    identity: dict[str, Any]

    def by_graph(self) -> np.ndarray:
        """[G] mean over seeds."""
        return self.best.mean(axis=0)

    def with_references(self, dataset: Dataset) -> Result:
        """The result with the graphs' current references, on which no other number depends."""
        return dataclasses.replace(self, references=references_of(dataset))


def references_of(dataset: Dataset) -> np.ndarray:
    """[G] references as float64, NaN if a graph has none."""
    values = [math.nan if graph.reference is None else graph.reference for graph in dataset.graphs]
    return np.array(values, dtype=np.float64)


def identity(cell: Cell, dataset: Dataset) -> dict[str, Any]:
    """Everything that a cell's numbers depend on, as plain values."""
    settings = {
        name: value for name, value in dataclasses.asdict(cell.settings).items() if name not in _WITHOUT_EFFECT
    }
    if not cell.settings.reheats:
        # As in cells that ran before there was reheating.
        del settings["reheats"], settings["reheat_from"]
    settings["engine"] = choose_engine(cell.settings.engine, cell.build().sampler)[0].name
    return {
        "dataset": dataset.name,
        "instances": [graph.name for graph in dataset.graphs],
        "index": list(dataset.index),
        "graphs_sha256": dataset_digest(dataset),
        "penalty": PENALTY,
        "settings": settings,
        "sampler": dict(cell.sampler),
        "seeds": list(cell.seeds),
        "version": __version__,
        **code_of(cell.method),
    }


def path_of(folder: Path, content: dict[str, Any]) -> Path:
    """The file of a cell with this identity."""
    name = f"{content['sampler']['name']}-{digest(content)[:16]}.json"
    return folder / re.sub(r"[^A-Za-z0-9._/-]+", "-", content["dataset"]) / name


def load_result(folder: Path, content: dict[str, Any]) -> Result | None:
    """The cell with this identity; None if there is none, or, with a warning, if its file was modified."""
    path = path_of(folder, content)
    try:
        saved = read_json(path)
        if saved is None:
            return None
        if saved.pop("sha256", "") != digest(saved) or saved["identity"] != content:
            raise Damaged
    except Damaged:
        sys.stderr.write(f"warning: {path} is not used: its content does not match its digest; the cell runs again\n")
        return None
    arrays = ("best", "references", "logged_steps", "trajectory", "trajectory_se")
    return Result(**saved | {name: np.array(saved[name], dtype=np.float64) for name in arrays})


def save_result(folder: Path, result: Result) -> Path:
    """Writes a cell, atomically.

    Raises:
      InputError: the folder cannot be written.
    """
    content = dataclasses.asdict(result)
    content |= {name: value.tolist() for name, value in content.items() if isinstance(value, np.ndarray)}
    content["references"] = [None if math.isnan(value) else value for value in content["references"]]
    content = {"sha256": digest(content)} | content
    return write_json(path_of(folder, result.identity), content, indent=None, allow_nan=False)
