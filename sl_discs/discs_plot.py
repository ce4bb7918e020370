r"""Command: a plotting script of DISCS, taught the names of the plugin's samplers.

python -m sl_discs.discs_plot plot_co_through_time \
    --gcs_results_path=./discs-mis-er_density_sampler_sweep --graphtype=mis

Needs a checkout of DISCS on PYTHONPATH or as the working directory. The scripts read folders as sweeps leave them
(`sl_discs.discs_sweep`): ./discs-MODEL-NAME/NUMBER_SETTINGS/results.pkl.
"""

from __future__ import annotations

import importlib
import pkgutil

from absl import flags

from sl_discs.command import run_app
from sl_discs.discs_plugin import launch, plotting
from sl_discs.discs_plugin.launch import add_working_directory, register_before_flags
from sl_discs.errors import InputError

flags.adopt_module_key_flags(launch)


def prepare(argv: list[str]):
    """Registers and imports the script that the first argument names."""
    register_before_flags(argv[1:] or argv)
    scripts = [module.name for module in pkgutil.iter_modules(importlib.import_module("discs.plot_results").__path__)]
    if len(argv) < 2 or argv[1] not in scripts:
        raise InputError(f"the first argument names the script; DISCS has: {', '.join(sorted(scripts))}")
    plotting.teach_plot_utils()
    module = importlib.import_module(f"discs.plot_results.{argv[1]}")
    if not hasattr(module, "main"):
        raise InputError(f"discs.plot_results.{argv[1]} is not a script")
    flags.adopt_module_key_flags(module)
    return module.main, [argv[0], *argv[2:]]


if __name__ == "__main__":
    add_working_directory()
    run_app(prepare, "SCRIPT")
