"""Plays the readings of the paper's algorithm: what gains, and does it gain without the tilt?

    python studies/readings.py --profile=cpu --output=results/readings [--data_root=FOLDER]

The paper leaves open how its annealing goes with the levels of localization. Each reading is played beside its
control without tilt, which is otherwise the same run, and beside the base sampler, on the same new graphs. Finished
cells are kept in OUTPUT/readings.npz: a stopped command continues where it left off. The answer is in
docs/does_localization_help.md.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32
from scipy.special import ndtr

sys.path.append(str(Path(__file__).parent / "claim"))
from claim_plan import SAMPLERS
from claim_statistics import holm, interval
from sl_discs.command import Command, Given, check_choice, own_flags, say
from sl_discs.engines.base import Program
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.registry import choose_engine, has_card
from sl_discs.errors import InputError
from sl_discs.experiment.batches import Layout, Shape, padded_size
from sl_discs.experiment.chains import Chains
from sl_discs.experiment.published import published_row
from sl_discs.experiment.record import Spread
from sl_discs.experiment.settings import ENGINES, Settings, settings_from
from sl_discs.files import check_writable, read_document, write_document, write_json, write_text
from sl_discs.instances.dataset import find_family, load_dataset
from sl_discs.instances.graph import Graph
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED, PublishedSet
from sl_discs.reproduction.report import table
from sl_discs.reproduction.rows import z_score

# Temperatures of a run.
RUN = "over the run"  # DISCS's annealing
LEVEL = "inside each level"  # DISCS's annealing, from its start to its end in every level
CONSTANT = "constant"
HELD = "held over each level"  # as over the run, in the middle of the level
BY_LEVEL = "by level"  # level i of K has the temperature of the part i/K of the run

# Tilts of a run.
OUTSIDE = "outside"  # f/tau + <s, h>, as in this package
INSIDE = "inside"  # (f + <s, h>)/tau
FIRST, LAST = "first half", "last half"  # of the steps; none in the other half


class Reading(NamedTuple):
    """A way to play the paper's algorithm.

    Attributes:
      annealing: how the temperature goes with steps and levels.
      localization: fields that differ from the package's defaults.
      tilt: where it stands; None: there is none.
      control: the reading that is the same run without tilt.
    """

    annealing: str
    localization: dict[str, Any]
    tilt: str | None
    control: str


BASE = "base"


def _readings() -> dict[str, Reading]:
    found = {BASE: Reading(RUN, {}, None, BASE), "annealing over the run": Reading(RUN, {}, OUTSIDE, BASE)}

    def add(name: str, annealing: str, localization: dict[str, Any], tilt: str) -> None:
        without = f"{name}, no tilt"
        found[name] = Reading(annealing, localization, tilt, without)
        found[without] = Reading(annealing, localization, None, without)

    for levels in (512, 256, 1024):
        add(f"annealing inside each level, K {levels}", LEVEL, {"K": levels, "sigma": 15.0}, OUTSIDE)
    add("constant temperature", CONSTANT, {"sigma": 15.0}, OUTSIDE)
    add("temperature by level", BY_LEVEL, {}, OUTSIDE)
    add("tilt inside the temperature", HELD, {}, INSIDE)
    found |= {f"tilt in the {half}": Reading(RUN, {}, half, BASE) for half in (FIRST, LAST)}
    # y of the coding {0, 1} is alpha (1 + s)/2 + sigma B: but for what is known, half of alpha s + 2 sigma B.
    found["0/1 coding"] = Reading(RUN, {"sigma": 20.0}, OUTSIDE, BASE)
    # The paper's GEOM(3, 1), see `localization.schedule`.
    found["SLIPS's Geom(2,1)"] = Reading(RUN, {"alpha": "geom(3,1)"}, OUTSIDE, BASE)
    return found


READINGS = _readings()
PRIMARY = tuple(READINGS)[:10]
SECONDARY = tuple(READINGS)[10:]
# What stays out, and why.
LEFT_OUT = {
    "one observation a graph": "an engine's observation belongs to a chain",
    "tilt inside a temperature that changes at every step": "a level has one tilt; the temperature is held over it",
}

# The constant temperature, by problem.
_CONSTANT = {"mis": 0.2, "maxclique": 0.2, "maxcut": 0.5}

_ER = tuple(f"mis/er_density/r-{p}" for p in ("0.10", "0.20", "0.05", "0.25"))
# The twelve sets on which the paper publishes a gain.
SETS = (
    *_ER, "mis/satlib", "maxclique/rb", "maxcut/er/r-er-0.15-n-256-300", "maxcut/ba/r-ba-4-n-256-300",
    "maxcut/ba/r-ba-4-n-512-600", "maxcut/er/r-er-0.15-n-512-600", "maxcut/ba/r-ba-4-n-1024-1100",
    "maxcut/er/r-er-0.15-n-1024-1100",
)  # fmt: skip
_WITH_SECONDARY = _ER[:2]
_SECONDARY_SAMPLER = "gwg_one_flip"

# Of generated graphs: no search and no other study of this project has seen them.
_DATA_SEED = 3


class Size(NamedTuple):
    """A size by its name in `--profile`.

    Attributes:
      sets: the sets.
      rounds: numbers of graphs that every set gets before any gets the next number.
      block: graphs that are played together.
      samplers: base samplers.
      primary, secondary: readings.
      steps, chains: None: as in the set's config.
    """

    sets: tuple[str, ...]
    rounds: tuple[int, ...]
    block: int
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    primary: tuple[str, ...] = PRIMARY
    secondary: tuple[str, ...] = SECONDARY
    steps: int | None = None
    chains: int | None = None


SIZES = {
    "smoke": Size((_ER[0], SETS[7]), (2, 3), 2, ("path_auxiliary", "gwg_one_flip"), steps=400, chains=2),
    "cpu": Size(_ER[:2], (8, 16), 8, ("gwg", "path_auxiliary"), PRIMARY[:4] + PRIMARY[8:10], ()),
    "full": Size(SETS, (32, 64, 128, 256, 1024), 32),
}

FLAGS, define = own_flags()
define.enum("profile", "smoke", list(SIZES), "Size: smoke, seconds; cpu, minutes on two cores; full, for a GPU.")
define.list("datasets", None, "Sets, such as mis/er_density/r-0.10, in this order; default: the profile's.")
define.list("samplers", None, "Base samplers, of path_auxiliary, gwg, dmala, gwg_one_flip; default: the profile's.")
define.multi_string("readings", None, "A reading by name; may be repeated; default: the profile's.")
define.integer("graphs", None, "Graphs of each set instead of the profile's.", 1)
define.string("data_root", None, "Folder of given instances. Without it mis/satlib is left out.")
define.string("output", "results/readings", "Folder of the cells and of the table.")
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("seconds", None, "Ends by itself after so many seconds, with a table of what is finished.", 1)
define.integer("workers", None, "Processes that share the work; default: 8 on a machine with a GPU, otherwise 1.", 1)


# The program of a reading.


def program_of(reading: Reading, settings: Settings, constant: float) -> tuple[Program, np.float32]:
    """Returns the program of all steps, and the standard deviation of the first observation."""
    length = settings.chain_length
    fields = {"K": 256} | reading.localization
    # A short chain has fewer levels.
    fields["K"] = max(2, fields["K"] * length // 10_000)
    localization = Localization(**fields, tilt=reading.tilt is not None)
    levels = localization.levels(length)
    last = np.asarray(levels.last)
    temperature = temperatures(reading.annealing, settings, last, constant)
    scale = np.array(levels.tilt_scale)
    if reading.tilt == INSIDE:
        scale /= temperature[last]
    elif reading.tilt in (FIRST, LAST):
        scale[(last < length // 2) == (reading.tilt == LAST)] = 0
    return Program(temperature, levels._replace(tilt_scale=scale)), np.float32(localization.initial_noise())


def temperatures(
    annealing: str, settings: Settings, last: Int32[np.ndarray, "K"], constant: float
) -> Float32[np.ndarray, "T"]:
    """Returns the temperature of each step, where each level ends with the step `last`, counted from 0."""

    def of_length(length) -> Float32[np.ndarray, "T"]:
        return dataclasses.replace(settings, chain_length=int(length), log_every_steps=1).temperatures()[:]

    steps, run = np.diff(last, prepend=-1), of_length(settings.chain_length)
    if annealing == RUN:
        return run
    if annealing == LEVEL:
        whole = {length: of_length(length) for length in set(steps.tolist())}
        return np.concatenate([whole[length] for length in steps.tolist()])
    if annealing == CONSTANT:
        return np.full_like(run, constant)
    if annealing == HELD:
        return np.repeat(run[last - steps // 2], steps)
    return np.repeat(of_length(len(last)), steps)


# Plays blocks of graphs.


class Block(NamedTuple):
    """Graphs of a set that are played together: their first position, their number, and what is played on them."""

    dataset: str
    first: int
    count: int  # type: ignore[assignment]
    arms: tuple[tuple[str, str], ...]  # sampler and reading


class Setup(NamedTuple):
    """What all blocks share; `until` is a time of `time.time`."""

    steps: int | None
    chains: int | None
    engine: str
    data_root: str | None
    until: float


Values = Int32[np.ndarray, "G"]
# In the place of sampler and reading: the references of graphs, where results are per cent of them.
REFERENCES = ("", "references")


def draw(dataset: PublishedSet, first: int, count: int, data_root: str | None) -> list[Graph]:
    """Returns graphs of a set; of a random family, without the cache, whose writing takes longer than drawing."""
    generator = find_family(*dataset.flags).generator
    if generator is not None:
        return [generator.draw(_DATA_SEED, number) for number in range(first, first + count)]
    return load_dataset(*dataset.flags, data_root, first=first, num_instances=count).graphs


def play(block: Block, setup: Setup) -> Iterator[tuple[tuple[str, str], Values]]:
    """Yields sampler and reading with the verified best objective of each graph, until time is up."""
    dataset = PUBLISHED[block.dataset]
    kind, graphs = graph_kind(dataset.problem), draw(dataset, block.first, block.count, setup.data_root)
    terms, verify = [kind.terms(graph) for graph in graphs], [kind.evaluators(graph)[1] for graph in graphs]
    given = {"chain_length": setup.steps, "batch_size": setup.chains}
    settings = settings_from(dataset.experiment() | {name: one for name, one in given.items() if one})
    size = padded_size(max(one.num_sites for one in terms))
    degree = max(one.max_degree() for one in terms)
    shape = Shape(
        size, len(graphs), settings.batch_size, degree if sparse_is_cheaper(degree, size) else None, Layout(1, 1)
    )
    names = list(range(block.first, block.first + block.count))
    every = math.gcd(settings.chain_length, settings.log_every_steps)
    if kind.in_percent and all(graph.reference for graph in graphs):
        yield REFERENCES, np.array([graph.reference for graph in graphs], np.int32)
    chains: Any = None
    played, first = "", dict[Any, Any]()
    for sampler, name in block.arms:
        if time.time() > setup.until:
            return
        program, noise = program_of(READINGS[name], settings, _CONSTANT[dataset.problem])
        if sampler != played:
            variant = SAMPLERS[sampler]
            method = build_method({"name": variant.base} | variant.changes, settings.batch_size)
            engine, _ = choose_engine(setup.engine, method.sampler, num_sites=size)
            if chains is None:
                chains = Chains(terms, names, shape, method.sampler, engine, 0)
            chains.sampler, played, first = method.sampler, sampler, {}
        if noise not in first:
            chains.start(program, noise=noise)
            first[noise] = chains.states
        chains.states = first[noise]
        chains.prepare(program)
        chains.advance(settings.chain_length // every, every)
        states = np.asarray(chains.states.best.x)
        best = [
            check(of_graph[:, : graph.num_nodes]).values[0]
            for check, of_graph, graph in zip(verify, states, graphs, strict=True)
        ]
        yield (sampler, name), np.array(best, np.int32)


def play_all(block: Block, setup: Setup) -> list[tuple[tuple[str, str], Values]]:
    return list(play(block, setup))


def blocks(size: Size, graphs: int | None, data_root: str | None, cells: Cells) -> list[Block]:
    """Returns what is left, the most important first: every set in turn, and more graphs of all of them later."""
    done = {(*name, graph) for (*name, first), values in cells.items() for graph in range(first, first + len(values))}
    found: list[Block] = []
    before = 0
    for stop in [graphs] if graphs else size.rounds:
        for name in size.sets:
            dataset = PUBLISHED[name]
            if dataset.absent(data_root):
                continue
            here = stop if dataset.is_random() else min(stop, dataset.published_n)
            for first in range(before, here, size.block):
                arms = [(sampler, reading) for sampler in size.samplers for reading in size.primary]
                if name in _WITH_SECONDARY and _SECONDARY_SAMPLER in size.samplers:
                    arms += [(_SECONDARY_SAMPLER, reading) for reading in size.secondary]
                # Blocks that are played together begin with different samplers, whose kernels compile in parallel.
                turn = len(found) % len(size.samplers)
                order = {sampler: (k - turn) % len(size.samplers) for k, sampler in enumerate(size.samplers)}
                played = range(first, min(first + size.block, here))
                arms = [arm for arm in arms if any((name, *arm, graph) not in done for graph in played)]
                if arms:
                    arms.sort(key=lambda arm: order[arm[0]])
                    found.append(Block(name, first, len(played), tuple(arms)))
        before = stop
    return found


# Cells: one file, since there are thousands, of a few hundred bytes each.

_FORM = "sl_discs readings 1"
Cells = dict[tuple[str, str, str, int], Values]  # by set, sampler, reading and first graph


def save(path: Path, cells: Cells, made: dict[str, Any]) -> None:
    names = [[*name, len(values)] for name, values in cells.items()]
    write_document(path, _FORM, {"best": np.concatenate(list(cells.values()))}, made | {"cells": names})


def load(path: Path, made: dict[str, Any]) -> Cells:
    """Returns the cells of a file, none if there is no file; InputError if they have other steps or chains."""
    if not path.exists():
        return {}
    arrays, values = read_document(path, _FORM)
    for name in ("steps", "chains"):
        if values[name] != made[name]:
            raise InputError(f"{path} has cells with {name} {values[name]}, not {made[name]}; change --output")
    ends = np.cumsum([count for *_, count in values["cells"]])
    parts = np.split(arrays["best"], ends[:-1])
    return {tuple(name): part for (*name, _), part in zip(values["cells"], parts, strict=True)}


# The table.


class Row(NamedTuple):
    """A reading on a set: differences of the best values of the same graphs, means and standard errors.

    Attributes:
      gain: localized minus base.
      tilt: localized minus the same run without tilt.
      published: localized minus base in the paper, None without it; its standard error is that of as many graphs as
        the paper has, with the spread of ours.
      level: the published mean of the localized sampler, and how many standard errors of both ours is above it; None
        where results are per cent of references that are not at hand, and for a part of given graphs.
      p_zero, p_tilt, p_published: of tests that the gain is 0, that the tilt's part is 0, and, with both errors, that
        the gain is the published one; by Holm's method over all rows.
    """

    dataset: str
    sampler: str
    reading: str
    graphs: int
    base: float
    gain: tuple[float, float]
    tilt: tuple[float, float] | None
    published: tuple[float, float] | None
    level: tuple[float, float] | None
    p_zero: float
    p_tilt: float | None
    p_published: float | None


def rows(cells: Cells) -> list[Row]:
    """Returns a row for each set, sampler and reading with at least two graphs, in the order of the plan."""
    joined = _joined(cells)
    found = [
        row
        for dataset in SETS
        for sampler in SAMPLERS
        for reading in list(READINGS)[1:]
        if (row := _row(joined, dataset, sampler, reading)) is not None
    ]
    for name in ("p_zero", "p_tilt", "p_published"):
        places = [k for k, row in enumerate(found) if getattr(row, name) is not None]
        for k, p in zip(places, holm([getattr(found[k], name) for k in places]), strict=True):
            found[k] = found[k]._replace(**{name: p})  # type: ignore[arg-type]
    return found


def _joined(cells: Cells) -> dict[tuple[str, str, str], dict[int, int]]:
    """Returns the values by graph, of each set, sampler and reading."""
    joined: dict[tuple[str, str, str], dict[int, int]] = {}
    for (dataset, sampler, reading, first), values in cells.items():
        joined.setdefault((dataset, sampler, reading), {}).update(enumerate(values.tolist(), first))
    return joined


def _row(joined: dict, dataset: str, sampler: str, reading: str) -> Row | None:
    values, base, control = (
        joined.get((dataset, sampler, one), {}) for one in (reading, BASE, READINGS[reading].control)
    )
    graphs = sorted(values.keys() & base.keys())
    if len(graphs) < 2:
        return None
    in_percent, references = graph_kind(PUBLISHED[dataset].problem).in_percent, joined.get((dataset, *REFERENCES))
    # In per cent of the reference where graphs have one, otherwise of the base's value.
    whole = (references or base) if in_percent else dict.fromkeys(graphs, 100.0)

    def difference(other):
        both = [graph for graph in graphs if graph in other]
        return interval(np.array([100 * (values[graph] - other[graph]) / whole[graph] for graph in both] or [0.0]))

    gain = difference(base)
    has_control = READINGS[reading].tilt is not None and reading != READINGS[reading].control
    tilt = difference(control) if has_control and len(values.keys() & control.keys()) > 1 else None
    published = published_gain(dataset, sampler)
    theirs = None
    if published is not None:
        theirs = published, gain.se * math.sqrt(gain.n / PUBLISHED[dataset].published_n)
    level, row = None, published_row(dataset, f"sl_{SAMPLERS[sampler].base}")
    all_graphs = PUBLISHED[dataset].is_random() or gain.n == PUBLISHED[dataset].published_n
    if row is not None and all_graphs and (references or not in_percent):
        ours = Spread.of(np.array([100 * values[graph] / whole[graph] for graph in graphs]))
        z = z_score(ours, row, PUBLISHED[dataset].published_n)
        level = z if z is None else (row.mean, z)
    return Row(
        dataset, sampler, reading, gain.n, float(np.mean([base[graph] for graph in graphs])), (gain.mean, gain.se),
        tilt and (tilt.mean, tilt.se), theirs, level, gain.p_value(0.0), tilt and tilt.p_value(0.0),
        theirs and _p_equal((gain.mean, gain.se), theirs),
    )  # fmt: skip


def parts_of_tilt(cells: Cells) -> list[dict[str, Any]]:
    """Returns the tilt's part on each set; of a graph, its mean over primary readings with controls of their own."""
    joined = _joined(cells)
    named = [one for one in PRIMARY if READINGS[one].tilt is not None and READINGS[one].control != BASE]
    found = []
    for dataset in SETS:
        parts: dict[int, list[int]] = {}
        for sampler in SAMPLERS:
            for reading in named:
                ours, theirs = (
                    joined.get((dataset, sampler, one), {}) for one in (reading, READINGS[reading].control)
                )
                for graph in ours.keys() & theirs.keys():
                    parts.setdefault(graph, []).append(ours[graph] - theirs[graph])
        if len(parts) > 1:
            pooled = interval(np.array([np.mean(values) for values in parts.values()]))
            found.append({"dataset": dataset, "graphs": pooled.n, "tilt": [pooled.mean, pooled.se]})
    return found


