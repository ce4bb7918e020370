"""What a finished experiment says: the summary that it prints, beside the paper's numbers, and its
figure.
"""

from __future__ import annotations

import functools
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sl_discs.experiment.record import (
    ExperimentRecord,
    Spread,
    best_values,
    paired_differences,
    percent_of_reference,
    references,
)
from sl_discs.instances.dataset import find_family
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import NOT_LOCALIZED, method_fields, not_localized_note
from sl_discs.samplers.registry import PAPER_NAMES
from sl_discs.support.figures import COLOURS, new_figure, save_figure
from sl_discs.support.terminal import aligned

# The numbers of the ICML 2025 paper: means and standard deviations over instances, of the set size
# for MIS, and of the percentage of the instance's reference for MaxCut and MaxClique.

# The paper's names of samplers, such as `SL-PAS` of `sl_path_auxiliary`.
PUBLISHED_NAMES = {own: paper for paper, own in PAPER_NAMES.items()}
# Number of instances below which the standard error of a mean is itself too uncertain.
FEWEST = 8


class PublishedRow(NamedTuple):
    """One entry of the paper's tables: mean and standard deviation over instances."""

    mean: float
    std: float


def published_row(dataset_name: str, sampler_name: str, setting: str = "") -> PublishedRow | None:
    """Returns the paper's result of a sampler on a dataset such as `mis/er_density/r-0.10`, or None
    if there is none.

    With a setting such as `GEOM(2,1)` or `sigma=5`, of an `sl_` sampler, it is that of the
    ablation.
    """
    table = published_tables()["ablation" if setting else "main"].get(dataset_name, {})
    row = (table.get(setting, {}) if setting else table).get(PUBLISHED_NAMES.get(sampler_name))
    return None if row is None else PublishedRow(row["mean"], row["std"])


def published_cells() -> int:
    """Returns the number of entries of the paper's main table."""
    return sum(map(len, published_tables()["main"].values()))


@functools.cache
def published_tables() -> dict[str, Any]:
    """Returns the tables by name: `main`, `ablation` and `runtime_seconds`, each by dataset.

    `settings` has, by problem and graph type, the fields of the configs of these experiments.
    """
    text = (
        resources.files("sl_discs.experiment")
        .joinpath("published_icml2025.json")
        .read_text(encoding="utf-8")
    )
    return json.loads(text)


def other_than_published(
    dataset: Dataset, count: int, stride: int, fields: Mapping[str, Any]
) -> list[str]:
    """Returns in words what makes a run another experiment than the paper's.

    Args:
      dataset: the instances of a set.
      count: how many of them ran.
      stride: their distance in the set.
      fields: fields of the experiment and model configs that should be those of the paper.
    """
    names = dataset.name.split("/")
    usual = published_tables()["settings"].get("/".join(names[:2]), {})
    lines = [
        f"{name}={value}, not {usual[name]}"
        for name, value in fields.items()
        if value != usual.get(name, value)
    ]
    if count < FEWEST:
        lines.append(f"{count} instances, fewer than {FEWEST}")
    # Graphs of a set that is not random are often sorted by size.
    if find_family(*names).generator is None and count * stride <= 0.9 * dataset.total:
        lines.append("instances of a part of the set")
    return lines


# Columns of the summary, except for file paths and tables with long names.
WIDTH = 100


