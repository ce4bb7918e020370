"""Runs the cells that are not finished yet, and keeps them."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from sl_discs import __version__
from sl_discs.experiment.record import commit, describe_devices, fields_of_results
from sl_discs.experiment.run_sampler import RunPlan, engine_for, plans_in_memory, run_sampler
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import code_of
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.cells import Cell
from sl_discs.support.documents import Damaged, read_json, write_json
from sl_discs.support.files import check_writable
from sl_discs.support.identity import digest
from sl_discs.support.locks import only_run_in
from sl_discs.support.terminal import progress_bar, tell

# Finished cells on disk, each a small JSON file named by a digest of everything that its numbers
# depend on.
#
# A cell with other settings, graphs, seeds, engine or package version has another name, so cells
# are never confused, and the same cell is found again whichever table needs it.

# Fields of `Settings` that are in a cell's identity in another form.
_LEFT_OUT = {"seed", "num_instances", "first_instance", "instance_stride"}


@dataclasses.dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    Attributes:
      best: [S, G] verified objective of the best state over every step, one row per seed.
      run_s: seconds of running, all seeds, after compilation.
      chain_steps_per_s: while running.
      machine: device, engine, versions and commit of the run.
      identity: everything that the numbers depend on.
    """

    best: np.ndarray
    run_s: float
    chain_steps_per_s: float
    machine: dict[str, str]
    identity: dict[str, Any]

    def by_graph(self) -> np.ndarray:
        """[G] mean over seeds."""
        return self.best.mean(axis=0)


def identity(cell: Cell, dataset: Dataset) -> dict[str, Any]:
    """Everything that a cell's numbers depend on, as plain values."""
    settings = fields_of_results(dataclasses.asdict(cell.settings))
    settings = {name: value for name, value in settings.items() if name not in _LEFT_OUT}
    # Left out at their defaults, so that cells on disk keep their names.
    sampler = dict(cell.sampler)
    if sampler.get("anneal") == "run":
        del sampler["anneal"]
    settings["engine"] = engine_for(dataset, cell.build(), cell.settings)[0].name
    return {
        "dataset": dataset.name,
        "instances": [graph.name for graph in dataset.graphs],
        "index": list(dataset.index),
        "graphs_sha256": dataset.digest(),
        "penalty": PENALTY,
        "settings": settings,
        "sampler": sampler,
        "seeds": list(cell.seeds),
        "version": __version__,
        **code_of(cell.method),
    }


def path_of(folder: Path, content: dict[str, Any]) -> Path:
    """Returns the file of a cell with this identity."""
    name = f"{content['sampler']['name']}-{digest(content)[:16]}.json"
    return folder / re.sub(r"[^A-Za-z0-9._/-]+", "-", content["dataset"]) / name


def load_result(folder: Path, content: dict[str, Any]) -> CellResult | None:
    """Returns the cell with this identity; None if there is none, or, with a warning, if its file
    was modified.
    """
    path = path_of(folder, content)
    try:
        saved = read_json(path)
        if saved is None:
            return None
        if saved.pop("sha256", "") != digest(saved) or saved["identity"] != content:
            raise Damaged
        return CellResult(**saved | {"best": np.array(saved["best"], dtype=np.float64)})
    except (Damaged, TypeError):  # of other fields
        tell(
            f"warning: {path} is not used: its content does not match its digest; the cell runs "
            "again"
        )
        return None


def save_result(folder: Path, result: CellResult) -> Path:
    """Writes a cell, atomically."""
    content = dataclasses.asdict(result) | {"best": result.best.tolist()}
    content = {"sha256": digest(content)} | content
    return write_json(path_of(folder, result.identity), content, indent=None, allow_nan=False)


class Done(NamedTuple):
    """A cell with its graphs and its result."""

    cell: Cell
    dataset: Dataset
    result: CellResult


@dataclasses.dataclass
class Runner:
    """Runs cells one after the other, and keeps them in a folder.

    Attributes:
      folder: of the finished cells.
      say: prints a line.
      total: number of cells, of which `done` are done so far and `ran` were run rather than loaded.
      compile_s: seconds of compiling so far.
    """

    folder: Path
    say: Callable[[str], None]
    total: int
    done: int = 0
    ran: int = 0
    compile_s: float = 0.0

    def run(self, cell: Cell, dataset: Dataset) -> Done:
        """Returns the cell's result, loaded from the folder or else from a run.

        FolderInUse while another process runs it.
        """
        begin = time.perf_counter()
        content = identity(cell, dataset)
        result = load_result(self.folder, content)
        message = "there already"
        if result is None:
            [plan], _ = plans_in_memory(dataset, PENALTY, [cell.build()], cell.settings)
            locks = check_writable(self.folder / "locks")
            with only_run_in(locks, f"{path_of(self.folder, content).stem}.lock"):
                # Another process may have run it since.
                result = load_result(self.folder, content) or self._play(cell, plan, content)
            message = (
                f"{len(dataset.graphs)} graphs in {time.perf_counter() - begin:.1f} s, "
                f"{result.chain_steps_per_s:,.0f} chain-steps/s"
            )
        self.done += 1
        mean = f"{result.best.mean():.3f}"
        self.say(f"[{self.done}/{self.total}] {cell.label()}: mean {mean}, {message}")
        return Done(cell, dataset, result)

    def _play(self, cell: Cell, plan: RunPlan, content: dict) -> CellResult:
        records = []
        dataset = plan.dataset
        with progress_bar(plan.total_steps() * len(cell.seeds)) as progress:
            report = functools.partial(progress, cell.method)
            for seed in cell.seeds:
                seeded = plan._replace(settings=dataclasses.replace(plan.settings, seed=seed))
                records.append(run_sampler(seeded, report))
        self.compile_s += sum(record.compile_s for record in records)
        run_s = sum(record.run_s for record in records)
        result = CellResult(
            best=np.array([[instance.best for instance in record.instances] for record in records]),
            run_s=run_s,
            chain_steps_per_s=sum(record.chain_steps_per_s * record.run_s for record in records)
            / run_s,
            machine={
                "device": describe_devices([plan.engine]),
                "engine": records[0].engine,
                "jax": jax.__version__,
                "commit": commit(),
                "source": f"{dataset.source} ({dataset.detail})",
            },
            identity=content,
        )
        save_result(self.folder, result)
        self.ran += 1
        return result