def published_gain(dataset: str, sampler: str) -> float | None:
    """Returns the published mean of the localized sampler minus that of its base; None if it is not above zero."""
    base = SAMPLERS[sampler].base
    ours, theirs = published_row(dataset, f"sl_{base}"), published_row(dataset, base)
    return ours.mean - theirs.mean if ours and theirs and ours.mean > theirs.mean else None


def _p_equal(one: tuple[float, float], other: tuple[float, float]) -> float:
    error = math.hypot(one[1], other[1])
    return float(2 * ndtr(-abs(one[0] - other[0]) / error)) if error else float(one[0] == other[0])


# Standard errors within which a level is the published one; an equal one is missed with probability 1.2 %.
_LIMIT = 2.5
_ABOUT = """Differences of the best of all chains on the same graphs, means and standard errors, in nodes or per cent
of the reference (cuts: of the base). The published gain has the standard error of as many graphs as the paper has,
with the spread of ours. z is how many standard errors of both the localized mean is above the published one; 2.5 and
more is a miss. p is by Holm's method over all rows. GWG with one flip stands beside the published GWG."""


def in_short(found: list[Row]) -> str:
    """Returns a line for each reading: on how many pairs of a set and a sampler something is excluded."""
    lines = []
    for reading in dict.fromkeys(row.reading for row in found):
        these = [row for row in found if row.reading == reading]
        sure = [row for row in these if row.p_zero < 0.05]
        above = sum(row.gain[0] > 0 for row in sure)
        words = f"gain above zero in {above} of {len(these)} pairs, below in {len(sure) - above}"
        with_tilt = [row for row in these if row.p_tilt is not None]
        if with_tilt:
            parts = [
                row.tilt[0] > 0 for row in with_tilt if row.tilt and row.p_tilt is not None and row.p_tilt < 0.05
            ]
            words += f"; the tilt's part above zero in {sum(parts)}, below in {len(parts) - sum(parts)}"
        compared = [(row.gain, row.published, row.p_published) for row in these]
        known = [(gain, there, p) for gain, there, p in compared if there is not None and p is not None]
        apart = [gain[0] < there[0] for gain, there, p in known if p < 0.05]
        words += f"; the published gain excluded in {len(apart)} of {len(known)}, as too large in {sum(apart)}"
        levels = [row.level[1] for row in these if row.level is not None]
        below, above = (sum(sign * z > _LIMIT for z in levels) for sign in (-1, 1))
        words += f"; the published level of the localized sampler missed in {below + above} of {len(levels)}"
        words += f", from below in {below}"
        lines.append(f"- {reading}: {words}.")
    return "\n".join(lines)


