"""What a finished experiment says to a reader: the summary that it prints, and its figure."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sl_discs.experiment.figures import COLOURS, save_figure
from sl_discs.experiment.published import CHAIN_LENGTH, PublishedRow, published_row
from sl_discs.experiment.record import (
    ExperimentRecord,
    SamplerRecord,
    Spread,
    best_values,
    paired_differences,
    percent_of_reference,
    references,
    sl_pairs,
)
from sl_discs.localization.method import NOT_LOCALIZED, not_localized_note
from sl_discs.terminal import aligned

# Columns of the summary, except for file paths, and of the names of samplers.
WIDTH, _NAME_WIDTH = 100, 22


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
    dataset, settings = record.dataset, record.settings
    chains = f"{settings.batch_size:,} an instance, {settings.chain_length:,} steps each, seed {settings.seed}"
    return [
        f"{dataset.name}: {record.kind.problem}, {count} instance{'s' if count > 1 else ''}",
        *wrapped("instances", f"{dataset.source} ({dataset.detail})"),
        *wrapped("chains", chains),
        *wrapped("ran on", f"{record.device}, engine {record.engine}"),
    ]


def _quality(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "mean +- std", "se", "at log steps", "% of reference", "published"]]
    rows += [_quality_row(record, name, sampler) for name, sampler in record.samplers.items()]
    title = (
        f"Best {record.kind.unit} of each instance, verified: mean +- standard deviation over "
        "instances (divisor n), se the mean's standard error. 'at log steps': only states at logged steps "
        "count, as in DISCS."
    )
    return [*textwrap.wrap(title, WIDTH), *aligned(_without_empty_columns(rows))]


def _quality_row(record: ExperimentRecord, name: str, sampler: SamplerRecord) -> list[str]:
    spread = Spread.of(best_values(sampler))
    percent = percent_of_reference(sampler)
    published = _published(record, name)
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
                f"{sampler.run_s:.2f}",
            ]
        )
    return aligned(rows)


def _pairs(record: ExperimentRecord) -> list[str]:
    differences, points = paired_differences(record), paired_differences(record, percent_of_reference)
    if not differences:
        return []
    rows = [["pair", f"{record.kind.unit} +- se", "n", "% points +- se", "published"]]
    for (sl_name, name), (pair, spread) in zip(sl_pairs(record), differences.items(), strict=True):
        localized, base = (_published(record, key) for key in (sl_name, name))
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
    notes = [not_localized_note(names), *_published_notes(record)] if names else _published_notes(record)
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]


def _published(record: ExperimentRecord, name: str) -> PublishedRow | None:
    """The paper's result of a sampler on this dataset, whose graphs have no weights of nodes; None without one."""
    return None if record.weighted else published_row(record.dataset.name, name)


def _published_notes(record: ExperimentRecord) -> list[str]:
    if not any(_published(record, name) for name in record.samplers):
        return []
    notes = [
        f"published: ICML 2025 paper, {record.kind.compared_unit}, mean +- standard deviation over "
        "instances; a published difference is that of the means, the paper gives no error for it."
    ]
    if record.dataset.source == "generated":
        notes.append(
            "These instances were generated; the published numbers were measured on other graphs of the same family."
        )
    in_percent = record.kind.in_percent
    if in_percent and any(percent_of_reference(one) is None for one in record.samplers.values()):
        notes.append("Not every instance has a reference: the published percentages have no counterpart.")
    if record.settings.chain_length != CHAIN_LENGTH:
        notes.append(
            f"This run took {record.settings.chain_length:,} steps a chain, the published ones {CHAIN_LENGTH:,}: "
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


def wrapped(label: str, text: str) -> list[str]:
    """The lines of a labelled entry of a header."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    kept = [any(column[1:]) for column in zip(*rows, strict=True)]
    return [[cell or "-" for cell, keep in zip(row, kept, strict=True) if keep] for row in rows]


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


# The figure of a run: how the best state improves as the temperature falls.

# The first logged values can lie thousands below; the panel shows at most this part of the final value.
_SHOWN_BELOW_END = 0.15


def draw_trajectories(record: ExperimentRecord, path: str | Path) -> Path:
    """Draws each sampler's running best, and the temperature.

    Problems that are compared in per cent of the reference are drawn in per cent if every instance has a reference.
    The PNG file is written atomically; InputError without matplotlib.
    """
    kind, samplers = record.kind, record.samplers
    in_percent = kind.in_percent and all(references(sampler) is not None for sampler in samplers.values())
    unit = kind.compared_unit if in_percent else kind.unit
    # A base sampler and its SL variant share a colour; the base is dashed.
    bases = list(dict.fromkeys(name.removeprefix("sl_") for name in samplers))
    colours = {name: COLOURS[bases.index(name.removeprefix("sl_")) % len(COLOURS)] for name in samplers}
    count = len(next(iter(samplers.values())).instances)

    def paint(figure):
        best, temperature = figure.subplots(2, sharex=True, height_ratios=(4, 1))
        title = f"{record.dataset.name}: mean ± standard error over {count} instance{'s' if count > 1 else ''}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        _draw_best(best, record, colours, in_percent)
        best.set_ylabel(f"running best ({unit})")
        temperature.plot(record.logged_steps, record.temperature, color="0.35", linewidth=1.1)
        temperature.set(xlabel="MCMC step", ylabel="temp.", xlim=(0, record.logged_steps[-1]))
        temperature.set_ylim(bottom=0)

    return save_figure(path, (5.4, 3.6), paint)


def _draw_best(axes, record: ExperimentRecord, colours: Mapping[str, str], in_percent: bool) -> None:
    kind = record.kind
    means, top = [], -np.inf  # times the sign, so that the best is at the top
    for name, sampler in record.samplers.items():
        divisors = references(sampler)
        values = 100.0 * sampler.trajectory / divisors if in_percent and divisors is not None else sampler.trajectory
        count, mean = values.shape[1], values.mean(axis=1)
        error = values.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count)
        means.append(kind.sign * mean)
        top = max(top, np.max(kind.sign * mean + error))
        line = "-" if name.startswith("sl_") else (0, (4, 2))
        axes.plot(record.logged_steps, mean, label=name, color=colours[name], linestyle=line)
        band = mean - error, mean + error
        axes.fill_between(record.logged_steps, *band, color=colours[name], alpha=0.2, linewidth=0)
    lowest_end = min(mean[-1] for mean in means)
    bottom = max(lowest_end - _SHOWN_BELOW_END * abs(lowest_end), np.min(means))
    margin = 0.08 * (top - bottom) or 1.0
    axes.set_ylim(sorted((kind.sign * (bottom - margin), kind.sign * (top + margin))))
    axes.tick_params(labelbottom=False)
    place = "lower right" if kind.maximise else "upper right"
    axes.legend(loc=place, framealpha=0.8, edgecolor="none", handlelength=1.8)
