"""The record of a finished experiment, plain data from which tables, files and figures are made,
and its identity.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64, Int8, Int64

from sl_discs import __version__
from sl_discs.engines.devices import describe_machine
from sl_discs.engines.program import Engine
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset
from sl_discs.problems.graph_kind import GraphKind, graph_kind
from sl_discs.support.documents import Damaged, read_json
from sl_discs.support.errors import InputError
from sl_discs.support.identity import check_same
from sl_discs.support.own_code import imported

# Fields of `SamplerRecord` that are arrays: [L, G], and all of them.
BY_INSTANCE = ("trajectory", "acceptance", "hops")
ARRAYS = (*BY_INSTANCE, "temperature")
# Those that are seconds, of which the slowest of several parts counts.
SECONDS = ("compile_s", "run_s")


@dataclasses.dataclass(frozen=True)
class InstanceRecord:
    """The outcome of one sampler on one instance, verified on the host."""

    name: str
    # objective of `solution`: the best state over every step, or one of the next two if repaired to
    # more
    best: float
    # best objective among the states at logged steps only (DISCS's figure), same evaluation
    best_logged: float
    final: float  # best objective of the chains' final samples
    feasible: (
        bool  # whether `solution` satisfies the problem's constraints (always True for MaxCut)
    )
    reference: float | None  # best known objective, or None
    solution: Int8[np.ndarray, "N"]  # [N] zeros and ones
    # what the chains are worth as draws, see `effective_draws`; empty where states are not drawn
    draws: Mapping[str, float | None] = dataclasses.field(default_factory=dict)

    def without_solution(self) -> dict[str, Any]:
        """Returns the other fields by name, plain values, those of `draws` among them."""
        fields = dict(vars(self))
        del fields["solution"]
        return fields | fields.pop("draws")


@dataclasses.dataclass(frozen=True)
class SamplerRecord:
    """All instances of one sampler, with traces at the logged steps (L of them, G instances)."""

    instances: list[InstanceRecord]
    # Running best over logged steps and chains, less its penalty, as in DISCS.
    trajectory: Float64[np.ndarray, "L G"]
    # Mean acceptance probability of the steps since the previous logged step.
    acceptance: Float64[np.ndarray, "L G"]
    # Mean number of sites changed per step since the previous logged step.
    hops: Float64[np.ndarray, "L G"]
    temperature: Float64[np.ndarray, "L"]  # at the logged steps
    chain_steps_per_s: float  # of run time
    compile_s: float  # seconds spent tracing and compiling
    run_s: float  # seconds of running, after compilation
    engine: str = "reference"  # the engine used, and why if it was not asked for by name
    final_is: str = (
        "last state"  # or `sign(Y)`, or `last state (not localized)`: what the final samples are
    )


@dataclasses.dataclass(frozen=True)
class ExperimentRecord:
    """One command's result: several samplers on the same instances with the same seed."""

    dataset: Dataset
    settings: Settings
    config: dict  # the full configuration as nested plain dicts
    samplers: dict[str, SamplerRecord]  # name to record, in the order given
    device: str  # what it ran on, in words
    versions: dict[str, str]  # package name to version

    @property
    def kind(self) -> GraphKind:
        """The problem."""
        return graph_kind(self.dataset.problem)

    @property
    def logged_steps(self) -> Int64[np.ndarray, "L"]:
        """Step numbers of the traces, from 1 on."""
        return self.settings.logged_steps()

    @property
    def engine(self) -> str:
        """The engine used, or that of each sampler if they differ."""
        engines = {name: sampler.engine for name, sampler in self.samplers.items()}
        same = len(set(engines.values())) == 1
        return next(iter(engines.values())) if same else "; ".join(map(" ".join, engines.items()))


