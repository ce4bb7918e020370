"""Writes a finished experiment to a folder.

| file | content |
|---|---|
| `results.pkl` | what DISCS saves, one file a sampler (see `discs_results`) |
| `trajectory.npz` | `logged_steps`, `temperature`, and `<sampler>/trajectory`, `/acceptance`, `/hops` |
| `solutions.npz` | `names`, `ptr`, and `<sampler>/solutions`: instance g is the slice `ptr[g]:ptr[g+1]` |
| `config.yaml` | the configuration |
| `results.json` | numbers for programs, strict JSON; written last, so its presence means a complete folder |

A run of one sampler has its `results.pkl` in the folder itself, like a run of DISCS. A run of several samplers is a
folder of such runs, `<sampler>/results.pkl`, as DISCS's plotting scripts expect.
"""

from __future__ import annotations

import functools
import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sl_discs.atomic import write_atomically
from sl_discs.experiment.record import ExperimentRecord, SamplerRecord
from sl_discs.models.kinds import graph_kind
from sl_discs.results.paired import paired_differences
from sl_discs.results.summary import Spread, best_values, references


def write_results(record: ExperimentRecord, folder: str | os.PathLike) -> dict[str, Path]:
    """Writes every file of the experiment, each atomically, and returns file name -> path.

    Raises:
      InputError: the folder cannot be written, or paired samplers have different instances.
    """
    folder = Path(folder)
    summary = results_dict(record)
    paths = {}
    for name, sampler in record.samplers.items():
        relative = "results.pkl" if len(record.samplers) == 1 else f"{name}/results.pkl"
        content = discs_results(record.problem, sampler)
        paths[relative] = write_atomically(folder / relative, functools.partial(pickle.dump, content, protocol=4))
    trajectories, solutions = _trajectories(record), _solutions(record)
    paths["trajectory.npz"] = write_atomically(
        folder / "trajectory.npz", lambda file: np.savez_compressed(file, **trajectories)
    )
    paths["solutions.npz"] = write_atomically(
        folder / "solutions.npz", lambda file: np.savez_compressed(file, **solutions)
    )
    config = yaml.safe_dump(plain(record.config), sort_keys=False).encode()
    paths["config.yaml"] = write_atomically(folder / "config.yaml", lambda file: file.write(config))
    text = json.dumps(summary, indent=2, allow_nan=False).encode()
    paths["results.json"] = write_atomically(folder / "results.json", lambda file: file.write(text + b"\n"))
    return paths


def results_dict(record: ExperimentRecord) -> dict:
    """The content of `results.json`: builtin types only, None for missing or non-finite values.

    `mean` and `std` (divisor n) are of `best` over instances; `acceptance` and `hops` are means over steps
    and instances; a pair's `se` is None for a single instance.

    Raises:
      InputError: paired samplers have different instances.
    """
    content = {
        "dataset": record.dataset,
        "source": record.source,
        "source_detail": record.source_detail,
        "config": record.config,
        "seed": record.seed,
        "versions": record.versions,
        "device": record.device,
        "engine": record.engine,
        "num_chains": record.num_chains,
        "samplers": {name: _sampler_dict(sampler) for name, sampler in record.samplers.items()},
        "paired": {
            pair: {"mean": spread.mean, "se": spread.se, "n": spread.n}
            for pair, spread in paired_differences(record).items()
        },
    }
    return plain(content)


def discs_results(problem: str, sampler: SamplerRecord) -> dict:
    """The content of `results.pkl`: DISCS's keys, numpy arrays and builtin types only.

    `trajectory` [L, G] and its last row `best_ratio` are objective minus penalty over the reference; the
    divisor is 1 for MIS, as in DISCS, and for every instance when some have no reference. `running_time` is
    half of the run: DISCS times only the second half of a chain and its plotting scripts double the value.
    `best_samples` [G, N] are the verified solutions, zero-padded to the largest instance.
    """
    divisors = references(sampler) if graph_kind(problem).in_percent else None
    trajectory = np.asarray(sampler.trajectory, dtype=np.float64) / (1.0 if divisors is None else divisors)
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


def _sampler_dict(sampler: SamplerRecord) -> dict:
    spread = Spread.of(best_values(sampler))
    return {
        "instances": [
            {
                "name": instance.name,
                "best": instance.best,
                "best_logged": instance.best_logged,
                "final": instance.final,
                "feasible": instance.feasible,
                "reference": instance.reference,
            }
            for instance in sampler.instances
        ],
        "final_is": sampler.final_is,
        "mean": spread.mean,
        "std": spread.std,
        "acceptance": np.mean(sampler.acceptance),
        "hops": np.mean(sampler.hops),
        "chain_steps_per_s": sampler.chain_steps_per_s,
        "compile_s": sampler.compile_s,
        "run_s": sampler.run_s,
    }


def _trajectories(record: ExperimentRecord) -> dict[str, Any]:
    arrays = {"logged_steps": np.asarray(record.logged_steps), "temperature": np.asarray(record.temperature)}
    for name, sampler in record.samplers.items():
        for field in ("trajectory", "acceptance", "hops"):
            arrays[f"{name}/{field}"] = np.asarray(getattr(sampler, field))
    return arrays


def _solutions(record: ExperimentRecord) -> dict[str, Any]:
    instances = next(iter(record.samplers.values())).instances
    lengths = [len(instance.solution) for instance in instances]
    arrays = {
        "names": np.array([instance.name for instance in instances], dtype=np.str_),
        "ptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    }
    for name, sampler in record.samplers.items():
        flat = np.concatenate([instance.solution for instance in sampler.instances])
        arrays[f"{name}/solutions"] = flat.astype(np.int8)
    return arrays


def plain(value):
    """Converts to builtin types that JSON and YAML support: arrays and tuples to lists, NaN and infinity to None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
