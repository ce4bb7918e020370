"""The report of `claim.py`: what is finished, its statistics, tables and a forest plot."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from claim_plan import (
    ARMS,
    BOTH,
    CHOSEN,
    DEFAULTS,
    NULL,
    PLANTED,
    SAME_ANNEALING,
    SAMPLERS,
    SEARCHED,
    TRAINING_SEED,
    Item,
    Missing,
    Pair,
    Searched,
    Study,
    is_precise,
    published_gain,
)
from claim_statistics import detection, expected_best, holm, interval, random_effects
from evaluation import write_tuned
from sl_discs.experiment.record import Spread, how_measured
from sl_discs.experiment.summary import published_row
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED, Cell, Choice
from sl_discs.reproduction.report import bounds, levels_table, listed, number, table, z_score
from sl_discs.reproduction.runs import CellResult, identity, load_result
from sl_discs.reproduction.tuned import Candidate
from sl_discs.support.documents import write_json
from sl_discs.support.figures import COLOURS, or_warn, save_figure
from sl_discs.support.files import write_text

_LETTERS = {DEFAULTS: "(a)", SEARCHED: "(b)", NULL: "(c)", BOTH: "(d)", SAME_ANNEALING: "(f)"}
_IN_WORDS = {
    DEFAULTS: "both at defaults",
    SEARCHED: "localization searched",
    NULL: "the same search, tilt off",
    BOTH: "both searched",
    SAME_ANNEALING: "annealing of the base",
}
_SIZES = (32, 128, 256, 512, 1_024)
_BEST_OF = (1, 2, 5, 10, 20, 50, 100)
ALPHA = 0.05


def finished(folder: Path, cell: Cell, graphs: Dataset) -> CellResult:
    """The result of a cell that is finished; Missing if it is not."""
    result = load_result(folder, identity(cell, graphs))
    if result is None:
        raise Missing
    return result


@dataclasses.dataclass
class Found:
    """What is finished: values of each round by graph, and gains of trials that are chosen on test
    graphs.
    """

    rounds: dict[Item, dict[int, Pair]] = dataclasses.field(default_factory=dict)
    choices: dict[tuple[str, str], dict[str, Any]] = dataclasses.field(default_factory=dict)

    def read(self, items: list[Item], study: Study) -> None:
        """Adds the rounds that are finished, of each pair and arm from the first on."""
        missing = set()
        for item in sorted(
            items, key=lambda item: (item.round, item.dataset.name)
        ):  # graphs are loaded once
            key = item[:3]
            try:
                if key not in missing:
                    self.add(item, study)
            except Missing:
                missing.add(key)

    def add(self, item: Item, study: Study) -> None:
        """Adds a step of the plan; Missing if a cell of it is."""
        if item.arm == CHOSEN:
            self.choices[item.dataset.name, item.sampler] = study.chosen(item.dataset, item.sampler)
        else:
            self.rounds[item] = study.round(item)

    def values(self, arm: str, dataset: str, sampler: str) -> Float64[np.ndarray, "G 3"]:
        """A `Pair` of each test graph that was played, each the mean over seeds."""
        by_graph: dict[int, list[Pair]] = {}
        for item, pairs in self.rounds.items():
            if (item.arm, item.dataset.name, item.sampler) == (arm, dataset, sampler):
                for graph, pair in pairs.items():
                    by_graph.setdefault(graph, []).append(pair)
        return np.array([np.mean(pairs, axis=0) for pairs in by_graph.values()]).reshape(-1, 3)

    def differences(self, arm: str, dataset: str, sampler: str) -> Float64[np.ndarray, "G"]:
        """Localized minus base of each test graph that was played, in the published unit."""
        localized, base, whole = self.values(arm, dataset, sampler).T
        return 100 * localized / whole - 100 * base / whole

    def is_settled(self, item: Item) -> bool:
        """Whether a step is finished, or is not needed because the interval is narrow enough
        without it.
        """
        if item.arm == CHOSEN:
            return (item.dataset.name, item.sampler) in self.choices
        values = self.differences(item.arm, item.dataset.name, item.sampler)
        return item in self.rounds or (
            len(values) > 1 and is_precise(item.dataset.name, item.sampler, values)
        )

    def words(self, item: Item) -> str:
        """The pair, the arm and the difference so far."""
        label = f"{item.dataset.name} {item.sampler} ({item.arm})"
        if item.arm == CHOSEN:
            return label
        so_far = interval(self.differences(item.arm, item.dataset.name, item.sampler))
        return f"{label}: {so_far.mean:+.3f} ± {number(so_far.half)} on {so_far.n} graphs"


# Rows as plain values.


def gain_rows(found: Found) -> list[dict[str, Any]]:
    """A row for each pair and arm: the gain, its interval, and both tests, alone and by Holm's
    method in its arm.
    """
    rows = []
    for arm in (arm for arm in ARMS if arm != CHOSEN):
        chosen: list[dict[str, Any]] = []
        for dataset, sampler in _pairs(found):
            values = found.differences(arm, dataset, sampler)
            if len(values) < 2:
                continue
            gain, published = (
                interval(values),
                None if arm in PLANTED else published_gain(dataset, sampler),
            )
            chosen.append({
                "arm": arm, "dataset": dataset, "sampler": sampler, "unit": _unit(dataset), "published": published,
                "mean": gain.mean, "se": gain.se, "ci95": gain.bounds(), "n": gain.n, "p_zero": gain.p_value(0.0),
                "p_published": None if not published else gain.p_value(published),
                "precise": is_precise(dataset, sampler, values),
            })  # fmt: skip
        for name in ("p_zero", "p_published"):
            tested = [row for row in chosen if row[name] is not None]
            for row, adjusted in zip(tested, holm([row[name] for row in tested]), strict=True):
                row[f"{name}_holm"] = adjusted
        rows += chosen
    return rows


def _pairs(found: Found) -> list[tuple[str, str]]:
    played = {(item.dataset.name, item.sampler) for item in found.rounds}
    return [
        (dataset, sampler)
        for dataset in PUBLISHED
        for sampler in SAMPLERS
        if (dataset, sampler) in played
    ]


def _unit(dataset: str) -> str:
    return "%" if graph_kind(PUBLISHED[dataset].problem).in_percent else "nodes"


def pooled_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Random-effects means over sets of the gain as a share of the published one; `headline.py` has
    nodes.
    """
    pooled = []
    for arm in _LETTERS:
        for sampler in SAMPLERS:
            mine = [
                row for row in rows if (row["arm"], row["sampler"]) == (arm, sampler) and row["se"]
            ]
            positive = [row for row in mine if (row["published"] or 0) > 0]
            if len(positive) > 1:
                shares = random_effects(
                    *([row[one] / row["published"] for row in positive] for one in ("mean", "se"))
                )
                sets = [row["dataset"] for row in positive]
                pooled.append({"arm": arm, "sampler": sampler, **shares._asdict(), "sets": sets})
    return pooled


