r"""Command: DISCS's own main_sampling, with the samplers and models of sl_discs among its own.

python -m sl_discs.discs_main \
    --model_config=discs/models/configs/ising_config.py --model_config.shape='(20, 20)' \
    --sampler_config=discs/samplers/configs/sl_path_auxiliary_config.py \
    --config.experiment.chain_length=2000 --run_local

Needs a checkout of DISCS on PYTHONPATH or as the working directory; its files stay as they are. The flags are those
of DISCS, and --compat and --fixes.
"""

from __future__ import annotations

import csv
import importlib
import sys
import time
from pathlib import Path

import numpy as np
from absl import flags

from sl_discs.command import run_app
from sl_discs.discs_plugin import launch
from sl_discs.discs_plugin.launch import (
    add_working_directory,
    register_before_flags,
    resolve_configs,
)
from sl_discs.errors import InputError
from sl_discs.instances.pickles import load_pickle

flags.adopt_module_key_flags(launch)


def prepare(argv: list[str]):
    """Registers, imports DISCS's main module, and wraps its main function in a summary."""
    register_before_flags(argv)
    # The flags of configs look up overrides in sys.argv, and load their defaults when they are defined.
    sys.argv = resolve_configs(argv)
    module = importlib.import_module("discs.experiment.main_sampling")
    flags.adopt_module_key_flags(module)

    def main(arguments):
        start = time.time()
        try:
            module.main(arguments)
        except FileNotFoundError as error:  # what DISCS raises for a missing dataset
            raise InputError(
                f"there is no {error.filename}; give the data as --model_config.data_root=FOLDER, or draw a random "
                "family with python -m sl_discs.discs_data"
            ) from None
        config = module.get_main_config()
        module.update_save_dir(config)
        return _summarize(Path(config.experiment.save_root), start)

    return main, sys.argv


def _summarize(folder: Path, start: float) -> int:
    """Says what DISCS has written; exit code 1 where it has written no result."""
    written = sorted(path for path in folder.glob("*.*") if path.is_file() and path.stat().st_mtime >= start - 1)
    results = [path for path in written if path.suffix in (".pkl", ".csv")]
    if not results:
        sys.stderr.write(
            f"error: DISCS wrote no result to {folder}; it hides what goes wrong while it reads graphs, so check "
            "model_config.data_root, graph_type and cfg_str\n"
        )
        return 1
    sys.stdout.write(f"took {time.time() - start:.1f} s\n")
    for path in results:
        sys.stdout.write(f"saved {path}{_headline(path)}\n")
    return 0


def _headline(path: Path) -> str:
    """The figure of a results file that its reader wants first."""
    if path.name == "results.pkl":
        try:
            found = load_pickle(path)
        except InputError:
            return ""
        if isinstance(found, dict) and "best_ratio" in found:
            best = np.asarray(found["best_ratio"])
            return f": best ratio {best.mean():.4f}, mean of the last batch's {best.size} instances"
    if path.name == "results.csv":
        with path.open(newline="") as file:
            row = next(csv.DictReader(file), {})
        mean = row.get("ESS", "").strip("[]").split()[:1]
        return f": effective sample size {mean[0]}, mean over chains" if mean else ""
    return ""


if __name__ == "__main__":
    add_working_directory()
    run_app(prepare)
