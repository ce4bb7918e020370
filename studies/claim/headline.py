"""Writes the headline numbers: what localization gains over sets, from all graphs that were played.

python studies/claim/headline.py

There is one estimator. The gain of a set is the mean over its graphs of localized minus base, on
the same graph with the same number of steps. The gain over the four sets is the mean of the four,
with equal weights, as the published one is; its standard error is that of graphs. `report.json` has
the graphs of the arms, and `readings.json` other graphs with both sides at their defaults. Pages
quote `headline.json`, which this writes; it also has the same joined gains by set, the arms' shares
of the published gains over all sets, of `report.json`, and those shares at defaults without the
sets on which the base is at its ceiling.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from claim_plan import ARMS, DEFAULTS, PLANTED, SAMPLERS
from claim_report import pooled_rows
from claim_statistics import holm
from sl_discs.commands.command import Command, own_flags
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.reproduction.report import table
from sl_discs.support.documents import write_json
from sl_discs.support.terminal import say

FOLDER = Path(__file__).parent
ER = tuple(name for name in PUBLISHED if name.startswith("mis/er_density/"))
# The reading with both sides at their defaults.
_OVER_THE_RUN = "annealing over the run"
# Cuts of 256 nodes, on which the base leaves no room for the published gain.
CEILING = ("maxcut/er/r-er-0.15-n-256-300", "maxcut/ba/r-ba-4-n-256-300")


class Sample(NamedTuple):
    """Differences on `n` graphs: their mean and the standard error of it."""

    mean: float
    se: float
    n: int


def joined(samples: Sequence[Sample]) -> Sample:
    """Returns the sample of all graphs of several samples, which have none in common."""
    n = sum(one.n for one in samples)
    mean = sum(one.n * one.mean for one in samples) / n
    squares = sum(
        (one.n - 1) * one.n * one.se**2 + one.n * (one.mean - mean) ** 2 for one in samples
    )
    return Sample(mean, math.sqrt(squares / (n - 1) / n), n)


def over_sets(
    sets: Sequence[Sample], published: Sequence[float], published_n: Sequence[int]
) -> dict[str, Any]:
    """Returns the mean over sets with equal weights, its error, and two tests.

    A published gain has the error of as many graphs as the paper has, with the spread of ours.
    `p_zero` tests that the gain is 0, and `p_published`, with both errors, that it is the published
    one.
    """

    def error(parts):
        return math.sqrt(sum(parts)) / len(sets)

    gain, known = float(np.mean([one.mean for one in sets])), float(np.mean(published))
    se = error(one.se**2 for one in sets)
    theirs = error(one.se**2 * one.n / n for one, n in zip(sets, published_n, strict=True))
    return {
        "mean": gain, "se": se, "graphs": [one.n for one in sets], "published": known, "published_se": theirs,
        "p_zero": float(2 * ndtr(-abs(gain) / se)),
        "p_published": float(2 * ndtr(-abs(gain - known) / math.hypot(se, theirs))),
    }  # fmt: skip


def sample_of(
    arm: str,
    dataset: str,
    sampler: str,
    claim: list[dict[str, Any]],
    readings: list[dict[str, Any]],
) -> Sample | None:
    """Returns the differences on all graphs of a pair in an arm; None if it was not played."""
    samples = [
        Sample(row["mean"], row["se"], row["n"])
        for row in claim
        if (row["arm"], row["dataset"], row["sampler"]) == (arm, dataset, sampler)
    ]
    if samples and arm == DEFAULTS:
        samples += [
            Sample(row["gain"][0], row["gain"][1], row["graphs"])
            for row in readings
            if (row["dataset"], row["sampler"], row["reading"]) == (dataset, sampler, _OVER_THE_RUN)
        ]
    return joined(samples) if samples else None


def by_set(claim: list[dict[str, Any]], readings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the gain at defaults of each sampler on each ER set, with Holm's p over all of them."""
    rows: list[dict[str, Any]] = []
    for dataset in ER:
        for sampler in SAMPLERS:
            sample = sample_of(DEFAULTS, dataset, sampler, claim, readings)
            if sample is not None:
                rows.append({"dataset": dataset, "sampler": sampler} | sample._asdict())
    p_values = [float(2 * ndtr(-abs(row["mean"]) / row["se"])) for row in rows]
    for row, p, adjusted in zip(rows, p_values, holm(p_values), strict=True):
        row |= {"p_zero": p, "p_holm": adjusted}
    return rows


def headline(claim: list[dict[str, Any]], readings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each arm and sampler."""
    published_of = {
        (row["dataset"], row["sampler"]): row["published"]
        for row in claim
        if row["arm"] == DEFAULTS
    }
    rows = []
    for arm in (one for one in ARMS if one not in PLANTED):
        for sampler in SAMPLERS:
            sets, published = [], []
            for dataset in ER:
                sample = sample_of(arm, dataset, sampler, claim, readings)
                if sample is not None:
                    sets.append(sample)
                    published.append(published_of[dataset, sampler])
            if len(sets) == len(ER):
                counts = [PUBLISHED[name].published_n for name in ER]
                rows.append({"arm": arm, "sampler": sampler} | over_sets(sets, published, counts))
    return rows


FLAGS, define = own_flags()
define.string("output", str(FOLDER / "headline.json"), "File for the numbers.")


def _main(_) -> int:
    """Writes the file and prints it as a table."""
    claim = json.loads((FOLDER / "report.json").read_text())["claim"]
    readings = json.loads((FOLDER / "readings.json").read_text())["rows"]
    rows = headline(claim["gains"], readings)
    with_room = [
        row for row in claim["gains"] if row["arm"] == DEFAULTS and row["dataset"] not in CEILING
    ]
    made = {
        "command": "python studies/claim/headline.py",
        "sets": list(ER),
        "rows": rows,
        "by_set": by_set(claim["gains"], readings),
        "shares": claim["pooled"],
        "shares_without_ceiling": pooled_rows(with_room),
    }
    path = write_json(Path(FLAGS.output), made)
    lines = [
        [row["arm"], row["sampler"], f"{row['mean']:+.3f} "
            f"({row['se']:.3f})", ", ".join(map(str, row["graphs"])),
         f"{row['published']:+.3f} "
         f"({row['published_se']:.3f})", f"{row['p_zero']:.3f}", f"{row['p_published']:.5f}"]
        for row in rows
    ]  # fmt: skip
    say(
        table(
            ["arm", "sampler", "gain", "graphs", "published", "p, no gain", "p, as published"],
            lines,
        )
    )
    say(f"saved: {path}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
