"""Common parts of the commands around DISCS: their own flags, and config files that exist only as
modules.

This file is also a config file: DISCS is given `FILE:SOURCE`, with this file for FILE.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import runpy
import types
from collections.abc import Sequence
from pathlib import Path

from absl import flags
from ml_collections import config_dict

from sl_discs.commands import command
from sl_discs.discs_plugin import register
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import name_of_paper
from sl_discs.support.errors import InputError

_CONFIG_FLAGS = ("config", "model_config", "sampler_config")

# Where DISCS looks for its base config when --config is not given, from the folder that holds its
# package.
_DEFAULT_CONFIG = "discs/common/configs.py"

# The name of a sampler, perhaps the paper's, in the path of its config.
_SAMPLER_FILE = re.compile(r"(?<=/configs/)([\w-]+)_config\.py$")


def own_flags() -> tuple[flags.FlagValues, types.SimpleNamespace]:
    """Returns `command.own_flags` with that which controls how the plugin is registered."""
    own, define = command.own_flags()
    help_text = (
        "Correct the errors of DISCS's samplers in sl_ samplers (sl_discs.discs_plugin.fixes)."
    )
    define.boolean("fixes", False, help_text)
    return own, define


def register_from_flags(own: flags.FlagValues) -> None:
    """Calls `register` according to --fixes; InputError as `register`.

    DISCS does not run on the versions of JAX that this package needs without what `compat` adds.
    """
    register(compat=True, fixes=own.fixes)


def checkout() -> Path:
    """Returns the folder that holds the package discs."""
    spec = importlib.util.find_spec("discs")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("discs is not importable; run this in a checkout of it, or install it")
    return Path(spec.submodule_search_locations[0]).parent


def resolve_configs(argv: Sequence[str]) -> list[str]:
    """Returns the arguments with every config file replaced by one that can be opened.

    A file that does not exist in the working directory is looked for beside the package discs, then
    among the plugin's modules: `discs/samplers/configs/sl_gwg_config.py` is not a file, but a valid
    config name.

    Raises:
      InputError: there is no such config.
    """
    arguments = []
    given = set()
    rest = iter(argv[1:])
    for argument in rest:
        flag, equals, value = argument.partition("=")
        name = flag.lstrip("-")
        if flag.startswith("-") and name in _CONFIG_FLAGS:
            given.add(name)
            argument = f"--{name}={_resolve(name, value if equals else next(rest, ''))}"
        arguments.append(argument)
    if "config" not in given and not Path(_DEFAULT_CONFIG).exists():
        # Before what overrides its fields.
        arguments.insert(0, f"--config={checkout() / _DEFAULT_CONFIG}")
    return [argv[0], *arguments]


def find_file(path: str) -> Path | None:
    """Returns the file in the working directory or beside the package discs; None if there
    is none.
    """
    folders = [Path()] if importlib.util.find_spec("discs") is None else [Path(), checkout()]
    return next((folder / path for folder in folders if (folder / path).is_file()), None)


def _resolve(flag: str, value: str) -> str:
    path, colon, argument = value.partition(":")
    if flag == "sampler_config":
        path = _SAMPLER_FILE.sub(lambda match: f"{name_of_paper(match[1])}_config.py", path)
    file = find_file(path)
    if file is not None and (argument or flag == "model_config"):
        return f"{file}{colon}{argument}"
    source = file or _plugin_module(path)
    if source is None or argument:
        raise InputError(
            f"--{flag}: there is no file {path}, here or in {checkout()}, and no config of "
            "sl_discs by that name; "
            "they are named as discs/samplers/configs/sl_gwg_config.py, or "
            "sl_sldiscs_gwg_config.py for samplers of "
            "sl_discs"
        )
    return f"{__file__}:{source}"


def _plugin_module(path: str) -> str | None:
    """Returns the plugin's module for a path such as discs/samplers/configs/sl_gwg_config.py, or
    None.
    """
    match = re.fullmatch(r"(?:\./|.*/)?(discs/(?:samplers|models)/configs/\w+)\.py", path)
    name = match[1].replace("/", ".") if match else None
    spec = importlib.util.find_spec(name) if name else None
    return name if spec is not None and spec.origin == "sl_discs" else None


def get_config(source: str) -> config_dict.ConfigDict:
    """Returns `get_config()` of a module; of a file, with fields that it lacks, so that flags can
    override them.

    Those are the fields of localization in an `sl_` config, so that a config copied from DISCS
    needs no more than the name `sl_...`, and `num_models` in an experiment config, which DISCS's
    own sweep of optsicom overrides.
    """
    if not source.endswith(".py"):
        return importlib.import_module(source).get_config()
    config = runpy.run_path(source)["get_config"]()
    with config.unlocked():
        if str(config.get("name", "")).startswith("sl_"):
            config.update(
                {name: value for name, value in vars(Localization()).items() if name not in config}
            )
        if "experiment" in config and "num_models" not in config.experiment:
            config.experiment.num_models = 1  # DISCS's default
    return config
