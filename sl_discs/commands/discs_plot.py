r"""Command: runs a plotting script of DISCS that also knows the plugin's samplers.

sl-discs discs plot plot_co_through_time \
    --gcs_results_path=./discs-mis-er_density_sampler_sweep --graphtype=mis

Needs a checkout of DISCS on PYTHONPATH or as the working directory. The scripts read the folders that sweeps
write (`sl-discs discs sweep`): ./discs-MODEL-NAME/NUMBER_SETTINGS/results.pkl.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

from absl import flags

from sl_discs.command import parse_flags, run_command
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)


def _import(arguments: list[str]) -> Any:
    """The script that the first argument names, imported; its flags are added to those of the process."""
    launch.register_from_flags(FLAGS)
    scripts = [module.name for module in pkgutil.iter_modules(importlib.import_module("discs.plot_results").__path__)]
    if not arguments or arguments[0] not in scripts:
        raise InputError(f"the first argument names the script; DISCS has: {', '.join(sorted(scripts))}")
    launch.teach_plot_utils()
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
