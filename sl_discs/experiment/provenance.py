"""The record of an experiment: its results, with software versions and devices."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path

import jax
import numpy as np

from sl_discs.experiment.record import ExperimentRecord, SamplerRecord
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.own_code import imported
from sl_discs.version import __version__


def versions() -> dict[str, str]:
    """Versions of the software that a result depends on, and digests of the user's own code."""
    names = ("jax", "jaxlib", "numpy", "networkx", "ml-collections")
    return (
        {"sl_discs": __version__, "python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in names}
        | {f"import {name}": sha256 for name, sha256 in imported().items()}
    )


def commit() -> str:
    """The commit of the code, with a `+` where files differ from it; `unknown` outside a checkout."""
    folder = Path(__file__).parent
    try:
        head, changes = (
            subprocess.run(["git", "-C", folder, *command], capture_output=True, text=True, timeout=10, check=True)
            for command in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")


def device_in_words(num_cores: int) -> str:
    """Kind and number of the devices of all hosts, such as `1 x cpu (x86_64)`.

    Args:
      num_cores: cores of all hosts. JAX counts those of hosts on one machine several times.
    """
    devices = jax.devices()
    count = min(len(devices), num_cores) if devices[0].platform == "cpu" else len(devices)
    hosts = f", {jax.process_count()} hosts" if jax.process_count() > 1 else ""
    return f"{count} x {devices[0].device_kind} ({platform.machine()}{hosts})"


def _engines(samplers: dict[str, SamplerRecord]) -> str:
    """The engine of all samplers, or of each if they differ."""
    engines = {name: sampler.engine for name, sampler in samplers.items()}
    if len(set(engines.values())) == 1:
        return next(iter(engines.values()))
    return "; ".join(f"{name} {engine}" for name, engine in engines.items())


def experiment_record(
    dataset: Dataset, config: dict, settings: Settings, samplers: dict[str, SamplerRecord], num_cores: int
) -> ExperimentRecord:
    """The record of an experiment, with its settings; `num_cores` is of all hosts."""
    every = settings.log_every_steps
    logged = np.arange(every, settings.chain_length + 1, every)
    return ExperimentRecord(
        dataset=dataset.name,
        problem=dataset.problem,
        source=dataset.source,
        source_detail=dataset.detail,
        config=config,
        seed=settings.seed,
        num_chains=settings.batch_size,
        logged_steps=logged,
        temperature=settings.temperatures()[logged - 1].astype(np.float64),
        versions=versions(),
        device=device_in_words(num_cores),
        engine=_engines(samplers),
        samplers=samplers,
    )
