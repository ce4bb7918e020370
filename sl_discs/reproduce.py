r"""Command: the paper's published numbers beside our own.

python -m sl_discs.reproduce main --profile=cpu --data_root=FOLDER --output=results/reproduce-cpu

  main          every dataset and method beside the published table, SL minus its base in pairs, run times; with
                settings chosen on training graphs (held out), on the test graphs (as published), and a null control
  runtime       the run-time table alone, from the same cells
  ablation      alpha, K and sigma of the sl_ methods, beside the published table
  allocation    budget by grid of the sl_ methods, as a bar figure
  trajectories  running best over the steps, as a figure, from the cells of main
  theory        the paper's bounds beside exact spectral gaps, along small runs, and its condition on real instances;
                a page of its own in --output, by default results/theory

Each finished cell (a method on a dataset with all its settings) is kept in OUTPUT/cells: a command that was stopped
goes on where it was, and one with other settings runs its cells anew. All commands with one OUTPUT write one report:
OUTPUT/report.md, OUTPUT/report.json and figures. Exit code 2 and one line on bad input.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence

import jax
from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.command import run_app
from sl_discs.engines.devices import one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.provenance import commit
from sl_discs.experiment.settings import ENGINES
from sl_discs.instances.dataset import check_data_root
from sl_discs.reproduction.cell import HELD_OUT, Cell, Choice, check_methods
from sl_discs.reproduction.datasets import PublishedSet, chosen_sets
from sl_discs.reproduction.markdown import COMMANDS_TITLE
from sl_discs.reproduction.plans import ABLATION, ALLOCATION, METHODS, main_cells, varied_cells
from sl_discs.reproduction.profiles import DENSITIES, PROFILES, Profile
from sl_discs.reproduction.references.use import describe, with_references
from sl_discs.reproduction.runner import Runner
from sl_discs.reproduction.sections import ORDER, write_report
from sl_discs.reproduction.tables import Composer
from sl_discs.reproduction.trials import trial_cells
from sl_discs.results.published import has_ablation
from sl_discs.studies import theory
from sl_discs.tuning.instances import part_of
from sl_discs.version import __version__

_THEORY = "theory"
_COMMANDS = (*ORDER, _THEORY)

_PROFILE = flags.DEFINE_enum(
    "profile",
    "smoke",
    list(PROFILES),
    "How much: smoke, two minutes on two cores; cpu, an hour or so on two cores, 10,000 steps as published on part "
    "of the graphs; full, all graphs, for a GPU.",
)
_DATASETS = flags.DEFINE_list(
    "datasets", None, "Datasets, as in mis/er_density/r-0.10; default: those of the profile."
)
_METHODS = flags.DEFINE_list("methods", list(METHODS), "Methods; ablation and allocation take the sl_ ones of them.")
_DATA_ROOT = flags.DEFINE_string(
    "data_root",
    None,
    "Folder of given instances: DISCS's files, or archives. Default: none, so random sets are drawn.",
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Folder of the cells and the report; default: results/reproduce-PROFILE, or results/theory."
)
_HELD_OUT = flags.DEFINE_boolean(
    "held_out", True, "In main, also the settings that configs/sampler/tuned has of a dataset and method."
)
_TRIALS = flags.DEFINE_integer(
    "trials",
    None,
    "In main, trials of each search on the test instances, as the paper searched, and of its null control with the "
    "tilt off; 0: none. Default: the profile's.",
    0,
)
_SEEDS = flags.DEFINE_integer(
    "seeds", 1, "Runs of each cell, with seeds 0, 1, ...; means over them count.", 1, upper_bound=1_000
)
_ENGINE = flags.DEFINE_enum("engine", "auto", ENGINES, "What plays the chains; on a GPU, gpu is the fastest.")
_INSTANCES = flags.DEFINE_integer("instances", None, "Graphs of each dataset instead of the profile's.", 1)
_STEPS = flags.DEFINE_integer("steps", None, "Steps a chain instead of the profile's.", 1)
_CHAINS = flags.DEFINE_integer("chains", None, "Chains a graph instead of the profile's.", 1)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _sets(what: str, profile: Profile) -> list[PublishedSet]:
    """The datasets that are asked for, or else the profile's that the table has."""
    if _DATASETS.value is not None:
        if not _DATASETS.value:
            raise InputError("--datasets names no dataset; give --datasets=NAME,NAME")
        return chosen_sets(_DATASETS.value)
    names = list(profile.instances)
    if what == "ablation":
        names = [name for name in names if has_ablation(name)]
    elif what == "allocation":
        names = [name for name in names if name in DENSITIES]
    return chosen_sets(names)


