"""The tables and figures of the study of the theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gaps import KERNELS, STEP_SIZE, bound
from sl_discs.reproduction.report import table
from sl_discs.support.figures import COLOURS, save_figure

BOUNDS = {
    "glauber": "1 - h/(e^(3h/4) + e^(-3h/4))",
    "metropolis": "1 - 2h e^(-h)",
    "gwg": "1 - h/(e^(h/4) + e^(-h/4))^2",
    "langevin": "1 - h/(e^(h/4) + e^(-h/4))^2",
    "dula": "1 - 4hN/(e^(h/4) + e^(-h/4))^2",
}


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the page: verdicts and means as found, and of the runs those by level, and by
    real run.

    Of the small runs: medians over replicas of the smallest field and of the gaps, those of
    single-site kernels in units of N steps, and how many replicas meet the condition. Of a real
    run: the largest shares of sites that meet it, and the first and last acceptance and hops.
    """
    runs, real = [], []
    for target, level in dict.fromkeys((row["target"], row["level"]) for row in found["runs"]):
        here = [row for row in found["runs"] if (row["target"], row["level"]) == (target, level)]
        sites = int(target.rpartition(" ")[2])
        scaled = {
            k: np.median([row["gaps"][k] for row in here]) * (1 if k == "dula" else sites)
            for k in KERNELS
        }
        runs.append(
            {"target": target, "level": level, "snr": here[0]["snr"], "needed": here[0]["needed"]}
            | {"field": float(np.median([row["field"] for row in here]))}
            | {"met": sum(row["met"] for row in here), "runs": len(here)}
            | {"own_row": float(np.mean([row["own_row"] for row in here])), "gaps": scaled}
        )
    for key in dict.fromkeys(
        (row["instance"], row["setting"], row["method"]) for row in found["real"]
    ):
        own = [
            row for row in found["real"] if (row["instance"], row["setting"], row["method"]) == key
        ]
        real.append(
            dict(zip(("instance", "setting", "method"), key, strict=True))
            | {name: own[-1][name] for name in ("snr", "tilt")}
            | {name: max(row[name] for row in own) for name in ("own_row", "all_rows")}
            | {name: [own[0][name], own[-1][name]] for name in ("acceptance", "hops")}
        )
    return {"verdicts": found["verdicts"], "runs": runs, "means": found["means"], "real": real}


def page(found: dict[str, Any]) -> str:
    """Tables of what `summary` returns, and the figures."""
    real = (
        ["## Real instances", _real(found["real"]), "![real instances](real.png)"]
        if found["real"]
        else []
    )
    parts = [
        "# The theory on a run",
        "## Bounds under Condition 4.1",
        _verdicts(found["verdicts"]),
        "![gaps and bounds](gaps.png)",
        "## Along localized runs",
        _runs(found["runs"]),
        "## The posterior mean after n steps of Glauber dynamics",
        _means(found["means"]),
        "![runs](runs.png)",
        *real,
    ]
    return "\n\n".join(parts) + "\n"


def _verdicts(verdicts: list[dict[str, Any]]) -> str:
    rows = []
    for one in verdicts:
        worst = one["smallest"]
        words = "none"
        if worst is not None:
            gap, promised = f"{worst['gap']:.3g}", f"{worst['bound']:.3g}"
            words = (
                f"{worst['model']}, N = {worst['sites']}, h = {worst['field']:.3g}: {gap} < "
                f"{promised}"
            )
        counts = [f"{one[name]} of {one['models']}" for name in ("failed", "vacuous")]
        rows.append([one["kernel"], BOUNDS[one["kernel"]], one["reading"], *counts, words])
    return table(
        ["kernel", "bound", "gap of", "below its bound", "bound <= 0", "smallest counterexample"],
        rows,
    )


