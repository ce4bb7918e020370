r"""Command: runs DISCS's own main_sampling, with the samplers and models of sl_discs added.

sl-discs discs main \
    --model_config=discs/models/configs/ising_config.py --model_config.shape='(20, 20)' \
    --sampler_config=discs/samplers/configs/sl_path_auxiliary_config.py \
    --config.experiment.chain_length=2000 --run_local

Needs a checkout of DISCS, which is not changed, on PYTHONPATH or as the working directory. The flags are those of
DISCS, and --compat and --fixes.
"""

from __future__ import annotations

import csv
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from sl_discs.command import parse_flags, run_command
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.instances.discs_files import load_pickle
from sl_discs.samplers.registry import is_localized

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)


def _import(arguments: list[str]) -> Any:
    """DISCS's main module, registered and imported; its flags are added to those of the process."""
    launch.register_from_flags(FLAGS)
    # The flags of configs look up overrides in sys.argv, and load their defaults when they are defined.
    sys.argv = launch.resolve_configs(["discs main", *arguments])
    return importlib.import_module("discs.experiment.main_sampling")


def _run(arguments: list[str]) -> int:
    start = time.time()
    module = _import(arguments)
    rest = parse_flags(flags.FLAGS, sys.argv)
    try:
        module.main(["discs main", *rest])
    except FileNotFoundError as error:  # what DISCS raises for a missing dataset
        raise InputError(
            f"there is no {error.filename}; give the data as --model_config.data_root=FOLDER, or generate a random "
            "family with sl-discs discs data"
        ) from None
    config = module.get_main_config()
    module.update_save_dir(config)
    return _summarize(Path(config.experiment.save_root), start, config.sampler.name)


def _summarize(folder: Path, start: float, sampler: str) -> int:
    """Prints what DISCS has written for this sampler; returns exit code 1 if it has written no result."""
    written = sorted(path for path in folder.glob("*.*") if path.is_file() and path.stat().st_mtime >= start - 1)
    results = [path for path in written if path.suffix in (".pkl", ".csv")]
    if not results:
        sys.stderr.write(
            f"error: DISCS wrote no result to {folder}; it hides errors while it reads graphs, so check "
            "model_config.data_root, graph_type and cfg_str\n"
        )
        return 1
    sys.stdout.write(f"took {time.time() - start:.1f} s\n")
    for path in results:
        sys.stdout.write(f"saved {path}{_headline(path, sampler)}\n")
    return 0


def _headline(path: Path, sampler: str) -> str:
    """The main figure of a results file of this sampler."""
    if path.name == "results.pkl":
        try:
            found = load_pickle(path)
        except InputError:
            return ""
        if isinstance(found, dict) and "best_ratio" in found:
            best = np.asarray(found["best_ratio"])
            return f": best ratio {best.mean():.4f}, mean of the last batch's {best.size} instances"
    if path.name == "results.csv" and is_localized(sampler):
        return f": its effective sample size has no meaning, as the target of {sampler} keeps changing"
    if path.name == "results.csv":
        with path.open(newline="") as file:
            row = next(csv.DictReader(file), {})
        mean = row.get("ESS", "").strip("[]").split()[:1]
        return f": effective sample size {mean[0]}, mean over chains" if mean else ""
    return ""


def main(argv: Sequence[str]) -> int:
    """Exit code 0, 1 where DISCS wrote no result, or 2 after a one-line message about bad input."""

    def their_help(arguments: list[str]) -> str:
        return flags.FLAGS.module_help(_import(arguments))

    launch.add_working_directory()
    return run_command(argv, "", __doc__, FLAGS, _run, their_help)
