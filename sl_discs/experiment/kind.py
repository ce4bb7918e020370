"""The identity of a run: everything that its results depend on, with which checkpoints and results must agree."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.settings import Settings
from sl_discs.finished_work import differences
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.digest import dataset_digest
from sl_discs.localization.method import Method

# Fields of `Settings` that affect neither the results of a run on graphs nor its division into parts.
_FREE = ("save_root", "threads", "checkpoint_every_s", "events", "memory_gib", "ess_ratio")
# Fields that affect only the division.
_DIVISION = ("instances_per_batch", "use_devices", "mesh")


def kind_of_run(
    config: Mapping[str, Any],
    methods: list[Method],
    settings: Settings,
    dataset: Dataset,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """The identity of a run as nested dicts of plain values.

    Args:
      config: config of the model and the samplers, as plain values.
      methods: the methods to run.
      settings: settings of the run.
      dataset: the instances.
      versions: versions of the packages that the results depend on.
    """
    engines = {method.name: choose_engine(settings.engine, method.sampler)[0].name for method in methods}
    return {
        "experiment": {name: value for name, value in dataclasses.asdict(settings).items() if name not in _FREE},
        "model": dict(config["model"]),
        "samplers": dict(config["samplers"]),
        "graphs": {"name": dataset.name, "index": list(dataset.index), "sha256": dataset_digest(dataset)},
        "engines": engines,
        # How native loops share the cores does not affect results.
        "devices": 1 if set(engines.values()) == {"cpu"} else len(jax.local_devices()),
        "versions": dict(versions),
    }


def check_finished(folder: Path, config: Mapping[str, Any], dataset: str) -> None:
    """Refuses a folder that holds the results of another run; results of the same run may be overwritten.

    Args:
      folder: folder of the results.
      config: config of the experiment, the model and the samplers, as it will be saved there.
      dataset: name of the dataset.

    Raises:
      InputError: the results are of another run; the message says what differs and what to do.
    """
    path = folder / "results.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        theirs = _numbers(found["config"] | {"dataset": found["dataset"]})
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        differs = ["they cannot be read"]
    else:
        ours = json.loads(json.dumps({**config, "dataset": dataset}, default=str))
        differs = differences(_numbers(ours), theirs)
    if differs:
        raise InputError(
            f"{path}: results of another run: {'; '.join(differs)}; give another config.experiment.save_root, or "
            "--overwrite to replace them"
        )


def _numbers(config: dict[str, Any]) -> dict[str, Any]:
    """A config without the fields of the experiment that do not affect results."""
    kept = {name: value for name, value in config["experiment"].items() if name not in (*_FREE, *_DIVISION)}
    return config | {"experiment": kept}
