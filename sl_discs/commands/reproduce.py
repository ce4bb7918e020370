r"""Compares the paper's published numbers with our own.

sl-discs reproduce main --profile=cpu --data_root=FOLDER --output=results/reproduce-cpu

  main          every dataset and method against the published table, paired differences of SL and its base, run
  times;
                at default settings, and with settings that were tuned on training graphs (held out)
  runtime       only the run-time table, from the same cells
  ablation      alpha, K and sigma of the sl_ methods, against the published table
  allocation    a bar chart of budgets and grids of the sl_ methods
  trajectories  a plot of the best value so far against steps, from the cells of main
  field         the default `solve` beside published results of others on the sets that they share

Each finished cell (a method on a dataset with all its settings) is kept in OUTPUT/cells: a stopped command continues
where it left off, and a command with other settings runs its cells anew. All commands with the same OUTPUT share one
report: OUTPUT/report.md, OUTPUT/report.json and figures. Bad input ends the command with exit code 2 and a one-line
message.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from pathlib import Path

import jax

from sl_discs.command import Command, Given, choice_before_flags, own_flags, refuse_flags, say
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.registry import one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.published import has_ablation
from sl_discs.experiment.record import commit
from sl_discs.experiment.settings import ENGINES
from sl_discs.files import check_writable, only_run_in
from sl_discs.instances.dataset import check_data_root, load_dataset
from sl_discs.reproduction import field
from sl_discs.reproduction.best_known import DATA_SEED, FOLDER, PLANS, describe, path_of, search_set, with_references
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
from sl_discs.reproduction.field import chosen_cells, field_section
from sl_discs.reproduction.markdown import COMMANDS_TITLE
from sl_discs.reproduction.report import ORDER, Composer, Section, write_report
from sl_discs.reproduction.runs import Runner
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
        sys.stderr.write("\nstopped; the same command continues after the last finished cell\n")
        return 130


def _run(what: str, command: str) -> int:
    """Runs the cells of a table and writes the report."""
    if what != "main":
        refuse_flags(FLAGS, ["held_out"], f"in `reproduce {what}`")
    if what == "field":
        refuse_flags(FLAGS, ["methods", "seeds", "steps", "chains", "engine"], "in `reproduce field`")
        return _field(command)
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
        graphs = with_references(dataset.load(FLAGS.data_root, count))
        if (said := describe(graphs)) is not None:
            say(f"{graphs.name}: {said}")
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


def _field(command: str) -> int:
    """Solves what is left of the sets, and reports after each of them."""
    check_data_root(FLAGS.data_root)
    size = field.SIZES[FLAGS.profile]
    chosen = chosen_cells(FLAGS.datasets, size)
    folder = check_writable(FLAGS.output or f"results/reproduce-{FLAGS.profile}")
    made_by, begin = _made_by(command), time.perf_counter()
    left_out: list[str] = []
    paths: tuple[Path, Path] | None = None

    def section() -> Section:
        """Of all cells in the folder, whichever command has run them."""
        cells = [cell for _, _, cells in chosen_cells(None, size) for cell in cells]
        return field_section([(cell, cell.read(folder / "field")) for cell in cells], left_out)

    for dataset, count, cells in chosen:
        if (reason := dataset.absent(FLAGS.data_root)) is not None:
            say(f"{dataset.name}: left out: {reason}")
            left_out.append(f"{dataset.name} is left out: {reason}.")
            continue
        graphs = dataset.load(FLAGS.data_root, FLAGS.instances or count)
        for cell in cells:
            with progress_bar(len(graphs.graphs), " graphs") as progress:
                rows = field.play(cell, graphs, folder / "field", functools.partial(progress, dataset.name, 1))
            found = field.summary(cell, rows)
            say(
                f"{dataset.name}, {cell.seconds:g} CPU s: mean {found['mean']:,.2f} of {found['n']} graphs, "
                f"{found['optimal']} proved optimal, {found['cpu_s']:.2f} CPU s a graph"
            )
            paths = write_report(folder, {"field": section()}, made_by)
    if paths is None:
        raise InputError("no set is left to solve; give --data_root, or choose other --datasets")
    say(f"\n{_summary('field', {'field': section()})}\n")
    say(f"{time.perf_counter() - begin:.0f} s; rows that were finished before were not run again")
    say("\n".join(["saved:", *(f"  {path}" for path in (*paths, folder / "field"))]))
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

REFERENCES_FLAGS, define = own_flags()
define.list("datasets", list(PLANS), "Generated MaxCut sets, as the published tables name them.")
define.integer("instances", 128, "Number of graphs of each set, from the first on.", 1)
define.integer("data_seed", DATA_SEED, "Seed of the generated graphs.", 0)
define.integer("steps", None, "Steps per chain, each a proposal of one node; default: the set's.", 10)
define.integer("chains", None, "Chains per start; default: the set's.", 1)
define.integer("starts", None, "Starts per graph; default: the set's.", 1)
define.integer("first_seed", 0, "Seed of the first start; the others follow it.", 0)
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("threads", 0, "Threads of the CPU engine; 0: as many as cores.", 0)
define.string("folder", str(FOLDER), "Folder of the files; default: the package's own.")


def _references(given: Given) -> int:
    """Searches reference cuts of the generated MaxCut sets, which percentages of a reproduction refer to.

    sl-discs references --datasets=maxcut/ba/r-ba-4-n-512-600 --instances=128 --threads=1

    Each graph is annealed from several starts with different seeds. Cuts and partitions are saved after each graph,
    in one file per set, and a stopped command continues where it left off. A command with other steps, chains or
    seeds, such as --first_seed=100, adds its starts and keeps the larger cut. Bad input ends the command with exit
    code 2 and a one-line message.
    """
    own = REFERENCES_FLAGS
    if not own.datasets:
        raise InputError("--datasets names no dataset; give --datasets=NAME,NAME")
    sets = chosen_sets(own.datasets)
    for one in sets:
        if one.name not in PLANS:
            raise InputError(f"--datasets: {one.name} is not searched for references; known: {', '.join(PLANS)}")
    folder = check_writable(own.folder)
    changed = {name: own[name].value for name in ("steps", "chains", "starts", "first_seed")}
    changed = {name: value for name, value in changed.items() if value is not None}
    for one in sets:
        begin = time.perf_counter()
        search = dataclasses.replace(PLANS[one.name], **changed)
        graphs = load_dataset(*one.flags, num_instances=own.instances, data_seed=own.data_seed)
        settings = search.settings(own.engine, own.threads)
        total = search.steps * search.chains * search.starts * len(graphs.graphs)
        lock = f".{path_of(one.name, own.data_seed).stem}.lock"
        with only_run_in(folder, lock), progress_bar(total) as progress:
            advance = functools.partial(progress, one.name)
            tally = search_set(graphs, own.data_seed, settings, given.typed, folder, advance)
        known = [tally.references.graphs[index] for index in graphs.index]
        agreed = sum(graph.agrees() for graph in known)
        say(
            f"{one.name}: {len(known)} graphs, {tally.played} of them run now, {tally.improved} improved; "
            f"mean cut {sum(graph.cut for graph in known) / len(known):.3f}; at least two starts at the best known "
            f"on {agreed} ({100 * agreed / len(known):.0f}%); {time.perf_counter() - begin:.0f} s"
        )
        say(f"  {path_of(one.name, own.data_seed, folder)}")
    return 0


references = Command("", _references.__doc__, REFERENCES_FLAGS, _references)
