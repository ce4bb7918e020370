"""Sweep files of DISCS: in `sweep=[{flag: [values], ...}, ...]`, each combination of values is a
run.

A run becomes a command of this project (`run_arguments`) or of DISCS's main program
(`discs_arguments`).
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import runpy
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from sl_discs.experiment import settings as experiment
from sl_discs.instances.dataset import PROBLEMS, check_data_root, find_family, graph_types
from sl_discs.localization import method
from sl_discs.samplers.registry import (
    IN_DISCS,
    PREFIX,
    known_samplers,
    localized_name,
    name_of_paper,
    own_name,
)
from sl_discs.support.errors import InputError
from sl_discs.support.own_code import error_of_file, imported

SAMPLER = "sampler_config.name"
# Fields of the file that a dictionary of its sweep may vary.
_SET = ("model", "graph_type")
_FLAGS = ("config.experiment.", "model_config.", "sampler_config.")
_LONGEST = 255  # bytes of a file's name


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep file.

    Attributes:
      name: of the file's folder and the file; DISCS's launcher calls the experiment `discs-NAME`.
      model: DISCS's name of the model of runs that do not name one.
      sampler: the sampler of such runs.
      graph_type: of such runs, for combinatorial problems; otherwise None.
      runs: flags and values of each run.
    """

    name: str
    model: str
    sampler: str
    graph_type: str | None
    runs: tuple[dict[str, Any], ...]

    def folder(self, number: int) -> str:
        """Returns the name of a run's folder, counted from 1; DISCS's plotting scripts read the
        settings from it.

        It is cut to the length that file systems allow; its number tells it from those of the other
        runs.
        """
        name = f"{number}_{self.label(number)}".replace("/", "-")
        return name.encode()[:_LONGEST].decode(errors="ignore")

    def label(self, number: int) -> str:
        """Returns a text with the settings of a run, counted from 1."""
        return ",".join(f"{short(flag)}={value!r}" for flag, value in self.runs[number - 1].items())

    def sampler_of(self, number: int) -> str:
        """DISCS's name of a run's sampler, counted from 1."""
        return self.runs[number - 1].get(SAMPLER, self.sampler)

    def set_of(self, number: int) -> tuple[str, str | None]:
        """DISCS's names of a run's model and graph type, counted from 1."""
        settings = self.runs[number - 1]
        return settings.get("model", self.model), settings.get("graph_type", self.graph_type)


def pairs_of(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[int, int]]:
    """Returns the positions of each localized sampler and of its base with the same settings, in
    pairs.

    `rows` are the samplers' names and their settings; those that only the localized one has do not
    count.
    """
    return [
        (position, base_position)
        for (position, (name, settings)), (base_position, (base, own)) in itertools.permutations(
            enumerate(rows), 2
        )
        if name == localized_name(base)
        and all(settings.get(field) == value for field, value in own.items())
    ]


def short(flag: str) -> str:
    """Returns a flag without its config's prefix."""
    return flag.removeprefix(next(filter(flag.startswith, _FLAGS), ""))