def format_summary(
    record: ExperimentRecord, paths: Mapping[str, Path] | None = None, resumed: str = ""
) -> str:
    """The run, one row per sampler, SL minus base in pairs, the published numbers, and the paths of
    the files.

    Args:
      record: the finished experiment.
      paths: saved files, name to path, as `write_results` returns them.
      resumed: what the run has taken from checkpoints, in words; empty: nothing.
    """
    drawn = record.dataset.origin is not None
    blocks = (
        _header(record, resumed),
        _draws(record) if drawn else _quality(record),
        _cost(record),
        [] if drawn else _pairs(record),
        _notes(record),
        _saved(paths),
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _header(record: ExperimentRecord, resumed: str) -> list[str]:
    dataset = record.dataset
    settings = record.settings
    entries = {
        "instances": f"{dataset.source} ({dataset.detail})",
        "chains": f"{settings.batch_size:,} an instance, {settings.chain_length:,} steps each, "
        f"seed {settings.seed}",
        "ran on": f"{record.device}, engine {record.engine}",
    }
    if changed := [
        f"{name} with {changes}" for name in record.samplers if (changes := _changes(record, name))
    ]:
        entries["settings"] = "; ".join(changed)
    lines = [f"{dataset.name}: {record.kind.problem}, {_instances(record)}"]
    for label, text in entries.items():
        lines += textwrap.wrap(
            text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12
        )
    return lines + textwrap.wrap(resumed, WIDTH)


def _instances(record: ExperimentRecord) -> str:
    count = len(next(iter(record.samplers.values())).instances)
    return f"{count} instance{'s' if count > 1 else ''}"


def _quality(record: ExperimentRecord) -> list[str]:
    rows = [
        ["sampler", "mean +- std", "se", "at log steps", "% of reference", "published", "feasible"]
    ]
    for name, sampler in record.samplers.items():
        spread = Spread.of(best_values(sampler))
        percent = percent_of_reference(sampler)
        logged = np.mean([instance.best_logged for instance in sampler.instances])
        published = _shown(record, name)
        rows.append(
            [
                name,
                _plus_minus(spread.mean, spread.std),
                "-" if spread.se is None else _number(spread.se),
                _number(float(logged)),
                "" if percent is None else _plus_minus(percent.mean(), percent.std()),
                "" if published is None else _plus_minus(*published[0]),
                f"{sum(instance.feasible for instance in sampler.instances)}/"
                f"{len(sampler.instances)}",
            ]
        )
    title = (
        f"Best {record.kind.unit} of each instance, verified: mean +- standard deviation over "
        "instances (divisor n), se the mean's standard error. 'at log steps': only states at "
        "logged steps count, as in DISCS."
    )
    return [*textwrap.wrap(title, WIDTH), *_table(rows)]


def _draws(record: ExperimentRecord) -> list[str]:
    titles = "a chain, DISCS", "a 1,000 steps", "a second", "of f", "a 1,000 steps", "a second"
    rows = [["ESS", *titles, "R-hat", "mean of f"]]
    for name, sampler in record.samplers.items():
        shown = functools.partial(_known, sampler.instances[0].draws)
        rows.append(
            [
                name,
                f"{shown('discs_ess', '.4g')} +- {shown('discs_ess_se', '.2g')}",
                shown("discs_ess_a_step", ".3g", 1_000),
                shown("discs_ess_a_second", ",.3g"),
                shown("ess", ",.4g"),
                shown("ess_a_step", ".3g", 1_000),
                shown("ess_a_second", ",.3g"),
                shown("r_hat", ".3f"),
                f"{shown('f_mean', '.6g')} +- {shown('f_mean_se', '.2g')}",
            ]
        )
    title = (
        "Effective draws in the second half of the steps, each of which is recorded, whatever "
        "log_every_steps says. DISCS: of the distance to one random state, chain by chain; mean "
        "+- standard error over chains. Of f: of all chains; ? where all values of f agree, which "
        "tells nothing. A localized chain is worth one draw a run, as its target changes from "
        "level to level: neither DISCS's number nor R-hat has a meaning there."
    )
    return [*textwrap.wrap(title, WIDTH), *_table(rows)]


def _known(draws: Mapping[str, float | None], name: str, form: str, times: int = 1) -> str:
    value = draws[name]
    return "?" if value is None else format(times * value, form)


def _cost(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "acceptance", "hops a step", "chain-steps/s", "compile s", "run s"]]
    for name, sampler in record.samplers.items():
        rows.append(
            [
                name,
                f"{np.mean(sampler.acceptance):.3f}",
                f"{np.mean(sampler.hops):.2f}",
                f"{sampler.chain_steps_per_s:,.0f}",
                f"{sampler.compile_s:.1f}",
                f"{sampler.run_s:.2f}",
            ]
        )
    return _table(rows)


