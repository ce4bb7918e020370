"""Asks whether localization helps to optimise, arm by arm, on test graphs that no search has seen.

    python studies/claim/claim.py --profile=cpu --data_root=FOLDER --output=results/claim

The answer is in docs/does_localization_help.md; protocol, report and cells are beside this script.
Each finished cell is kept in OUTPUT/cells: a stopped command continues where it left off, and after
`tar xf studies/claim/cells.tar.xz -C OUTPUT` it continues that comparison. Settings that searches
of both sides found are written to OUTPUT/tuned.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time

from claim_plan import ARMS, SAMPLERS, SIZES, Study, plan
from claim_report import Found, finished, write_report, write_settings
from sl_discs.commands.command import Command, Given, own_flags
from sl_discs.engines.choice import ENGINES
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import one_device_per_core
from sl_discs.experiment.record import measured_by
from sl_discs.instances.dataset import check_data_root
from sl_discs.reproduction.cells import Choice, chosen_sets
from sl_discs.reproduction.runs import Runner
from sl_discs.support.checks import check_choice
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable
from sl_discs.support.terminal import say

FLAGS, define = own_flags()
define.enum(
    "profile",
    "smoke",
    list(SIZES),
    "Size: smoke, a few minutes; cpu, forty CPU hours; full, more of it.",
)
define.list("datasets", None, "Datasets, such as mis/er_density/r-0.10; default: all of the plan.")
define.list("samplers", list(SAMPLERS), "Base samplers.")
define.list("arms", list(ARMS), "How settings are chosen.")
define.string(
    "data_root",
    None,
    "Folder of given instances. Default: none; sets that are not random are left out.",
)
define.string("output", "results/claim", "Folder of cells, report and figure.")
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("steps", None, "Steps per chain instead of the profile's.", 1)
define.integer("chains", None, "Chains per graph instead of the profile's.", 1)

_REPORT_EVERY_S = 600


def _main(given: Given) -> int:
    """Runs what is left of the plan, with a report of all that is finished every ten minutes."""
    one_device_per_core()
    keep_programs()
    check_choice("samplers", FLAGS.samplers, SAMPLERS)
    check_choice("arms", FLAGS.arms, ARMS)
    check_data_root(FLAGS.data_root)
    size = SIZES[FLAGS.profile]
    measured = measured_by(command=given.typed, profile=FLAGS.profile)
    choice = Choice(FLAGS.steps or size.steps, FLAGS.chains or size.chains, FLAGS.engine, (0,))
    folder = check_writable(FLAGS.output)
    runner = Runner(folder / "cells", lambda line: None, total=0)
    reading = Study(size, choice, FLAGS.data_root, functools.partial(finished, folder / "cells"))
    running = dataclasses.replace(
        reading, play=lambda cell, graphs: runner.run(cell, graphs).result
    )
    items = [item for item in plan(size) if item.dataset.absent(FLAGS.data_root) is None]
    wanted = [item for item in items if item.arm in FLAGS.arms and item.sampler in FLAGS.samplers]
    if FLAGS.datasets is not None:
        names = {one.name for one in chosen_sets(FLAGS.datasets)}
        wanted = [item for item in wanted if item.dataset.name in names]
    if not wanted:
        raise InputError(
            "no step of the plan is left; choose other --datasets, --samplers or --arms"
        )
    begin = reported_at = time.perf_counter()
    found = Found()
    found.read(items, reading)
    say(f"{len(found.rounds)} of {len(items)} steps are finished already")
    try:
        for number, item in enumerate(wanted, 1):
            if found.is_settled(item):
                continue
            since = time.perf_counter()
            found.add(item, running)
            say(
                f"[{number}/{len(wanted)}] {found.words(item)}, {time.perf_counter() - since:.0f} s"
            )
            if time.perf_counter() - reported_at > _REPORT_EVERY_S:
                write_report(found, running, folder, measured, final=False)
                reported_at = time.perf_counter()
    finally:
        path = write_report(found, running, folder, measured, final=True)
        write_settings(running, folder / "tuned", measured)
    say(
        f"{runner.ran} cells run in {time.perf_counter() - begin:.0f} s; the others were already "
        "finished"
    )
    say(f"saved: {path}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
