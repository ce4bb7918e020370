"""Sweep files of DISCS: in `sweep=[{flag: [values], ...}, ...]`, each combination of values is a run."""

from __future__ import annotations

import dataclasses
import itertools
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from sl_discs.command import error_of_file
from sl_discs.errors import InputError
from sl_discs.samplers.registry import PREFIX

SAMPLER = "sampler_config.name"
_FLAGS = ("config.experiment.", "model_config.", "sampler_config.")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep file.

    Attributes:
      name: of the file's folder and the file; DISCS's launcher calls the experiment `discs-NAME`.
      model: DISCS's name of the model.
      sampler: the sampler of runs that do not name one.
      graph_type: for combinatorial problems, otherwise None.
      runs: flags and values of each run.
    """

    name: str
    model: str
    sampler: str
    graph_type: str | None
    runs: tuple[dict[str, Any], ...]

    def folder(self, number: int) -> str:
        """Name of a run's folder, counted from 1; DISCS's plotting scripts read the settings from it."""
        return f"{number}_{self.label(number)}".replace("/", "-")

    def label(self, number: int) -> str:
        """A text with the settings of a run, counted from 1."""
        return ",".join(f"{short(flag)}={value!r}" for flag, value in self.runs[number - 1].items())

    def sampler_of(self, number: int) -> str:
        """DISCS's name of a run's sampler, counted from 1."""
        return self.runs[number - 1].get(SAMPLER, self.sampler)


def short(flag: str) -> str:
    """A flag without its config's prefix."""
    prefix = next((prefix for prefix in _FLAGS if flag.startswith(prefix)), "")
    return flag.removeprefix(prefix)


def combinations(sweep: Sequence[Mapping[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """The runs of a list of dictionaries, in order."""
    runs = []
    for block in sweep:
        runs += [dict(zip(block, values, strict=True)) for values in itertools.product(*block.values())]
    return runs


def _config(path: Path) -> dict[str, Any]:
    """The fields of a sweep file."""
    try:
        get_config = runpy.run_path(str(path)).get("get_config")
        if get_config is None:
            raise InputError(f"{path}: no get_config(); give a file such as those in discs/run_configs")
        given = get_config()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: cannot be run ({error_of_file(error)})") from error
    if not isinstance(given, ConfigDict):
        raise InputError(f"{path}: get_config() returns a {type(given).__name__}; expected a ConfigDict")
    config = given.to_dict()
    missing = sorted({"model", "sampler", "sweep"} - set(config))
    if missing:
        raise InputError(f"{path}: no field {missing[0]!r}; a sweep has model, sampler and sweep")
    blocks = config["sweep"]
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(block, Mapping) for block in blocks):
        raise InputError(f"{path}: its sweep is {blocks!r}; expected a list of dictionaries of flags and values")
    for flag, values in (item for block in blocks for item in block.items()):
        if not str(flag).startswith(_FLAGS):
            raise InputError(f"{path}: {flag!r} is not a flag of DISCS; they start with {', '.join(_FLAGS)}")
        if not isinstance(values, (list, tuple)):
            raise InputError(f"{path}: {flag!r} is {values!r}; expected a list of the values to run")
    return config


def read_sweep(path: Path, samplers: Sequence[str] | None = None) -> Sweep:
    """The sweep of a file that has `get_config()`.

    Args:
      path: the file, which is executed.
      samplers: the samplers to run; an `sl_` sampler that is not in the file gets the settings of its base.

    Raises:
      InputError: the file is not a sweep.
    """
    config = _config(path)
    runs = combinations(config["sweep"])
    if samplers is not None:
        named = [(settings, settings.get(SAMPLER, config["sampler"])) for settings in runs]
        known = {name for _, name in named}
        source = {name: name if name in known else name.removeprefix(PREFIX) for name in samplers}
        unknown = [name for name in samplers if source[name] not in known]
        if unknown:
            raise InputError(f"{path}: no settings for {unknown[0]!r}; the sweep has {', '.join(sorted(known))}")
        runs = [settings | {SAMPLER: name} for settings, own in named for name in source if source[name] == own]
    if not runs:
        raise InputError(f"{path}: the sweep has no runs")
    name = f"{path.resolve().parent.name}-{path.stem}"
    return Sweep(name, config["model"], config["sampler"], config.get("graph_type"), tuple(runs))
