"""The summary that a run prints at its end: plain text of at most 100 columns, except for file paths."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sl_discs.experiment.record import ExperimentRecord, SamplerRecord
from sl_discs.localization.method import NOT_LOCALIZED, not_localized_note
from sl_discs.models.kinds import graph_kind
from sl_discs.results.paired import paired_differences, paired_percent_differences, sl_pairs
from sl_discs.results.published import CHAIN_LENGTH, published_row
from sl_discs.results.summary import Spread, best_values, percent_of_reference

WIDTH = 100

_NAME_WIDTH = 22


def format_summary(record: ExperimentRecord, paths: Mapping[str, Path] | None = None, resumed: str = "") -> str:
    """The run, one row per sampler, SL minus base in pairs, the published numbers, and the paths of the files.

    Args:
      record: the finished experiment.
      paths: saved files, name to path, as `write_results` returns them.
      resumed: what the run has taken from checkpoints, in words; empty: nothing.

    Raises:
      InputError: paired samplers have different instances.
    """
    continued = textwrap.wrap(resumed, WIDTH)
    blocks = [_header(record) + continued, _quality(record), _cost(record), _pairs(record), _notes(record)]
    blocks.append(saved(paths or {}))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _header(record: ExperimentRecord) -> list[str]:
    count = len(next(iter(record.samplers.values())).instances)
    problem = graph_kind(record.problem).problem
    chains = f"{record.num_chains:,} an instance, {_chain_length(record):,} steps each, seed {record.seed}"
    return [
        f"{record.dataset}: {problem}, {count} instance{'s' if count > 1 else ''}",
        *wrapped("instances", f"{record.source} ({record.source_detail})"),
        *wrapped("chains", chains),
        *wrapped("ran on", f"{record.device}, engine {record.engine}"),
    ]


def _quality(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "mean +- std", "se", "at log steps", "% of reference", "published"]]
    rows += [_quality_row(record, name, sampler) for name, sampler in record.samplers.items()]
    title = (
        f"Best {graph_kind(record.problem).unit} of each instance, verified: mean +- standard deviation over "
        "instances (divisor n), se the mean's standard error. 'at log steps': only states at logged steps "
        "count, as in DISCS."
    )
    return [*textwrap.wrap(title, WIDTH), *aligned(_without_empty_columns(rows))]


def _quality_row(record: ExperimentRecord, name: str, sampler: SamplerRecord) -> list[str]:
    spread = Spread.of(best_values(sampler))
    percent = percent_of_reference(sampler)
    published = published_row(record.dataset, name)
    return [
        _short(name),
        _plus_minus(spread.mean, spread.std),
        "-" if spread.se is None else _number(spread.se),
        _number(float(np.mean([instance.best_logged for instance in sampler.instances]))),
        "" if percent is None else _plus_minus(float(percent.mean()), float(percent.std())),
        "" if published is None else _plus_minus(published.mean, published.std),
    ]


def _cost(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "feasible", "acceptance", "hops a step", "chain-steps/s", "compile s", "run s"]]
    for name, sampler in record.samplers.items():
        feasible = sum(instance.feasible for instance in sampler.instances)
        rows.append(
            [
                _short(name),
                f"{feasible}/{len(sampler.instances)}",
                f"{np.mean(sampler.acceptance):.3f}",
                f"{np.mean(sampler.hops):.2f}",
                f"{sampler.chain_steps_per_s:,.0f}",
                f"{sampler.compile_s:.1f}",
                f"{sampler.run_s:.1f}",
            ]
        )
    return aligned(rows)


def _pairs(record: ExperimentRecord) -> list[str]:
    differences, points = paired_differences(record), paired_percent_differences(record)
    if not differences:
        return []
    rows = [["pair", f"{graph_kind(record.problem).unit} +- se", "n", "% points +- se", "published"]]
    for (sl_name, name), (pair, spread) in zip(sl_pairs(record), differences.items(), strict=True):
        localized, base = (published_row(record.dataset, key) for key in (sl_name, name))
        rows.append(
            [
                f"{_short(sl_name)} - {_short(name)}",
                _signed(spread),
                str(spread.n),
                _signed(points[pair]) if pair in points else "",
                "" if localized is None or base is None else f"{localized.mean - base.mean:+.3f}",
            ]
        )
    title = "SL minus its base, instance by instance: mean +- standard error over n instances."
    return [title, *aligned(_without_empty_columns(rows))]


def _notes(record: ExperimentRecord) -> list[str]:
    names = [name for name, sampler in record.samplers.items() if sampler.final_is == NOT_LOCALIZED]
    notes = [*map(not_localized_note, names), *_published_notes(record)]
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]


def _published_notes(record: ExperimentRecord) -> list[str]:
    if not any(published_row(record.dataset, name) for name in record.samplers):
        return []
    notes = [
        f"published: ICML 2025 paper, {graph_kind(record.problem).compared_unit}, mean +- standard deviation over "
        "instances; a published difference is that of the means, the paper gives no error for it."
    ]
    if record.source == "generated":
        notes.append(
            "These instances were generated; the published numbers were measured on other graphs of the same family."
        )
    in_percent = graph_kind(record.problem).in_percent
    if in_percent and any(percent_of_reference(one) is None for one in record.samplers.values()):
        notes.append("Not every instance has a reference: the published percentages have no counterpart.")
    if _chain_length(record) != CHAIN_LENGTH:
        notes.append(
            f"This run took {_chain_length(record):,} steps a chain, the published ones {CHAIN_LENGTH:,}: "
            "the two are not the same experiment."
        )
    return notes


def saved(paths: Mapping[str, Path]) -> list[str]:
    """The block with the paths of saved files; empty if there are none."""
    if not paths:
        return []
    folder = os.path.commonpath([Path(path).parent for path in paths.values()])
    names = [str(Path(path).relative_to(folder)) for path in paths.values()]
    lines = textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return [f"saved in {folder}:", *lines]


def _chain_length(record: ExperimentRecord) -> int:
    configured = record.config.get("experiment", {}).get("chain_length")
    return int(record.logged_steps[-1]) if configured is None else int(configured)


def wrapped(label: str, text: str) -> list[str]:
    """The lines of a labelled entry of a header."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    kept = [any(column[1:]) for column in zip(*rows, strict=True)]
    return [[cell or "-" for cell, keep in zip(row, kept, strict=True) if keep] for row in rows]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of one table as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells))
    return lines


def _short(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "~"


def _number(value: float) -> str:
    if abs(value) < 1e4:
        return f"{value:.3f}"
    return f"{value:,.1f}" if abs(value) < 1e8 else f"{value:.6g}"


def _plus_minus(mean: float, deviation: float) -> str:
    return f"{_number(mean)} +- " + (f"{deviation:.2f}" if deviation < 1e4 else _number(deviation))


def _signed(spread: Spread) -> str:
    sign = "+" if spread.mean >= 0 else ""
    return f"{sign}{_number(spread.mean)} +- {'?' if spread.se is None else _number(spread.se)}"