def text_of(found: list[Row]) -> str:
    """Returns the table in Markdown."""
    titles = [
        "set", "sampler", "reading", "graphs", "localized minus base", "tilt minus no tilt", "published", "level, z",
        "p, no gain", "p, no part of the tilt", "p, gain as published",
    ]  # fmt: skip

    def words(pair, digits):
        return "-" if pair is None else f"{pair[0]:+.{digits}f} ({pair[1]:.{digits}f})"

    lines = []
    for row in found:
        digits = 3 if PUBLISHED[row.dataset].problem != "maxcut" else 4
        pairs = [words(pair, digits) for pair in (row.gain, row.tilt, row.published)]
        tests = ["-" if p is None else f"{p:.3f}" for p in (row.p_zero, row.p_tilt, row.p_published)]
        level = "-" if row.level is None else f"{row.level[1]:+.1f}"
        lines.append([row.dataset, row.sampler, row.reading, str(row.graphs), *pairs, level, *tests])
    return table(titles, lines)


def _main(given: Given) -> int:
    size, made = _wanted(), dict[str, Any](command=given.typed)
    folder = check_writable(FLAGS.output)
    keep_programs()
    path, begin = folder / "readings.npz", time.time()
    made |= {"steps": size.steps, "chains": size.chains}
    cells = load(path, made)
    say(f"{len(cells)} cells are finished already")
    setup = Setup(size.steps, size.chains, FLAGS.engine, FLAGS.data_root, begin + (FLAGS.seconds or math.inf))
    left = blocks(size, FLAGS.graphs, FLAGS.data_root, cells)
    workers = FLAGS.workers or (8 if has_card() and FLAGS.engine in ("auto", "cuda") else 1)
    saved = 0.0
    try:
        for number, (block, found) in enumerate(_played(left, setup, workers), 1):
            cells |= {(block.dataset, *arm, block.first): values for arm, values in found}
            say(f"[{number}/{len(left)}] {time.time() - begin:.0f} s: {block.dataset} from graph {block.first}: "
                f"{sum(arm in block.arms for arm, _ in found)} of {len(block.arms)} cells")  # fmt: skip
            if time.time() - saved > 5:
                save(path, cells, made)
                saved = time.time()
    finally:
        if cells:
            save(path, cells, made)
    say(f"{report(cells, folder, made)}\n\n{len(cells)} cells, {time.time() - begin:.0f} s; saved: {path}")
    return 0


