"""Runs the cells that are not finished yet, and reports progress."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from sl_discs.experiment.memory import fit_to_memory
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.record import commit
from sl_discs.experiment.run import run_sampler, total_chain_steps
from sl_discs.instances.dataset import Dataset
from sl_discs.models.kind import PENALTY
from sl_discs.reproduction.cell import Cell
from sl_discs.reproduction.store import Result, identity, load_result, references_of, save_result

Say = Callable[[str], None]


class Done(NamedTuple):
    """A cell with its graphs and its result."""

    cell: Cell
    dataset: Dataset
    result: Result


@dataclasses.dataclass
class Runner:
    """Runs cells one after the other.

    Attributes:
      folder: folder of the finished cells.
      say: prints a line.
      total: total number of cells.
      done: number of cells done so far.
      ran: number of these that were run rather than loaded.
      compile_s: seconds of compiling so far.
    """

    folder: Path
    say: Say
    total: int
    done: int = 0
    ran: int = 0
    compile_s: float = 0.0

    def run(self, cell: Cell, dataset: Dataset) -> Done:
        """The cell's result, loaded from the folder or else from a run."""
        self.done += 1
        content = identity(cell, dataset)
        result = load_result(self.folder, content)
        label = f"[{self.done}/{self.total}] {cell.label()}"
        if result is not None:
            self.say(f"{label}: there already, mean {result.best.mean():.3f}")
            # References may have been improved, or found, since the cell was run.
            return Done(cell, dataset, result.with_references(dataset))
        begin = time.perf_counter()
        result = self._play(cell, dataset, content)
        save_result(self.folder, result)
        self.ran += 1
        self.say(
            f"{label}: mean {result.best.mean():.3f} of {len(dataset.graphs)} graphs "
            f"in {time.perf_counter() - begin:.1f} s, {result.chain_steps_per_s:,.0f} chain-steps/s"
        )
        return Done(cell, dataset, result)

    def _play(self, cell: Cell, dataset: Dataset, content: dict) -> Result:
        """Runs a cell with all its seeds."""
        method, records = cell.build(), []
        fitting, _ = fit_to_memory(dataset, PENALTY, [method], cell.settings)
        with progress_bar(total_chain_steps(dataset, cell.settings) * len(cell.seeds)) as progress:
            for seed in cell.seeds:
                settings = dataclasses.replace(fitting, seed=seed)

                def report(steps):
                    progress(cell.method, steps)

                records.append(run_sampler(dataset.problem, dataset, PENALTY, method, settings, report))
        self.compile_s += sum(record.compile_s for record in records)
        run_s = sum(record.run_s for record in records)
        every = cell.settings.log_every_steps
        trajectory, count = records[0].trajectory, len(dataset.graphs)
        return Result(
            best=np.array([[instance.best for instance in record.instances] for record in records]),
            references=references_of(dataset),
            run_s=run_s,
            chain_steps_per_s=sum(record.chain_steps_per_s * record.run_s for record in records) / run_s,
            logged_steps=np.arange(every, cell.settings.chain_length + 1, every),
            trajectory=trajectory.mean(axis=1),
            trajectory_se=trajectory.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count),
            machine={
                "device": f"{len(jax.devices())} x {jax.devices()[0].device_kind}",
                "engine": records[0].engine,
                "jax": jax.__version__,
                "commit": commit(),
                "source": f"{dataset.source} ({dataset.detail})",
            },
            identity=content,
        )
