"""Asks what a tilt does to an annealed chain, and how many steps of the base sampler its loss is
worth.

    python studies/claim/tilt.py [--datasets=...] [--samplers=path_auxiliary,gwg,dmala]
    [--output=results/tilt]

Base samplers on sets of the paper, with DISCS's annealing and 10,000 steps, and localized samplers
from weak to strong tilts (sigma from 20 to 1, all else at its defaults). For each, the page has the
mean and the spread of the chains' best values, the share of sites that the tilt has decided, and
sites changed a step as a share of the base's. Base samplers with fewer steps, over which the same
annealing is compressed, are the alternative without localization:
the last column is the number of steps with which the base's chains have the same mean.

Where every graph carries its optimum and every run reaches it, all gains are zero; there the page
also has the steps until the first chain is at the optimum.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from claim_plan import SAMPLERS, Variant
from claim_statistics import Interval, interval
from sl_discs.chains.chains import Chains, anneal
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.program import Best
from sl_discs.experiment.record import measured_by
from sl_discs.experiment.run_sampler import plan_of
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import build_method, method_fields
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.cells import chosen_sets
from sl_discs.reproduction.report import table
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say

SIGMAS = 20.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.0
# Graphs that neither searches nor tests of the comparison have seen.
_DATA_SEED = 3
# Steps of a call, after which the tilt and the best states are looked at.
_EVERY = 20
# Of the steps, that the shorter runs have: one in so many.
PARTS = 2, 4, 8, 16


class Played(NamedTuple):
    """What G graphs with B chains each gave, in L calls.

    Attributes:
      best: [G, B] the best value of each chain.
      hops: [L] sites changed a step, of the steps of each call.
      decided: [L] mean |tanh h| of the tilt h over sites, chains and graphs after each call; empty
        without localization.
      reached: [G] steps until the first chain has the reference of its graph, in calls' ends; inf:
        none has, or there is none.
    """

    best: Float64[np.ndarray, "G B"]
    hops: Float64[np.ndarray, "L"]
    decided: Float64[np.ndarray, "L"]
    reached: Float64[np.ndarray, "G"]


class _Watch:
    """Looks at the tilt and at the best states after each call; a watch of `anneal`, which never
    ends it.
    """

    def __init__(self, chains: Chains, references: Float64[np.ndarray, "G"]):
        self._chains = chains
        self.decided: list[float] = []
        self.reached = np.full(len(references), np.inf)
        self._references = references

    def __call__(self, step: int, best: Best) -> bool:
        reached = np.asarray(best.value).max(axis=1) >= self._references
        self.reached[reached & np.isinf(self.reached)] = step
        if self._chains.program.levels is not None:
            self.decided.append(_decided(self._chains))
        return False


def _decided(chains: Chains) -> float:
    """Returns |tanh h|, the mean of a free spin in the field h of the observation, over sites,
    chains and graphs.
    """
    state, levels, mask = (
        chains.states.chain.state,
        chains.program.levels,
        np.asarray(chains.batch.mask),
    )
    assert levels is not None
    sizes = np.abs(np.tanh(levels.tilt_scale[levels.at(chains.done)] * np.asarray(state.y)))
    return float((sizes.mean(axis=1, dtype=np.float64) * mask).sum() / mask.sum())


def play(graphs: Dataset, settings: Settings, fields: dict[str, Any], seeds: int) -> Played:
    """Plays all graphs with a sampler of these config fields, once for each seed; a graph with a
    seed is a graph.
    """
    played = [
        _play(graphs, dataclasses.replace(settings, seed=seed), fields) for seed in range(seeds)
    ]
    best, hops, decided, reached = zip(*played, strict=True)
    return Played(
        np.concatenate(best),
        np.mean(hops, axis=0),
        np.mean(decided, axis=0),
        np.concatenate(reached),
    )


def _play(graphs: Dataset, settings: Settings, fields: dict[str, Any]) -> Played:
    method = build_method(fields)
    plan = plan_of(graphs, PENALTY, method, settings)
    references = np.array(
        [np.nan if graph.reference is None else graph.reference for graph in graphs.graphs]
    )
    best, reached = (
        np.empty((len(graphs.graphs), settings.batch_size)),
        np.empty(len(graphs.graphs)),
    )
    hops, decided, weights = [], [], []
    for pack in plan.packs:
        instance_ids = [graphs.index[k] for k in pack.filled]
        chains = Chains(
            plan.terms(pack.filled),
            instance_ids,
            pack.shape,
            method.sampler,
            plan.engine,
            settings.seed,
        )
        watch = _Watch(chains, references[pack.filled])
        outcome = anneal(chains, method, settings, watch=watch, steps_per_call=_EVERY)
        best[pack.positions] = outcome.best[0][: len(pack.positions)]
        reached[pack.positions] = watch.reached[: len(pack.positions)]
        hops.append(outcome.trace.hops[:, : len(pack.positions)].mean(axis=(1, 2)))
        decided.append(watch.decided)
        weights.append(len(pack.positions))
    mean_hops, mean_decided = (np.average(one, axis=0, weights=weights) for one in (hops, decided))
    return Played(best, mean_hops, mean_decided, reached)


class Row(NamedTuple):
    """A sampler beside the base with all steps; gains are in the unit of the objective.

    Attributes:
      name: of the row.
      gain: of the best chain of each graph.
      mean_gain: of the mean over chains.
      spread: standard deviation over chains of their best values, mean over graphs.
      decided: share of the sites that the tilt has decided, after a quarter and half of the steps;
        empty without it.
      moves: sites changed a step as a share of the base's, in the second and third quarter.
      slower: logarithm of the steps to the optimum as a share of the base's; None where not every
        run is there.
    """

    name: str
    gain: Interval
    mean_gain: float
    spread: float
    decided: list[float]
    moves: list[float]
    slower: Interval | None


def row(name: str, played: Played, base: Played) -> Row:
    quarters = [np.array_split(one.hops, 4)[1:3] for one in (played, base)]
    moves = [float(ours.mean() / theirs.mean()) for ours, theirs in zip(*quarters, strict=True)]
    decided = [
        float(played.decided[len(played.decided) // part - 1])
        for part in (4, 2)
        if len(played.decided)
    ]
    gain = interval(played.best.max(axis=1) - base.best.max(axis=1))
    spread = float(played.best.std(axis=1, ddof=1).mean())
    there = np.isfinite([played.reached, base.reached]).all()
    slower = interval(np.log(played.reached / base.reached)) if there else None
    return Row(name, gain, float((played.best - base.best).mean()), spread, decided, moves, slower)


def gain(one: Row) -> str:
    """The gain of the best chain with its half-width, with a third decimal where that is
    below .1.
    """
    places = 2 if (one.gain.half or 1.0) >= 0.1 else 3
    return f"{one.gain.mean:+.{places}f} ± {one.gain.half:.{places}f}"


def variant_of(sampler: str) -> Variant:
    """A sampler of the comparison, or any other with its defaults."""
    return SAMPLERS.get(sampler, Variant(sampler, {}))


def compare(
    graphs: Dataset, settings: Settings, sampler: str, seeds: int
) -> tuple[Played, list[Row], list[Row]]:
    """The base, the tilts, and the base with fewer steps."""
    variant = variant_of(sampler)
    base_fields = method_fields(variant.base) | variant.changes
    base = play(graphs, settings, base_fields, seeds)
    tilts, shorter = [], []
    for sigma in SIGMAS:
        fields = method_fields(f"sl_{variant.base}") | variant.changes | {"sigma": sigma}
        tilts.append(row(f"{sigma:g}", play(graphs, settings, fields, seeds), base))
        say(f"sigma {sigma:g}: {gain(tilts[-1])}")
    for steps in (settings.chain_length // part for part in PARTS):
        short = dataclasses.replace(settings, chain_length=steps)
        shorter.append(row(f"{steps:,}", play(graphs, short, base_fields, seeds), base))
        say(f"base, {steps:,} steps: {gain(shorter[-1])}")
    return base, tilts, shorter


def steps_worth(loss: float, shorter: list[Row], steps: int) -> str:
    """The steps with which the base's chains lose as much on average, interpolated in their
    logarithm.
    """
    losses = [0.0, *(one.mean_gain for one in shorter)]
    counts = [steps, *(steps // part for part in PARTS)]
    if loss >= losses[1] / 2:  # nearer to all steps than to the next number
        return "all"
    if loss < losses[-1]:
        return f"below {counts[-1]:,}"
    found = np.exp(np.interp(loss, losses[::-1], np.log(counts[::-1])))
    return f"{round(float(found), -2):,.0f}"


def rows_of(base: Played, tilts: list[Row], shorter: list[Row], steps: int) -> list[list[str]]:
    """The table, its titles first."""
    with_steps = bool(np.isfinite(base.reached).all())

    def slower(one: Row) -> str:
        if one.slower is None:
            return "not always there"
        half = one.slower.half or 0.0  # None for a single graph alone
        mean, low, high = np.exp(one.slower.mean + np.array([0, -half, half]))
        return f"{mean:.2f} [{low:.2f}, {high:.2f}]"

    def cells(one: Row, worth: str) -> list[str]:
        decided = ", ".join(f"{share:.2f}" for share in one.decided)
        moves = ", ".join(f"{share:.2f}" for share in one.moves)
        found = [gain(one), f"{one.mean_gain:+.2f}", f"{one.spread:.2f}"]
        if with_steps:
            found.append(slower(one))
        return [*found, decided, moves, worth]

    titles = ["", "gain, best chain", "gain, mean of chains", "spread"]
    first = ["base", "", "", f"{base.best.std(axis=1, ddof=1).mean():.2f}"]
    if with_steps:
        titles.append("steps to the optimum, of the base's")
        first.append(f"{np.exp(np.log(base.reached).mean()):,.0f} steps")
    titles += ["decided at 1/4, 1/2", "moves in quarters 2, 3", "mean as of the base with"]
    lines = [[*first, "", "", f"{steps:,} steps"]]
    lines += [
        [f"sigma = {one.name}", *cells(one, steps_worth(one.mean_gain, shorter, steps))]
        for one in tilts
    ]
    return [titles, *lines, *([f"base, {one.name} steps", *cells(one, "")] for one in shorter)]


FLAGS, define = own_flags()
define.list("datasets", ["mis/er_density/r-0.10"], "Datasets of the paper.")
define.string(
    "data_root", None, "Folder of given graphs; without it, random families are drawn anew."
)
define.list(
    "samplers",
    ["path_auxiliary", "gwg", "dmala"],
    "Base samplers; gwg_one_flip is gwg with one flip.",
)
define.integer("graphs", 64, "Number of graphs.", lower_bound=2)
define.integer("seeds", 1, "Runs of each graph, which count as that many graphs.", lower_bound=1)
define.integer("steps", 10_000, "Steps of a chain.", lower_bound=2_000)
define.string("output", "results/tilt", "Folder of the page and its numbers.")


def _main(_) -> int:
    folder = Path(check_writable(FLAGS.output))
    for sampler in FLAGS.samplers:  # before anything is played
        method_fields(variant_of(sampler).base)
    loaded = [
        (
            dataset,
            load_dataset(
                *dataset.flags, FLAGS.data_root, num_instances=FLAGS.graphs, data_seed=_DATA_SEED
            ),
        )
        for dataset in chosen_sets(FLAGS.datasets)
    ]
    cases, sections = [], []
    for dataset, graphs in loaded:
        for sampler in FLAGS.samplers:
            say(f"{dataset.name}, {sampler}")
            settings = settings_from(
                dataset.experiment()
                | {"engine": "cpu", "chain_length": FLAGS.steps, "log_every_steps": _EVERY}
            )
            base, tilts, shorter = compare(graphs, settings, sampler, FLAGS.seeds)
            rows = rows_of(base, tilts, shorter, settings.chain_length)
            best = base.best.max(axis=1)
            sections.append(
                f"## {dataset.name}, {sampler}\n\nThe base's best chain has {best.mean():.2f}, its "
                "chains' mean "
                f"is {base.best.mean():.2f}.\n\n{table(rows[0], rows[1:])}\n"
            )
            cases.append({"dataset": dataset.name, "sampler": sampler, "rows": rows})
    text = (
        f"{FLAGS.graphs} graphs of each set, with {FLAGS.seeds} seeds each. Gains of the "
        "objective, with 95 % "
        "intervals.\n\n" + "\n".join(sections)
    )
    say(text)
    write_text(folder / "tilt.md", text)
    shown = {name: getattr(FLAGS, name) for name in ("graphs", "seeds", "steps")}
    write_json(folder / "tilt.json", {"measured": measured_by()} | shown | {"cases": cases})
    say(f"saved: {folder / 'tilt.md'}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
