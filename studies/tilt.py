"""Asks what a tilt does to an annealed chain, and how many steps of the base sampler its loss is worth.

    python studies/tilt.py [--output=results/tilt] [--graphs=64]

Path auxiliary sampling on MIS ER-0.10, with DISCS's annealing and 10,000 steps: the base, and localized samplers from
weak to strong tilts (sigma from 20 to 1, all else at its defaults). For each, the page has the mean and the spread of
the chains' best values, the share of sites that the tilt has decided, and sites changed a step as a share of the
base's. Base samplers with fewer steps, over which the same annealing is compressed, are the alternative without
localization: the last column is the number of steps with which the base's chains have the same mean.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from sl_discs.command import Command, own_flags, say
from sl_discs.engines.registry import choose_engine
from sl_discs.experiment.batches import plan
from sl_discs.experiment.chains import Chains, anneal, devices_for
from sl_discs.experiment.monitor import contractions
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.files import check_writable, write_atomically, write_json
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.localization.method import build_method, method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.reproduction.markdown import table
from sl_discs.reproduction.statistics import Interval, interval

SET, SAMPLER = PUBLISHED["mis/er_density/r-0.10"], "path_auxiliary"
SIGMAS = 20.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.0
# Graphs that neither searches nor tests of the comparison have seen.
_DATA_SEED = 3
# Records, and how many of them are one call, after which the tilt is looked at.
_EVERY, _RECORDS = 100, 5
# Of the steps, that the shorter runs have: one in so many.
PARTS = 2, 4, 8, 16


class Played(NamedTuple):
    """What G graphs with B chains each gave.

    Attributes:
      best: [G, B] the best value of each chain.
      hops: [L] sites changed a step, of the steps before each record.
      decided: [L / 5] mean |tanh h| of the tilt h over sites, chains and graphs; empty without localization.
    """

    best: Float64[np.ndarray, "G B"]
    hops: Float64[np.ndarray, "L"]
    decided: Float64[np.ndarray, "M"]


class _Watch:
    """Looks at the tilt after each call; a recorder of `anneal`."""

    def __init__(self):
        self.decided: list[float] = []

    def recall(self, every, trace) -> None:
        raise NotImplementedError("this study has no checkpoints")

    def add(self, every, trace, chains, seconds) -> None:
        found = contractions(chains, (slice(None), slice(None)))
        if found:
            self.decided.append(found["tilt_contraction"])


def play(graphs: Dataset, settings: Settings, fields: dict[str, Any]) -> Played:
    """Plays all graphs with a sampler of these config fields."""
    kind, method = graph_kind(SET.problem), build_method(fields, settings.batch_size)
    engine, _ = choose_engine(settings.engine, method.sampler)
    devices = devices_for(engine, method.sampler, settings)
    best = np.empty((len(graphs.graphs), settings.batch_size))
    hops, decided, weights = [], [], []
    terms = [kind.terms(graph, PENALTY) for graph in graphs.graphs]
    for pack in plan(terms, settings.instances_per_batch, settings.batch_size, *devices):
        names = [graphs.index[k] for k in pack.filled]
        chains = Chains([terms[k] for k in pack.filled], names, pack.shape, method.sampler, engine, settings.seed)
        watch = _Watch()
        outcome = anneal(chains, method, settings, recorder=watch, steps_per_call=_EVERY * _RECORDS)
        best[pack.members] = outcome.best[0][: len(pack.members)]
        hops.append(outcome.trace.hops[:, : len(pack.members)].mean(axis=(1, 2)))
        decided.append(watch.decided)
        weights.append(len(pack.members))
    return Played(best, *(np.average(one, axis=0, weights=weights) for one in (hops, decided)))


class Row(NamedTuple):
    """A sampler beside the base with all steps; gains are in nodes.

    Attributes:
      name: of the row.
      gain: of the best chain of each graph.
      mean_gain: of the mean over chains.
      spread: standard deviation over chains of their best values, mean over graphs.
      decided: share of the sites that the tilt has decided, after a quarter and half of the steps; empty without it.
      moves: sites changed a step as a share of the base's, in the second and third quarter.
    """

    name: str
    gain: Interval
    mean_gain: float
    spread: float
    decided: list[float]
    moves: list[float]


def row(name: str, played: Played, base: Played) -> Row:
    quarters = [np.array_split(one.hops, 4)[1:3] for one in (played, base)]
    moves = [float(ours.mean() / theirs.mean()) for ours, theirs in zip(*quarters, strict=True)]
    decided = [float(played.decided[len(played.decided) // part - 1]) for part in (4, 2) if len(played.decided)]
    gain = interval(played.best.max(axis=1) - base.best.max(axis=1))
    spread = float(played.best.std(axis=1, ddof=1).mean())
    return Row(name, gain, float((played.best - base.best).mean()), spread, decided, moves)


def compare(graphs: Dataset, settings: Settings) -> tuple[Played, list[Row], list[Row]]:
    """The base, the tilts, and the base with fewer steps."""
    base = play(graphs, settings, method_fields(SAMPLER))
    tilts, shorter = [], []
    for sigma in SIGMAS:
        fields = method_fields(f"sl_{SAMPLER}") | {"sigma": sigma}
        tilts.append(row(f"{sigma:g}", play(graphs, settings, fields), base))
        say(f"sigma {sigma:g}: {tilts[-1].gain.mean:+.2f} ± {tilts[-1].gain.half:.2f}")
    for steps in (settings.chain_length // part for part in PARTS):
        short = dataclasses.replace(settings, chain_length=steps)
        shorter.append(row(f"{steps:,}", play(graphs, short, method_fields(SAMPLER)), base))
        say(f"base, {steps:,} steps: {shorter[-1].gain.mean:+.2f} ± {shorter[-1].gain.half:.2f}")
    return base, tilts, shorter


def steps_worth(loss: float, shorter: list[Row], steps: int) -> str:
    """The steps with which the base's chains lose as much on average, interpolated in their logarithm."""
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

    def cells(one: Row) -> list[str]:
        decided = ", ".join(f"{share:.2f}" for share in one.decided)
        moves = ", ".join(f"{share:.2f}" for share in one.moves)
        return [
            f"{one.gain.mean:+.2f} ± {one.gain.half:.2f}",
            f"{one.mean_gain:+.2f}",
            f"{one.spread:.2f}",
            decided,
            moves,
        ]

    titles = [
        "", "gain, best chain", "gain, mean of chains", "spread", "decided at 1/4, 1/2", "moves in quarters 2, 3",
        "mean as of the base with",
    ]  # fmt: skip
    lines = [["base", "", "", f"{base.best.std(axis=1, ddof=1).mean():.2f}", "", "", f"{steps:,} steps"]]
    lines += [[f"sigma = {one.name}", *cells(one), steps_worth(one.mean_gain, shorter, steps)] for one in tilts]
    return [titles, *lines, *([f"base, {one.name} steps", *cells(one), ""] for one in shorter)]