def _cells(what: str, choice: Choice, dataset: PublishedSet, left_out: list[str]) -> list[Cell]:
    if what not in ("ablation", "allocation"):
        return main_cells(choice, dataset, _METHODS.value, what == "main" and _HELD_OUT.value)
    settings = ABLATION if what == "ablation" else ALLOCATION
    cells, reasons = varied_cells(choice, dataset, _METHODS.value, settings)
    left_out += reasons
    return cells


def _check_flags() -> None:
    check_methods(_METHODS.value, METHODS)
    if not _METHODS.value:
        raise InputError("--methods names no method; give --methods=NAME,NAME")
    check_data_root(_DATA_ROOT.value)


def _what(argv: Sequence[str]) -> str:
    if len(argv) != 2 or argv[1] not in _COMMANDS:
        given = " ".join(argv[1:]) or "nothing"
        raise InputError(f"expected one of {', '.join(_COMMANDS)} before the options, not {given}")
    return argv[1]


def run(argv: Sequence[str]) -> None:
    """Runs the cells of a table and writes the report."""
    what = _what(argv)
    if what == _THEORY:
        theory.run(check_writable(_OUTPUT.value or "results/theory"))
        return
    _check_flags()
    profile = PROFILES[_PROFILE.value]
    choice = Choice(
        _STEPS.value or profile.chain_length,
        _CHAINS.value or profile.batch_size,
        _ENGINE.value,
        tuple(range(_SEEDS.value)),
    )
    folder = check_writable(_OUTPUT.value or f"results/reproduce-{profile.name}")
    trials = profile.trials if _TRIALS.value is None else _TRIALS.value
    left_out: list[str] = []
    plan: list[tuple[PublishedSet, list[Cell], list[Cell]]] = []
    for dataset in _sets(what, profile):
        reason = dataset.absent(_DATA_ROOT.value)
        if reason is None:
            searched, reasons = trial_cells(choice, dataset, _METHODS.value, trials) if what == "main" else ([], [])
            plan.append((dataset, _cells(what, choice, dataset, left_out), searched))
            left_out += reasons
        else:
            left_out.append(f"{dataset.name}: left out: {reason}")
    for reason in left_out:
        _say(reason)
    total = sum(len(cells) + len(searched) for _, cells, searched in plan)
    if not total:
        raise InputError("no cell is left to run; choose other --datasets or --methods")
    made_by = {
        "command": shlex.join(["python", "-m", "sl_discs.reproduce", *sys.argv[1:]]),
        "profile": profile.name,
        "version": __version__,
        "commit": commit(),
        "device": f"{len(jax.devices())} x {jax.devices()[0].device_kind}",
    }
    _say(", ".join(f"{key} {value}" for key, value in made_by.items() if key != "command") + f": {total} cells")

    begin = time.perf_counter()
    runner, composer, done = Runner(folder / "cells", _say, total), Composer(folder, _DATA_ROOT.value), []
    for dataset, cells, searched in plan:
        count = _INSTANCES.value or profile.count(dataset.name, what in ("ablation", "allocation"))
        graphs = with_references(dataset.load(_DATA_ROOT.value, count))
        if (said := describe(graphs)) is not None:
            _say(f"{graphs.name}: {said}")
        unseen = dataset.held_out(graphs)
        done += [runner.run(cell, unseen if cell.protocol == HELD_OUT else graphs) for cell in cells]
        first = part_of(graphs, 0, profile.search_instances or len(graphs.graphs))
        done += [runner.run(cell, first) for cell in searched]
        write_report(folder, composer.compose(what, done, left_out, final=False), made_by)
    sections = composer.compose(what, done, left_out, final=True)
    text, numbers = write_report(folder, sections, made_by)
    drawn = [str(folder / name) for section in sections.values() for name in section.figures]
    _say(f"\n{_summary(what, sections)}\n")
    _say(
        f"{runner.ran} of {total} cells run in {time.perf_counter() - begin:.0f} s, {runner.compile_s:.0f} s of it "
        "compiling; the others were there already"
    )
    _say("\n".join(["saved:", *(f"  {path}" for path in (text, numbers, *drawn, folder / "cells"))]))


def _summary(what: str, sections: dict) -> str:
    """The section in a terminal: its tables, without the list of commands and the notes."""
    lines = sections[what].text.partition(COMMANDS_TITLE)[0].splitlines()
    return "\n".join(line for line in lines if line.startswith(("|", "#", "- ")))


def main(argv: Sequence[str]) -> int:
    """Exit code 0, 2 after one line about bad input, or 130 when stopped from the keyboard."""
    one_device_per_core()
    try:
        run(argv)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; the same command goes on after the last cell that was finished\n")
        return 130
    return 0


if __name__ == "__main__":
    run_app(lambda argv: (main, argv), "|".join(_COMMANDS))
