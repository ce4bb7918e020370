"""Command: the study of laws, errors of all methods on targets whose law is known, at equal CPU time.

python -m sl_discs.studies.laws --output=laws --profile=cpu

A cell, which is a method on a target for a time and a seed, is saved as soon as it is measured, so that a command
that was stopped goes on where it was. What counts is the CPU time of the whole process, compilation apart; on a
machine with other work, `taskset -c 0` keeps it to one core. The table and the figures are made of all cells that the
command names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from absl import flags

from sl_discs.atomic import check_writable, write_atomically
from sl_discs.benchmark.choices import check_choice
from sl_discs.benchmark.peers import describe_machine
from sl_discs.checks import real
from sl_discs.command import run_app, say
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.finished_work import write_json
from sl_discs.results.canvas import can_draw, or_warn
from sl_discs.studies.laws_cells import MEASURED, Cell, Known, coin, finished, know, measure, refuses, searched
from sl_discs.studies.laws_figures import border, draw_border, draw_errors
from sl_discs.studies.laws_methods import BASELINE, LOW_RANK, METHODS, SEARCHED
from sl_discs.studies.laws_table import Found, Play, as_json, summary, table
from sl_discs.studies.laws_targets import PLANE, TARGETS


class Profile(NamedTuple):
    """How much is measured.

    Attributes:
      targets: with all methods.
      methods: on these.
      plane: targets with the two methods of the border.
      seconds: time limits; the plane has the last one.
      seeds: of each cell.
    """

    targets: list[str]
    methods: list[str]
    plane: list[str]
    seconds: list[float]
    seeds: int


_ALL = [name for name in TARGETS if name not in PLANE and name != "strip-smoke"]
# Left out where time is short: large ones, and all but one of those that are alike.
_LONG = (
    "curie-weiss-200", "curie-weiss-1000", "curie-weiss-3000", "hopfield-1", "hopfield-8", "communities-4",
    "communities-6", "planted-sk-20-weak", "planted-sk-20-strong", "sk-20-0.5", "sk-20-0.9", "sk-20-1.5",
    "sk-100-0.9",
)  # fmt: skip
_FEWER = [name for name in METHODS if name != "path-auxiliary"]
PROFILES = {
    "smoke": Profile(
        ["strip-smoke", "sk-20-0.9"],
        ["gibbs", "localization", BASELINE, LOW_RANK],
        ["strip-1.6-0.14"],
        [0.05, 0.2],
        3,
    ),
    "cpu": Profile([name for name in _ALL if name not in _LONG], _FEWER, list(PLANE), [0.2, 0.8], 20),
    "long": Profile(_ALL, list(METHODS), list(PLANE), [0.25, 1.0, 4.0, 16.0], 40),
}


def measure_target(
    name: str, methods: list[str], seconds: list[float], seeds: int, folder: Path, advance=lambda words: None
) -> Found:
    """Measures the cells of a target that are not finished yet.

    Args:
      name: of the target.
      methods: their names.
      seconds: time limits.
      seeds: how many.
      folder: of the study.
      advance: called with words after each cell.

    Raises:
      InputError: the target needs something that is not installed, or the folder cannot be written.
    """
    known = know(name, TARGETS[name], MEASURED, folder)
    plays: dict[str, dict[float, list[Play]]] = {}
    refused: dict[str, str] = {}
    for method in methods:
        try:
            plays[method] = _measure_method(known, method, seconds, seeds, folder, advance)
        except InputError as error:
            refused[method] = str(error)
    null = coin(known.truth)
    return Found(name, len(known.truth.marginals), known.width, known.evidence, null, plays, refused)


def _measure_method(known: Known, method: str, seconds, seeds, folder, advance) -> dict[float, list[Play]]:
    """By time limit; InputError where the method refuses the target."""
    arguments = METHODS[method]
    if method == SEARCHED:
        arguments = searched(known.name, TARGETS[known.name], arguments, folder)
    found: dict[float, list[Play]] = {}
    warm = False
    for limit in seconds:
        for seed in range(seeds):
            cell = Cell(method, arguments, limit, seed)
            play = finished(known, cell, folder)
            if play is None:
                if not warm and (why := refuses(known, cell._replace(seed=seeds))):
                    raise InputError(why)
                warm = True
                play = measure(known, cell, folder)
            found.setdefault(limit, []).append(play)
            advance(f"{known.name}, {method}")
    return found


def _tasks(profile: Profile) -> Iterator[tuple[str, list[str], list[float]]]:
    for name in profile.targets:
        yield name, profile.methods, profile.seconds
    border = [name for name in (BASELINE, LOW_RANK) if name in profile.methods]
    for name in profile.plane:
        if name not in profile.targets:
            yield name, border, profile.seconds[-1:]


def run(profile: Profile, folder: Path) -> None:
    """Measures what is not finished, and writes the tables and the figures.

    Args:
      profile: how much.
      folder: of the study.

    Raises:
      InputError: no target could be played, or the folder cannot be written.
    """
    draws = can_draw()
    tasks = list(_tasks(profile))
    total = sum(len(methods) * len(seconds) * profile.seeds for _, methods, seconds in tasks)
    all_found, plane = [], []
    with progress_bar(total, " cells") as progress:
        for name, methods, seconds in tasks:
            try:
                found = measure_target(
                    name, methods, seconds, profile.seeds, folder, lambda words: progress("study of laws", 1, words)
                )
            except InputError as error:
                say(f"{name} is left out: {error}\n")
                continue
            say(table(found) + "\n")
            all_found.append(found)
            if name in PLANE:
                plane.append(found)
    if not all_found:
        raise InputError("no target could be played")
    others = [found for found in all_found if found not in plane]
    tables = "\n\n".join(summary(part) for part in (others, plane) if part)
    words = "\n\n".join([tables, *map(table, all_found)]) + "\n"
    say(tables + "\n")
    saved: list[Path | None] = [
        write_json(folder / "laws.json", {"machine": describe_machine(), "targets": [*map(as_json, all_found)]}),
        write_atomically(folder / "laws.md", lambda file: file.write(words.encode())),
    ]
    if draws:
        saved.append(or_warn(lambda: draw_errors(others or plane, folder / "errors.png")))
    if draws and (places := border(plane, LOW_RANK)):
        saved.append(or_warn(lambda: draw_border(places, LOW_RANK, folder / "border.png")))
    say("\n".join(f"saved {path}" for path in saved if path))


_OUTPUT = flags.DEFINE_string("output", "laws", "Folder for cells, table and figures.")
_PROFILE = flags.DEFINE_enum("profile", "smoke", list(PROFILES), "How much is measured.")
_TARGETS = flags.DEFINE_list("targets", None, "Targets; by default those of the profile.")
_METHODS = flags.DEFINE_list("methods", None, "Methods; by default those of the profile.")
_SECONDS = flags.DEFINE_list("seconds", None, "Time limits; by default those of the profile.")
_SEEDS = flags.DEFINE_integer("seeds", None, "Seeds of a cell; by default those of the profile.", lower_bound=1)


def _chosen() -> Profile:
    profile = PROFILES[_PROFILE.value]
    if _TARGETS.value is not None:
        check_choice("targets", _TARGETS.value, TARGETS)
        profile = profile._replace(targets=_TARGETS.value, plane=[])
    if _METHODS.value is not None:
        check_choice("methods", _METHODS.value, METHODS)
        profile = profile._replace(methods=_METHODS.value)
    if _SECONDS.value is not None:
        try:
            seconds = [real("seconds", float(one), above=0) for one in _SECONDS.value]
        except ValueError:
            raise InputError(f"seconds are {','.join(_SECONDS.value)}; expected numbers above 0") from None
        profile = profile._replace(seconds=seconds)
    return profile if _SEEDS.value is None else profile._replace(seeds=_SEEDS.value)


def _run(_) -> int:
    run(_chosen(), check_writable(_OUTPUT.value))
    return 0


if __name__ == "__main__":
    run_app(lambda argv: (_run, argv))
