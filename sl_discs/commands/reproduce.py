r"""Compares the paper's published numbers with our own.

sl-discs reproduce main --profile=cpu --data_root=FOLDER --output=results/reproduce-cpu

  main      every dataset and method against the published table: levels, differences of SL and its base in pairs, and
            run times; at default settings, and at settings tuned on training graphs (held out); with
            --reading=level, the annealing anew in each level, with and without tilt
  ablation  alpha, K, sigma, budget and grid of the sl_ methods, against the published table

Each finished cell (a method on a dataset with all its settings) is kept in OUTPUT/cells: a stopped
command continues where it left off, and a command with other settings runs its cells anew. The
report is OUTPUT/main.md, OUTPUT/main-level.md or OUTPUT/ablation.md, with its rows in a JSON file
of the same name. The same command may be started several times, here or on other machines that see
OUTPUT, to share the cells; the one that ends last writes the report.
"""  # noqa: E501

import contextlib
import time
from pathlib import Path

from sl_discs.commands.command import Command, Given, own_flags, refuse_flags
from sl_discs.engines.choice import ENGINES, choose_engine, leave_cards_alone
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import one_device_per_core
from sl_discs.experiment.record import describe_devices, measured_by
from sl_discs.experiment.summary import published_tables
from sl_discs.instances.dataset import check_data_root
from sl_discs.localization.schedule import ANNEALS
from sl_discs.reproduction import cells
from sl_discs.reproduction.report import main_table, rows_of, summary, write_report
from sl_discs.reproduction.runs import Runner
from sl_discs.support.errors import InputError
from sl_discs.support.locks import FolderInUse
from sl_discs.support.terminal import say

FLAGS, define = own_flags()
help_text = (
    "smoke: two minutes on two cores; cpu: an hour, 10,000 steps on part of the graphs; full: "
    "all, for a GPU."
)
define.enum("profile", "smoke", list(cells.PROFILES), help_text)
define.list(
    "datasets", None, "Datasets, such as mis/er_density/r-0.10; default: those of the profile."
)
define.list("methods", list(cells.METHODS), "Methods; ablation only uses the sl_ ones.")
help_text = (
    "Folder of given instances: DISCS's files, or archives. Default: none; random sets are "
    "generated."
)
define.string("data_root", None, help_text)
define.string(
    "output", None, "Folder of the cells and the report; default: results/reproduce-PROFILE."
)
help_text = (
    "In main, how localized methods read the paper: run, DISCS's annealing over the run; or "
    "level, the annealing anew in each of 512 levels with sigma=15, and beside it the same "
    "without tilt."
)
define.enum("reading", "run", ANNEALS, help_text)
help_text = "In main, also run the settings of configs/sampler/tuned for each dataset and method."
define.boolean("held_out", True, help_text)
define.integer(
    "seeds", 1, "Runs of each cell, with seeds 0, 1, ..., which are averaged.", 1, upper_bound=1_000
)
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("instances", None, "Graphs per dataset instead of the profile's.", 1)
define.integer("steps", None, "Steps per chain instead of the profile's.", 1)
define.integer("chains", None, "Chains per graph instead of the profile's.", 1)

_Work = tuple[cells.PublishedSet, list[cells.Cell]]


def _plan(what: str, choice: cells.Choice) -> tuple[list[_Work], list[str]]:
    """Returns the cells of each requested dataset, or of those of the profile that the table
    contains; why some have none.
    """
    methods = cells.chosen_methods(FLAGS.methods)
    names = FLAGS.datasets
    if names is None:
        shown = published_tables()[what]
        names = [name for name in cells.PROFILES[FLAGS.profile].instances if name in shown]
    work = []
    left_out = []
    for dataset in cells.chosen_sets(names):
        if (reason := dataset.absent(FLAGS.data_root)) is not None:
            left_out.append(f"{dataset.name}: {reason}")
        elif FLAGS.reading == "level":
            work.append((dataset, cells.reading_cells(choice, dataset, methods)))
        elif what == "main":
            work.append((dataset, cells.main_cells(choice, dataset, methods, FLAGS.held_out)))
        else:
            planned, reasons = cells.ablation_cells(choice, dataset, methods)
            work.append((dataset, planned))
            left_out += reasons
    return work, left_out


def _reproduce(given: Given) -> int:
    """Runs the cells of a table that no other command runs, and writes the report of all."""
    one_device_per_core()
    keep_programs()
    [what] = given.arguments
    if what == "ablation":
        refuse_flags(FLAGS, ["held_out", "reading"], "in `reproduce ablation`")
    elif FLAGS.reading == "level":
        refuse_flags(FLAGS, ["held_out"], "with --reading=level")
    name = what if FLAGS.reading == "run" else f"{what}-{FLAGS.reading}"
    check_data_root(FLAGS.data_root)
    profile = cells.PROFILES[FLAGS.profile]
    steps = FLAGS.steps or profile.chain_length
    chains = FLAGS.chains or profile.batch_size
    choice = cells.Choice(steps, chains, FLAGS.engine, tuple(range(FLAGS.seeds)))
    folder = Path(FLAGS.output or f"results/reproduce-{FLAGS.profile}")
    work, left_out = _plan(what, choice)
    for reason in left_out:
        say(f"left out: {reason}")
    wanted = [cell for _, planned in work for cell in planned]
    if not wanted:
        raise InputError("no cell is left to run; choose other --datasets or --methods")
    engines = [choose_engine(cell.settings.engine, cell.build().sampler)[0] for cell in wanted]
    leave_cards_alone(engines)
    measured = measured_by(
        command=given.typed, profile=FLAGS.profile, device=describe_devices(engines)
    )
    begin = time.perf_counter()
    runner = Runner(folder / "cells", say, len(wanted))
    done = []
    held = []
    for dataset, planned in work:
        graphs = dataset.load(
            FLAGS.data_root, FLAGS.instances or profile.count(dataset.name, what == "ablation")
        )
        unseen = dataset.held_out(graphs)
        for cell in planned:
            chosen = unseen if cell.protocol == cells.HELD_OUT else graphs
            try:
                done.append(runner.run(cell, chosen))
            except FolderInUse as error:
                say(f"{cell.label()}: {error.holder} runs it")
                held.append((cell, chosen))
    for cell, chosen in held:  # which may have ended since
        with contextlib.suppress(FolderInUse):
            done.append(runner.run(cell, chosen))
    if left := len(wanted) - len(done):
        say(f"other commands run {left} of the cells; the one that ends last writes the report")
        return 0
    done.sort(key=lambda one: wanted.index(one.cell))
    rows = rows_of(done, FLAGS.data_root)
    paths = write_report(folder, name, rows, left_out, measured)
    say("\n" + "\n\n".join(filter(None, [*summary(rows), main_table(rows)])) + "\n")
    say(
        f"{runner.ran} of {len(wanted)} cells run in {time.perf_counter() - begin:.0f} s, "
        f"{runner.compile_s:.0f} s of it "
        "compiling; the others were already finished"
    )
    say("\n".join(["saved:", *(f"  {path}" for path in paths)]))
    return 0


main = Command("main|ablation", __doc__, FLAGS, _reproduce)