def power_rows(found: Found) -> list[dict[str, Any]]:
    """Detection probabilities by numbers of graphs: of planted gains as measured, and of the
    published gain.

    The published gain is added to differences at default settings whose mean was removed, the same
    for all sizes.
    """
    rows = []
    for dataset, sampler in _pairs(found):
        for arm in (*PLANTED, DEFAULTS):
            values, gain = (
                found.differences(arm, dataset, sampler),
                published_gain(dataset, sampler),
            )
            if len(values) < 2 or (arm == DEFAULTS and not (gain and gain > 0)):
                continue
            planted = values - values.mean() + gain if arm == DEFAULTS else values
            rows.append({
                "dataset": dataset, "sampler": sampler, "gain": "published" if arm == DEFAULTS else arm,
                "mean": float(planted.mean()), "measured_on": len(values),
                "detected": {str(n): detection(planted, n) for n in _SIZES},
            })  # fmt: skip
    return rows


def search_rows(searches: dict[tuple[str, str, str, bool], Searched]) -> list[dict[str, Any]]:
    """What each search found: the trial, its training mean, its settings, and the first rung's
    means by sigma.
    """
    rows = []
    for (dataset, sampler, arm, localized), one in searches.items():
        defaults = method_fields(one.candidate.sampler["name"]) | SAMPLERS[sampler].changes
        changed = {
            name: value for name, value in one.candidate.sampler.items() if value != defaults[name]
        }
        rows.append({
            "dataset": dataset, "sampler": sampler, "arm": arm, "localized": localized, "trial": one.trial,
            "mean": one.mean, "graphs": one.graphs, "changed": changed,
            "annealing": one.candidate.experiment if arm == BOTH else None,
            "by_sigma": _by_sigma(one.tried) if localized and arm == SEARCHED else None,
        })  # fmt: skip
    names = list(PUBLISHED)
    return sorted(
        rows, key=lambda row: (ARMS.index(row["arm"]), names.index(row["dataset"]), row["sampler"])
    )