def _pairs(record: ExperimentRecord) -> list[str]:
    differences = paired_differences(record)
    points = paired_differences(record, percent_of_reference)
    if not differences:
        return []
    rows = [["pair", f"{record.kind.unit} +- se", "n", "% points +- se", "published"]]
    for pair, spread in differences.items():
        published = _shown(record, *pair)
        rows.append(
            [
                " - ".join(pair),
                _signed(spread),
                str(spread.n),
                _signed(points[pair]) if pair in points else "",
                "" if published is None else f"{published[0].mean - published[1].mean:+.3f}",
            ]
        )
    title = "SL minus its base, instance by instance: mean +- standard error over n instances."
    return [title, *_table(rows)]


def _published(record: ExperimentRecord, name: str) -> PublishedRow | None:
    """Returns the paper's result of a sampler on this dataset; None without one, or where weights
    of nodes count.
    """
    weighted = any(
        record.kind.counted(graph).node_weights is not None for graph in record.dataset.graphs
    )
    return None if weighted else published_row(record.dataset.name, name)


def _changes(record: ExperimentRecord, name: str) -> str:
    usual = method_fields(name)
    fields = usual | record.config["samplers"][name]
    return ", ".join(f"{field}={fields[field]}" for field in usual if fields[field] != usual[field])


def _differences(record: ExperimentRecord, name: str) -> list[str]:
    sampler = record.samplers[name]
    fields = record.config["experiment"] | record.config["model"]
    count = len(sampler.instances)
    lines = other_than_published(record.dataset, count, record.settings.instance_stride, fields)
    if record.kind.in_percent and percent_of_reference(sampler) is None:
        lines.append("not every instance has a reference")
    if changes := _changes(record, name):
        lines.append(f"{name} with {changes}")
    return lines


def _shown(record: ExperimentRecord, *names: str) -> list[PublishedRow] | None:
    """Returns the paper's results of samplers; None unless each has one of the same experiment."""
    rows = [
        row
        for name in names
        if (row := _published(record, name)) and not _differences(record, name)
    ]
    return rows if len(rows) == len(names) else None


def _notes(record: ExperimentRecord) -> list[str]:
    names = [name for name, sampler in record.samplers.items() if sampler.final_is == NOT_LOCALIZED]
    notes = [not_localized_note(names)] if names else []
    if any(_shown(record, name) for name in record.samplers):
        notes.append(
            f"published: ICML 2025 paper, {record.kind.compared_unit}, mean +- standard "
            "deviation over instances; a published difference is that of the means, the paper "
            "gives no error for it."
        )
        if record.dataset.generated:
            notes.append(
                "These instances were generated; the published numbers were measured on other "
                "graphs of the same family."
            )
    known = [name for name in record.samplers if _published(record, name)]
    if differing := dict.fromkeys(
        difference for name in known for difference in _differences(record, name)
    ):
        notes.append(f"Not the published experiment: {'; '.join(differing)}.")
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]


