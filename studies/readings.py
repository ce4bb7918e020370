"""Plays the readings of the paper's algorithm: what gains, and does it gain without the tilt?

    python studies/readings.py --profile=cpu --output=results/readings [--data_root=FOLDER]

The paper leaves open how its annealing goes with the levels of localization. Each reading is played
beside its control without tilt, which is otherwise the same run, and beside the base sampler, on
the same new graphs. Finished cells are kept in OUTPUT/readings.npz: a stopped command continues
where it left off. The answer is in docs/does_localization_help.md.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "claim"))
from claim_plan import SAMPLERS, test_positions
from readings_plan import (
    ER,
    PRIMARY,
    READINGS,
    SEARCHED,
    SECONDARY,
    SECONDARY_SAMPLER,
    SETS,
    WITH_SECONDARY,
    constant_of,
    program_of,
    searched,
)
from readings_table import REFERENCES, Cells, Values, report
from sl_discs.chains.batches import Layout, Shape, padded_size
from sl_discs.chains.chains import Chains
from sl_discs.commands.command import Command, Given, own_flags
from sl_discs.engines.choice import ENGINES, choose_engine
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import has_card
from sl_discs.experiment.settings import settings_from
from sl_discs.instances.dataset import find_family, load_dataset
from sl_discs.instances.graph import Graph
from sl_discs.localization.method import build_method
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.cells import PUBLISHED, PublishedSet
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import read_document, write_document
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable
from sl_discs.support.terminal import say

# Of generated graphs: no search and no other study of this project has seen them. Given graphs are
# those of the study of the claim that no search has seen.
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
    "smoke": Size(
        (ER[0], SETS[7]), (2, 3), 2, ("path_auxiliary", "gwg_one_flip"), steps=400, chains=2
    ),
    "cpu": Size(ER[:2], (8, 16), 8, ("gwg", "path_auxiliary"), PRIMARY[:4] + PRIMARY[8:], ()),
    "full": Size(SETS, (32, 64, 128, 256, 1024), 32),
}

FLAGS, define = own_flags()
define.enum(
    "profile",
    "smoke",
    list(SIZES),
    "Size: smoke, seconds; cpu, minutes on two cores; full, for a GPU.",
)
define.list(
    "datasets", None, "Sets, such as mis/er_density/r-0.10, in this order; default: the profile's."
)
define.list(
    "samplers",
    None,
    "Base samplers, of path_auxiliary, gwg, dmala, gwg_one_flip; default: the profile's.",
)
define.multi_string("readings", None, "A reading by name; may be repeated; default: the profile's.")
define.integer("graphs", None, "Graphs of each set instead of the profile's.", 1)
define.string("data_root", None, "Folder of given instances. Without it mis/satlib is left out.")
define.string("output", "results/readings", "Folder of the cells and of the table.")
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer(
    "seconds", None, "Ends by itself after so many seconds, with a table of what is finished.", 1
)
define.integer(
    "workers",
    None,
    "Processes that share the work; default: 8 on a machine with a GPU, otherwise 1.",
    1,
)


# Plays blocks of graphs.


class Block(NamedTuple):
    """Graphs of a set that are played together: their first position, their number, and what is
    played on them.
    """

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


def draw(dataset: PublishedSet, first: int, count: int, data_root: str | None) -> list[Graph]:
    """Returns graphs of a set; of a random family, without the cache, whose writing takes longer
    than drawing.
    """
    generator = find_family(*dataset.flags).generator
    if generator is not None:
        return [generator.draw(_DATA_SEED, number) for number in range(first, first + count)]
    load = functools.partial(load_dataset, *dataset.flags, data_root, num_instances=1)
    positions = test_positions(dataset, load().total)
    return [load(first=one).graphs[0] for one in positions[first : first + count]]


def play(block: Block, setup: Setup) -> Iterator[tuple[tuple[str, str], Values]]:
    """Yields sampler and reading with the verified best objective of each graph, until time
    is up.
    """
    dataset = PUBLISHED[block.dataset]
    kind, graphs = (
        graph_kind(dataset.problem),
        draw(dataset, block.first, block.count, setup.data_root),
    )
    terms, verify = (
        [kind.model(graph, PENALTY) for graph in graphs],
        [kind.best_evaluator(graph) for graph in graphs],
    )
    given = {"chain_length": setup.steps, "batch_size": setup.chains}
    settings = settings_from(
        dataset.experiment() | {name: one for name, one in given.items() if one}
    )
    size = padded_size(max(one.num_sites for one in terms))
    degree = max(one.max_degree() for one in terms)
    shape = Shape(
        size,
        len(graphs),
        settings.batch_size,
        degree if sparse_is_cheaper(degree, size) else None,
        Layout(1, 1),
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
        fields = searched(block.dataset) if READINGS[name].annealing == SEARCHED else None
        annealed = dataclasses.replace(settings, **fields or {})
        program = program_of(READINGS[name], annealed, constant_of(block.dataset))
        if sampler != played:
            variant = SAMPLERS[sampler]
            method = build_method({"name": variant.base} | variant.changes)
            engine, _ = choose_engine(setup.engine, method.sampler, num_sites=size)
            if chains is None:
                chains = Chains(terms, names, shape, method.sampler, engine, 0)
            chains.sampler, played, first = method.sampler, sampler, {}
        noise = program.levels and program.levels.first_noise
        if noise not in first:
            chains.start(program)
            first[noise] = chains.states
        chains.states = first[noise]
        chains.prepare(program, 0)
        if READINGS[name].shared:
            play_shared(chains)
        else:
            chains.advance(settings.chain_length // every, every)
        states = np.asarray(chains.states.best.x)
        best = [
            check(of_graph[:, : graph.num_nodes]).values[0]
            for check, of_graph, graph in zip(verify, states, graphs, strict=True)
        ]
        yield (sampler, name), np.array(best, np.int32)


def play_shared(chains: Chains) -> None:
    """Plays the program level by level, each with the mean of the observations of a graph's
    chains.
    """
    levels = chains.program.levels
    assert levels is not None
    for steps in np.diff(levels.last, prepend=-1).tolist():
        chain = chains.states.chain
        y = np.broadcast_to(np.mean(chain.state.y, axis=1, keepdims=True), chain.x.shape)
        chains.states = chains.states._replace(
            chain=chain._replace(state=chain.state._replace(y=y))
        )
        chains.advance(1, steps)


def play_all(block: Block, setup: Setup) -> list[tuple[tuple[str, str], Values]]:
    return list(play(block, setup))


def blocks(size: Size, graphs: int | None, data_root: str | None, cells: Cells) -> list[Block]:
    """Returns what is left, the most important first: every set in turn, and more graphs of all of
    them later.
    """
    done = {
        (*name, graph)
        for (*name, first), values in cells.items()
        for graph in range(first, first + len(values))
    }
    found: list[Block] = []
    before = 0
    for stop in [graphs] if graphs else size.rounds:
        for name in size.sets:
            dataset = PUBLISHED[name]
            if dataset.absent(data_root):
                continue
            here = (
                stop
                if dataset.is_random()
                else min(stop, len(test_positions(dataset, dataset.published_n)))
            )
            for first in range(before, here, size.block):
                primary = [
                    one
                    for one in size.primary
                    if READINGS[one].annealing != SEARCHED or searched(name)
                ]
                arms = [(sampler, reading) for sampler in size.samplers for reading in primary]
                if name in WITH_SECONDARY and SECONDARY_SAMPLER in size.samplers:
                    arms += [(SECONDARY_SAMPLER, reading) for reading in size.secondary]
                # Blocks that are played together begin with different samplers, whose kernels
                # compile in parallel.
                turn = len(found) % len(size.samplers)
                order = {
                    sampler: (k - turn) % len(size.samplers)
                    for k, sampler in enumerate(size.samplers)
                }
                played = range(first, min(first + size.block, here))
                arms = [
                    arm for arm in arms if any((name, *arm, graph) not in done for graph in played)
                ]
                if arms:
                    arms.sort(key=lambda arm: order[arm[0]])
                    found.append(Block(name, first, len(played), tuple(arms)))
        before = stop
    return found


# Cells: one file, since there are thousands, of a few hundred bytes each.

_FORM = "sl_discs readings 1"


def save(path: Path, cells: Cells, made: dict[str, Any]) -> None:
    names = [[*name, len(values)] for name, values in cells.items()]
    write_document(
        path, _FORM, {"best": np.concatenate(list(cells.values()))}, made | {"cells": names}
    )


def load(path: Path, made: dict[str, Any]) -> Cells:
    """Returns the cells of a file, none if there is no file; InputError if they have other steps or
    chains.
    """
    if not path.exists():
        return {}
    arrays, values = read_document(path, _FORM)
    for name in ("steps", "chains"):
        if values[name] != made[name]:
            raise InputError(
                f"{path} has cells with {name} {values[name]}, not {made[name]}; change --output"
            )
    ends = np.cumsum([count for *_, count in values["cells"]])
    parts = np.split(arrays["best"], ends[:-1])
    return {tuple(name): part for (*name, _), part in zip(values["cells"], parts, strict=True)}


def _main(given: Given) -> int:
    size, made = _wanted(), dict[str, Any](command=given.typed)
    folder = check_writable(FLAGS.output)
    keep_programs()
    path, begin = folder / "readings.npz", time.time()
    made |= {"steps": size.steps, "chains": size.chains}
    cells = load(path, made)
    say(f"{len(cells)} cells are finished already")
    setup = Setup(
        size.steps, size.chains, FLAGS.engine, FLAGS.data_root, begin + (FLAGS.seconds or math.inf)
    )
    left = blocks(size, FLAGS.graphs, FLAGS.data_root, cells)
    workers = FLAGS.workers or (8 if has_card() and FLAGS.engine in ("auto", "cuda") else 1)
    saved = 0.0
    try:
        for number, (block, found) in enumerate(_played(left, setup, workers), 1):
            cells |= {(block.dataset, *arm, block.first): values for arm, values in found}
            say(f"[{number}/{len(left)}] {time.time() - begin:.0f} s: {block.dataset} from graph "
                f"{block.first}: "
                f"{sum(arm in block.arms for arm, _ in found)} of {len(block.arms)} "
                "cells")  # fmt: skip
            if time.time() - saved > 5:
                save(path, cells, made)
                saved = time.time()
    finally:
        if cells:
            save(path, cells, made)
    say(
        f"{report(cells, folder, made)}\n\n{len(cells)} cells, {time.time() - begin:.0f} s; saved: "
        f"{path}"
    )
    return 0


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
        primary, secondary = (
            tuple(one for one in part if one in FLAGS.readings) for part in (PRIMARY, SECONDARY)
        )
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
    with concurrent.futures.ProcessPoolExecutor(
        workers, context, initializer=keep_programs
    ) as pool:
        # Few at a time, so that none is begun when time is up.
        futures, waiting = dict[Any, Block](), iter(left)
        while True:
            while (
                len(futures) < workers + 1
                and time.time() < setup.until
                and (block := next(waiting, None))
            ):
                futures[pool.submit(play_all, block, setup)] = block
            if not futures:
                return
            for future in concurrent.futures.wait(
                futures, return_when=concurrent.futures.FIRST_COMPLETED
            ).done:
                if error := future.exception():
                    say(f"failed: {futures[future]}: {error!r}")
                yield futures.pop(future), [] if error else future.result()


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