def combinations(sweep: Sequence[Mapping[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """Returns the runs of a list of dictionaries, in order."""
    runs = []
    for block in sweep:
        runs += [
            dict(zip(block, values, strict=True)) for values in itertools.product(*block.values())
        ]
    return runs


def read_config(path: Path, example: str) -> dict[str, Any]:
    """Returns the fields of a config file, a program with `get_config()`; InputError, with an
    example, if it is not one.
    """
    try:
        get_config = runpy.run_path(str(path)).get("get_config")
        if get_config is None:
            raise InputError(f"{path}: no get_config(); give a file such as {example}")
        config = get_config()
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: cannot be run ({error_of_file(error)})") from error
    if not isinstance(config, ConfigDict):
        raise InputError(
            f"{path}: get_config() returns a {type(config).__name__}; expected a ConfigDict"
        )
    return config.to_dict()


def _config(path: Path) -> dict[str, Any]:
    config = read_config(path, "those in discs/run_configs")
    missing = sorted({"model", "sampler", "sweep"} - set(config))
    if missing:
        raise InputError(f"{path}: no field {missing[0]!r}; a sweep has model, sampler and sweep")
    blocks = config["sweep"]
    if not isinstance(blocks, (list, tuple)) or not all(
        isinstance(block, Mapping) for block in blocks
    ):
        raise InputError(
            f"{path}: its sweep is {blocks!r}; expected a list of dictionaries of flags and values"
        )
    for flag, values in (item for block in blocks for item in block.items()):
        if flag not in _SET and not str(flag).startswith(_FLAGS):
            raise InputError(
                f"{path}: {flag!r} is not a flag of DISCS; they start with {', '.join(_FLAGS)}, "
                f"or are {' or '.join(_SET)}"
            )
        if not isinstance(values, (list, tuple)):
            raise InputError(
                f"{path}: {flag!r} is {values!r}; expected a list of the values to run"
            )
        names = flag == SAMPLER or flag in _SET
        if names and not all(isinstance(name, str) for name in values):
            raise InputError(f"{path}: {flag!r} is {values!r}; expected a list of names")
    return config


def read_sweep(path: Path, samplers: Sequence[str] | None = None) -> Sweep:
    """Returns the sweep of a file that has `get_config()`; InputError if it is not one.

    Args:
      path: the file, which is executed.
      samplers: the samplers to run; an `sl_` sampler that is not in the file gets the settings of
        its base, and an `sldiscs_` sampler those of DISCS's sampler.
    """
    config = _config(path)
    sampler = name_of_paper(config["sampler"])
    runs = combinations(config["sweep"])
    for settings in runs:
        if SAMPLER in settings:
            settings[SAMPLER] = name_of_paper(settings[SAMPLER])
    if samplers is not None:
        samplers = [name_of_paper(name) for name in samplers]
        named = [(settings, settings.get(SAMPLER, sampler)) for settings in runs]
        known = {name for _, name in named}
        source = {name: _with_settings_of(name, known) for name in samplers}
        unknown = [name for name in samplers if source[name] not in known]
        if unknown:
            raise InputError(
                f"{path}: no settings for {unknown[0]!r}; the sweep has {', '.join(sorted(known))}"
            )
        runs = [
            settings | {SAMPLER: name}
            for settings, own in named
            for name in source
            if source[name] == own
        ]
    if not runs:
        raise InputError(f"{path}: the sweep has no runs")
    name = f"{path.resolve().parent.name}-{path.stem}"
    return Sweep(name, config["model"], sampler, config.get("graph_type"), tuple(runs))


def _with_settings_of(sampler: str, known: Container[str]) -> str:
    """Returns the sampler whose settings a sampler takes: itself if the sweep has it, otherwise its
    base or DISCS's sampler of the same name.
    """
    if sampler in known:
        return sampler
    base = sampler.removeprefix(PREFIX)
    return base if base in known else base.removeprefix(IN_DISCS)


def with_overrides(sweep: Sweep, extra: Mapping[str, str]) -> Sweep:
    """Returns the sweep whose runs have the values of flags that are given for every run, so that
    names tell them.

    Raises:
      InputError: one would replace the values in which runs differ.
    """
    overrides = {}
    for flag, text in extra.items():
        values = [settings[flag] for settings in sweep.runs if flag in settings]
        if any(value != values[0] for value in values) or 0 < len(values) < len(sweep.runs):
            raise InputError(
                f"--{flag} after -- would replace the values in which the sweep's runs differ; "
                "leave it out"
            )
        try:
            overrides[flag] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            overrides[flag] = text
    runs = (
        {flag: overrides.get(flag, value) for flag, value in settings.items()}
        for settings in sweep.runs
    )
    return dataclasses.replace(sweep, runs=tuple(runs))


# The flags of `sl-discs run` for a run of a sweep file.

_IMPORT = "import"
_SAVE_ROOT = "config.experiment.save_root"
_CFG_STR = "model_config.cfg_str"
_DATA_ROOT = "model_config.data_root"
_CONFIGS = ("config", "model_config", "sampler_config")


def parse_extra(arguments: Sequence[str]) -> dict[str, str]:
    """Flags and values of `--flag=value` arguments for every run, which also imports what the sweep
    imported.
    """
    extra = {_IMPORT: ",".join(imported())} if imported() else {}
    for argument in arguments:
        flag, equals, value = argument.removeprefix("--").partition("=")
        if not (argument.startswith("--") and equals):
            raise InputError(f"{argument!r} after -- is not valid; write --flag=value")
        if flag in (_SAVE_ROOT, _IMPORT, "samplers", "part", "run_local"):
            raise InputError(
                f"--{flag} is not for single runs, each of which is whole, in a folder of its "
                "own; the sweep has --save_root, --import and --samplers, before --"
            )
        extra[flag] = value
    return extra


def run_arguments(
    sweep: Sweep, number: int, data_root: str | None, extra: Mapping[str, str]
) -> dict[str, str]:
    """Flags and values of a run, counted from 1, without the folder of its results.

    Fields that only DISCS uses are omitted (see `left_out`). InputError for a model or graph type
    that this project lacks.
    """
    model, graph_type = sweep.set_of(number)
    known = graph_types(model)
    if graph_type is None or graph_type not in known:
        raise InputError(
            f"the sweep's graph_type is {graph_type!r}, of the model {model!r}; this project runs "
            f"{', '.join(known or PROBLEMS)}. sl-discs discs sweep runs DISCS's other models, "
            "with DISCS itself"
        )
    settings = sweep.runs[number - 1]
    name = own_name(sweep.sampler_of(number))
    arguments = {
        "config": f"configs/experiment/{model}/{graph_type}.py",
        "model_config": f"configs/model/{model}_config.py",
        "sampler_config": sampler_config(name),
        "model_config.graph_type": graph_type,
        _CFG_STR: "_",
    }
    if data_root is not None:
        arguments[_DATA_ROOT] = data_root
    for flag, value in settings.items():
        if flag != SAMPLER and flag not in _SET and not _is_left_out(flag):
            arguments[flag] = str(value)
    return {**arguments, **extra}


def left_out(sweep: Sweep) -> list[str]:
    """Flags of the file that only DISCS uses, sorted."""
    return sorted({flag for settings in sweep.runs for flag in settings if _is_left_out(flag)})


def command_line(
    arguments: Mapping[str, str], folder: Path, named: Container[str] = ()
) -> list[str]:
    """Returns the arguments of the program.

    Configs are the project's own, but for those of the flags `named`.
    """
    own = [flag for flag in _CONFIGS if flag not in named]
    parsed = {
        flag: find_config(value) if flag in own else value for flag, value in arguments.items()
    }
    return [*(f"--{flag}={value}" for flag, value in parsed.items()), f"--{_SAVE_ROOT}={folder}"]


def check_runnable(
    sweep: Sweep, numbers: Sequence[int], arguments: Sequence[Mapping[str, str]]
) -> None:
    """Checks what `sl-discs run` does not say of its flags alone: data root, dataset, and where
    samplers are.

    `arguments` are those of the runs with these numbers, from 1.
    """
    for number, argument in zip(numbers, arguments, strict=True):
        check_data_root(argument.get(_DATA_ROOT))
        find_family(
            argument.get("model_config.name", sweep.set_of(number)[0]),
            argument["model_config.graph_type"],
            argument[_CFG_STR],
        )
        name = sweep.sampler_of(number)
        if own_name(name) not in known_samplers():
            raise InputError(
                f"run {number}: {name!r} is no sampler of this project; choose others with "
                "--samplers, or give --import=FILE if it is your own; sl-discs discs sweep runs "
                "those of DISCS"
            )


def sampler_config(name: str) -> str:
    """Returns the value of --sampler_config that names a registered sampler."""
    return f"configs/sampler/{name}_config.py"


def _is_left_out(flag: str) -> bool:
    config, _, field = flag.rpartition(".")
    if config == "config.experiment":
        return field in experiment.IGNORED_SETTINGS
    return config == "sampler_config" and field in method.IGNORED_SAMPLER_FIELDS


def find_config(config: str) -> str:
    """Returns the path of a config of the project; that of a sampler is a name, and need be no
    file.

    A config is run, so files of the working directory that nobody has named do not count.
    """
    path = Path(__file__).parents[2] / config
    if not path.is_file() and path.parent.name != "sampler":
        raise InputError(
            f"there is no {path}; give --config=FILE, or run this in a checkout of the project"
        )
    return str(path)


def discs_arguments(sweep: Sweep, number: int, data_root: str, save_root: Path) -> list[str]:
    """Flags of DISCS's main program for a run, counted from 1."""
    model, graph_type = sweep.set_of(number)
    experiment = f"experiment/configs/{model}/{graph_type}" if graph_type else "common/configs"
    arguments = [
        f"--config=discs/{experiment}.py",
        f"--model_config=discs/models/configs/{model}_config.py",
        f"--sampler_config=discs/samplers/configs/{sweep.sampler_of(number)}_config.py",
    ]
    if graph_type:
        arguments += [
            f"--model_config.graph_type={graph_type}",
            f"--model_config.data_root={data_root}",
        ]
    settings = sweep.runs[number - 1]
    own = IN_DISCS in sweep.sampler_of(number)
    arguments += [
        f"--{flag}={value}"
        for flag, value in settings.items()
        if flag not in _SET and not (own and _is_left_out(flag) and flag.startswith(_FLAGS[2]))
    ]
    return [*arguments, f"--config.experiment.save_root={save_root}"]