def page(base: Played, rows: list[list[str]]) -> str:
    best = base.best.max(axis=1)
    said = f"{SET.name}, {SAMPLER}: {len(best)} graphs; the base's best chain {best.mean():.2f}, its chains' mean "
    return f"{said}{base.best.mean():.2f}. Gains in nodes, with 95 % intervals.\n\n{table(rows[0], rows[1:])}\n"


FLAGS, define = own_flags()
define.string("output", "results/tilt", "Folder of the page and its numbers.")
define.integer("graphs", 64, "Number of graphs.", lower_bound=2)
define.integer("steps", 10_000, "Steps of a chain.", lower_bound=2_000)


def _main(_) -> int:
    folder = check_writable(FLAGS.output)
    graphs = load_dataset(*SET.flags, None, num_instances=FLAGS.graphs, data_seed=_DATA_SEED)
    settings = settings_from(
        SET.experiment() | {"engine": "cpu", "chain_length": FLAGS.steps, "log_every_steps": _EVERY}
    )
    base, tilts, shorter = compare(graphs, settings)
    rows = rows_of(base, tilts, shorter, settings.chain_length)
    text = page(base, rows)
    say(text)
    path = Path(folder) / "tilt.md"
    write_atomically(path, lambda file: file.write(text.encode()))
    write_json(Path(folder) / "tilt.json", {"graphs": FLAGS.graphs, "rows": rows})
    say(f"saved: {path}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
