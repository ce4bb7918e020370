"""A report on draws: the verdict, estimates with their evidence, and plots of the chains."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sl_discs.experiment.figures import side_by_side, table, write_page
from sl_discs.models.kinds import KINDS
from sl_discs.sampling import plots, tables
from sl_discs.sampling.samples import Samples

_MOST_MARGINALS = 100


class Run(NamedTuple):
    """One problem's draws.

    Attributes:
      samples: of `sl_discs.sample`.
      given: information about the problem's source, as (title, text).
      read_s: seconds that reading it took.
    """

    samples: Samples
    given: tuple[tuple[str, str], ...] = ()
    read_s: float = 0.0


def write_report(path: Path, runs: Iterable[Run], command: str, note: str = "") -> Path:
    """Writes the page atomically.

    Args:
      path: of the .html file.
      runs: one section for each.
      command: the command that repeats the run.
      note: a remark on the whole run.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
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
    (titles, *rows), which = tables.marginals(samples, _MOST_MARGINALS)
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in samples.notes)
    return f"""<section>
<h1>{KINDS[samples.kind].title}: {html.escape(samples.name)} at temperature {samples.temperature:g}</h1>
<p class="answer">Mean value <strong>{html.escape(str(samples.mean()))}</strong><br>
<span class="{good}">{"✓" if samples.reliable else "✗"} {html.escape(str(samples.verdict))}</span></p>
{notes}
{side_by_side(number, _plots(samples))}
<h2>Estimates and evidence</h2>
{table(tables.estimates(samples), tables.ESTIMATES)}
<h2>How it was sampled</h2>
{table([*run.given, *_settings(run)])}
<h2>Marginals</h2>
<details><summary>{which}</summary>{table(rows, titles)}</details>
</section>"""


def _plots(samples: Samples):
    shown = [
        ("traces", plots.paint_traces, "Values by draw; chains that agree cover the same band."),
        ("values", plots.paint_values, "The distribution of values."),
        (
            "overlaps",
            plots.paint_overlaps,
            "Overlap of draws with different starts; several peaks mean several modes.",
        ),
        (
            "marginals",
            plots.paint_marginals,
            "All marginals in increasing order, with two standard errors.",
        ),
    ]
    if samples.ladder is not None:
        shown += [
            ("swaps", plots.paint_swaps, "Acceptance of swaps; equal bars are best."),
            (
                "barrier",
                plots.paint_barrier,
                "Cumulative rejection rate; where the curve is steep, tempering is slow.",
            ),
            ("trips", plots.paint_round_trips, "Round trips between the hottest and the coldest temperature."),
        ]
    for name, paint, caption in shown:
        yield name, functools.partial(_on_one, paint, samples), caption


def _on_one(paint, samples: Samples, figure) -> None:
    paint(samples, figure.subplots())


def _settings(run: Run) -> list[tuple[str, str]]:
    samples = run.samples
    most = samples.counts.max()
    values = "-1 and 1" if samples.spins else "0 and 1" if most == 2 else f"from 0 to at most {most - 1}"
    return [
        ("variables", f"{len(samples.labels):,}, each {values}"),
        ("sense", "maximise" if samples.maximise else "minimise"),
        ("draws", tables.played(samples)),
        ("seconds", ", ".join(f"{value:.2f} {words}" for words, value in seconds(run).items())),
        ("seed", str(samples.seed)),
    ]
