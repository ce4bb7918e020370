"""The flags of `sl-discs run` for a run of a sweep file."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from sl_discs.discs_plugin.upstream import NAMESPACE
from sl_discs.errors import InputError
from sl_discs.experiment import settings as experiment
from sl_discs.instances.dataset import check_data_root, find_family
from sl_discs.localization import method
from sl_discs.own_code import imported
from sl_discs.problem_names import GRAPH_PROBLEMS
from sl_discs.samplers.registry import BUILT_IN, PREFIX, known_samplers, localized_name
from sl_discs.sweeps.sweep_file import SAMPLER, Sweep

_IMPORT = "import"
_SAVE_ROOT = "config.experiment.save_root"
_CFG_STR = "model_config.cfg_str"
_DATA_ROOT = "model_config.data_root"
_CONFIGS = ("config", "model_config", "sampler_config")


def parse_extra(arguments: Sequence[str]) -> dict[str, str]:
    """Flags and values of `--flag=value` arguments for every run, which also imports what the sweep imported.

    Raises:
      InputError: an argument has another form, or sets the folder of the results, which the sweep chooses.
    """
    extra = {_IMPORT: ",".join(imported())} if imported() else {}
    for argument in arguments:
        flag, equals, value = argument.removeprefix("--").partition("=")
        if not (argument.startswith("--") and equals):
            raise InputError(f"{argument!r} after -- is not valid; write --flag=value")
        if flag == _SAVE_ROOT:
            raise InputError(
                f"--{_SAVE_ROOT} cannot be set in a sweep, whose runs have their own folders; give --save_root"
            )
        if flag == _IMPORT:
            raise InputError(f"--{_IMPORT} belongs before --, since the sweep needs the samplers too")
        extra[flag] = value
    return extra


def run_arguments(sweep: Sweep, number: int, data_root: str | None, extra: Mapping[str, str]) -> dict[str, str]:
    """Flags and values of a run, counted from 1, without the folder of its results.

    Samplers of this project are preferred; others are taken from DISCS as `discs:NAME`. Fields that only DISCS uses
    are omitted (see `left_out`).
    """
    settings = sweep.runs[number - 1]
    name = _own_name(sweep.sampler_of(number))
    arguments = {
        "config": f"configs/experiment/{sweep.model}/{sweep.graph_type}.py",
        "model_config": f"configs/model/{sweep.model}_config.py",
        "sampler_config": sampler_config(name),
        "model_config.graph_type": str(sweep.graph_type),
        _CFG_STR: "_",
    }
    if data_root is not None:
        arguments[_DATA_ROOT] = data_root
    for flag, value in settings.items():
        if flag != SAMPLER and not _is_left_out(flag, name):
            arguments[flag] = str(value)
    return {**arguments, **extra}


def left_out(sweep: Sweep) -> list[str]:
    """Flags of the file that only DISCS uses, sorted."""
    samplers = [_own_name(sweep.sampler_of(number)) for number in range(1, len(sweep.runs) + 1)]
    pairs = zip(sweep.runs, samplers, strict=True)
    return sorted({flag for settings, name in pairs for flag in settings if _is_left_out(flag, name)})


def command_line(arguments: Mapping[str, str], folder: Path) -> list[str]:
    """The arguments of the program; configs are found here or next to the package."""
    found = {flag: _find(value) if flag in _CONFIGS else value for flag, value in arguments.items()}
    return [*(f"--{flag}={value}" for flag, value in found.items()), f"--{_SAVE_ROOT}={folder}"]


def check_runnable(sweep: Sweep, numbers: Sequence[int], arguments: Sequence[Mapping[str, str]]) -> None:
    """Checks what can be known before a run starts: model, data root, dataset, sampler and the names of fields.

    Args:
      sweep: the file.
      numbers: of the runs to perform, from 1.
      arguments: of each of them.

    Raises:
      InputError: this project cannot perform one of the runs.
    """
    if sweep.model not in GRAPH_PROBLEMS or sweep.graph_type is None:
        raise InputError(
            f"the sweep's model is {sweep.model!r}; this project runs {', '.join(GRAPH_PROBLEMS)}, on graphs. "
            "sl-discs discs sweep runs DISCS's other models, with DISCS itself"
        )
    for number, given in zip(numbers, arguments, strict=True):
        graph_type = given["model_config.graph_type"]
        check_data_root(given.get(_DATA_ROOT))
        find_family(given.get("model_config.name", sweep.model), graph_type, given[_CFG_STR])
        _check_experiment(given)
        _check_sampler(sweep, number, given)


def _own_name(name: str) -> str:
    """The runner's name of a sampler: one that only DISCS has gets its namespace."""
    if name in known_samplers() or ":" in name:
        return name
    base = NAMESPACE + name.removeprefix(PREFIX)
    return localized_name(base) if name.startswith(PREFIX) else base


def sampler_config(name: str) -> str:
    """The sampler config of a sampler, for --sampler_config, from the folder that holds `configs`."""
    own = f"{name}_config.py" if name in BUILT_IN else f"own_config.py:{name}"
    return f"configs/sampler/{f'discs_config.py:{name}' if NAMESPACE in name else own}"


def _is_left_out(flag: str, sampler: str) -> bool:
    config, _, field = flag.rpartition(".")
    if config == "config.experiment":
        return field in experiment.DISCS_ONLY
    return config == "sampler_config" and NAMESPACE not in sampler and field in method.DISCS_ONLY


def _find(config: str) -> str:
    path, colon, argument = config.partition(":")
    beside = Path(__file__).parents[2] / path
    return config if Path(path).is_file() or not beside.is_file() else f"{beside}{colon}{argument}"


def _fields(arguments: Mapping[str, str], config: str) -> list[str]:
    return [flag.removeprefix(f"{config}.") for flag in arguments if flag.startswith(f"{config}.")]


def _check_experiment(arguments: Mapping[str, str]) -> None:
    known = [field.name for field in dataclasses.fields(experiment.Settings)]
    unknown = [field for field in _fields(arguments, "config.experiment") if field not in known]
    if unknown:
        raise InputError(f"config.experiment has no field {unknown[0]!r}; known: {', '.join(known)}")


def _check_sampler(sweep: Sweep, number: int, arguments: Mapping[str, str]) -> None:
    theirs = sweep.sampler_of(number)
    name = _own_name(theirs)
    if NAMESPACE in name:
        if importlib.util.find_spec("discs") is None:
            names = [sweep.sampler_of(other) for other in range(1, len(sweep.runs) + 1)]
            ours = [one for one in dict.fromkeys(names) if NAMESPACE not in _own_name(one)]
            raise InputError(
                f"run {number}: sampler {theirs!r} is not one of this project; if it is DISCS's, put a checkout of "
                "google-research/discs on PYTHONPATH; if it is yours, give --import=FILE"
                + (f", or choose --samplers={','.join(ours)}" if ours else "")
            )
        return
    known = method.method_fields(name)
    unknown = [field for field in _fields(arguments, "sampler_config") if field not in known]
    if unknown:
        raise InputError(f"run {number}: sampler {name!r} has no field {unknown[0]!r}; known: {', '.join(known)}")
