"""The commands that run programs of DISCS with this package's samplers: its main program, a sweep,
and its plots.

They need a checkout of DISCS, which is not changed, on PYTHONPATH or as the working directory.
"""

import contextlib
import csv
import dataclasses
import functools
import importlib
import os
import pkgutil
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml
from absl import flags
from jaxtyping import Float64
from ml_collections import ConfigDict, config_flags

from sl_discs.commands import launch
from sl_discs.commands.command import Command, Given, parse_flags, process_arguments
from sl_discs.commands.sweep import PROGRAM, chosen_sweep
from sl_discs.discs_plugin.compat import Overlay
from sl_discs.experiment.record import paired
from sl_discs.experiment.sweep_file import (
    SAMPLER,
    Sweep,
    discs_arguments,
    pairs_of,
    parse_extra,
    with_overrides,
)
from sl_discs.experiment.sweep_runs import run_program
from sl_discs.instances.dataset import check_data_root, find_family
from sl_discs.instances.discs_files import load_pickle
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import IN_DISCS, PREFIX, is_localized
from sl_discs.support.errors import InputError, MissingExtra
from sl_discs.support.own_code import imported
from sl_discs.support.signals import notice_of_end
from sl_discs.support.terminal import say, tell

MAIN_FLAGS, _ = launch.own_flags()


def _import_main(arguments: list[str]) -> tuple[Any, list[str]]:
    """Imports the main module of DISCS, which adds flags to those of the process; returns it and
    its arguments.
    """
    launch.register_from_flags(MAIN_FLAGS)
    argv = launch.resolve_configs(["discs main", *arguments])
    try:
        # The flags of configs load their defaults when they are defined.
        with process_arguments(argv):
            return importlib.import_module("discs.experiment.main_sampling"), argv
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "discs":
            raise
        raise MissingExtra(
            f"DISCS needs {error.name}, which is not installed; install it with: pip install -e "
            "'FOLDER[discs]', where FOLDER is the clone of sl_discs"
        ) from error


def _main(given: Given) -> int:
    r"""Runs DISCS's own main_sampling, with the samplers and models of sl_discs added.

    sl-discs discs main \
        --model_config=discs/models/configs/ising_config.py --model_config.shape='(20, 20)' \
        --sampler_config=discs/samplers/configs/sl_path_auxiliary_config.py \
        --config.experiment.chain_length=2000 --run_local

    Needs a checkout of DISCS, which is not changed, on PYTHONPATH or as the working directory. The
    flags are those of DISCS, and --fixes.
    """
    start = time.time()
    module, argv = _import_main(given.arguments)
    rest = parse_flags(flags.FLAGS, argv)
    _check_config(module)
    if note := _fit_batches(module.get_main_config()):
        tell(note)
    try:
        module.main(["discs main", *rest])
    except FileNotFoundError as error:  # what DISCS raises for a missing dataset
        raise InputError(
            f"there is no {error.filename}; give the data as --model_config.data_root=FOLDER, or "
            "generate a random family with sl-discs discs data"
        ) from None
    config = module.get_main_config()
    module.update_save_dir(config)
    return _summarize(Path(config.experiment.save_root), start, config.sampler.name)


