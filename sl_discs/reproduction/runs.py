"""Runs the cells that are not finished yet, keeps them, and collects the trials of searches."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.memory import fit_to_memory
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.record import commit
from sl_discs.experiment.run import run_sampler, total_chain_steps
from sl_discs.files import Damaged, digest, read_json, write_json
from sl_discs.instances.dataset import Dataset, dataset_digest
from sl_discs.localization.method import method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.cells import AS_PUBLISHED, NULL, Cell, Choice, PublishedSet
from sl_discs.samplers.registry import code_of
from sl_discs.tuning.space import Candidate, Dimension, Point, candidate_of, propose, space_of
from sl_discs.version import __version__

# Finished cells on disk, each a small JSON file named by a digest of everything that its numbers depend on.
#
# A cell with other settings, graphs, seeds, engine or package version has another name, so cells are never confused,
# and the same cell is found again whichever table needs it.

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
        return dataclasses.replace(self, references=_references(dataset))


def _references(dataset: Dataset) -> np.ndarray:
    return np.array([graph.reference for graph in dataset.graphs], dtype=np.float64)  # None becomes NaN


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
    """Writes a cell, atomically."""
    content = dataclasses.asdict(result)
    content |= {name: value.tolist() for name, value in content.items() if isinstance(value, np.ndarray)}
    content["references"] = [None if math.isnan(value) else value for value in content["references"]]
    content = {"sha256": digest(content)} | content
    return write_json(path_of(folder, result.identity), content, indent=None, allow_nan=False)


Say = Callable[[str], None]


class Done(NamedTuple):
    """A cell with its graphs and its result."""

    cell: Cell
    dataset: Dataset
    result: Result


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
        method, records = cell.build(), []
        fitting, _ = fit_to_memory(dataset, PENALTY, [method], cell.settings)
        with progress_bar(total_chain_steps(dataset, cell.settings) * len(cell.seeds)) as progress:
            for seed in cell.seeds:
                settings = dataclasses.replace(fitting, seed=seed)

                report = functools.partial(progress, cell.method)
                records.append(run_sampler(dataset.problem, dataset, PENALTY, method, settings, report))
        self.compile_s += sum(record.compile_s for record in records)
        run_s = sum(record.run_s for record in records)
        every = cell.settings.log_every_steps
        trajectory, count = records[0].trajectory, len(dataset.graphs)
        return Result(
            best=np.array([[instance.best for instance in record.instances] for record in records]),
            references=_references(dataset),
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


# The trials of protocol `as published`, and of its null control.
#
# The paper searched the settings of localization for each dataset and reports the best result, chosen on the graphs
# of its tables. Here trial 0 has the default settings, and trial k > 0 has a point of the paper's search space.
# Points are a fixed list, the same for every dataset and method: each block of eight is a Latin hypercube, so that
# eight trials cover all eight values of sigma and every eighth of each other range. A trial thus only depends on its
# number, and finished trials stay valid when more are requested. Trial k runs with seed k.

_BLOCK = 8
_SEED = 0


class Uniform:
    """Chooses by a number from [0, 1) for each name: a position in the range, or among the choices."""

    def __init__(self, numbers: dict[str, float]):
        self._numbers = numbers

    def suggest_categorical(self, name, choices):
        return choices[int(self._numbers[name] * len(choices))]

    def suggest_float(self, name, low, high, *, log, step):
        u = self._numbers[name]
        if step is not None:
            return low + step * int(u * (round((high - low) / step) + 1))
        return float(low * (high / low) ** u) if log else low + (high - low) * u


def point_of_trial(trial: int, space: tuple[Dimension, ...]) -> Point:
    """The point of a trial, from 1 on, in a space."""
    block, place = divmod(trial - 1, _BLOCK)
    rng = np.random.default_rng([_SEED, block])
    strata = rng.permuted(np.tile(np.arange(_BLOCK), (len(space), 1)), axis=1)
    numbers = (strata + rng.random(strata.shape)) / _BLOCK
    return propose(space, Uniform({one.name: float(u) for one, u in zip(space, numbers[:, place], strict=True)}))


def trial_cells(
    choice: Choice, dataset: PublishedSet, methods: list[str], trials: int
) -> tuple[list[Cell], list[str]]:
    """Trials 0..trials-1 of each `sl_` method, and as many with the tilt off; and reasons if there are none.

    Annealing is DISCS's, as in the paper's base rows, so there is nothing to search for a base sampler, which is
    represented by its cell at defaults.
    """
    cells = []
    try:
        for method in (name for name in methods if name.startswith("sl_")):
            start = Candidate(method_fields(method), {})
            for trial in range(trials):
                alone = dataclasses.replace(choice, seeds=(trial,))
                point = point_of_trial(trial, space_of(method, "sl", choice.steps(dataset))) if trial else {}
                changes = candidate_of(point, start).sampler if trial else {}
                name, null = f"trial {trial}", changes | {"tilt": False}
                cells.append(alone.cell(dataset, method, changes=changes, setting=name, protocol=AS_PUBLISHED))
                cells.append(alone.cell(dataset, method, changes=null, setting=name, protocol=NULL))
    except InputError as error:
        return [], [f"{dataset.name}, search on the test instances: left out: {error}"]
    return cells, []


# The results of a search: its best trial, and all trials for the record.


@dataclasses.dataclass(frozen=True)
class Search:
    """Trials of one method on one dataset, at least one; trial k runs with seed k."""

    trials: list[Done]

    def means(self) -> Float64[np.ndarray, "N"]:
        """The objective's mean over graphs, of each trial."""
        return np.array([one.result.best.mean() for one in self.trials])

    def best(self) -> Done:
        """The trial with the largest mean; the first of these if there are several."""
        return self.trials[int(np.argmax(self.means()))]

    def record(self) -> dict[str, Any]:
        """All trials as plain values: means, the best so far, settings."""
        means = self.means()
        return {
            "best_trial": int(np.argmax(means)),
            "best_of": np.maximum.accumulate(means).tolist(),
            "trials": [
                {"trial": number, "seed": one.cell.seeds[0], "mean": float(mean), "sampler": dict(one.cell.sampler)}
                for number, (one, mean) in enumerate(zip(self.trials, means, strict=True))
            ],
        }


def searches(done: list[Done]) -> dict[tuple[str, str, str], Search]:
    """The searches among cells, by dataset, method and protocol."""
    trials: dict[tuple[str, str, str], Search] = {}
    for one in done:
        if one.cell.protocol in (AS_PUBLISHED, NULL):
            key = one.dataset.name, one.cell.method, one.cell.protocol
            trials.setdefault(key, Search([])).trials.append(one)
    return trials


def reported(done: list[Done]) -> list[Done]:
    """The cells in order, where only the best trial of each search is kept."""
    best = [search.best() for search in searches(done).values()]
    return [one for one in done if one.cell.protocol not in (AS_PUBLISHED, NULL) or any(one is two for two in best)]


def search_rows(done: list[Done]) -> list[dict[str, Any]]:
    """A row for each dataset and method: every trial of the search, and of its null control."""
    found = searches(done)
    return [
        {
            "dataset": dataset,
            "method": method,
            "num_trials": len(search.trials),
            "n": len(search.trials[0].dataset.graphs),
            "unit": graph_kind(search.trials[0].dataset.problem).unit,
            AS_PUBLISHED: search.record(),
            NULL: found[dataset, method, NULL].record(),
        }
        for (dataset, method, protocol), search in found.items()
        if protocol == AS_PUBLISHED
    ]
