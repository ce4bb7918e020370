"""Common parts of the commands around DISCS: their own flags, and config files that exist only as modules."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import flags
from matplotlib import colors
from ml_collections import config_dict

from sl_discs.discs_plugin import register
from sl_discs.discs_plugin.modules import OWN
from sl_discs.errors import InputError
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import PREFIX

# A config file for `--sampler_config=FILE:MODULE`: the config of any importable module, such as the plugin's own.


def get_config(module: str) -> config_dict.ConfigDict:
    """`get_config()` of a module."""
    return importlib.import_module(module).get_config()


_CONFIG_FLAGS = ("config", "model_config", "sampler_config")

# Where DISCS looks for its base config when --config is not given, from the folder that holds its package.
_DEFAULT_CONFIG = "discs/common/configs.py"


def define_flags(own: flags.FlagValues) -> None:
    """Adds the flags that control how the plugin is registered."""
    flags.DEFINE_boolean(
        "compat",
        True,
        "Supply, to DISCS only, what current versions of JAX and other packages lack (sl_discs.discs_plugin.compat).",
        flag_values=own,
    )
    flags.DEFINE_list(
        "fixes",
        [],
        "Errors to fix in sl_ samplers: `all`, or names from sl_discs.discs_plugin.FIXES.",
        flag_values=own,
    )


def split_arguments(argv: list[str]) -> tuple[list[str], list[str]]:
    """A command's own arguments, and those after `--`, which are for the runs that it starts."""
    place = argv.index("--") if "--" in argv else len(argv)
    return argv[:place], argv[place + 1 :]


def add_working_directory() -> None:
    """Makes `discs` importable if the working directory is a checkout of it."""
    if Path("discs").is_dir() and "" not in sys.path:
        sys.path.insert(0, "")


def register_from_flags(own: flags.FlagValues) -> None:
    """Calls `register` according to --compat and --fixes; InputError as `register`."""
    given = own.flag_values_dict()
    register(compat=given["compat"], fixes=True if given["fixes"] == ["all"] else given["fixes"])


def checkout() -> Path:
    """The folder that holds the package discs."""
    spec = importlib.util.find_spec("discs")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("discs is not importable; run this in a checkout of it, or install it")
    return Path(spec.submodule_search_locations[0]).parent


def resolve_configs(argv: Sequence[str]) -> list[str]:
    """The arguments with every config file replaced by one that can be opened.

    A file that does not exist in the working directory is looked for beside the package discs, then among the
    plugin's modules: `discs/samplers/configs/sl_gwg_config.py` is not a file, but a valid config name.

    Raises:
      InputError: there is no such config.
    """
    arguments, given = [], set()
    rest = iter(argv[1:])
    for argument in rest:
        flag, equals, value = argument.partition("=")
        name = flag.lstrip("-")
        if flag.startswith("-") and name in _CONFIG_FLAGS:
            given.add(name)
            argument = f"--{name}={_resolve(name, value if equals else next(rest, ''))}"
        arguments.append(argument)
    if "config" not in given and not Path(_DEFAULT_CONFIG).exists():
        arguments.insert(0, f"--config={checkout() / _DEFAULT_CONFIG}")  # before what overrides its fields
    return [argv[0], *arguments]


def find_file(path: str) -> Path | None:
    """The file in the working directory or beside the package discs; None if there is none."""
    folders = [Path()] if importlib.util.find_spec("discs") is None else [Path(), checkout()]
    return next((folder / path for folder in folders if (folder / path).is_file()), None)


def _resolve(flag: str, value: str) -> str:
    path, colon, argument = value.partition(":")
    found = find_file(path)
    if found is not None:
        return f"{found}{colon}{argument}"
    module = _plugin_module(path)
    if module is not None and not argument:
        return f"{__file__}:{module}"
    raise InputError(
        f"--{flag}: there is no file {path}, here or in {checkout()}, and no config of sl_discs by that name; "
        "configs of sl_discs are named as discs/samplers/configs/sl_gwg_config.py"
    )


def _plugin_module(path: str) -> str | None:
    """The plugin's module for a path such as discs/samplers/configs/sl_gwg_config.py; None if there is none."""
    match = re.fullmatch(r"(?:\./|.*/)?(discs/(?:samplers|models)/configs/\w+)\.py", path)
    name = match[1].replace("/", ".") if match else None
    spec = importlib.util.find_spec(name) if name else None
    return name if spec is not None and spec.origin == "sl_discs" else None


# DISCS's plotting scripts with the plugin's samplers: their short names, colours and order.
#
# The scripts look up samplers in tables of `discs.plot_results.plot_utils`, and fail on unknown names or omit them. A
# localized sampler gets its base sampler's entry, with `sl_` before the short name, half the brightness of the
# colour, and the next place in the order. DISCS's samplers that are missing from its tables are grey and come last.

_PREFIXES = (PREFIX + OWN, OWN, PREFIX)
_FIELDS = tuple(field.name for field in dataclasses.fields(Localization))
_NOT_SAMPLERS = ("save_title", "model")


def _split(name: str) -> tuple[str, str]:
    """The plugin's prefix of a name, and DISCS's name."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    return prefix, name.removeprefix(prefix)


def _process_keys(original: Callable, settings: dict[str, Any]) -> dict[str, Any]:
    """DISCS's short name, preceded by the prefix and followed by the swept fields of localization."""
    prefix, settings["name"] = _split(settings["name"])
    swept = [f"{field}={settings.pop(field)}" for field in _FIELDS if field in settings and prefix]
    settings = original(settings)
    settings["name"] = " ".join([prefix + settings["name"], *swept])
    return settings


def _get_color(original: Callable, label: str):
    prefix, base = _split(label)
    try:
        color = colors.to_rgb(original(base))
    except KeyError:
        color = colors.to_rgb("gray")
    return tuple(0.5 * part for part in color) if prefix else color


def _sort(original: Callable, clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clusters with their samplers sorted by DISCS's order of the base samplers."""
    result = []
    for cluster in clusters:
        labels = [label for label in cluster if label not in _NOT_SAMPLERS]
        others = {name: cluster[name] for name in _NOT_SAMPLERS}
        known = list(original([{_split(label)[1]: None for label in labels} | others])[0])
        place = {base: position for position, base in enumerate(known)}
        order = sorted((place.get(_split(label)[1], len(place)), label) for label in labels)
        result.append({label: cluster[label] for _, label in order} | others)
    return result


def teach_plot_utils() -> None:
    """Wraps the three functions of `plot_utils` that depend on samplers, once for each import of it."""
    utils = importlib.import_module("discs.plot_results.plot_utils")
    wrappers: dict[str, Callable] = {
        "process_keys": _process_keys,
        "get_color": _get_color,
        "sort_based_on_samplers": _sort,
    }
    for name, wrapper in wrappers.items():
        original = getattr(utils, name)
        if not isinstance(original, functools.partial):
            setattr(utils, name, functools.partial(wrapper, original))