def _saved(paths: Mapping[str, Path] | None) -> list[str]:
    if not paths:
        return []
    folder = paths["results.json"].parent
    names = ", ".join(str(path.relative_to(folder)) for path in paths.values())
    return [
        f"saved in {folder}:",
        *textwrap.wrap(names, WIDTH, initial_indent="  ", subsequent_indent="  "),
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table, titles first, without columns in which every cell is empty."""
    kept = [any(column[1:]) for column in zip(*rows, strict=True)]
    return aligned(
        [[cell or "-" for cell, keep in zip(row, kept, strict=True) if keep] for row in rows]
    )


def _number(value: float) -> str:
    if abs(value) < 1e4:
        return f"{value:.3f}"
    return f"{value:,.1f}" if abs(value) < 1e8 else f"{value:.6g}"


def _plus_minus(mean: float, deviation: float) -> str:
    return f"{_number(mean)} +- {_number(deviation)}"


def _signed(spread: Spread) -> str:
    sign = "+" if spread.mean >= 0 else ""
    return f"{sign}{_number(spread.mean)} +- {'?' if spread.se is None else _number(spread.se)}"


# The figure of a run: how the best state improves as the temperature falls.

# The first logged values can lie thousands below; the panel shows at most this part of the final
# value.
_SHOWN_BELOW_END = 0.15


_SIZE = 5.4, 3.6


def plot_trajectories(record: ExperimentRecord, path: str | os.PathLike | None = None):
    """Returns a matplotlib figure of each sampler's running best, and of the temperature.

    With a path it is written there instead, as a PNG file, atomically. A dot at the end is the mean
    verified best of the table, in which no penalty counts, and a band the standard error of the
    distance to the best value of each instance. Problems that are compared in per cent
    of the reference are drawn in per cent if every instance has a reference. InputError without
    matplotlib.
    """
    paint = functools.partial(_paint, record)
    return new_figure(_SIZE, paint) if path is None else save_figure(Path(path), _SIZE, paint)


def _paint(record: ExperimentRecord, figure) -> None:
    kind = record.kind
    samplers = record.samplers
    in_percent = kind.in_percent and all(
        references(sampler) is not None for sampler in samplers.values()
    )
    unit = kind.compared_unit if in_percent else kind.unit
    # A base sampler and its SL variant share a colour; the base is dashed.
    bases = list(dict.fromkeys(name.removeprefix("sl_") for name in samplers))
    colours = {
        name: COLOURS[bases.index(name.removeprefix("sl_")) % len(COLOURS)] for name in samplers
    }

    best, temperature = figure.subplots(2, sharex=True, height_ratios=(4, 1))
    title = f"{record.dataset.name}: mean over {_instances(record)}\n"
    title += "band: standard error of the distance to each instance's best"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    _draw_best(best, record, colours, in_percent)
    best.set_ylabel(f"running best{' less penalties' if kind.penalty else ''}\n({unit})")
    courses = {tuple(sampler.temperature): name for name, sampler in samplers.items()}
    for course, name in courses.items():
        colour = "0.35" if len(courses) == 1 else colours[name]
        temperature.plot(record.logged_steps, course, color=colour, linewidth=1.1)
    temperature.set(xlabel="MCMC step", ylabel="temp.", xlim=(0, record.logged_steps[-1]))
    temperature.set_ylim(bottom=0)


def _draw_best(
    axes, record: ExperimentRecord, colours: Mapping[str, str], in_percent: bool
) -> None:
    kind = record.kind
    trajectories, finals = {}, {}
    for name, sampler in record.samplers.items():
        scale = 100.0 / np.asarray(references(sampler)) if in_percent else 1.0
        trajectories[name] = scale * sampler.trajectory
        finals[name] = scale * best_values(sampler)
    best = kind.sign * np.max([kind.sign * final for final in finals.values()], axis=0)
    means, ends, top = [], [], -np.inf  # times the sign, so that the best is at the top
    for name, values in trajectories.items():
        count = values.shape[1]
        mean = values.mean(axis=1)
        # Instances differ in size more than samplers do in quality.
        behind = values - best
        error = behind.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count)
        means.append(kind.sign * mean)
        top = max(top, np.max(kind.sign * mean + error))
        line = "-" if name.startswith("sl_") else (0, (4, 2))
        axes.plot(record.logged_steps, mean, label=name, color=colours[name], linestyle=line)
        end = np.mean(finals[name])
        ends.append(kind.sign * end)
        # A base's dot is a ring, so that neither hides the other.
        dot = {"ms": 4} if name.startswith("sl_") else {"ms": 7, "mfc": "none"}
        axes.plot(record.logged_steps[-1], end, "o", color=colours[name], clip_on=False, **dot)
        band = mean - error, mean + error
        axes.fill_between(record.logged_steps, *band, color=colours[name], alpha=0.2, linewidth=0)
    # Of a sampler that never leaves its penalties, only the dot may be in the panel.
    lowest_end = min(ends)
    top = max(top, *ends)
    bottom = max(lowest_end - _SHOWN_BELOW_END * abs(lowest_end), np.min(means))
    margin = 0.08 * (top - bottom) or 1.0
    axes.set_ylim(sorted((kind.sign * (bottom - margin), kind.sign * (top + margin))))
    axes.tick_params(labelbottom=False)
    location = "lower right" if kind.maximise else "upper right"
    axes.legend(loc=location, framealpha=0.8, edgecolor="none", handlelength=1.8)