def versions() -> dict[str, str]:
    """Versions of the software that a result depends on, and digests of the user's own code."""
    names = ("jax", "jaxlib", "numpy", "networkx", "ml-collections")
    return (
        {"sl_discs": __version__, "python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in names}
        | {f"import {name}": sha256 for name, sha256 in imported().items()}
    )


# Pages and the numbers on them are written while others are measured.
_CODE = (":/", ":(top,exclude)docs", ":(top,exclude)*.md")


def commit() -> str:
    """Returns the commit of the code, with a `+` where code differs from it; `unknown` outside a
    checkout.
    """
    folder = Path(__file__).parents[2]
    # A repository around an installed package has commits of something else.
    own = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    try:
        head, changes = (
            subprocess.run(
                ["git", "-C", folder, *command],
                env=own,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
            for command in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "-uno", "--", *_CODE),
            )
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")


def measured_by(**fields: str) -> dict[str, Any]:
    """Returns what a figure depends on that is measured now: commit, day, machine and versions,
    after what is given, such as its `command`.
    """
    day = datetime.date.today().isoformat()
    return {
        **fields,
        "commit": commit(),
        "date": day,
        "machine": describe_machine(),
        "versions": versions(),
    }


def how_measured(measured: Mapping[str, Any]) -> str:
    """Returns what `measured_by` returned for a command, as the last sentence of a report."""
    parts = [
        f"{key} {value}"
        for key, value in measured.items()
        if key not in ("command", "date", "versions")
    ]
    return f"`{measured['command']}`, {measured['date']}: {', '.join(parts)}."


def describe_devices(engines: Iterable[Engine], num_parts: int = 1) -> str:
    """Returns the number and kind of the engines' devices, such as `1 x cpu (x86_64)`, and the
    number of parts of the run.
    """
    devices = " and ".join(dict.fromkeys(engine.describe_devices() for engine in engines))
    parts = f", {num_parts} parts" if num_parts > 1 else ""
    return f"{devices} ({platform.machine()}{parts})"


# The identity of a run: everything that its results depend on, with which checkpoints and results
# must agree.

# Fields of `Settings` that affect neither the results of a run nor its division into batches.
_FREE = ("save_root", "threads", "checkpoint_every_s", "memory_gib")
# Fields that affect only the division.
_DIVISION = ("instances_per_batch", "use_devices")


def fields_of_results(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of `Settings`, given by name, on which results depend."""
    return {name: value for name, value in experiment.items() if name not in (*_FREE, *_DIVISION)}


def run_identity(
    config: Mapping[str, Any], engines: Mapping[str, str], settings: Settings, dataset: Dataset
) -> dict[str, Any]:
    """Returns the identity of a run as nested dicts of plain values; `engines` has the name of each
    sampler's engine.
    """
    kind = {
        "experiment": {
            name: value for name, value in dataclasses.asdict(settings).items() if name not in _FREE
        },
        "model": dict(config["model"]),
        "samplers": dict(config["samplers"]),
        "graphs": {"name": dataset.name, "index": list(dataset.index), "sha256": dataset.digest()},
        "engines": dict(engines),
        # How native loops share the cores does not affect results.
        "devices": 1 if "reference" not in engines.values() else len(jax.local_devices()),
        "versions": versions(),
    }
    return json.loads(json.dumps(kind))


def check_finished(folder: Path, config: Mapping[str, Any], dataset: str) -> None:
    """Raises InputError if a folder holds the results of another run, of another config or on
    another dataset.

    Results of the same run may be overwritten.
    """
    path = folder / "results.json"
    advice = "give another config.experiment.save_root, or --overwrite to replace them"
    try:
        content = read_json(path)
        if content is None:
            return
        theirs = content["config"] | {"dataset": content["dataset"]}
        theirs["experiment"] = fields_of_results(theirs["experiment"])
    except (Damaged, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: results of another run: they cannot be read; {advice}") from None
    ours = {**config, "dataset": dataset, "experiment": fields_of_results(config["experiment"])}
    check_same(
        f"{path}: results of another run", json.loads(json.dumps(ours, default=str)), theirs, advice
    )


# What a record says of its samplers, over its instances.


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean over n instances, and their spread."""

    mean: float
    # standard deviation over the instances with divisor n, as in DISCS and in the paper's +-
    std: float
    se: float | None  # standard error of the mean, from divisor n - 1; None for n = 1
    n: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, "n"]) -> Spread:
        """Summarizes at least one value."""
        n = len(values)
        se = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else None
        return cls(float(np.mean(values)), float(np.std(values)), se, n)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean of independent values, by Student's t; NaN for n =
        1.
        """
        from scipy import special  # imported here, as runs do without it

        return math.nan if self.se is None else float(special.stdtrit(self.n - 1, 0.975)) * self.se

    def interval(self) -> dict[str, Any]:
        """Returns `mean`, `ci95` (that interval, None for n = 1) and `n` as plain values."""
        half = self.half_width
        ends = [self.mean - half, self.mean + half] if self.n > 1 else None
        return {"mean": self.mean, "ci95": ends, "n": self.n}


def paired(ours: Float64[np.ndarray, "G"], theirs: Float64[np.ndarray, "G"]) -> Spread:
    """Returns the spread over instances of the differences of two samplers, or settings, on each
    instance.

    Instances differ from each other far more than samplers do, so only the difference instance by
    instance has a standard error that is informative about the samplers.
    """
    return Spread.of(ours - theirs)


def best_values(sampler: SamplerRecord) -> Float64[np.ndarray, "G"]:
    """Returns the verified objective of each instance."""
    return np.array([instance.best for instance in sampler.instances], dtype=np.float64)


def references(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """Returns the reference of each instance, or None unless every instance has one other than
    zero.
    """
    values = [instance.reference for instance in sampler.instances]
    return np.array(values, dtype=np.float64) if all(values) else None


def percent_of_reference(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """100 best / reference of each instance, or None unless every instance has a non-zero
    reference.
    """
    divisors = references(sampler)
    return None if divisors is None else 100.0 * best_values(sampler) / divisors


def paired_differences(
    record: ExperimentRecord, values=best_values
) -> dict[tuple[str, str], Spread]:
    """Returns `paired` of `sl_x` and x, by both names, for each sampler x with both.

    `values` are compared: `best_values` in units of the objective, or `percent_of_reference`, in
    percentage points, without which a pair is left out.
    """
    differences = {}
    for pair in (
        (f"sl_{name}", name) for name in record.samplers if f"sl_{name}" in record.samplers
    ):
        ours, theirs = (values(record.samplers[name]) for name in pair)
        if ours is not None and theirs is not None:
            differences[pair] = paired(ours, theirs)
    return differences