def _check_config(module: Any) -> None:
    """Raises InputError for configs of which DISCS can make no model or sampler."""
    values = flags.FLAGS
    configs = "discs/models/configs"
    for flag, example in (
        ("model_config", f"{configs}/ising_config.py"),
        ("sampler_config", "discs/samplers/configs/sl_gwg_config.py"),
    ):
        if values[flag].value is None:
            raise InputError(f"no {flag} is given; pass --{flag}=FILE, such as {example}")
    model = values.model_config
    try:
        importlib.import_module(f"discs.models.{model.get('name')}")
        config = module.get_main_config()
    except (ImportError, AttributeError, KeyError) as error:
        named = [f"{field}={model.get(field)}" for field in ("name", "graph_type", "cfg_str")]
        raise InputError(
            f"DISCS cannot load the model of model_config with {', '.join(named)} ({error!r}); its "
            f"models are files in {configs}, graph_types files in {configs}/NAME, and a cfg_str is "
            "such as r-0.10"
        ) from error
    if not config.model.name:
        raise InputError(
            f"{model.get('name')} needs an experiment config of its own; pass --config=FILE, "
            "such as discs/experiment/configs/mis/er_density.py"
        )
    sizes = config.experiment
    if sizes.evaluator == "co_eval" and sizes.chain_length < sizes.log_every_steps:
        raise InputError(
            "no step would be logged; give a chain_length of at least experiment.log_every_steps"
        )
    folder = config.model.get("data_path") or ""
    path = Path(folder, "params.pkl")
    if folder and not path.is_file():
        raise InputError(
            f"there is no {path}, the trained parameters of {config.model.name}; give their "
            "folder as --model_config.data_path=FOLDER, or train them with DISCS's discs/learning"
        )


