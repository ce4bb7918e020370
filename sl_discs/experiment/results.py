"""The files of a finished experiment.

| file | content |
|---|---|
| `results.pkl` | what DISCS saves, one file a sampler (see `discs_results`) |
| `trajectory.npz` | `logged_steps`, and `<sampler>/trajectory`, `/acceptance`, `/hops`, `/temperature` |
| `solutions.npz` | `names`, `ptr`, and `<sampler>/solutions`: instance g is the slice `ptr[g]:ptr[g+1]` |
| `config.yaml` | the configuration |
| `results.json` | numbers for programs, strict JSON; written last, so its presence means a complete folder |

A run of one sampler has its `results.pkl` in the folder itself, like a run of DISCS. A run of
several samplers is a folder of such runs, `<sampler>/results.pkl`.
"""  # noqa: E501

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import pickle
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import yaml

from sl_discs.experiment.record import (
    ARRAYS,
    SECONDS,
    ExperimentRecord,
    SamplerRecord,
    Spread,
    best_values,
    paired_differences,
    references,
)
from sl_discs.problems.graph_kind import GraphKind
from sl_discs.samplers.registry import known_samplers
from sl_discs.support.checks import real
from sl_discs.support.documents import Damaged, read_json
from sl_discs.support.errors import FormatError
from sl_discs.support.files import remove_temporary, write_together

_SHARED = ("trajectory.npz", "solutions.npz", "config.yaml", "results.json")


def write_results(record: ExperimentRecord, folder: str | os.PathLike) -> dict[str, Path]:
    """Writes every file of the experiment, all before any takes its place, and returns file name ->
    path.

    The `results.pkl` of other samplers of the results that are replaced are removed, if this
    process knows them.

    Raises:
      InputError: the folder cannot be written.
    """
    summary = json.dumps(plain(_summary(record)), indent=2, allow_nan=False) + "\n"
    config = yaml.safe_dump(plain(record.config), sort_keys=False)
    instances = next(iter(record.samplers.values())).instances
    lengths = [len(instance.solution) for instance in instances]
    solutions: dict[str, Any] = {
        "names": np.array([instance.name for instance in instances], dtype=np.str_),
        "ptr": np.cumsum([0, *lengths], dtype=np.int64),
    }
    trajectories: dict[str, Any] = {"logged_steps": record.logged_steps}
    for name, sampler in record.samplers.items():
        states = [instance.solution for instance in sampler.instances]
        solutions[f"{name}/solutions"] = np.concatenate(states)
        trajectories |= {f"{name}/{field}": getattr(sampler, field) for field in ARRAYS}
    files: dict[str, Callable[[BinaryIO], object]] = {}
    folder = Path(folder)
    replaced = _pickles_there(folder)
    for sampler, relative in zip(record.samplers.values(), _pickles(record.samplers), strict=True):
        files[relative] = functools.partial(
            pickle.dump, discs_results(record.kind, sampler), protocol=4
        )
    files["trajectory.npz"] = lambda file: np.savez_compressed(file, **trajectories)
    files["solutions.npz"] = lambda file: np.savez_compressed(file, **solutions)
    files["config.yaml"] = lambda file: file.write(config.encode())
    files["results.json"] = lambda file: file.write(summary.encode())
    paths = {name: folder / name for name in files}
    for parent in {path.parent for path in paths.values()}:
        remove_temporary(parent)
    write_together({paths[name]: write for name, write in files.items()})
    for path in (folder / name for name in replaced - files.keys()):
        with contextlib.suppress(OSError):  # a folder may hold more
            if path.parent == folder or not path.parent.is_symlink():
                path.unlink()
                path.parent.rmdir()
    return paths


def _pickles(samplers: Collection[str]) -> list[str]:
    """Returns the `results.pkl` of each sampler, below the folder of the results."""
    return ["results.pkl"] if len(samplers) == 1 else [f"{name}/results.pkl" for name in samplers]


def _pickles_there(folder: Path) -> set[str]:
    """Returns those of the results that are in the folder, of samplers that are known: other names
    may lead anywhere.
    """
    try:
        there = _pickles((read_json(folder / "results.json") or {})["samplers"])
    except (Damaged, KeyError, TypeError):  # there are none
        return set()
    return {"results.pkl", *(f"{name}/results.pkl" for name in known_samplers())}.intersection(
        there
    )


