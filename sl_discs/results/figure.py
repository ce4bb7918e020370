"""The figure of a run: how the best state improves as the temperature falls, and where each sampler ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.record import ExperimentRecord, SamplerRecord
from sl_discs.models.kinds import graph_kind
from sl_discs.results.canvas import COLOURS, save_figure
from sl_discs.results.published import published_row
from sl_discs.results.summary import (
    Spread,
    best_values,
    percent_of_reference,
    references,
)

# The first logged values can lie thousands below; the panel shows at most this part of the final value.
_SHOWN_BELOW_END = 0.15


def draw_trajectories(record: ExperimentRecord, path: str | Path) -> Path:
    """Draws each sampler's running best, the temperature, and the final values beside the published ones.

    Problems that are compared in per cent of the reference are drawn in per cent if every instance has a reference.

    Args:
      record: the finished experiment.
      path: the PNG file to write, atomically.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """

    def paint(figure):
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2), height_ratios=(4, 1))
        best = figure.add_subplot(grid[0, 0])
        temperature = figure.add_subplot(grid[1, 0], sharex=best)
        final = figure.add_subplot(grid[:, 1])
        count = len(next(iter(record.samplers.values())).instances)
        title = f"{record.dataset}: mean ± standard error over {count} instance{'s' if count > 1 else ''}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        _draw_best(best, record)
        _draw_temperature(temperature, record)
        _draw_final(final, record)

    return save_figure(path, (7.2, 3.4 if len(record.samplers) <= 8 else 4.6), paint)


def _draw_best(axes, record: ExperimentRecord) -> None:
    kind = graph_kind(record.problem)
    means, top = [], -np.inf  # times the sign, so that the best is at the top
    for name, sampler in record.samplers.items():
        values = _in_drawn_unit(record, sampler)
        count = values.shape[1]
        mean = values.mean(axis=1)
        means.append(kind.sign * mean)
        error = values.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count)
        style = _line(record, name)
        axes.plot(record.logged_steps, mean, label=name, **style)
        axes.fill_between(
            record.logged_steps, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0
        )
        top = max(top, np.max(kind.sign * mean + error))
    lowest_end = min(mean[-1] for mean in means)
    bottom = max(lowest_end - _SHOWN_BELOW_END * abs(lowest_end), np.min(means))
    margin = 0.08 * (top - bottom) or 1.0
    axes.set_ylim(sorted((kind.sign * (bottom - margin), kind.sign * (top + margin))))
    axes.set_ylabel(f"running best ({_drawn_unit(record)})")
    axes.tick_params(labelbottom=False)
    axes.legend(
        loc="lower right" if kind.maximise else "upper right", framealpha=0.8, edgecolor="none", handlelength=1.8
    )


def _draw_temperature(axes, record: ExperimentRecord) -> None:
    axes.plot(record.logged_steps, record.temperature, color="0.35", linewidth=1.1)
    axes.set_xlabel("MCMC step")
    axes.set_ylabel("temp.")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, record.logged_steps[-1])


def _draw_final(axes, record: ExperimentRecord) -> None:
    comparable = _drawn_unit(record) == graph_kind(record.problem).compared_unit
    for row, (name, sampler) in enumerate(record.samplers.items()):
        spread = _final(record, sampler)
        colour = _line(record, name)["color"]
        axes.errorbar(spread.mean, row, xerr=spread.se, fmt="o", color=colour, markersize=4.5, linewidth=1.2)
        published = published_row(record.dataset, name) if comparable else None
        if published is not None:
            axes.plot(published.mean, row, "|", color="black", markersize=13, markeredgewidth=1.3)
    axes.plot([], [], "o", color="0.35", markersize=4.5, label="this run")
    if comparable and any(published_row(record.dataset, name) for name in record.samplers):
        label = "published, other graphs" if record.source == "generated" else "published"
        axes.plot([], [], "|", color="black", markersize=10, markeredgewidth=1.3, label=label)
    axes.set_yticks(range(len(record.samplers)), list(record.samplers))
    axes.set_ylim(len(record.samplers) - 0.5, -0.5)
    axes.margins(x=0.1)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"final, verified ({_drawn_unit(record)})")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)


def _line(record: ExperimentRecord, name: str) -> dict:
    """A base sampler and its SL variant share a colour; the base is dashed."""
    bases = list(dict.fromkeys(key.removeprefix("sl_") for key in record.samplers))
    index = bases.index(name.removeprefix("sl_"))
    dashes = "-" if name.startswith("sl_") else (0, (4, 2))
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": dashes}


def _in_drawn_unit(record: ExperimentRecord, sampler: SamplerRecord) -> Float64[np.ndarray, "L G"]:
    divisors = references(sampler)
    if divisors is not None and _in_percent(record):
        return 100.0 * sampler.trajectory / divisors
    return sampler.trajectory


def _final(record: ExperimentRecord, sampler: SamplerRecord) -> Spread:
    percent = percent_of_reference(sampler)
    return Spread.of(percent if percent is not None and _in_percent(record) else best_values(sampler))


def _in_percent(record: ExperimentRecord) -> bool:
    complete = all(references(sampler) is not None for sampler in record.samplers.values())
    return graph_kind(record.problem).in_percent and complete


def _drawn_unit(record: ExperimentRecord) -> str:
    kind = graph_kind(record.problem)
    return kind.compared_unit if _in_percent(record) else kind.unit
