r"""Compares the paper's published numbers with our own.

sl-discs reproduce main --profile=cpu --data_root=FOLDER --output=results/reproduce-cpu

  main          every dataset and method against the published table, paired differences of SL and its base, run
  times;
                at default settings, and with settings that were tuned on training graphs (held out)
  runtime       only the run-time table, from the same cells
  ablation      alpha, K and sigma of the sl_ methods, against the published table
  allocation    a bar chart of budgets and grids of the sl_ methods
  trajectories  a plot of the best value so far against steps, from the cells of main

Each finished cell (a method on a dataset with all its settings) is kept in OUTPUT/cells: a stopped command continues
where it left off, and a command with other settings runs its cells anew. All commands with the same OUTPUT share one
report: OUTPUT/report.md, OUTPUT/report.json and figures. Bad input ends the command with exit code 2 and a one-line
message.
"""

from __future__ import annotations

import time

import jax

from sl_discs.command import Command, Given, choice_before_flags, own_flags, refuse_flags, say
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.registry import one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.published import has_ablation
from sl_discs.experiment.record import commit
from sl_discs.experiment.settings import ENGINES
from sl_discs.files import check_writable
from sl_discs.instances.dataset import check_data_root
from sl_discs.reproduction.cells import (
    ABLATION,
    ALLOCATION,
    DENSITIES,
    HELD_OUT,
    METHODS,
    PROFILES,
    Cell,
    Choice,
    Profile,
    PublishedSet,
    check_methods,
    chosen_sets,
    main_cells,
    varied_cells,
)
from sl_discs.reproduction.markdown import COMMANDS_TITLE
from sl_discs.reproduction.report import ORDER, Composer, write_report
from sl_discs.reproduction.runs import Runner
from sl_discs.terminal import tell
from sl_discs.version import __version__

FLAGS, define = own_flags()

define.enum(
    "profile",
    "smoke",
    list(PROFILES),
    "Size: smoke, two minutes on two cores; cpu, about an hour on two cores, with 10,000 steps as published on part "
    "of the graphs; full, all graphs, for a GPU.",
)
define.list("datasets", None, "Datasets, such as mis/er_density/r-0.10; default: those of the profile.")
define.list("methods", list(METHODS), "Methods; ablation and allocation only use the sl_ ones.")
define.string(
    "data_root",
    None,
    "Folder of given instances: DISCS's files, or archives. Default: none; random sets are generated.",
)
define.string("output", None, "Folder of the cells and the report; default: results/reproduce-PROFILE.")
define.boolean(
    "held_out", True, "In main, also run the settings of configs/sampler/tuned for each dataset and method."
)
define.integer("seeds", 1, "Runs of each cell, with seeds 0, 1, ..., which are averaged.", 1, upper_bound=1_000)
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("instances", None, "Graphs per dataset instead of the profile's.", 1)
define.integer("steps", None, "Steps per chain instead of the profile's.", 1)
define.integer("chains", None, "Chains per graph instead of the profile's.", 1)


def _sets(what: str, profile: Profile) -> list[PublishedSet]:
    """The requested datasets, or those of the profile that the table contains."""
    if FLAGS.datasets is not None:
        if not FLAGS.datasets:
            raise InputError("--datasets names no dataset; give --datasets=NAME,NAME")
        return chosen_sets(FLAGS.datasets)
    names = list(profile.instances)
    if what == "ablation":
        names = [name for name in names if has_ablation(name)]
    elif what == "allocation":
        names = [name for name in names if name in DENSITIES]
    return chosen_sets(names)


def _cells(what: str, choice: Choice, dataset: PublishedSet, left_out: list[str]) -> list[Cell]:
    if what not in ("ablation", "allocation"):
        return main_cells(choice, dataset, FLAGS.methods, what == "main" and FLAGS.held_out)
    settings = ABLATION if what == "ablation" else ALLOCATION
    cells, reasons = varied_cells(choice, dataset, FLAGS.methods, settings)
    left_out += reasons
    return cells


def _check_flags() -> None:
    check_methods(FLAGS.methods, METHODS)
    if not FLAGS.methods:
        raise InputError("--methods names no method; give --methods=NAME,NAME")
    check_data_root(FLAGS.data_root)


def _reproduce(given: Given) -> int:
    one_device_per_core()
    keep_programs()
    try:
        return _run(choice_before_flags(given.arguments, ORDER), given.typed)
    except KeyboardInterrupt:
        tell("\nstopped; the same command continues after the last finished cell")
        return 130


def _run(what: str, command: str) -> int:
    """Runs the cells of a table and writes the report."""
    if what != "main":
        refuse_flags(FLAGS, ["held_out"], f"in `reproduce {what}`")
    _check_flags()
    profile = PROFILES[FLAGS.profile]
    choice = Choice(
        FLAGS.steps or profile.chain_length,
        FLAGS.chains or profile.batch_size,
        FLAGS.engine,
        tuple(range(FLAGS.seeds)),
    )
    folder = check_writable(FLAGS.output or f"results/reproduce-{profile.name}")
    left_out: list[str] = []
    work: list[tuple[PublishedSet, list[Cell]]] = []
    for dataset in _sets(what, profile):
        reason = dataset.absent(FLAGS.data_root)
        if reason is None:
            work.append((dataset, _cells(what, choice, dataset, left_out)))
        else:
            left_out.append(f"{dataset.name}: left out: {reason}")
    for reason in left_out:
        say(reason)
    total = sum(len(cells) for _, cells in work)
    if not total:
        raise InputError("no cell is left to run; choose other --datasets or --methods")
    made_by = _made_by(command)
    say(", ".join(f"{key} {value}" for key, value in made_by.items() if key != "command") + f": {total} cells")

    begin = time.perf_counter()
    runner, composer, done = Runner(folder / "cells", say, total), Composer(folder, FLAGS.data_root), []
    for dataset, cells in work:
        count = FLAGS.instances or profile.count(dataset.name, what in ("ablation", "allocation"))
        graphs = dataset.load(FLAGS.data_root, count)
        unseen = dataset.held_out(graphs)
        done += [runner.run(cell, unseen if cell.protocol == HELD_OUT else graphs) for cell in cells]
        write_report(folder, composer.compose(what, done, left_out, final=False), made_by)
    sections = composer.compose(what, done, left_out, final=True)
    text, numbers = write_report(folder, sections, made_by)
    drawn = [str(folder / name) for section in sections.values() for name in section.figures]
    say(f"\n{_summary(what, sections)}\n")
    say(
        f"{runner.ran} of {total} cells run in {time.perf_counter() - begin:.0f} s, {runner.compile_s:.0f} s of it "
        "compiling; the others were already finished"
    )
    say("\n".join(["saved:", *(f"  {path}" for path in (text, numbers, *drawn, folder / "cells"))]))
    return 0


def _made_by(command: str) -> dict[str, str]:
    return {
        "command": command,
        "profile": FLAGS.profile,
        "version": __version__,
        "commit": commit(),
        "device": f"{len(jax.devices())} x {jax.devices()[0].device_kind}",
    }


def _summary(what: str, sections: dict) -> str:
    """The section for a terminal: its tables, without the list of commands and the notes."""
    lines = sections[what].text.partition(COMMANDS_TITLE)[0].splitlines()
    return "\n".join(line for line in lines if line.startswith(("|", "#", "- ")))


main = Command("|".join(ORDER), __doc__, FLAGS, _reproduce)