def _by_sigma(tried: list[tuple[Candidate, float]]) -> dict[str, float]:
    found: dict[float, list[float]] = {}
    for candidate, mean in tried[1:]:
        found.setdefault(candidate.sampler["sigma"], []).append(mean)
    return {f"{sigma:g}": float(np.mean(means)) for sigma, means in sorted(found.items())}


def chosen_rows(found: Found) -> list[dict[str, Any]]:
    """Gains of trials that are chosen on test graphs, by arm, with the expected best of n
    of them.
    """
    rows = []
    for row in found.choices.values():
        best = {
            arm: {str(n): expected_best(gains, n) for n in _BEST_OF if n <= len(gains)}
            for arm, gains in row["gains"].items()
        }
        rows.append(
            row
            | {"published": published_gain(row["dataset"], row["sampler"]), "expected_best": best}
        )
    return rows


def claim_levels(found: Found, choice: Choice) -> list[dict[str, Any]]:
    """Each method at its defaults beside the published mean.

    Where the published one is a percentage of references that are not at hand, ours is in edges and
    has no z.
    """
    rows = []
    for dataset, sampler in _pairs(found):
        values, one = found.values(DEFAULTS, dataset, sampler), PUBLISHED[dataset]
        if len(values) < 2:
            continue
        absolute = one.problem == "maxcut" and one.is_random()
        shown = values[:, :2] if absolute else 100 * values[:, :2] / values[:, 2:]
        for prefix, column in ("sl_", shown[:, 0]), ("", shown[:, 1]):
            ours, published = (
                Spread.of(column),
                published_row(dataset, prefix + SAMPLERS[sampler].base),
            )
            rows.append({
                "dataset": dataset, "method": prefix + sampler, "chain_length": choice.steps(one),
                "graphs": "drawn" if one.is_random() else "given", "unit": "edges" if absolute else _unit(dataset),
                "mean": ours.mean, "se": ours.se, "n": ours.n, "published": published and published.mean,
                "z": None if absolute else z_score(ours, published, one.published_n),
            })  # fmt: skip
    return rows


def write_settings(study: Study, folder: Path, measured: dict[str, Any]) -> list[Path]:
    """Writes the settings that searches of both sides found, a file for each set and method, for
    `run` to read.
    """
    paths = []
    for (dataset, sampler, arm, localized), one in study.searches.items():
        if arm == BOTH:
            record = {
                "trials": study.size.trials,
                "trial": one.trial,
                "mean": one.mean,
                "graphs": one.graphs,
            }
            path = folder / dataset / f"{'sl_' if localized else ''}{sampler}.json"
            paths.append(
                write_tuned(path, one.candidate, record | {"data_seed": TRAINING_SEED} | measured)
            )
    return sorted(paths)


# The section: its text and figure.

_NOTE = """\
The best of the localized sampler's chains minus that of its base on the same test graphs, which no search has seen,
with equally many steps; mean over graphs and Student's 95 % interval. Arms: (a) both at defaults; (b) localization
searched on training graphs; (c) the same search with the tilt off; (d) both searched, temperatures included; (f) the
base as in (d), and localization at its defaults with the same temperatures. Unit: nodes, or per cent of the
reference. `p` tests a gain of zero, `p, published` the published one; both are by Holm's method, within the arm.
The protocol is that of studies/claim/README.md."""

_LEVELS_NOTE = """\
Graphs are drawn anew from the paper's distribution, or given: a random choice of the real ones. GWG with one flip
stands beside the published GWG. The references of generated cuts are not at hand: ours is in edges and has no z."""


def write_report(
    found: Found, study: Study, folder: Path, measured: dict[str, Any], *, final: bool
) -> Path:
    """Writes report.md and report.json of everything that is finished, and, if `final`, the
    figure.
    """
    rows = gain_rows(found)
    data = {
        "gains": rows, "pooled": pooled_rows(rows), "power": power_rows(found),
        "searches": search_rows(study.searches), "chosen": chosen_rows(found),
        "levels": claim_levels(found, study.choice),
    }  # fmt: skip
    shown = [row for row in rows if row["arm"] in _LETTERS]
    blocks = ["# Does localization help to optimise?", _NOTE]
    if shown:
        blocks += ["\n".join(_in_short(rows)), _gain_table(shown), _pooled_table(data["pooled"])]
    blocks += _others(data)
    name = "claim.png"
    if final and shown and or_warn(lambda: draw_forest(shown, folder / name)) is not None:
        blocks.append(f"![{name}]({name})")
    blocks.append(how_measured(measured))
    write_json(folder / "report.json", {"measured": measured, "claim": data}, allow_nan=False)
    return write_text(folder / "report.md", "\n\n".join(filter(None, blocks)) + "\n")


