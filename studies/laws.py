"""Compares sampling methods with tempering, on targets whose distribution is known.

    python studies/laws.py --profile=cpu --output=results/laws

It reports the errors of all methods at equal CPU time, and the CPU time that tempering needs for
the same error, divided by the method's own. Finished cells are kept in OUTPUT/cells, so that a
stopped command continues where it left off; tables and figures in OUTPUT use all cells that the
command names. Times are CPU times of the whole process without compilation; on a shared machine,
`taskset -c 0` keeps it on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from finished import finished
from laws_cells import (
    BASELINE,
    LOW_RANK,
    MEASURED,
    METHODS,
    SEARCHED,
    Cell,
    Known,
    Play,
    coin,
    identity_of,
    know,
    play,
    searched,
)
from laws_report import Found, as_json, border, draw_border, draw_errors, summary, target_table
from laws_targets import PLANE, TARGETS
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.support.checks import check_choice, real
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.figures import or_warn
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import progress_bar, say


class Profile(NamedTuple):
    targets: list[str]  # targets for all methods
    methods: list[str]  # the methods for these targets
    duels: list[str]  # targets for tempering and low_rank only
    plane: list[str]  # targets for these two at the last time limit, for the figure of the border
    seconds: list[float]  # time limits of these two methods
    others: list[float]  # time limits of all other methods
    seeds: int  # number of seeds of each cell


_ALL = [name for name in TARGETS if name not in PLANE and name != "strip-smoke"]
# Among similar targets, only one or two get all methods.
_FEW = ["hopfield-2", "digits", "random-field-10", "independent-sets"]
_MORE = [
    "curie-weiss-500",
    "hopfield-4",
    "communities-2",
    "planted-sk-100-0.2",
    "planted-sk-100-0.5",
    "sk-100-1.5",
]
_TIMES = [0.25, 1.0, 4.0, 16.0]
_MOST_METHODS = [name for name in METHODS if name != "path-auxiliary"]
PROFILES = {
    "smoke": Profile(
        ["strip-smoke", "sk-20-0.9"],
        ["gibbs", "localization", BASELINE, LOW_RANK],
        [],
        ["strip-1.6-0.14"],
        [0.05, 0.2],
        [0.2],
        3,
    ),
    "cpu": Profile(_FEW, _MOST_METHODS, _MORE, list(PLANE), [0.2, 0.8], [0.8], 20),
    "long": Profile(_ALL, list(METHODS), [], list(PLANE), _TIMES, _TIMES, 40),
}


def measure_target(
    name: str,
    limits: Mapping[str, list[float]],
    seeds: int,
    folder: Path,
    advance=lambda words: None,
) -> Found:
    """Measures the cells of a target that are not finished yet; InputError if it needs what is not
    installed.
    """
    known = know(name, TARGETS[name], MEASURED, folder)
    plays: dict[str, dict[float, list[Play]]] = {}
    refused: dict[str, str] = {}
    for method, seconds in limits.items():
        try:
            plays[method] = _measure_method(known, method, seconds, seeds, folder, advance)
        except InputError as error:
            refused[method] = str(error)
    null = coin(known.truth)
    return Found(
        name, len(known.truth.marginals), known.width, known.evidence, null, plays, refused
    )


def _measure_method(
    known: Known, method: str, seconds, seeds, folder, advance
) -> dict[float, list[Play]]:
    """Runs by time limit; InputError if the method refuses the target."""
    arguments = METHODS[method]
    if method == SEARCHED:
        arguments = searched(known.name, TARGETS[known.name], arguments, folder)
    warm = False

    def measured(cell: Cell) -> dict[str, Any]:
        nonlocal warm
        if not warm:  # a first run compiles everything
            play(known.truth, cell._replace(seed=seeds))
            warm = True
        return play(known.truth, cell)._asdict()

    found: dict[float, list[Play]] = {}
    for limit in seconds:
        for seed in range(seeds):
            cell = Cell(method, arguments, limit, seed)
            kept = finished(
                folder / "cells" / known.name, identity_of(known, cell), partial(measured, cell)
            )
            found.setdefault(limit, []).append(Play(**kept))
            advance(f"{known.name}, {method}")
    return found


def _tasks(profile: Profile) -> Iterator[tuple[str, dict[str, list[float]]]]:
    two = [name for name in (BASELINE, LOW_RANK) if name in profile.methods]
    for name in profile.targets:
        yield (
            name,
            {one: profile.seconds if one in two else profile.others for one in profile.methods},
        )
    for names, seconds in ((profile.duels, profile.seconds), (profile.plane, profile.seconds[-1:])):
        for name in names:
            yield name, dict.fromkeys(two, seconds)


def run(profile: Profile, folder: Path) -> None:
    tasks = list(_tasks(profile))
    total = profile.seeds * sum(len(seconds) for _, limits in tasks for seconds in limits.values())
    all_found, plane = [], []
    with progress_bar(total, " cells") as progress:
        for name, limits in tasks:
            try:
                found = measure_target(
                    name,
                    limits,
                    profile.seeds,
                    folder,
                    lambda words: progress("study of laws", 1, words),
                )
            except InputError as error:
                say(f"{name} is left out: {error}\n")
                continue
            say(target_table(found) + "\n")
            all_found.append(found)
            if name in PLANE:
                plane.append(found)
    if not all_found:
        raise InputError("no target could be played")
    others = [found for found in all_found if found not in plane]
    tables = "\n\n".join(summary(part) for part in (others, plane) if part)
    words = "\n\n".join([tables, *map(target_table, all_found)]) + "\n"
    say(tables + "\n")
    saved: list[Path | None] = [
        write_json(
            folder / "laws.json", {"measured": measured_by(), "targets": [*map(as_json, all_found)]}
        ),
        write_text(folder / "laws.md", words),
    ]
    saved.append(or_warn(lambda: draw_errors(others or plane, folder / "errors.png")))
    if places := border(plane, LOW_RANK):
        saved.append(or_warn(lambda: draw_border(places, LOW_RANK, folder / "border.png")))
    say("\n".join(f"saved {path}" for path in saved if path))


FLAGS, define = own_flags()
define.string("output", "results/laws", "Folder of cells, tables and figures.")
define.enum(
    "profile",
    "smoke",
    list(PROFILES),
    "Size: smoke, a minute; cpu, half an hour on one core; long, a day.",
)
define.list("targets", None, "Targets; default: those of the profile.")
define.list("methods", None, "Methods; default: those of the profile.")
define.list("seconds", None, "Time limits; default: those of the profile.")
define.integer(
    "seeds", None, "Number of seeds per cell; default: that of the profile.", lower_bound=1
)


def _chosen() -> Profile:
    profile = PROFILES[FLAGS.profile]
    if FLAGS.targets is not None:
        check_choice("targets", FLAGS.targets, TARGETS)
        profile = profile._replace(targets=FLAGS.targets, duels=[], plane=[])
    if FLAGS.methods is not None:
        check_choice("methods", FLAGS.methods, METHODS)
        profile = profile._replace(methods=FLAGS.methods)
    if FLAGS.seconds is not None:
        try:
            seconds = [float(one) for one in FLAGS.seconds]
        except ValueError:
            raise InputError(
                f"seconds are {','.join(FLAGS.seconds)}; expected numbers", "seconds"
            ) from None
        seconds = [real("seconds", one, above=0) for one in seconds]
        profile = profile._replace(seconds=seconds, others=seconds)
    return profile if FLAGS.seeds is None else profile._replace(seeds=FLAGS.seeds)


def _main(_) -> int:
    run(_chosen(), check_writable(FLAGS.output))
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
