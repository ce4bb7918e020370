"""Everything that the results of a run depend on: what a checkpoint, or finished results, must agree with."""

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

# Fields of `Settings` that change neither a number of a run on graphs nor its division into parts.
_FREE = ("save_root", "threads", "checkpoint_every_s", "events", "memory_gib", "ess_ratio")
# Fields that change no number, but the division.
_DIVISION = ("instances_per_batch", "use_devices", "mesh")


def kind_of_run(
    config: Mapping[str, Any],
    methods: list[Method],
    settings: Settings,
    dataset: Dataset,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Nested dicts of plain values.

    Args:
      config: of the model and the samplers, as plain values.
      methods: what is run.
      settings: how.
      dataset: on what.
      versions: of the packages that the numbers depend on.
    """
    engines = {method.name: choose_engine(settings.engine, method.sampler)[0].name for method in methods}
    return {
        "experiment": {name: value for name, value in dataclasses.asdict(settings).items() if name not in _FREE},
        "model": dict(config["model"]),
        "samplers": dict(config["samplers"]),
        "graphs": {"name": dataset.name, "index": list(dataset.index), "sha256": dataset_digest(dataset)},
        "engines": engines,
        # Native loops share the cores in their own way, which changes nothing.
        "devices": 1 if set(engines.values()) == {"cpu"} else len(jax.local_devices()),
        "versions": dict(versions),
    }


def check_finished(folder: Path, config: Mapping[str, Any], dataset: str) -> None:
    """Refuses a folder that holds the results of another run; those of the same run may be written again.

    Args:
      folder: of the results.
      config: of the experiment, the model and the samplers, as it is going to be saved there.
      dataset: name of the dataset.

    Raises:
      InputError: what differs, and what to do.
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
    """A config without the fields of the experiment that change no number."""
    kept = {name: value for name, value in config["experiment"].items() if name not in (*_FREE, *_DIVISION)}
    return config | {"experiment": kept}