def _in_short(rows: list[dict]) -> list[str]:
    lines = []
    for arm, letter in _LETTERS.items():
        mine = [row for row in rows if row["arm"] == arm]
        if not mine:
            continue
        clear = [row for row in mine if row["p_zero_holm"] < ALPHA]
        known = [row for row in mine if row["p_published"] is not None]
        excluded = [row for row in known if row["ci95"][1] < row["published"]]
        surely = [row for row in excluded if row["p_published_holm"] < ALPHA]
        above, below = (
            [f"{row['dataset']} {row['sampler']}" for row in clear if sign * row["mean"] > 0]
            for sign in (1, -1)
        )
        sets, samplers = ({row[name] for row in mine} for name in ("dataset", "sampler"))
        lines.append(
            f"- {letter} {arm}: {len(mine)} pairs ({len(sets)} sets, {len(samplers)} samplers). "
            f"Gain above zero by Holm in {len(above)}{listed(above, ': ')}; below zero in "
            f"{len(below)}"
            f"{listed(below, ': ')}. The published gain lies above the 95% interval in "
            f"{len(excluded)} of "
            f"{len(known)} pairs, by Holm in {len(surely)}."
        )
    return lines


def _gain_table(rows: list[dict]) -> str:
    titles = [
        "set",
        "sampler",
        "arm",
        "gain",
        "95% interval",
        "n",
        "published",
        "unit",
        "p",
        "p, published",
    ]
    return table(titles, (
        [
            row["dataset"], row["sampler"], _LETTERS[row["arm"]], number(row["mean"], 3, "+"), bounds(row, 3),
            str(row["n"]), number(row["published"], 3, "+"), row["unit"], number(row["p_zero_holm"], 3),
            number(row.get("p_published_holm"), 3),
        ]
        for row in rows
    ))  # fmt: skip


def _pooled_table(rows: list[dict]) -> str:
    titles = ["arm", "sampler", "sets", "mean", "95% interval", "tau"]
    lines = (
        [
            _LETTERS[row["arm"]], row["sampler"], str(row["k"]), number(row["mean"], 3, "+"),
            f"[{row['low']:+.3f}, {row['high']:+.3f}]", number(row["tau2"] ** 0.5),
        ]
        for row in rows
    )  # fmt: skip
    title = "### Share of the published gain, pooled over sets by random effects"
    return f"{title}\n\n{table(titles, lines)}" if rows else ""


def _others(data: dict[str, Any]) -> list[str]:
    """Power, searches, and choice on test graphs, where there are any."""
    blocks = []
    if data["power"]:
        titles = ["set", "sampler", "gain", "mean", *(f"n = {n:,}" for n in _SIZES)]
        lines = (
            [row["dataset"], row["sampler"], row["gain"], number(row["mean"], 3, "+"),
             *(number(row["detected"][str(n)], 2) for n in _SIZES)]
            for row in data["power"]
        )  # fmt: skip
        note = (
            "Probability that the 95 % interval of n test graphs lies above zero, of planted "
            "and of published gains."
        )
        blocks.append(f"### Power\n\n{note}\n\n{table(titles, lines)}")
    if data["searches"]:
        titles = ["set", "sampler", "arm", "trial", "training mean", "graphs", "changed settings"]
        lines = (
            [row["dataset"], ("sl_" if row["localized"] else "") + row["sampler"], _LETTERS[row["arm"]],
             str(row["trial"]), number(row["mean"]), str(row["graphs"]),
             ", ".join(f"{name}={value}" for name, value in {**row["changed"], **(row["annealing"] or {})}.items())
             or "-"]
            for row in data["searches"]
        )  # fmt: skip
        blocks.append("### Searches on training graphs\n\n" + table(titles, lines))
    tilted = [row for row in data["searches"] if row["by_sigma"]]
    if tilted:
        sigmas = list(tilted[0]["by_sigma"])
        lines = (
            [
                row["dataset"],
                f"sl_{row['sampler']}",
                *(number(row["by_sigma"][sigma], 2) for sigma in sigmas),
            ]
            for row in tilted
        )
        note = (
            "Mean on the first rung's training graphs of all trials with a value of sigma; the "
            "tilt falls with it."
        )
        titles = ["set", "sampler", *(f"sigma = {sigma}" for sigma in sigmas)]
        blocks.append(f"### The size of the tilt\n\n{note}\n\n{table(titles, lines)}")
    if data["chosen"]:
        counts = list(data["chosen"][0]["expected_best"][SEARCHED])
        titles = [
            "set",
            "sampler",
            "graphs",
            "trials",
            *(f"best of {n}" for n in counts),
            "published",
        ]
        lines = (
            [row["dataset"], row["sampler"], str(row["graphs"]), "localized" if arm == SEARCHED else "tilt off",
             *(number(best[n], 3, "+") for n in counts), number(row["published"], 3, "+")]
            for row in data["chosen"] for arm, best in row["expected_best"].items()
        )  # fmt: skip
        note = """\
Gain over one run of the base of the best of n trials, chosen on the graphs on which they are judged: the mean over
all choices of n trials. The best of 1 is their mean, and with the tilt off it shows the luck of the base's run."""
        blocks.append(f"### Chosen on test graphs\n\n{note}\n\n{table(titles, lines)}")
    if data["levels"]:
        titles = ["set", "method", "mean", "se", "unit", "graphs", "published", "z"]
        lines = (
            [row["dataset"], row["method"], number(row["mean"]), number(row["se"]), row["unit"],
             f"{row['n']} {row['graphs']}", number(row["published"]), number(row["z"], 2, "+")]
            for row in data["levels"]
        )  # fmt: skip
        blocks += [
            "### Levels at default settings",
            _LEVELS_NOTE,
            levels_table(data["levels"], pooled=True),
            table(titles, lines),
        ]
    return blocks


