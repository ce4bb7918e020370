"""Sweep files of DISCS: `sweep=[{flag: [values], ...}, ...]`, every combination of each dictionary is a run."""

from __future__ import annotations

import dataclasses
import itertools
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.samplers.registry import PREFIX

_SAMPLER = "sampler_config.name"
_FLAGS = ("config.experiment.", "model_config.", "sampler_config.")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep file.

    Attributes:
      name: what DISCS's launcher calls the experiment.
      model: DISCS's name of the model.
      sampler: the sampler of runs that do not name one.
      graph_type: of combinatorial problems, else None.
      runs: flags and values of each run.
    """

    name: str
    model: str
    sampler: str
    graph_type: str | None
    runs: tuple[dict[str, Any], ...]

    def folder(self, number: int) -> str:
        """Name of a run's folder, counted from 1; DISCS's plotting scripts read settings off it."""
        settings = [f"{_short(flag)}={value!r}" for flag, value in self.runs[number - 1].items()]
        return f"{number}_{','.join(settings)}".replace("/", "-")

    def arguments(self, number: int, data_root: str, save_root: Path) -> list[str]:
        """Flags of DISCS's main program for a run."""
        settings = self.runs[number - 1]
        sampler = settings.get(_SAMPLER, self.sampler)
        experiment = f"experiment/configs/{self.model}/{self.graph_type}" if self.graph_type else "common/configs"
        arguments = [
            f"--config=discs/{experiment}.py",
            f"--model_config=discs/models/configs/{self.model}_config.py",
            f"--sampler_config=discs/samplers/configs/{sampler}_config.py",
        ]
        if self.graph_type:
            arguments += [f"--model_config.graph_type={self.graph_type}", f"--model_config.data_root={data_root}"]
        arguments += [f"--{flag}={value}" for flag, value in settings.items()]
        return [*arguments, f"--config.experiment.save_root={save_root}"]


def _short(flag: str) -> str:
    prefix = next((prefix for prefix in _FLAGS if flag.startswith(prefix)), "")
    return flag.removeprefix(prefix)


def combinations(sweep: Sequence[Mapping[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """The runs of a list of dictionaries, in order."""
    runs = []
    for block in sweep:
        runs += [dict(zip(block, values, strict=True)) for values in itertools.product(*block.values())]
    return runs


def read_sweep(path: Path, samplers: Sequence[str] | None = None) -> Sweep:
    """The sweep of a file that has `get_config()`.

    Args:
      path: the file, which is run.
      samplers: which to run; a sampler of the plugin gets the settings of the sampler of DISCS that it is built on.

    Raises:
      InputError: the file is no sweep.
    """
    get_config = runpy.run_path(str(path)).get("get_config")
    if get_config is None:
        raise InputError(f"{path}: no get_config(); give a file such as those in discs/run_configs")
    config = get_config().to_dict()
    missing = sorted({"model", "sampler", "sweep"} - set(config))
    if missing:
        raise InputError(f"{path}: no field {missing[0]!r}; a sweep has model, sampler and sweep")
    blocks = config["sweep"]
    for block in blocks:
        unknown = [flag for flag in block if not flag.startswith(_FLAGS)]
        if unknown:
            raise InputError(f"{path}: {unknown[0]!r} is not a flag of DISCS; they start with {', '.join(_FLAGS)}")
    runs = combinations(blocks)
    if samplers is not None:
        named = [(settings, settings.get(_SAMPLER, config["sampler"])) for settings in runs]
        known = {name for _, name in named}
        unknown = [name for name in samplers if name.removeprefix(PREFIX) not in known]
        if unknown:
            raise InputError(f"{path}: no settings for {unknown[0]!r}; the sweep has {', '.join(sorted(known))}")
        runs = [
            settings | {_SAMPLER: name} for settings, base in named for name in samplers
            if name.removeprefix(PREFIX) == base
        ]  # fmt: skip
    name = f"discs-{path.parent.name}-{path.stem}"
    return Sweep(name, config["model"], config["sampler"], config.get("graph_type"), tuple(runs))
