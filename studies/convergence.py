"""Measures how fast Algorithm 1 converges, on targets whose distribution is known.

    python studies/convergence.py [--output=results/convergence]

It plots the error of the distribution that Algorithm 1 draws from against the number of levels, of
sweeps per level and of sites, with exact posterior means and with those of chains; fits rates; and
compares variants of the algorithm. Finished cells are kept in OUTPUT/cells, so that a stopped
command continues where it left off.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import special

import small_runs
from finished import finished
from gaps import SpinModel
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.localization.schedule import Localization
from sl_discs.reproduction.report import table
from sl_discs.support.documents import write_json
from sl_discs.support.figures import COLOURS, or_warn, save_figure
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say

# alpha^2/(sigma^2 t) goes from 1/4,000 to 25, where sign(Y) is a draw.
SCHEDULE = Localization(sigma=2.0, eps=1e-3, eps_end=1e-2, grid="log_snr")
# Parameters of the models with growing N, which have two modes, one of them slightly heavier.
_COUPLING, _FIELD = 1.4, 0.02


class Target(NamedTuple):
    """A target with its distribution over states, or over numbers of up spins.

    `law` is over the classes in which `observe` counts chains, given their states.
    """

    name: str
    form: SpinModel
    law: Float64[np.ndarray, "S"]
    observe: Callable[[small_runs.Chains], Float64[np.ndarray, "S"]]
    exact: small_runs.Mean


class Size(NamedTuple):
    chains: int = 40_000  # chains of each cell on six sites
    levels: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)  # values of K with the exact mean
    sweeps: tuple[int, ...] = (1, 2, 4, 8, 16)  # values of the sweeps per level, at 16 levels
    work: int = 128  # total sweeps of a chain in comparisons at equal work
    sites: tuple[int, ...] = (6, 12, 24, 48)  # values of N for the Curie-Weiss models


FULL = Size()


def enumerated(name: str, form: SpinModel) -> Target:
    return Target(
        name, form, small_runs.law_of(form), small_runs.counts_of, small_runs.exact_mean(form)
    )


def magnetised(num_sites: int) -> Target:
    """A Curie-Weiss model with two modes, observed by its number of up spins."""
    ones = np.arange(num_sites + 1)
    total = 2.0 * ones - num_sites
    exponents = _COUPLING / (2 * num_sites) * total**2 + _FIELD * total
    log_binomial = -special.gammaln(ones + 1) - special.gammaln(num_sites - ones + 1)

    def observe(states):
        return np.bincount((states > 0).sum(axis=1), minlength=num_sites + 1).astype(np.float64)

    return Target(
        f"Curie-Weiss, N = {num_sites}",
        small_runs.curie_weiss(num_sites, _COUPLING, _FIELD),
        special.softmax(exponents + log_binomial),
        observe,
        small_runs.curie_weiss_mean(_COUPLING, _FIELD, num_sites),
    )


def targets() -> list[Target]:
    """Two targets on six sites: a glass with several modes, and a Curie-Weiss model with two."""
    return [
        enumerated("glass", small_runs.glass(6, 2.0, 0.3, seed=1)),
        enumerated("Curie-Weiss", small_runs.curie_weiss(6, 1.8, 0.05)),
    ]


def total_variation(counts: Float64[np.ndarray, "S"], law: Float64[np.ndarray, "S"]) -> float:
    return float(np.abs(counts / counts.sum() - law).sum() / 2)


def noise_floor(law: Float64[np.ndarray, "S"], draws: int) -> float:
    """The null control: the mean total variation of the same number of exact draws, over 50
    repetitions.
    """
    rng = np.random.default_rng(0)
    return float(np.mean([total_variation(rng.multinomial(draws, law), law) for _ in range(50)]))


def mean_of(way: str, target: Target, sweeps: int) -> tuple[small_runs.Mean, int]:
    """An estimator of U that costs about `sweeps` per level, and the number of chains that share
    one Y.

    `way` is `exact`; `mean`, over the second half of the sweeps as in the paper; `last state`;
    `rao-blackwell`, over all sweeps; `four chains`, which share one Y and the sweeps; or `tap`.
    """
    half = -(-sweeps // 2)
    if way == "exact":
        return target.exact, 1
    if way == "tap":
        return small_runs.tap_mean(target.form), 1
    if way == "four chains":
        each = max(1, sweeps // 4)
        return small_runs.gibbs_mean(target.form, each, -(-each // 2), sharing=4), 4
    collected = {"mean": half, "last state": 1, "rao-blackwell": half}[way]
    return small_runs.gibbs_mean(
        target.form, sweeps, collected, rao_blackwell=way == "rao-blackwell"
    ), 1


def cell(
    folder: Path, target: Target, way: str, levels: int, sweeps: int, chains: int, grid: str
) -> dict[str, Any]:
    """The error of one estimator (see `mean_of`; `chain` is a chain without localization, of levels
    * sweeps sweeps).

    Its total variation, the noise floor, the excess over it, and seconds.
    """
    identity = {
        "kind": "convergence", "target": target.name, "way": way, "levels": levels, "sweeps": sweeps,
        "chains": chains, "grid": grid, "seed": 0, "form": small_runs.name_of(target.form),
        "schedule": vars(SCHEDULE),
    }  # fmt: skip

    def compute():
        begin = time.perf_counter()
        if way == "chain":
            states = small_runs.gibbs_chain(target.form, levels * sweeps, chains)
        else:
            plan = dataclasses.replace(SCHEDULE, K=levels, grid=grid)
            states, _ = small_runs.localize(
                target.form, plan, mean_of(way, target, sweeps)[0], chains
            )
        error = total_variation(target.observe(states), target.law)
        floor = noise_floor(target.law, chains)
        above = max(error**2 - floor**2, 0.0) ** 0.5
        return {
            "error": error,
            "floor": floor,
            "above": above,
            "seconds": time.perf_counter() - begin,
        }

    return identity | finished(folder, identity, compute)


def fitted_rate(rows: Sequence[dict[str, Any]], name: str) -> tuple[float, int] | None:
    """The exponent p of error ~ name^-p, by least squares on logarithms, and the number of points.

    It uses the errors above twice the noise floor; None if there are fewer than three.
    """
    used = [row for row in rows if row["error"] > 2 * row["floor"]]
    if len(used) < 3:
        return None
    slope = np.polyfit(
        np.log([row[name] for row in used]), np.log([row["above"] for row in used]), 1
    )[0]
    return float(-slope), len(used)


def run(folder: Path, size: Size = FULL) -> dict[str, list[dict[str, Any]]]:
    """Computes all cells, writes the page and the figure, and returns the rows of each part."""
    cells, draws = folder / "cells", size.chains
    small, levels = targets(), min(32, size.work)
    found: dict[str, list[dict[str, Any]]] = {}

    def rows(part, arguments):
        found[part] = [cell(cells, *one) for one in arguments]
        say(f"{part}: {len(found[part])} cells, {sum(row['seconds'] for row in found[part]):.0f} s")

    rows(
        "levels",
        [
            (t, "exact", K, 1, draws, g)
            for t in small
            for g in ("log_snr", "uniform")
            for K in size.levels
        ],
    )
    kinds = ("mean", "last state", "chain")
    rows(
        "sweeps",
        [(t, w, 16, n, draws, "log_snr") for t in small for w in kinds for n in size.sweeps],
    )
    splits = [2**k for k in range(size.work.bit_length()) if 2 <= 2**k <= size.levels[-1]]
    kinds = ("mean", "last state")
    rows(
        "split",
        [(t, w, K, size.work // K, draws, "log_snr") for t in small for w in kinds for K in splits],
    )
    kinds = ("exact", "mean", "last state", "chain")
    large = [magnetised(n) for n in size.sites]
    rows(
        "sites",
        [(t, w, levels, size.work // levels, draws // 4, "log_snr") for t in large for w in kinds],
    )
    kinds = ("exact", "mean", "rao-blackwell", "four chains", "tap", "last state", "chain")
    rows(
        "ways",
        [(t, w, levels, size.work // levels, draws, "log_snr") for t in small for w in kinds],
    )
    write_json(
        folder / "convergence.json", {"measured": measured_by(), **errors(found)}, allow_nan=False
    )
    write_text(folder / "convergence.md", page(found))
    or_warn(lambda: draw(found, folder / "convergence.png"))
    return found


def errors(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """What identifies each cell of each part, with its error and that of as many exact draws."""
    names = ("target", "way", "grid", "levels", "sweeps", "error", "floor")
    return {
        part: [{name: row[name] for name in names} for row in rows] for part, rows in found.items()
    }


def page(found: dict[str, list[dict[str, Any]]]) -> str:
    names = {name: name for name in ("target", "way", "grid")}
    names |= {"levels": "K", "sweeps": "sweeps a level", "chains": "draws"}
    parts = []
    for part, rows in found.items():
        numbers = ([f"{row['error']:.4f}", f"{row['floor']:.4f}"] for row in rows)
        cells = [
            [*(str(row[name]) for name in names), *two]
            for row, two in zip(rows, numbers, strict=True)
        ]
        parts.append(f"## {part}\n\n" + table([*names.values(), "error", "exact draws"], cells))
    rates = []
    for part, name in (("levels", "levels"), ("sweeps", "sweeps"), ("split", "levels")):
        for key in dict.fromkeys((row["target"], row["way"], row["grid"]) for row in found[part]):
            rate = fitted_rate(
                [row for row in found[part] if (row["target"], row["way"], row["grid"]) == key],
                name,
            )
            said = (
                "within noise"
                if rate is None
                else f"{'K' if name == 'levels' else 'n'}^{-rate[0]:.2f}"
            )
            rates.append([part, *key, said, str(rate[1]) if rate else "-"])
    titles = ["part", "target", "way", "grid", "error falls as", "points"]
    return "\n\n".join([*parts, "## rates\n\n" + table(titles, rates)]) + "\n"


def draw(found: dict[str, list[dict[str, Any]]], path: Path) -> Path:
    """Error against levels with the exact mean, against sweeps, against the split of equal work,
    and against N.
    """
    panels = (
        ("levels", "levels", "levels K, exact mean", "grid"),
        ("sweeps", "sweeps", "sweeps a level, K = 16", "way"),
        ("split", "levels", "levels K at equal work", "way"),
        ("sites", "target", "sites N at equal work", "way"),
    )

    def paint(figure):
        for axes, (part, across, words, what) in zip(
            figure.subplots(1, 4).flat, panels, strict=True
        ):
            several = part != "sites"
            for key in dict.fromkeys(
                (row["target"] if several else "", row[what]) for row in found[part]
            ):
                rows = [
                    row
                    for row in found[part]
                    if key[0] in ("", row["target"]) and row[what] == key[1]
                ]
                x = [
                    row[across] if several else int(row["target"].rpartition(" ")[2])
                    for row in rows
                ]
                kinds = list(dict.fromkeys(row[what] for row in found[part]))
                style = "--" if key[0] == "Curie-Weiss" else "-"
                colour = COLOURS[kinds.index(key[1])]
                label = key[1] if key[0] != "Curie-Weiss" else None
                axes.plot(
                    x, [row["error"] for row in rows], style, marker=".", color=colour, label=label
                )
            if several:
                axes.plot([], [], "--", color="0.5", label="Curie-Weiss")
            axes.plot(x, [row["floor"] for row in rows], ":", color="0.5", label="exact draws")
            axes.set(xscale="log", yscale="log", xlabel=words)
            axes.legend(frameon=False, fontsize=6)
        figure.axes[0].set_ylabel("total variation from the target")

    return save_figure(path, (9.0, 2.7), paint)


FLAGS, define = own_flags()
define.string(
    "output", "results/convergence", "Folder of the page, its numbers, the figure and the cells."
)


def _main(_) -> int:
    run(check_writable(FLAGS.output))
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