def draw_forest(rows: list[dict], path: Path) -> Path:
    """A row for each set and sampler, a panel for each problem: the 95 % intervals of the published
    gain and of each arm, side by side.

    The paper gives no error of its gains: theirs is that of its number of graphs with the spread
    of ours at defaults.
    """
    arms = [arm for arm in _LETTERS if any(row["arm"] == arm for row in rows)]
    groups: dict[str, dict[tuple[str, str], list[dict]]] = {}
    for row in (row for row in rows if row["arm"] in arms):
        problem = PUBLISHED[row["dataset"]].problem
        groups.setdefault(problem, {}).setdefault((row["dataset"], row["sampler"]), []).append(row)
    # Each pair has a lane for the published gain, one for each of its arms, and half of one above
    # and below.
    lanes = {
        problem: np.cumsum([0, *(len(mine) + 2 for mine in pairs.values())])
        for problem, pairs in groups.items()
    }

    def paint(figure):
        heights = [starts[-1] for starts in lanes.values()]
        panels = figure.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
        for axes, (problem, pairs) in zip(panels, groups.items(), strict=True):
            starts = lanes[problem]
            for place, mine in enumerate(pairs.values()):
                top = starts[place]
                axes.axhspan(top, starts[place + 1], color="0.95" if place % 2 else "1")
                _interval(axes, mine[0]["published"], _published_half(mine[0]), top + 1, "D", "k")
                for lane, row in enumerate(mine, 2):
                    half = row["ci95"][1] - row["mean"]
                    colour = COLOURS[arms.index(row["arm"])]
                    _interval(axes, row["mean"], half, top + lane, "o", colour)
            axes.axvline(0, color="grey", linewidth=0.8)
            labels = [
                f"{dataset.removeprefix(f'{problem}/')}  {sampler}" for dataset, sampler in pairs
            ]
            unit = {"nodes": "nodes", "%": "per cent of the reference"}[mine[0]["unit"]]
            axes.set_yticks((starts[:-1] + starts[1:]) / 2, labels, fontsize=6.5)
            axes.set_ylim(starts[-1], 0)
            axes.set_xlabel(f"{problem}: localized minus base, {unit}")
        panels[0].plot([], [], "D-", color="k", markersize=3, label="published, spread of ours")
        for colour, arm in zip(COLOURS, arms, strict=False):
            label = f"{_LETTERS[arm]} {_IN_WORDS[arm]}"
            panels[0].plot([], [], "o-", color=colour, markersize=3, label=label)
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False)

    height = 0.043 * sum(starts[-1] for starts in lanes.values()) + 1.6
    return save_figure(path, (7.0, height), paint)


def _published_half(row: dict) -> float | None:
    """Half of the interval of a published gain; None where the paper has no spread."""
    paper = published_row(row["dataset"], SAMPLERS[row["sampler"]].base)
    if paper is None or not paper.std:
        return None
    graphs = PUBLISHED[row["dataset"]].published_n
    return 1.96 * row["se"] * math.sqrt(row["n"] / graphs)


def _interval(
    axes, mean: float, half: float | None, height: float, marker: str, colour: str
) -> None:
    style = {"fmt": marker, "markersize": 2.5, "color": colour, "linewidth": 1}
    axes.errorbar(mean, height, xerr=half, **style)
