r"""Command: runs a plotting script of DISCS that also knows the plugin's samplers.

sl-discs discs plot plot_co_through_time \
    --gcs_results_path=./discs-mis-er_density_sampler_sweep --graphtype=mis

Needs a checkout of DISCS on PYTHONPATH or as the working directory. The scripts read the folders that sweeps
write (`sl-discs discs sweep`): ./discs-MODEL-NAME/NUMBER_SETTINGS/results.pkl.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from sl_discs.command import parse_flags, run_command
from sl_discs.discs_plugin import launch
from sl_discs.discs_plugin.modules import OWN
from sl_discs.errors import InputError
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import PREFIX

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)


def _import(arguments: list[str]) -> Any:
    """The script that the first argument names, imported; its flags are added to those of the process."""
    launch.register_from_flags(FLAGS)
    scripts = [module.name for module in pkgutil.iter_modules(importlib.import_module("discs.plot_results").__path__)]
    if not arguments or arguments[0] not in scripts:
        raise InputError(f"the first argument names the script; DISCS has: {', '.join(sorted(scripts))}")
    teach_plot_utils()
    module = importlib.import_module(f"discs.plot_results.{arguments[0]}")
    if not hasattr(module, "main"):
        raise InputError(f"discs.plot_results.{arguments[0]} is not a script")
    return module


def _run(arguments: list[str]) -> int:
    module = _import(arguments)
    return module.main(["discs plot", *parse_flags(flags.FLAGS, arguments)]) or 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""

    def their_help(arguments: list[str]) -> str:
        return flags.FLAGS.module_help(_import(arguments))

    launch.add_working_directory()
    return run_command(argv, "SCRIPT", __doc__, FLAGS, _run, their_help)


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
    from matplotlib import colors

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
