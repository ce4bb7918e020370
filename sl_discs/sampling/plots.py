"""Pictures of draws: values by draw, their histogram, the distribution of overlaps, and the ladder."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.figures import COLOURS

_MOST_POINTS = 2_000
_OVERLAP_BIN = 0.05


def paint_all(samples, figure) -> None:
    """All of them: a row, and a second one for a ladder."""
    rows = 1 if samples.ladder is None else 2
    axes = figure.subplots(rows, 3, squeeze=False)
    for one, paint in zip(axes[0], (paint_traces, paint_values, paint_overlaps), strict=True):
        paint(samples, one)
    if samples.ladder is not None:
        for one, paint in zip(axes[1], (paint_swaps, paint_barrier, paint_round_trips), strict=True):
            paint(samples, one)
    figure.suptitle(f"{samples.name}: {samples.method}, temperature {samples.temperature:g}", fontsize=10)


def paint_traces(samples, axes, observable: str = "value") -> None:
    """An observable of each group by the number of the draw."""
    values = samples.observable(observable)
    every = -(-values.shape[1] // _MOST_POINTS)
    number = np.arange(values.shape[1])[::every]
    for group, row in enumerate(values[:8]):
        axes.plot(number, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=observable)


def paint_values(samples, axes) -> None:
    """The distribution of values."""
    axes.hist(samples.values, bins=_bins(samples.values), weights=samples.weights, color=COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def paint_overlaps(samples, axes) -> None:
    """P(q): where it has several peaks, draws of one mode differ from those of another."""
    overlaps, bins = samples.group_overlaps.ravel(), overlap_bins(len(samples.labels), int(samples.counts.max()))
    axes.hist(overlaps, bins=bins, weights=samples.weights, color=COLOURS[2])
    axes.set(xlabel="overlap q", ylabel="P(q)", xlim=(bins[0], bins[-1]))


def overlap_bins(size: int, most: int) -> Float64[np.ndarray, "B"]:
    """Edges of bins of about .05 that all hold equally many of the overlaps that N variables of q values can have."""
    step = most / ((most - 1) * size)
    width = step * max(1, round(_OVERLAP_BIN / step))
    return 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)


def paint_marginals(samples, axes) -> None:
    """The marginals in increasing order, with two standard errors to both sides."""
    each = samples.marginals.values()
    found = np.array(sorted(each if samples.num_values is None else itertools.chain.from_iterable(each)))
    found = found[:: -(-len(found) // _MOST_POINTS)]
    number, (mean, error) = np.arange(len(found)), found.T
    band = {"color": COLOURS[5], "alpha": 0.5, "linewidth": 0, "step": "mid"}
    axes.fill_between(number, np.maximum(mean - 2 * error, 0), np.minimum(mean + 2 * error, 1), **band)
    axes.plot(number, mean, color=COLOURS[0], drawstyle="steps-mid")
    what = ("variable", "P(x = 1)") if samples.num_values is None else ("variable and value", "P(x = value)")
    axes.set(xlabel=f"{what[0]}, in order of P", ylabel=what[1], ylim=(-0.02, 1.02))


def paint_swaps(samples, axes) -> None:
    """Acceptance of the swaps between neighbours."""
    axes.bar(np.arange(len(samples.ladder.acceptance)), samples.ladder.acceptance, color=COLOURS[5])
    axes.set(xlabel="pair of rungs, hottest first", ylabel="swap acceptance", ylim=(0, 1))


def paint_barrier(samples, axes) -> None:
    """The barrier over the inverse temperature: the running sum of rejections."""
    barrier = np.concatenate([[0.0], np.cumsum(1 - samples.ladder.acceptance)])
    axes.plot(samples.ladder.inverse, barrier, marker=".", color=COLOURS[1])
    axes.set(xlabel="1/temperature", ylabel="communication barrier")


def paint_round_trips(samples, axes) -> None:
    """Round trips of each ladder."""
    axes.bar(np.arange(len(samples.ladder.round_trips)), samples.ladder.round_trips, color=COLOURS[3])
    axes.set(xlabel="ladder", ylabel="round trips")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _bins(values: np.ndarray):
    if np.ptp(values) == 0:
        # Of any magnitude: an edge at a fixed distance may be rounded to the value.
        half = max(0.5, abs(values[0]) * 1e-3)
        return values[0] + np.array([-half, half])
    whole = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
    return np.arange(values.min() - 0.5, values.max() + 1) if whole else min(40, max(1, len(np.unique(values))))
