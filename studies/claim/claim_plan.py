"""Does localization help to optimise? The runs of `claim.py`, after README.md beside it.

A *pair* is a set and a base sampler, and an *arm* says how the settings of the localized sampler
and of its base are chosen. Everything is made of cells, which are kept: a function here asks for
the cells that it needs, in the same way when they are run and when only finished ones are read.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from claim_statistics import interval
from sl_discs.experiment.summary import published_row
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED, Cell, Choice, PublishedSet
from sl_discs.reproduction.runs import CellResult
from sl_discs.reproduction.tuned import Candidate, part_of

sys.path.append(str(Path(__file__).parents[1] / "tuning"))
from space import Dimension, Point, annealing_of, candidate_of, propose, space_of


class Variant(NamedTuple):
    """A base sampler: its name, and the fields that differ from its defaults."""

    base: str
    changes: dict[str, Any]


SAMPLERS = {
    "path_auxiliary": Variant("path_auxiliary", {}),
    "gwg": Variant("gwg", {}),
    "dmala": Variant("dmala", {}),
    "gwg_one_flip": Variant("gwg", {"adaptive": False}),
}

# Each arm, and what settings the localized sampler and its base have.
DEFAULTS, SEARCHED, NULL, BOTH = "defaults", "searched", "null", "both"
SAME_ANNEALING = "annealing of the base"
MORE_STEPS, WARMER, NARROW = "more steps", "warmer", "from 0.4 to 0.15"
CHOSEN = "chosen on test graphs"
PLANTED = (MORE_STEPS, WARMER, NARROW)
ARMS = (DEFAULTS, SEARCHED, NARROW, BOTH, SAME_ANNEALING, NULL, MORE_STEPS, WARMER, CHOSEN)
PLANTED_STEPS, PLANTED_WARMTH = 1.05, 2.0

_ER = [f"mis/er_density/r-{p}" for p in ("0.10", "0.20", "0.05", "0.25")]
# The primary sets in the order in which they are played, and those that only have the first arm.
PRIMARY = (
    *_ER, "mis/satlib", "maxcut/ba/r-ba-4-n-512-600", "maxcut/er/r-er-0.15-n-256-300", "maxclique/rb"
)  # fmt: skip
OTHERS = tuple(name for name in PUBLISHED if name not in PRIMARY)

TRAINING_SEED, TEST_SEED = 1, 2  # of generated graphs
_FIRST_TRIAL_SEED, _CHOSEN_SEED, _NULL_SEED = 1_000, 2_000, 500  # of runs
_TRAINING_EVERY = 5  # every fifth graph of a given set is for training
_PLANTED_SAMPLER = "path_auxiliary"


@dataclasses.dataclass(frozen=True)
class Size:
    """A size by its name in `--profile`.

    Attributes:
      sets, others: sets with all arms, and with the first one alone.
      block: test graphs of a round; a given set is divided into equal rounds of at most as many.
      rounds: most rounds; a set with fewer graphs is played again with the next seed.
      trials: trials of a search.
      rungs: of successive halving: numbers of training graphs, each with the number of trials that
        go on from there.
      chosen: trials that are compared on test graphs, and the number of these graphs.
      steps, chains: None: as in the set's config.
    """

    sets: tuple[str, ...]
    others: tuple[str, ...]
    block: int
    rounds: int
    trials: int
    rungs: tuple[tuple[int, int], ...]
    chosen: tuple[int, int]
    steps: int | None = None
    chains: int | None = None


SIZES = {
    "smoke": Size(
        (_ER[0], _ER[1], PRIMARY[-1]), (), 4, 2, 4, ((2, 2), (4, 1)), (4, 4), steps=600, chains=4
    ),
    "cpu": Size(PRIMARY, OTHERS, 128, 8, 48, ((8, 12), (32, 3), (128, 1)), (100, 32)),
    "full": Size(PRIMARY, OTHERS, 128, 32, 96, ((16, 24), (64, 6), (256, 1)), (100, 128)),
}


class Item(NamedTuple):
    """One step of the plan: a round of an arm of a pair."""

    arm: str
    dataset: PublishedSet
    sampler: str
    round: int


def plan(size: Size) -> list[Item]:
    """All steps in their order: defaults on the primary sets, the other arms, the other sets,
    further rounds.
    """

    def items(names: tuple[str, ...], chosen: tuple[str, ...], number: int) -> Iterator[Item]:
        for arm in chosen:
            for name in names:
                for sampler in SAMPLERS:
                    if arm in PLANTED and not (name in _ER and sampler == _PLANTED_SAMPLER):
                        continue
                    if arm != CHOSEN or number == 0:
                        yield Item(arm, PUBLISHED[name], sampler, number)

    found = [*items(size.sets, ARMS, 0), *items(size.others, (DEFAULTS,), 0)]
    for number in range(1, size.rounds):
        found += items(size.sets, ARMS, number)
        found += items(size.others, (DEFAULTS,), number)
    return found


class Pair(NamedTuple):
    """The values of the localized sampler and of its base on a graph, and what 100 of the published
    unit are.

    `whole` is 100 where the published unit is nodes, and otherwise the graph's reference, or the
    cut of the base at default settings if it has none.
    """

    localized: float
    base: float
    whole: float


class Missing(Exception):
    """A cell that is not finished, where only finished ones are read."""


Play = Callable[[Cell, Dataset], CellResult]


class Searched(NamedTuple):
    """The result of a search.

    Attributes:
      trial, candidate: the chosen trial and its settings.
      mean, graphs: its mean over so many training graphs.
      tried: the settings of each trial, and its mean on the first rung; the first trial has the
        defaults.
    """

    trial: int
    candidate: Candidate
    mean: float
    graphs: int
    tried: list[tuple[Candidate, float]]


@dataclasses.dataclass(frozen=True)
class Study:
    """The runs of the comparison; `play` gives the result of a cell on graphs, or raises Missing.

    `searches` has what each search found, by set, sampler, arm and whether it is that of the
    localized sampler.
    """

    size: Size
    choice: Choice
    data_root: str | None
    play: Play
    searches: dict[tuple[str, str, str, bool], Searched] = dataclasses.field(
        default_factory=dict, compare=False
    )

    def round(self, item: Item) -> dict[int, Pair]:
        """The values of both samplers by the position of each test graph."""
        graphs, seed = test_graphs(item.dataset, self.size, item.round, self.data_root)
        dataset, name, arm = item.dataset, item.sampler, item.arm
        default, localized = (self._default(dataset, name, localized=one) for one in (False, True))
        base = default
        if arm in (BOTH, SAME_ANNEALING):
            base = self.search(dataset, name, BOTH, localized=False).candidate
        if arm in (SEARCHED, NULL, BOTH):
            localized = self.search(dataset, name, arm, localized=True).candidate
        elif arm == SAME_ANNEALING:
            localized = dataclasses.replace(localized, experiment=base.experiment)
        theirs = self._best(item, base, graphs, seed)
        if arm in PLANTED:
            ours = self._planted(item, default, graphs, seed)
        else:
            ours = self._best(item, localized, graphs, seed + (_NULL_SEED if arm == NULL else 0))
        whole = np.full(len(graphs.graphs), 100.0)
        if graph_kind(graphs.problem).in_percent:
            whole = np.array([graph.reference for graph in graphs.graphs], dtype=np.float64)
            if np.isnan(whole).any():
                whole = self._best(item, default, graphs, seed)
        pairs = map(Pair, ours.tolist(), theirs.tolist(), whole.tolist())
        return dict(zip(graphs.index, pairs, strict=True))

    def search(self, dataset: PublishedSet, name: str, arm: str, *, localized: bool) -> Searched:
        """Successive halving on training graphs, of which no test graph is one; ties go to the
        earlier trial.
        """
        key = dataset.name, name, arm, localized
        if key not in self.searches:
            self.searches[key] = self._search(dataset, name, arm, localized)
        return self.searches[key]

    def _search(self, dataset: PublishedSet, name: str, arm: str, localized: bool) -> Searched:
        train = training_graphs(dataset, self.size, self.data_root)
        standing = list(range(self.size.trials))
        seen: dict[int, list[float]] = {trial: [] for trial in standing}
        first = 0
        for stop, keep in self.size.rungs:
            part = part_of(train, first, stop)
            for trial in standing:
                cell = self._trial(
                    dataset, name, arm, trial, _FIRST_TRIAL_SEED, localized=localized
                )
                seen[trial] += self.play(cell, part).best[0].tolist()
            standing = sorted(standing, key=lambda trial: (-np.mean(seen[trial]), trial))[:keep]
            first = stop
        (best,) = standing
        candidates = [
            self._candidate(dataset, name, arm, trial, localized=localized) for trial in seen
        ]
        rung = self.size.rungs[0][0]
        tried = [
            (one, float(np.mean(values[:rung])))
            for one, values in zip(candidates, seen.values(), strict=True)
        ]
        return Searched(best, candidates[best], float(np.mean(seen[best])), len(seen[best]), tried)

    def chosen(self, dataset: PublishedSet, name: str) -> dict[str, Any]:
        """Means on test graphs, minus the base's, of trials that are chosen there; and with the
        tilt off.
        """
        trials, count = self.size.chosen
        block, _ = test_graphs(dataset, self.size, 0, self.data_root)
        graphs = part_of(block, 0, min(count, len(block.graphs)))
        item = Item(CHOSEN, dataset, name, 0)
        base = self._best(item, self._default(dataset, name, localized=False), graphs, 0).mean()
        scale = 100 / base if graph_kind(graphs.problem).in_percent else 1.0
        gains = {}
        for arm in (SEARCHED, NULL):
            cells = [
                self._trial(dataset, name, arm, trial, _CHOSEN_SEED, localized=True)
                for trial in range(trials)
            ]
            gains[arm] = [
                scale * float(self.play(cell, graphs).best.mean() - base) for cell in cells
            ]
        return {
            "dataset": dataset.name,
            "sampler": name,
            "graphs": len(graphs.graphs),
            "gains": gains,
        }

    def _default(self, dataset: PublishedSet, name: str, *, localized: bool) -> Candidate:
        variant = SAMPLERS[name]
        method = f"sl_{variant.base}" if localized else variant.base
        annealing = annealing_of(self.choice.cell(dataset, method).settings)
        return Candidate(method_fields(method) | variant.changes, annealing)

    def _candidate(
        self, dataset: PublishedSet, name: str, arm: str, trial: int, *, localized: bool
    ) -> Candidate:
        """The settings of a trial; trial 0 has the defaults."""
        start = self._default(dataset, name, localized=localized)
        if trial:
            space = search_space(arm, self.choice.steps(dataset), localized=localized)
            start = candidate_of(point_of_trial(trial, space), start)
        return (
            dataclasses.replace(start, sampler=start.sampler | {"tilt": False})
            if arm == NULL
            else start
        )

    def _trial(
        self,
        dataset: PublishedSet,
        name: str,
        arm: str,
        trial: int,
        first_seed: int,
        *,
        localized: bool,
    ) -> Cell:
        candidate = self._candidate(dataset, name, arm, trial, localized=localized)
        return self._cell(dataset, candidate, f"{arm}, trial {trial}", first_seed + trial)

    def _cell(
        self,
        dataset: PublishedSet,
        candidate: Candidate,
        protocol: str,
        seed: int,
        stretch: float = 1,
    ) -> Cell:
        choice = dataclasses.replace(self.choice, seeds=(seed,))
        if stretch != 1:
            choice = dataclasses.replace(
                choice, chain_length=round(stretch * choice.steps(dataset))
            )
        return choice.cell(dataset, candidate.sampler["name"], tuned=candidate, protocol=protocol)

    def _best(
        self, item: Item, candidate: Candidate, graphs: Dataset, seed: int
    ) -> Float64[np.ndarray, "G"]:
        return self.play(self._cell(item.dataset, candidate, item.arm, seed), graphs).best[0]

    def _planted(
        self, item: Item, base: Candidate, graphs: Dataset, seed: int
    ) -> Float64[np.ndarray, "G"]:
        if item.arm == MORE_STEPS:
            longer = self._cell(item.dataset, base, item.arm, seed, PLANTED_STEPS)
            return self.play(longer, graphs).best[0]
        if item.arm == WARMER:
            annealing = {"decay_rate": PLANTED_WARMTH * base.experiment["decay_rate"]}
        else:
            annealing = {"t_schedule": "linear", "init_temperature": 0.4, "final_temperature": 0.15}
        changed = dataclasses.replace(base, experiment=base.experiment | annealing)
        return self._best(item, changed, graphs, seed)


def search_space(arm: str, chain_length: int, *, localized: bool) -> tuple[Dimension, ...]:
    """The dimensions of a search: localization's and, where both are searched, those of the
    temperature.
    """
    localization = space_of("sl_gwg", "sl", chain_length) if localized else ()
    if arm != BOTH:
        return localization
    temperatures = space_of("gwg", "annealing", chain_length)
    return (
        *(one for one in temperatures if one.name in ("t_schedule", "init_temperature", "cooling")),
        *localization,
    )


def published_gain(dataset: str, sampler: str) -> float | None:
    """The published mean of the localized sampler minus that of its base; None if the paper does
    not give both.
    """
    base = SAMPLERS[sampler].base
    ours, theirs = published_row(dataset, f"sl_{base}"), published_row(dataset, base)
    return None if ours is None or theirs is None else ours.mean - theirs.mean


def is_precise(dataset: str, sampler: str, differences: Float64[np.ndarray, "G"]) -> bool:
    """Whether the half-width of the interval is below a quarter of the published gain, whatever the
    mean is.
    """
    gain, half = published_gain(dataset, sampler), interval(differences).half
    return bool(gain and half and half < abs(gain) / 4)


# Points of a search: a fixed list for each space, the same for every set and sampler. Each block of
# eight is a Latin hypercube, so that eight trials cover all eight values of sigma and every eighth
# of each other range. A trial only depends on its number, and finished trials stay valid when more
# are requested.

_BLOCK = 8
_POINTS_SEED = 0


class Uniform:
    """Chooses by a number from [0, 1) for each name: a position in the range, or among the
    choices.
    """

    def __init__(self, numbers: dict[str, float]):
        self._numbers = numbers

    def suggest_categorical(self, name, choices):
        return choices[int(self._numbers[name] * len(choices))]

    def suggest_float(self, name, low, high, *, log, step):
        u = self._numbers[name]
        if step is not None:
            return low + step * int(u * (round((high - low) / step) + 1))
        return float(low * (high / low) ** u) if log else low + (high - low) * u


def point_of_trial(trial: int, space: tuple[Dimension, ...]) -> Point:
    """The point of a trial, from 1 on, in a space."""
    block, place = divmod(trial - 1, _BLOCK)
    rng = np.random.default_rng([_POINTS_SEED, block])
    strata = rng.permuted(np.tile(np.arange(_BLOCK), (len(space), 1)), axis=1)
    numbers = (strata + rng.random(strata.shape)) / _BLOCK
    return propose(
        space,
        Uniform({one.name: float(u) for one, u in zip(space, numbers[:, place], strict=True)}),
    )


# Training and test graphs: from different seeds of a random family, or different graphs of a given
# set.


@functools.lru_cache(maxsize=3)
def test_graphs(
    dataset: PublishedSet, size: Size, number: int, data_root: str | None
) -> tuple[Dataset, int]:
    """The test graphs of a round and the run seed of the base: the next graphs or, where there are
    no more, seeds.
    """
    if dataset.is_random():
        load = functools.partial(load_dataset, *dataset.flags, None, data_seed=TEST_SEED)
        return load(num_instances=size.block, first=number * size.block), 0
    whole = load_dataset(*dataset.flags, data_root)
    order = test_positions(dataset, whole.total)
    blocks = math.ceil(len(order) / size.block)
    block = len(order) // blocks
    return _select(whole, order[number % blocks * block :][:block]), number // blocks


@functools.lru_cache(maxsize=3)
def training_graphs(dataset: PublishedSet, size: Size, data_root: str | None) -> Dataset:
    """The training graphs of every search, as many as its last rung has, or fewer where there are
    not so many.
    """
    count = size.rungs[-1][0]
    if dataset.is_random():
        return load_dataset(*dataset.flags, None, num_instances=count, data_seed=TRAINING_SEED)
    whole = load_dataset(*dataset.flags, data_root)
    return _select(
        whole, _shuffled(range(_TRAINING_EVERY - 1, whole.total, _TRAINING_EVERY))[:count]
    )


def test_positions(dataset: PublishedSet, total: int) -> list[int]:
    """The positions of a given set's test graphs, in the order of the rounds: any first ones are a
    random choice.
    """
    divided = dataset.name in PRIMARY
    return _shuffled(
        [k for k in range(total) if not divided or k % _TRAINING_EVERY != _TRAINING_EVERY - 1]
    )


def _shuffled(positions) -> list[int]:
    return np.random.default_rng(0).permutation(np.array(positions)).tolist()


def _select(dataset: Dataset, positions: list[int]) -> Dataset:
    return dataclasses.replace(
        dataset, graphs=[dataset.graphs[k] for k in positions], index=positions
    )