def _fit_batches(config: ConfigDict) -> str:
    """Makes DISCS run no more graphs at a time than its files have, and read their sizes; says so,
    or returns "".

    DISCS pads batches of graphs to `num_models`, and batches to `num_instances`, with empty graphs
    that cost as much as real ones. `config` is its whole config; the experiment config, which DISCS
    reads last, gets the changes. The user's `config.experiment.num_models` is the size of a batch.
    """
    model = config.model
    experiment = flags.FLAGS.config
    try:
        family = find_family(model.name, model.get("graph_type", ""), model.get("cfg_str"))
    except InputError:  # one that only DISCS has
        return ""
    files = family.find_files(Path(model.data_root))
    if family.files is None or not files:
        return ""
    num_models = config_flags.get_override_values(flags.FLAGS["config"]).get(
        "experiment.num_models"
    )
    graphs, count = family.files.load(files, 0, 1)
    most = num_models or model.num_models
    expected = model.get("num_instances")
    devices = jax.local_device_count() if config.experiment.run_parallel else 1
    size = min(most, -(-count // devices) * devices)
    if size == model.num_models and not expected:
        return ""
    # Sets drawn anew may exceed the largest sizes that are fixed in DISCS's config.
    if expected == count and num_models is None and not graphs[0].generated:
        return ""  # DISCS's own data, as its config has them
    # 0: as in the files.
    limits = dict.fromkeys(("max_num_nodes", "max_num_edges", "num_instances"), 0)
    with experiment.unlocked():
        experiment.model = experiment.get("model", {}) | {"num_models": size} | limits
    return (
        f"{family.name} has {count} graphs here: batches are of {size} (num_models; DISCS's "
        f"config: {model.num_models}), and sizes are read from the files"
    )


def _summarize(folder: Path, start: float, sampler: str) -> int:
    """Prints what DISCS has written for this sampler; returns exit code 1 if it has written no
    result.
    """
    written = _written(folder, "*.*", start)
    results = [path for path in written if path.suffix in (".pkl", ".csv")]
    if not results:
        tell(
            f"error: DISCS wrote no result to {folder}; it hides errors while it reads graphs, "
            "so check model_config.data_root, graph_type and cfg_str"
        )
        return 1
    say(f"took {time.time() - start:.1f} s")
    for path in results:
        say(f"saved {path}{_headline(path, sampler)}")
    return 0


def _headline(path: Path, sampler: str) -> str:
    """Returns the main figure of a results file of this sampler."""
    if path.name == "results.pkl" and (best := _best_ratios(path)) is not None:
        return (
            f": best value {best.mean():.4f}, divided by the best known or, where none is, by 1 "
            f"(mean over instances of the last batch: {best.size})"
        )
    if path.name == "results.csv":
        if is_localized(sampler):
            return (
                f": its effective sample size has no meaning, as the target of {sampler} keeps "
                "changing"
            )
        with path.open(newline="") as file:
            row = next(csv.DictReader(file), {})
        mean = row.get("ESS", "").strip("[]").split()[:1]
        return f": effective sample size {mean[0]}, mean over chains" if mean else ""
    return ""


def _best_ratios(path: Path) -> Float64[np.ndarray, "G"] | None:
    try:
        return np.ravel(load_pickle(path)["best_ratio"]).astype(np.float64)
    except (InputError, KeyError, TypeError, ValueError):
        return None


main = Command(
    "",
    _main.__doc__,
    MAIN_FLAGS,
    _main,
    foreign_help=lambda arguments: flags.FLAGS.module_help(_import_main(arguments)[0]),
)

SWEEP_FLAGS, define = launch.own_flags()
define.string(
    "sweep", None, "Sweep file; DISCS's own are also found next to its package.", required=True
)
define.string("data_root", "./sco", "Folder of DISCS's graphs, for combinatorial problems.")
define.string("save_root", None, "Folder of the runs' folders; default: ./discs-MODEL-NAME.")
define.list(
    "samplers", None, "Only these of the sweep's samplers; sl_gwg takes the settings of gwg."
)
define.list("only", None, "Numbers of the runs to perform, as --list shows them; default: all.")
define.boolean("list", False, "Print the commands of the runs without running them.")


def _sweep(given: Given) -> int:
    r"""Performs the runs of a sweep file of DISCS (`run_configs`) in turn, each with `sl-discs
    discs main`.

    sl-discs discs sweep --sweep=discs/run_configs/co/mis/er_density_sampler_sweep.py --list
    sl-discs discs sweep --sweep=discs/run_configs/co/mis/er_density_sampler_sweep.py \
        --data_root=./sco --samplers=gwg,sl_gwg -- --config.experiment.chain_length=2000

    Arguments after `--`, --flag=value, are passed to every run. Each run saves into a folder of its
    own, named as by DISCS's launcher, which DISCS's plotting scripts read (`sl-discs discs plot`).
    At the end, each localized sampler is compared with its base of the same settings. The exit code
    is 1 if a run failed. SIGTERM, SIGUSR1 or Ctrl-C ends the current run, too, and the command says
    which runs are left.
    """
    own = SWEEP_FLAGS
    launch.register_from_flags(own)
    sweep = with_overrides(chosen_sweep(own.sweep, own.samplers), parse_extra(given.more))
    if sweep.graph_type and own["data_root"].present and not own.list:
        check_data_root(own.data_root)
    root = Path(own.save_root or f"discs-{sweep.name}")
    shared = [own["fixes"].serialize(), *(f"--import={code}" for code in imported())]
    failed = []
    count = len(sweep.runs)
    numbers = {str(number): number for number in range(1, count + 1)}
    chosen = numbers if own.only is None else own.only
    if unknown := [text for text in chosen if text not in numbers]:
        raise InputError(f"--only: there is no run {unknown[0]!r}; the sweep has 1 to {count}")
    todo = [numbers[text] for text in chosen]
    with notice_of_end(signal.SIGINT, raises=True) as notice:
        for index, number in enumerate(todo):
            folder = root / sweep.folder(number)
            arguments = discs_arguments(sweep, number, own.data_root, folder)
            command = [
                sys.executable,
                *PROGRAM,
                "discs",
                "main",
                *arguments,
                *shared,
                *given.more,
            ]
            say(f"[{number}/{count}] {shlex.join(command)}")
            if not own.list and run_program(command, notice):
                failed.append(number)
            if notice.given:
                left = sorted({*failed, *todo[index:]})
                tell(f"stopped; --only={','.join(map(str, left))} performs the runs that are left")
                return 128 + notice.signal
    if failed:
        tell(
            f"error: {len(failed)} of the runs failed; --only={','.join(map(str, failed))} repeats "
            "them"
        )
        return 1
    if not own.list:
        say("\n".join([*_comparisons(sweep, root), f"saved in {root}"]))
    return 0


def _comparisons(sweep: Sweep, root: Path) -> list[str]:
    """Returns a line for each localized run and that of its base with the same settings, if both
    have results.

    It tells the means of DISCS's best ratios, and the difference by instances with its standard
    error.
    """
    lines = []
    names = [sweep.sampler_of(number) for number in range(1, len(sweep.runs) + 1)]
    settings = (
        {flag: value for flag, value in run.items() if flag != SAMPLER} for run in sweep.runs
    )
    for first, second in pairs_of(list(zip(names, settings, strict=True))):
        folders = [root / sweep.folder(position + 1) for position in (first, second)]
        localized, plain = (_best_ratios(folder / "results.pkl") for folder in folders)
        if localized is None or plain is None or len(localized) != len(plain):
            continue
        gain = paired(localized, plain)
        error = f" +- {gain.se:.4f}" if gain.se is not None else ""
        lines.append(
            f"[{first + 1}] {names[first]} {localized.mean():.4f}, "
            f"[{second + 1}] {names[second]} {plain.mean():.4f}: "
            f"difference {gain.mean:+.4f}{error} (n = {gain.n})"
        )
    return lines


sweep = Command("", _sweep.__doc__, SWEEP_FLAGS, _sweep, passes_on=True)

PLOT_FLAGS, _ = launch.own_flags()


def _import_plot(arguments: list[str]) -> Any:
    """Returns the script that the first argument names, imported; its flags are added to those of
    the process.
    """
    launch.register_from_flags(PLOT_FLAGS)
    scripts = [
        module.name
        for module in pkgutil.iter_modules(importlib.import_module("discs.plot_results").__path__)
    ]
    if not arguments or arguments[0] not in scripts:
        raise InputError(
            f"the first argument names the script; DISCS has: {', '.join(sorted(scripts))}"
        )
    teach_plot_utils()
    module = importlib.import_module(f"discs.plot_results.{arguments[0]}")
    if not hasattr(module, "main"):
        raise InputError(f"discs.plot_results.{arguments[0]} is not a script")
    return module


def _plot(given: Given) -> int:
    r"""Runs a plotting script of DISCS that also knows the plugin's samplers.

    sl-discs discs plot plot_co_through_time \
        --gcs_results_path=./discs-mis-er_density_sampler_sweep --graphtype=mis

    Needs a checkout of DISCS on PYTHONPATH or as the working directory. The scripts read the
    folders that sweeps write (`sl-discs discs sweep`):
    ./discs-MODEL-NAME/NUMBER_SETTINGS/results.pkl. Numbers of steps that the name of a folder lacks
    are taken from its config.yaml.
    """
    module = _import_plot(given.arguments)
    rest = parse_flags(flags.FLAGS, given.arguments)
    # It takes everything in the folder for runs, and does not say what it saves.
    module.os = Overlay(os, listdir=_run_folders)
    start = time.time()
    try:
        code = module.main(["discs plot", *rest]) or 0
    except IndexError:
        if "-" in flags.FLAGS.gcs_results_path:
            raise
        raise InputError(
            "--gcs_results_path: DISCS reads the model from this name; call it discs-MODEL-NAME"
        ) from None
    for path in _written(Path(), "*/**/*.*", start):
        if path.suffix in (".png", ".pdf", ".csv"):
            say(f"saved {path}")
    return code


def _written(folder: Path, pattern: str, start: float) -> list[Path]:
    """Returns the files in a folder that were written since a time, sorted."""
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and path.stat().st_mtime >= start - 1
    )


def _run_folders(path: str = ".") -> list[str]:
    """Returns the names of the folders of runs; InputError if there is none."""
    folders = sorted(
        entry.name for entry in Path(path).iterdir() if entry.is_dir() and "=" in entry.name
    )
    if not folders:
        raise InputError(
            f"{path}: no folder of a run, such as 1_name='gwg'; `sl-discs discs sweep` writes them"
        )
    return folders


plot = Command(
    "SCRIPT",
    _plot.__doc__,
    PLOT_FLAGS,
    _plot,
    foreign_help=lambda arguments: flags.FLAGS.module_help(_import_plot(arguments)),
)

# DISCS's plotting scripts with the plugin's samplers: their short names, colours and order.
#
# The scripts look up samplers in tables of `discs.plot_results.plot_utils`, and fail on unknown
# names or omit them. A localized sampler gets its base sampler's entry, with `sl_` before the short
# name and half the brightness of the colour, and comes behind it. DISCS's samplers that are missing
# from its tables are grey.

_PREFIXES = (PREFIX + IN_DISCS, IN_DISCS, PREFIX)
_FIELDS = tuple(field.name for field in dataclasses.fields(Localization))
_NOT_SAMPLERS = ("save_title", "model")


def _split(name: str) -> tuple[str, str]:
    """Returns the plugin's prefix of a name, and DISCS's name."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    return prefix, name.removeprefix(prefix)


def _get_experiment_config(original: Callable, folder: str) -> dict[str, Any]:
    """Returns the settings in the name of a run's folder, and of its config.yaml those that DISCS
    needs besides.

    Where a name lacks numbers of steps, DISCS assumes others than its defaults.
    """
    settings = original(folder)
    with contextlib.suppress(FileNotFoundError):
        text = Path(flags.FLAGS.gcs_results_path, folder, "config.yaml").read_text(encoding="utf-8")
        # This loader makes texts, lists and dictionaries, whatever objects the file asks for.
        config = yaml.load(text, yaml.BaseLoader)["_fields"]
        experiment = config["experiment"]["_fields"]
        sampler = config["sampler"]["_fields"]
        needed = {field: experiment[field] for field in ("log_every_steps", "chain_length")}
        settings = needed | {"name": sampler["name"]} | settings
    return settings


def _process_keys(original: Callable, settings: dict[str, Any]) -> dict[str, Any]:
    """DISCS's short name, preceded by the prefix and followed by the swept fields of
    localization.
    """
    if "name" not in settings:
        raise InputError(
            f"a run with {settings} has no name=SAMPLER in the name of its folder, nor a "
            "config.yaml"
        )
    prefix, settings["name"] = _split(settings["name"])
    swept = [f"{field}={settings.pop(field)}" for field in _FIELDS if field in settings and prefix]
    settings = original(settings)
    return settings | {"name": " ".join([prefix + settings["name"], *swept])}


def _get_color(original: Callable, label: str):
    from matplotlib import colors

    prefix, base = _split(label)
    color = colors.to_rgb("gray")
    with contextlib.suppress(KeyError):
        color = colors.to_rgb(original(base))
    return tuple(0.5 * part for part in color) if prefix else color


def _sort(original: Callable, clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clusters with each localized sampler behind its base; DISCS's own order omits names."""
    del original
    result = []
    for cluster in clusters:
        labels = sorted(set(cluster) - set(_NOT_SAMPLERS), key=lambda label: _split(label)[::-1])
        result.append({label: cluster[label] for label in (*labels, *_NOT_SAMPLERS)})
    return result


def teach_plot_utils() -> None:
    """Wraps the functions of `plot_utils` that depend on samplers and settings, once for each
    import of it.
    """
    utils = importlib.import_module("discs.plot_results.plot_utils")
    wrappers: dict[str, Callable] = {
        "get_experiment_config": _get_experiment_config,
        "process_keys": _process_keys,
        "get_color": _get_color,
        "sort_based_on_samplers": _sort,
    }
    for name, wrapper in wrappers.items():
        original = getattr(utils, name)
        if not isinstance(original, functools.partial):
            setattr(utils, name, functools.partial(wrapper, original))
