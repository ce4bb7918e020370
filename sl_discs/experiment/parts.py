"""One run in several parts: each process runs a share of the instances, and the one that ends last
joins the results.

Instances are independent, so that parts exchange nothing while the chains run, and may run at any
time and on any machine that sees the run's folder. A part keeps its checkpoints, and its records
once it is done, in `parts/K-of-N`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.chains.checkpoint import remove_checkpoints
from sl_discs.experiment.record import (
    ARRAYS,
    BY_INSTANCE,
    SECONDS,
    InstanceRecord,
    SamplerRecord,
    fields_of_results,
)
from sl_discs.support.checks import shown
from sl_discs.support.documents import read_document, write_document
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable
from sl_discs.support.identity import check_same
from sl_discs.support.locks import LOCK, only_run_in

_RECORDS, _FORMAT = "records.npz", "sl_discs records 3"
# What Slurm tells a task of a job, which may be one of an array.
_SLURM = (
    "PROCID",
    "NTASKS",
    "ARRAY_TASK_ID",
    "ARRAY_TASK_MIN",
    "ARRAY_TASK_MAX",
    "ARRAY_TASK_COUNT",
    "ARRAY_TASK_STEP",
)
# Seconds for which a part waits while another one joins the results.
_JOIN_S = 600.0


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a run."""

    index: int = 1  # its number, from 1
    count: int = 1  # number of parts; 1 for a run as a whole

    @staticmethod
    def parse(text: str) -> Part:
        """Returns the part `K/N`, or for `auto` that of this task of a Slurm job or array.

        Raises:
          InputError: anything else, or `auto` where there is one task alone.
        """
        if text == "auto":
            return _part_of_task()
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        part = Part(*map(int, match.groups())) if match else None
        if part is None or not 1 <= part.index <= part.count:
            raise InputError(
                f"--part={text} is not a part; give K/N with K from 1 to N, such as 1/8, or auto "
                "in a job of Slurm"
            )
        return part

    @property
    def label(self) -> str:
        """`part 2 of 4`; empty for a run as a whole."""
        return "" if self.count == 1 else f"part {self.index} of {self.count}"

    def share(self, num_instances: int) -> range:
        """Positions of this part's instances, which are consecutive; the numbers of two parts
        differ by at most one.

        Raises:
          InputError: there are more parts than instances.
        """
        if self.count > num_instances:
            raise InputError(
                f"{self.count} parts of {num_instances} instances would leave some without work; "
                "give fewer"
            )
        first = self.index - 1
        return range(first * num_instances // self.count, (first + 1) * num_instances // self.count)

    def folder(self, run: Path) -> Path:
        """Returns the folder of this part's files, for a run as a whole that of the run."""
        return run if self.count == 1 else run / "parts" / f"{self.index}-of-{self.count}"

    @contextlib.contextmanager
    def locked(self, run: Path) -> Iterator[Path]:
        """Locks this part's folder and yields it."""
        folder = check_writable(self.folder(run))
        with only_run_in(folder):
            yield folder

    def all(self) -> list[Part]:
        """Returns the parts of the same run, this one among them."""
        return [Part(k, self.count) for k in range(1, self.count + 1)]

    def records(self, run: Path, kind: dict[str, Any]) -> list[dict[str, SamplerRecord] | None]:
        """Returns the records of every part in order, None for those that are not done.

        Args:
          run: the folder of the run.
          kind: identity of this part of the run, `run_identity`.

        Raises:
          InputError: records are those of another run or part, or cannot be read.
        """
        return [part._records(run, kind, same_instances=part == self) for part in self.all()]

    def keep_records(
        self, run: Path, kind: dict[str, Any], samplers: dict[str, SamplerRecord]
    ) -> None:
        """Saves the records of this part, which is done; arguments as in `records`."""
        arrays: dict[str, Any] = {}
        values = {name: dataclasses.asdict(sampler) for name, sampler in samplers.items()}
        for row, fields in enumerate(values.values()):
            arrays |= {f"{row}/{name}": fields.pop(name) for name in ARRAYS}
            for column, instance in enumerate(fields["instances"]):
                arrays[f"{row}/{column}"] = instance.pop("solution")
        content = {"part": self.label, "kind": kind, "samplers": values}
        write_document(self.folder(run) / _RECORDS, _FORMAT, arrays, content)

    def _records(
        self, run: Path, kind: dict[str, Any], same_instances: bool
    ) -> dict[str, SamplerRecord] | None:
        path = self.folder(run) / _RECORDS
        if not path.exists():
            return None
        ours = _identity(kind, same_instances)
        try:
            arrays, values = read_document(path, _FORMAT)
            if values["part"] != self.label:
                raise ValueError(f"they are of {values['part']}")
            theirs = _identity(values["kind"], same_instances)
            samplers = _restored(arrays, values) if theirs == ours else {}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise InputError(
                f"{path.parent}: the records of this part cannot be read ({error}); remove the "
                "folder"
            ) from None
        check_same(
            f"{path.parent}: a part of another run",
            ours,
            theirs,
            "give another save_root, or remove the folder",
        )
        return samplers

    def joining(self, run: Path) -> contextlib.AbstractContextManager[None]:
        """Locks the results of a run in several parts, after another part that is joining them."""
        return only_run_in(run / "parts", patience_s=_JOIN_S)

    def remove_unfinished(self, run: Path) -> None:
        """Removes the checkpoints of a finished run and of its parts; a folder that holds other
        files stays.
        """
        for part in self.all():
            remove_checkpoints(part.folder(run) / "checkpoint")
        if self.count > 1:
            for folder in *(part.folder(run) for part in self.all()), run / "parts":
                with contextlib.suppress(OSError):
                    for name in (_RECORDS, LOCK):
                        (folder / name).unlink(missing_ok=True)
                    folder.rmdir()


def _part_of_task() -> Part:
    """Returns the part of this task: the tasks of a job, of each job of an array in turn."""
    numbers = {name: os.environ.get(f"SLURM_{name}", "") for name in _SLURM}
    for name, value in numbers.items():
        if value and not re.fullmatch(r"\d{1,9}", value):
            raise InputError(f"--part=auto: SLURM_{name} is {shown(value)}; give K/N")
    counted = {name: int(value) for name, value in numbers.items() if value}
    tasks = counted.get("NTASKS", 1)
    jobs = counted.get("ARRAY_TASK_COUNT", 1)
    step = counted.get("ARRAY_TASK_STEP", 1)
    first = counted.get("ARRAY_TASK_MIN", 0)
    job = (counted.get("ARRAY_TASK_ID", first) - first) // step
    last = (counted.get("ARRAY_TASK_MAX", first) - first) // step
    part = Part(job * tasks + counted.get("PROCID", 0) + 1, jobs * tasks)
    if part.count == 1 or part.index > part.count or last >= jobs:
        raise InputError(
            "--part=auto: this is no task among several, or the array has gaps (SLURM_NTASKS, "
            "SLURM_ARRAY_TASK_COUNT); start it with srun or in an array from 1 to N, or give K/N"
        )
    return part


def _restored(arrays: dict[str, Any], values: dict[str, Any]) -> dict[str, SamplerRecord]:
    samplers = {}
    for row, (name, fields) in enumerate(values["samplers"].items()):
        fields |= {field: arrays[f"{row}/{field}"] for field in ARRAYS}
        fields["instances"] = [
            InstanceRecord(**instance, solution=arrays[f"{row}/{column}"])
            for column, instance in enumerate(fields["instances"])
        ]
        samplers[name] = SamplerRecord(**fields)
    return samplers


def _identity(kind: dict[str, Any], same_instances: bool) -> dict[str, Any]:
    """Returns what results depend on; parts on other machines may have other devices."""
    kept = {name: kind[name] for name in ("model", "samplers", "engines", "versions")}
    graphs = kind["graphs"] if same_instances else kind["graphs"]["name"]
    return kept | {"experiment": fields_of_results(kind["experiment"]), "graphs": graphs}


def join_records(parts: list[SamplerRecord]) -> SamplerRecord:
    """Returns one record of a sampler, with instances in the order of the parts.

    Parts may run in parallel: seconds are those of the slowest part, and the rate counts all
    chain-steps in that time.
    """
    seconds = {field: max(getattr(part, field) for part in parts) for field in SECONDS}
    steps = sum(part.chain_steps_per_s * part.run_s for part in parts)
    traces: dict[str, Any] = {
        field: np.concatenate([getattr(part, field) for part in parts], axis=1)
        for field in BY_INSTANCE
    }
    return dataclasses.replace(
        parts[0],
        instances=[instance for part in parts for instance in part.instances],
        **traces,
        **seconds,
        chain_steps_per_s=steps / seconds["run_s"],
        engine="; ".join(dict.fromkeys(part.engine for part in parts)),
    )