def _runs(runs: list[dict[str, Any]]) -> str:
    """At the first, the middle and the last level."""
    rows = []
    for target in dict.fromkeys(row["target"] for row in runs):
        own = [row for row in runs if row["target"] == target]
        for one in (own[0], own[len(own) // 2], own[-1]):
            field = f"{one['field']:.2f} of {one['needed']:.2f}"
            shares = [f"{one['met']}/{one['runs']}", f"{one['own_row']:.2f}"]
            scaled = [f"{one['gaps'][kernel]:.3g}" for kernel in KERNELS]
            rows.append([target, f"{one['snr']:.3g}", field, *shares, *scaled])
    titles = ["target", "SNR", "least h of what is needed", "runs that meet it", "sites, own row"]
    return table([*titles, *(k if k == "dula" else f"N gap({k})" for k in KERNELS)], rows)


def _means(means: list[dict[str, Any]]) -> str:
    rows = []
    for one in means:
        last = [f"{one[name][-1]:.3g}" for name in ("rms", "exact_rms", "missed", "chernoff")]
        papers = "not met" if one["papers"] is None else f"{one['papers'][-1]:.3g}"
        rows.append(
            [
                one["target"],
                f"{one['snr']:.3g}",
                f"{one['gap']:.3g}",
                str(one["steps"][-1]),
                *last,
                papers,
            ]
        )
    titles = [
        "target",
        "SNR",
        "gap",
        "n",
        "rms error",
        "exact",
        "missed",
        "Chernoff, exact gap",
        "with the paper's",
    ]
    return table(titles, rows)


def _real(real: list[dict[str, Any]]) -> str:
    rows = []
    for one in real:
        shares = [f"{one[name]:.3f}" for name in ("own_row", "all_rows")]
        numbers = [f"{number:.2f}" for name in ("acceptance", "hops") for number in one[name]]
        named = [one[name] for name in ("instance", "setting", "method")]
        rows.append([*named, f"{one['snr']:.3g}", f"{one['tilt']:.2g}", *shares, *numbers])
    titles = [
        "instance",
        "run",
        "method",
        "last SNR",
        "last tilt",
        "most sites, own row",
        "most sites, all rows",
    ]
    return table([*titles, "acceptance, first", "last", "hops, first", "last"], rows)


_READING = {"dula": f"step size {STEP_SIZE}"}


def draw_gaps(scan: list[dict[str, Any]], path: Path) -> Path:
    """The gap of each kernel against |h| in the families of the largest N, with its bound."""
    sites = max(row["sites"] for row in scan if row["model"] != "random")
    models = [name for name in dict.fromkeys(row["model"] for row in scan) if name != "random"]

    def paint(figure):
        for axes, kernel in zip(
            figure.subplots(1, len(KERNELS), sharey=True), KERNELS, strict=True
        ):
            reading = _READING.get(kernel, "N steps")
            for model, colour in zip(models, COLOURS, strict=False):
                key = (kernel, reading, model, sites)
                rows = [
                    r for r in scan if (r["kernel"], r["reading"], r["model"], r["sites"]) == key
                ]
                axes.plot(
                    [r["field"] for r in rows], [r["gap"] for r in rows], color=colour, label=model
                )
            x = np.geomspace(0.05, 30, 200)
            axes.plot(x, [bound(kernel, h, sites) for h in x], "k--", label="paper's bound")
            axes.set(xscale="log", xlabel="|h|", ylim=(-0.15, 2.2), title=f"{kernel}, {reading}")
        figure.axes[0].set_ylabel(f"gap, N = {sites}")
        figure.axes[0].legend(frameon=False, fontsize=7)

    return save_figure(path, (10.0, 2.7), paint)


def draw_runs(runs: list[dict[str, Any]], means: list[dict[str, Any]], path: Path) -> Path:
    """Above, gaps along runs (medians) and the share of sites that meet the condition; below,
    missed means.
    """
    targets = list(dict.fromkeys(row["target"] for row in runs))

    def paint(figure):
        above, below = figure.subplots(2, len(targets), squeeze=False)
        for axes, target in zip(above, targets, strict=True):
            own = [row for row in runs if row["target"] == target]
            sites = int(target.rpartition(" ")[2])
            x = sorted({row["snr"] for row in own})
            at = [[row for row in own if row["snr"] == snr] for snr in x]
            for kernel, colour in zip(KERNELS, COLOURS, strict=False):
                scale = 1 if kernel == "dula" else sites
                y = [scale * np.median([row["gaps"][kernel] for row in rows]) for rows in at]
                axes.plot(
                    x, y, color=colour, label=kernel if kernel == "dula" else f"N gap, {kernel}"
                )
                points = [(row["snr"], row["bounds"][kernel]) for row in own if row["met"]]
                axes.plot(
                    *zip(*points, strict=True), "x", color=colour, markersize=4
                ) if points else None
            axes.plot(
                x,
                [np.mean([row["own_row"] for row in rows]) for rows in at],
                "k:",
                label="share of sites that meet it",
            )
            axes.plot(
                [], [], "x", color="0.4", markersize=4, label="paper's bound, where all meet it"
            )
            axes.set(
                xscale="log",
                title=target,
                xlabel="signal-to-noise ratio of the level",
                ylim=(-0.05, 2.5),
            )
        above[0].legend(frameon=False, fontsize=6.5)
        above[0].set_ylabel("gap, and share of sites")
        for axes, target in zip(below, targets, strict=True):
            for one, colour in zip(
                [one for one in means if one["target"] == target], COLOURS, strict=False
            ):
                # A frequency of 0 has no place on a logarithmic axis.
                missed = np.where(np.array(one["missed"]) > 0, one["missed"], np.nan)
                axes.plot(
                    one["steps"], missed, marker=".", color=colour, label=f"SNR {one['snr']:.2g}"
                )
                axes.plot(one["steps"], one["chernoff"], "--", color=colour)
                if one["papers"] is not None:
                    axes.plot(one["steps"], one["papers"], ":", color=colour)
            axes.set(
                xscale="log", yscale="log", ylim=(3e-4, 1.5), xlabel="steps n of Glauber dynamics"
            )
        for dash, words in (("--", "Chernoff, exact gap"), (":", "Chernoff, paper's bound")):
            below[0].plot([], [], dash, color="0.4", label=words)
        below[0].legend(frameon=False, fontsize=6.5, loc="lower left")
        below[0].set_ylabel("P(a mean is off by 0.25)")

    return save_figure(path, (9.0, 5.0), paint)


def draw_real(real: list[dict[str, Any]], path: Path) -> Path:
    """For each instance the share of sites that meet the condition of their own row, acceptance and
    hops.
    """
    instances = list(dict.fromkeys(row["instance"] for row in real))
    methods = list(dict.fromkeys(row["method"] for row in real))
    dashes = dict(
        zip(dict.fromkeys(row["setting"] for row in real), ("-", ":", "--"), strict=False)
    )
    names = {
        "own_row": "sites that meet the condition",
        "acceptance": "acceptance",
        "hops": "hops a step",
    }

    def paint(figure):
        for row_of_axes, instance in zip(
            figure.subplots(len(instances), 3, squeeze=False), instances, strict=True
        ):
            for axes, (name, words) in zip(row_of_axes, names.items(), strict=True):
                for setting, dash in dashes.items():
                    for method, colour in zip(methods, COLOURS, strict=False):
                        key = (instance, setting, method)
                        own = [r for r in real if (r["instance"], r["setting"], r["method"]) == key]
                        axes.plot(
                            [r["level"] for r in own], [r[name] for r in own], dash, color=colour
                        )
                axes.set(xlabel="level", title=f"{instance}: {words}")
        figure.axes[2].set_yscale("log")
        figure.axes[5 if len(instances) > 1 else 2].set_yscale("log")
        for method, colour in zip(methods, COLOURS, strict=False):
            figure.axes[0].plot([], [], color=colour, label=method)
        for setting, dash in dashes.items():
            figure.axes[0].plot([], [], dash, color="0.4", label=setting)
        figure.axes[0].legend(frameon=False, fontsize=6.5)

    return save_figure(path, (9.0, 5.0), paint)
