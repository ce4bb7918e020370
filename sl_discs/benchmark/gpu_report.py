"""The report of a check of the engine `gpu`, as JSON and as Markdown."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sl_discs.benchmark.gpu_check import ENGINES, Compared, Result, Sizes
from sl_discs.benchmark.gpu_verdict import in_a_line, judge, rows_of, speedup
from sl_discs.benchmark.report import Row, format_case
from sl_discs.benchmark.report import as_json as rows_as_json

SCHEMA = 1
# The paper's chains; its run times are those of whole datasets on an A40.
_PUBLISHED_CHAINS, _PUBLISHED_STEPS = 32, 10_000

_TITLES = {
    "steps": "Single steps, against the oracle",
    "localized": "Localized runs, against the enumerated law",
    "agreement": "Larger graphs, against the reference",
    "reference": "The reference on this device: single steps and localized runs",
}


def as_json(
    machine: Mapping[str, Any],
    sizes: Sizes,
    num_tasks: int,
    results: Sequence[Result],
    compared: Sequence[Compared],
    seconds: float,
) -> dict[str, Any]:
    """All that was found so far, as plain values.

    Args:
      machine: device, driver, versions, commit, and whether the kernel was interpreted.
      sizes: how much was run.
      num_tasks: that were planned.
      results: so far.
      compared: the rows of the paper's table.
      seconds: since the beginning.
    """
    verdict = judge(results, not machine["interpreted"])
    rows = [row for pair in rows_of(results, "bench").values() for row in pair.values()]
    settings = {name: getattr(sizes, name) for name in ("graphs", "chains", "length", "repeats")}
    return {
        "schema": SCHEMA,
        "verdict": {"word": verdict.word, "reasons": verdict.reasons},
        "complete": len(results) == num_tasks,
        "seconds": round(seconds, 1),
        "machine": dict(machine),
        "settings": settings,
        "checks": [_check(result) for result in results],
        "bench": rows_as_json(rows, settings)["cases"],
        "published": _published(results, compared),
    }


def _check(result: Result) -> dict[str, Any]:
    task, outcome = result
    return {
        "part": task.part,
        "name": task.name,
        "engine": task.engine,
        "status": result.status,
        "seconds": outcome and round(outcome.seconds, 2),
        "distance": outcome.value if outcome and isinstance(outcome.value, float) else None,
        "error": outcome and outcome.error,
        "details": outcome.details if outcome else "",
    }


def _published(results: Sequence[Result], compared: Sequence[Compared]) -> list[dict[str, Any]]:
    """The paper's seconds beside ours, scaled to its number of graphs, 32 chains and 10,000 steps."""
    known = {one.case.name: one for one in compared}
    found = []
    for (case, method), rows in rows_of(results, "published").items():
        one = known[case]
        work = one.num_graphs * _PUBLISHED_CHAINS * _PUBLISHED_STEPS
        seconds = {engine: float(work / np.median(row.rates())) for engine, row in rows.items()}
        found.append(
            {
                "dataset": case,
                "method": method,
                "graphs": one.num_graphs,
                "published_s": one.seconds[method],
                **{f"{engine}_s": seconds.get(engine) for engine in ENGINES},
            }
        )
    return found


def format_report(report: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The Markdown page of `as_json`."""
    machine, settings = report["machine"], report["settings"]
    reasons = "\n".join(f"- {reason}" for reason in report["verdict"]["reasons"])
    facts = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    state = "complete" if report["complete"] else "PARTIAL: it was still running, or was stopped"
    blocks = [
        "# Check of the engine `gpu`",
        f"**Verdict: {report['verdict']['word']}**\n\n{reasons}".strip(),
        f"{facts}\n- report: {state}, {report['seconds']:.0f} s",
    ]
    blocks += [_laws(title, [one for one in results if one.task.part == part]) for part, title in _TITLES.items()]
    played = f"{settings['graphs']} graphs x {settings['chains']} chains x {settings['length']:,} steps"
    blocks += [
        f"## Rates\n\nChain-steps per second after compiling, on one device; {played}, {settings['repeats']} times.",
        _bench(results, settings["graphs"]),
        "## The paper's run times\n\nSeconds for a whole dataset: graphs x 32 chains x 10,000 steps. The paper's are "
        f"of an NVIDIA A40. **Ours are scaled** from {played}, after compiling, in proportion to the number of "
        "chain-steps. The paper does not give the number of graphs; it is that of DISCS's configs.",
        _published_table(report["published"]),
    ]
    left_out = collections.Counter(task.part for task, outcome in results if outcome is None)
    if left_out:
        words = ", ".join(f"{count} of {part}" for part, count in left_out.items())
        blocks.append(f"Left out, as there was no time for them: {words}. Give it more `--minutes`.")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _laws(title: str, results: Sequence[Result]) -> str:
    """One line a sampler."""
    if not results:
        return ""
    lines = []
    for result in results:
        task, outcome = result
        words = result.status
        if outcome is not None:
            words += f" ({outcome.seconds:.1f} s)"
            if outcome.error is not None:
                words += f": {in_a_line(outcome.error, 500)}"
            elif outcome.value is not None:
                words += f", total variation {outcome.value:.3f}"
        lines.append(f"- {task.name} on {task.engine}: {words}")
    return f"## {title}\n\n" + "\n".join(lines)


def _bench(results: Sequence[Result], num_graphs: int) -> str:
    by_case: dict[str, list] = {}
    for (case, _), rows in rows_of(results, "bench").items():
        by_case.setdefault(case, []).extend(rows.values())
    if not by_case:
        return "None was measured."
    return "```\n" + "\n\n".join(format_case(rows, num_graphs) for rows in by_case.values()) + "\n```"


def _published_table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "None was measured."

    def number(value):
        return "-" if value is None else f"{value:,.1f}"

    lines = [f"{'dataset':<33} {'method':<18} {'graphs':>6} {'A40':>9} {'gpu':>9} {'reference':>9}"]
    for row in rows:
        lines.append(
            f"{row['dataset']:<33} {row['method']:<18} {row['graphs']:>6} {number(row['published_s']):>9} "
            f"{number(row['gpu_s']):>9} {number(row['reference_s']):>9}"
        )
    return "```\n" + "\n".join(lines) + "\n```"


def in_short(results: Sequence[Result]) -> str:
    """The last of the results in a line."""
    result = results[-1]
    task, outcome = result
    words = result.status
    if outcome is not None:
        words += f" ({outcome.seconds:.1f} s)"
        if outcome.error is not None:
            words += f": {in_a_line(outcome.error, 200)}"
        elif isinstance(outcome.value, Row):
            words = f"{np.median(outcome.value.rates()):,.0f} chain-steps/s"
            ratio = speedup(rows_of(results, task.part)[outcome.value.case, outcome.value.sampler])
            words += f", gpu is {ratio:.2f}x" if ratio is not None else ""
    return f"{task.label()}: {words}"
