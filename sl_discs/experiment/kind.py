"""Everything that the results of a run depend on: what a checkpoint must agree with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from sl_discs.engines.registry import choose_engine
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.digest import dataset_digest
from sl_discs.localization.method import Method

# Fields of `Settings` that change neither a number nor the division of a run into parts.
_FREE = ("save_root", "threads", "checkpoint_every_s", "events", "memory_gib")


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