def report(cells: Cells, folder: Path, made: dict[str, Any]) -> str:
    """Writes readings.md and readings.json into a folder; returns the text."""
    found, parts = rows(cells), parts_of_tilt(cells)
    left_out = "; ".join(f"{name} ({why})" for name, why in LEFT_OUT.items())
    pooled = ", ".join(
        f"{one['dataset']} {one['tilt'][0]:+.3f} ({one['tilt'][1]:.3f}), {one['graphs']} graphs" for one in parts
    )
    text = "\n\n".join([
        in_short(found), f"The tilt's part, mean over primary readings and samplers: {pooled}.",
        f"Not played: {left_out}.", text_of(found),
    ])  # fmt: skip
    write_text(folder / "readings.md", f"# Readings of the paper\n\n{_ABOUT}\n\n{text}\n")
    shown = [row._asdict() | {"primary": row.reading in PRIMARY} for row in found]
    write_json(folder / "readings.json", made | {"tilt": parts, "rows": shown})
    return text


def _wanted() -> Size:
    """Returns the profile's size with what the flags change."""
    size = SIZES[FLAGS.profile]
    if FLAGS.datasets:
        check_choice("datasets", FLAGS.datasets, SETS)
        size = size._replace(sets=tuple(FLAGS.datasets))
    if FLAGS.samplers:
        check_choice("samplers", FLAGS.samplers, SAMPLERS)
        size = size._replace(samplers=tuple(FLAGS.samplers))
    if FLAGS.readings:
        check_choice("readings", FLAGS.readings, READINGS)
        primary, secondary = (tuple(one for one in part if one in FLAGS.readings) for part in (PRIMARY, SECONDARY))
        size = size._replace(primary=primary, secondary=secondary)
    return size


def _played(left: list[Block], setup: Setup, workers: int) -> Iterator[tuple[Block, list]]:
    """Yields each block with what was played of it: in this process, or as processes finish."""
    if workers == 1:
        for block in left:
            yield block, play_all(block, setup)
            if time.time() > setup.until:
                return
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, context, initializer=keep_programs) as pool:
        # Few at a time, so that none is begun when time is up.
        futures, waiting = dict[Any, Block](), iter(left)
        while True:
            while len(futures) < workers + 1 and time.time() < setup.until and (block := next(waiting, None)):
                futures[pool.submit(play_all, block, setup)] = block
            if not futures:
                return
            for future in concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED).done:
                if error := future.exception():
                    say(f"failed: {futures[future]}: {error!r}")
                yield futures.pop(future), [] if error else future.result()


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