def _summary(record: ExperimentRecord) -> dict[str, Any]:
    """Returns the content of `results.json`.

    `mean` and `std` (divisor n) are of `best` over instances; `acceptance` and `hops` are means
    over steps and instances; a pair's `se` is None for a single instance.
    """
    return {
        "dataset": record.dataset.name,
        "source": record.dataset.source,
        "source_detail": record.dataset.detail,
        "config": record.config,
        "seed": record.settings.seed,
        "versions": record.versions,
        "device": record.device,
        "engine": record.engine,
        "num_chains": record.settings.batch_size,
        "samplers": {name: _sampler_summary(sampler) for name, sampler in record.samplers.items()},
        "paired": {
            " - ".join(pair): {"mean": spread.mean, "se": spread.se, "n": spread.n}
            for pair, spread in paired_differences(record).items()
        },
    }


def _sampler_summary(sampler: SamplerRecord) -> dict[str, Any]:
    spread = Spread.of(best_values(sampler))
    return {
        "instances": [instance.without_solution() for instance in sampler.instances],
        "final_is": sampler.final_is,
        "mean": spread.mean,
        "std": spread.std,
        "acceptance": np.mean(sampler.acceptance),
        "hops": np.mean(sampler.hops),
        **{field: getattr(sampler, field) for field in ("chain_steps_per_s", *SECONDS)},
    }


class SamplerResults(NamedTuple):
    """What `results.json` says of a sampler: the verified objective of each instance, by name, and
    its speed.
    """

    best: dict[str, float]
    chain_steps_per_s: float

    @property
    def spread(self) -> Spread:
        """Mean over the instances, and their spread."""
        return Spread.of(np.array(list(self.best.values()), np.float64))


class Results(NamedTuple):
    """What `results.json` says of a run: the engine in words, each sampler, and versions."""

    engine: str
    samplers: dict[str, SamplerResults]
    versions: dict[str, Any]


_LONGEST_REASON = 200  # characters; it may show a value of the file


def read_results(path: Path) -> Results:
    """Reads a `results.json`; InputError for anything else."""
    try:
        content = read_json(path) or {}
        samplers = {name: _results_of(name, fields) for name, fields in content["samplers"].items()}
        if not samplers:
            raise ValueError("no sampler")
        if not isinstance(content["engine"], str):
            raise ValueError("its engine is not a name")
        return Results(content["engine"], samplers, dict(content["versions"]))
    except KeyError as error:
        reason = f"no field {error}"
    except (Damaged, ValueError, TypeError, AttributeError) as error:
        reason = str(error).removeprefix(f"{path}: ")[:_LONGEST_REASON]
    raise FormatError(f"{path}: damaged ({reason}); remove it and run again")


def _results_of(name: str, fields: dict[str, Any]) -> SamplerResults:
    """Returns the checked content of a sampler; ValueError, KeyError, TypeError or AttributeError
    if it is wrong.
    """
    instances = fields["instances"]
    best = {instance["name"]: real(f"best of {name}", instance["best"]) for instance in instances}
    results = SamplerResults(
        best, real(f"chain_steps_per_s of {name}", fields["chain_steps_per_s"])
    )
    if not best or len(best) < len(instances):
        raise ValueError(f"instances of {name} that are missing or there twice")
    return results


def discs_results(kind: GraphKind, sampler: SamplerRecord) -> dict[str, Any]:
    """Returns the content of `results.pkl`: DISCS's keys, numpy arrays and builtin types only.

    `trajectory` [L, G] and its last row `best_ratio` are objective minus penalty over the
    reference; the divisor is 1 for MIS, as in DISCS, and for every instance when some have no
    reference. `running_time` is half of the run: DISCS times only the second half of a chain and
    its plotting scripts double the value. `best_samples` [G, N] are the verified solutions,
    zero-padded to the largest instance.
    """
    divisors = references(sampler) if kind.in_percent else None
    trajectory = np.asarray(sampler.trajectory, dtype=np.float64) / (
        1.0 if divisors is None else divisors
    )
    width = max(len(instance.solution) for instance in sampler.instances)
    samples = np.zeros((len(sampler.instances), width), dtype=np.int8)
    for row, instance in zip(samples, sampler.instances, strict=True):
        row[: len(instance.solution)] = instance.solution
    return {
        "trajectory": trajectory,
        "best_ratio": trajectory[-1].copy(),
        "running_time": float(sampler.run_s) / 2,
        "best_ratio_mean": float(np.mean(trajectory[-1])),
        "best_samples": samples,
    }


def plain(value):
    """Converts to builtin types that JSON and YAML support: arrays and tuples to lists, NaN and
    infinity to None.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
