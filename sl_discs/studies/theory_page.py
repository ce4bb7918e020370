"""The tables of the theory on a run, in Markdown."""

from __future__ import annotations

from typing import Any

import numpy as np

from sl_discs.studies.gaps import KERNELS

BOUNDS = {
    "glauber": "1 - h/(e^(3h/4) + e^(-3h/4))",
    "metropolis": "1 - 2h e^(-h)",
    "gwg": "1 - h/(e^(h/4) + e^(-h/4))^2",
    "langevin": "1 - h/(e^(h/4) + e^(-h/4))^2",
    "dula": "1 - 4hN/(e^(h/4) + e^(-h/4))^2",
}


def page(found: dict[str, Any]) -> str:
    """All tables, and where the figures are."""
    real = ["## Real instances", _real(found["real"]), "![real instances](real.png)"] if found["real"] else []
    parts = [
        "# The theory on a run",
        "## Bounds under Condition 1",
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


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _verdicts(verdicts: list[dict[str, Any]]) -> str:
    rows = []
    for one in verdicts:
        worst = one["smallest"]
        words = "none"
        if worst is not None:
            gap, promised = f"{worst['gap']:.3g}", f"{worst['bound']:.3g}"
            words = f"{worst['model']}, N = {worst['sites']}, h = {worst['field']:.3g}: {gap} < {promised}"
        counts = [f"{one[name]} of {one['models']}" for name in ("failed", "vacuous")]
        rows.append([one["kernel"], BOUNDS[one["kernel"]], one["reading"], *counts, words])
    return _table(["kernel", "bound", "gap of", "below its bound", "bound <= 0", "smallest counterexample"], rows)


def _runs(runs: list[dict[str, Any]]) -> str:
    """Medians over replicas, at the first, the middle and the last level, and at the first level that meets it."""
    rows = []
    for target in dict.fromkeys(row["target"] for row in runs):
        own = [row for row in runs if row["target"] == target]
        sites = int(target.rpartition(" ")[2])
        levels = sorted({row["level"] for row in own})
        for level in dict.fromkeys((levels[0], levels[len(levels) // 2], levels[-1])):
            here = [row for row in own if row["level"] == level]
            scaled = [
                f"{np.median([row['gaps'][k] for row in here]) * (1 if k == 'dula' else sites):.3g}" for k in KERNELS
            ]
            met = f"{sum(row['met'] for row in here)}/{len(here)}"
            share = f"{np.mean([row['own_row'] for row in here]):.2f}"
            field = f"{np.median([row['field'] for row in here]):.2f} of {here[0]['needed']:.2f}"
            rows.append([target, f"{here[0]['snr']:.3g}", field, met, share, *scaled])
    titles = ["target", "SNR", "least h of what is needed", "runs that meet it", "sites, own row"]
    return _table([*titles, *(k if k == "dula" else f"N gap({k})" for k in KERNELS)], rows)


def _means(means: list[dict[str, Any]]) -> str:
    rows = []
    for one in means:
        last = [f"{one[name][-1]:.3g}" for name in ("rms", "exact_rms", "missed", "chernoff")]
        papers = "not met" if one["papers"] is None else f"{one['papers'][-1]:.3g}"
        rows.append([one["target"], f"{one['snr']:.3g}", f"{one['gap']:.3g}", str(one["steps"][-1]), *last, papers])
    titles = ["target", "SNR", "gap", "n", "rms error", "exact", "missed", "Chernoff, exact gap", "with the paper's"]
    return _table(titles, rows)


def _real(real: list[dict[str, Any]]) -> str:
    rows = []
    for key in dict.fromkeys((row["instance"], row["setting"], row["method"]) for row in real):
        own = [row for row in real if (row["instance"], row["setting"], row["method"]) == key]
        first, last = own[0], own[-1]
        shares = [f"{max(row[name] for row in own):.3f}" for name in ("own_row", "all_rows")]
        numbers = [f"{row[name]:.2f}" for name in ("acceptance", "hops") for row in (first, last)]
        rows.append([*key, f"{last['snr']:.3g}", f"{last['tilt']:.2g}", *shares, *numbers])
    titles = ["instance", "run", "method", "last SNR", "last tilt", "most sites, own row", "most sites, all rows"]
    return _table([*titles, "acceptance, first", "last", "hops, first", "last"], rows)
