"""A report on draws: the verdict, estimates with their evidence, and plots of the chains."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sl_discs.experiment.figures import side_by_side, table, write_page
from sl_discs.problems.kind import KINDS
from sl_discs.sampling.diagnostics import Diagnostic
from sl_discs.sampling.draws import Estimate, Events, event_name
from sl_discs.sampling.samples import (
    MAGNETISATION,
    OVERLAP,
    VALUE,
    Samples,
    paint_barrier,
    paint_marginals,
    paint_overlaps,
    paint_round_trips,
    paint_swaps,
    paint_traces,
    paint_values,
)

# Estimates from draws as rows of text, for a terminal and for a page.

ESTIMATES = "", "mean", "error", "R-hat", "ESS bulk", "ESS tail"


def estimates(samples: Samples) -> list[tuple[str, ...]]:
    """Rows under `ESTIMATES`: means, the variables with the largest R-hat and the least ESS, and log Z."""
    found = {one.name: one for one in samples.diagnostics}
    rows: list[tuple[str, ...]] = []
    for name in (VALUE, MAGNETISATION, OVERLAP):
        rows.append((name, *_numbers(samples.mean(name)), *_evidence(found.pop(name))))
    if found:
        several = samples.num_values is not None
        known = {event_name(*event, several=several): event for event in _events(samples)}
        apart = max(found.values(), key=lambda one: -1.0 if math.isnan(one.r_hat) else one.r_hat)
        least = min(found.values(), key=lambda one: min(one.ess_bulk, one.ess_tail))
        for one in dict.fromkeys((apart, least)):
            title = one.name if several else f"{one.name} = 1"
            rows.append((f"P({title})", *_numbers(samples.marginal(*known[one.name])), *_evidence(one)))
    if samples.log_z is not None:
        rows.append(("log Z", *_numbers(samples.log_z), "", "", ""))
    return rows


def marginals(samples: Samples, top: int) -> tuple[list[tuple[str, ...]], str]:
    """The titles and rows of a table of `top` marginals, those nearest to 1/2 first, and how many of how many."""
    if samples.num_values is None:
        titles, what = ("variable", "P(x = 1)", "error"), "variables"
        found = [(str(label), one) for label, one in samples.marginals.items()]
    else:
        titles, what = ("variable and value", "P", "error"), "probabilities"
        found = [(f"{label} = {value}", samples.marginals[label][value]) for label, value in _events(samples)]
    found.sort(key=lambda row: abs(row[1].mean - 0.5))
    rows: list[tuple[str, ...]] = [titles, *((title, *_numbers(one)) for title, one in found[:top])]
    return rows, "all" if len(found) <= top else f"the {top} of {len(found):,} {what} nearest to 1/2"


def _events(samples: Samples) -> list[tuple[Hashable, int]]:
    """Labels and values whose probabilities determine all marginals."""
    events = Events.of(samples.counts)
    return [(samples.labels[place], events.values[k]) for place, k in np.argwhere(events.counted).tolist()]


def played(samples: Samples) -> str:
    """The number of draws, the method, and why it was chosen."""
    chosen = f" ({samples.chosen})" if samples.chosen else ""
    how = ", ".join(f"{name} {value}" for name, value in samples.how.items())
    return f"{len(samples):,} draws by {samples.method}{chosen}: {how}"


def _numbers(found: Estimate) -> tuple[str, str]:
    """A mean to the digit of its error, and the error."""
    if found.error == 0:
        return f"{found.mean:.10g}", "exact"
    if math.isnan(found.error):
        return f"{found.mean:.10g}", "unknown: all draws agree"
    if not math.isfinite(found.error):
        return f"{found.mean:.6g}", "unknown"
    digits = min(12, max(0, 1 - math.floor(math.log10(found.error))))
    return f"{found.mean:,.{digits}f}", f"{found.error:,.{digits}f}"


def _evidence(found: Diagnostic) -> tuple[str, str, str]:
    r_hat = "" if math.isnan(found.r_hat) else f"{found.r_hat:.3f}"
    return r_hat, f"{found.ess_bulk:,.0f}", f"{found.ess_tail:,.0f}"


_MOST_MARGINALS = 100


class Run(NamedTuple):
    """One problem's draws; `given` is information about the problem's source, as (title, text)."""

    samples: Samples
    given: tuple[tuple[str, str], ...] = ()
    read_s: float = 0.0


def write_report(path: Path, runs: Iterable[Run], command: str, note: str = "") -> Path:
    """Writes a page with a section for each run, atomically; InputError without matplotlib or where it cannot."""
    runs = list(runs)
    title = runs[0].samples.name if len(runs) == 1 else f"{len(runs)} problems"
    return write_page(path, title, (_section(number, run) for number, run in enumerate(runs)), command, note)


def seconds(run: Run) -> dict[str, float]:
    """How the time was spent."""
    spent = run.samples.seconds
    parts = {"compiling": "compile_s", "drawing": "draw_s", "evidence": "evaluate_s"}
    return {"reading": run.read_s} | {words: spent[name] for words, name in parts.items()}


def _section(number: int, run: Run) -> str:
    samples = run.samples
    good = "good" if samples.reliable else "bad"
    (titles, *rows), which = marginals(samples, _MOST_MARGINALS)
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in samples.notes)
    return f"""<section>
<h1>{KINDS[samples.kind].title}: {html.escape(samples.name)} at temperature {samples.temperature:g}</h1>
<p class="answer">Mean value <strong>{html.escape(str(samples.mean()))}</strong><br>
<span class="{good}">{"✓" if samples.reliable else "✗"} {html.escape(str(samples.verdict))}</span></p>
{notes}
{side_by_side(number, _plots(samples))}
<h2>Estimates and evidence</h2>
{table(estimates(samples), ESTIMATES)}
<h2>How it was sampled</h2>
{table([*run.given, *_settings(run)])}
<h2>Marginals</h2>
<details><summary>{which}</summary>{table(rows, titles)}</details>
</section>"""


def _plots(samples: Samples):
    shown = [
        ("traces", paint_traces, "Values by draw; chains that agree cover the same band."),
        ("values", paint_values, "The distribution of values."),
        ("overlaps", paint_overlaps, "Overlap of draws with different starts; several peaks mean several modes."),
        ("marginals", paint_marginals, "All marginals in increasing order, with two standard errors."),
    ]
    if samples.ladder is not None:
        shown += [
            ("swaps", paint_swaps, "Acceptance of swaps; equal bars are best."),
            ("barrier", paint_barrier, "Cumulative rejection rate; where the curve is steep, tempering is slow."),
            ("trips", paint_round_trips, "Round trips between the hottest and the coldest temperature."),
        ]
    for name, paint, caption in shown:
        yield name, lambda figure, paint=paint: paint(samples, figure.subplots()), caption


def _settings(run: Run) -> list[tuple[str, str]]:
    samples = run.samples
    most = samples.counts.max()
    values = "-1 and 1" if samples.spins else "0 and 1" if most == 2 else f"from 0 to at most {most - 1}"
    return [
        ("variables", f"{len(samples.labels):,}, each {values}"),
        ("sense", "maximise" if samples.maximise else "minimise"),
        ("draws", played(samples)),
        ("seconds", ", ".join(f"{value:.2f} {words}" for words, value in seconds(run).items())),
        ("seed", str(samples.seed)),
    ]
