"""Pictures of draws: a panel for each of values, magnetisation, overlaps, marginals, the ladder and
the curve.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Num

from sl_discs.sampling.drawn import MAGNETISATION, OVERLAP, VALUE, Curve, Ladder
from sl_discs.support.checks import shown
from sl_discs.support.errors import InputError
from sl_discs.support.figures import COLOURS
from sl_discs.support.terminal import printable

if TYPE_CHECKING:
    from sl_discs.sampling.samples import Samples

_MOST_POINTS, _MOST_GROUPS = 2_000, 8
# The most bars of a panel, each of which has its label.
_MOST_BARS = 24
_OVERLAP_BIN = 0.05

Paint = Callable[[Any], None]


def layout(
    samples: Samples, names: Sequence[str] | None
) -> tuple[tuple[float, float], Callable[[Any], None]]:
    """Returns the size of a figure in inches, and a function that paints it.

    Args:
      samples: what it shows.
      names: of the panels, in one row; None for all that there are, in rows by topic.

    Raises:
      InputError: there is no such panel, or these draws have none.
    """
    by_topic = _panels(samples)
    rows = [list(row.values()) for row in by_topic]
    width = 9.6
    if names is not None:
        known = {name: panel for row in by_topic for name, panel in row.items()}
        if isinstance(names, str) or not names or not set(names) <= set(known):
            raise InputError(
                f"panels={shown(names)}: expected a list of names; there are {', '.join(known)}"
            )
        rows = [[known[name] for name in names]]
        width = 0.6 + 2.7 * len(names)

    def paint(figure: Any) -> None:
        for part, row in zip(
            figure.subfigures(len(rows), 1, squeeze=False)[:, 0], rows, strict=True
        ):
            for panel, axes in zip(row, part.subplots(1, len(row), squeeze=False)[0], strict=True):
                panel(axes)
        title = f"{samples.name}: {samples.method}, temperature {samples.temperature:g}"
        figure.suptitle(printable(title), fontsize=10)

    return (width, 2.7 * len(rows)), paint


def _panels(samples: Samples) -> list[dict[str, Paint]]:
    """Returns what paints each panel of these draws, by name, in rows by topic."""
    rows: list[dict[str, Paint]] = [
        {
            "trace": functools.partial(_paint_trace, samples),
            "values": functools.partial(_paint_values, samples),
            "magnetisation": functools.partial(_paint_spins, samples, MAGNETISATION),
            "overlaps": functools.partial(_paint_spins, samples, OVERLAP),
        },
        {"marginals": functools.partial(_paint_marginals, samples)},
    ]
    if samples.ladder is not None:
        rows[1]["swaps"] = functools.partial(_paint_swaps, samples.ladder)
        rows[1]["round_trips"] = functools.partial(_paint_round_trips, samples.ladder)
    if samples.curve is not None:
        names = "value", "heat_capacity", "entropy"
        rows.append({name: functools.partial(_paint_curve, samples.curve, name) for name in names})
    return rows


def _paint_trace(samples: Samples, axes: Any) -> None:
    """Paints the value of each group by the number of the draw."""
    values = samples.group_values
    every = -(-values.shape[1] // _MOST_POINTS)
    steps = np.arange(0, values.shape[1], every)
    for group, row in enumerate(values[:_MOST_GROUPS]):
        axes.plot(steps, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=VALUE)


def _paint_values(samples: Samples, axes: Any) -> None:
    """Paints the distribution of values."""
    _histogram(samples.values, _bins(samples.values), axes, COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def _paint_spins(samples: Samples, name: str, axes: Any) -> None:
    """Paints the distribution of the magnetisation, or P(q) of the overlap q, in bins of about .05,
    which all hold equally many of its values. Where P(q) has several peaks, draws of one mode
    differ from those of another.
    """
    step = 2 / len(samples.labels)
    width = step * max(1, round(_OVERLAP_BIN / step))
    bins = 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)
    _histogram(samples.observable(name).ravel(), bins, axes, COLOURS[2])
    axes.set(xlim=(bins[0], bins[-1]), xlabel=name, ylabel="probability")


def _paint_marginals(samples: Samples, axes: Any) -> None:
    """Paints P(x = 1) of each variable.

    It is a map of a grid, otherwise bars with standard errors, or, of more than 24 variables, a
    line through the sorted probabilities.
    """
    means, errors = np.array(list(samples.marginals.values())).T
    errors = np.where(np.isfinite(errors), errors, 0.0)
    if samples.grid is not None:
        image = axes.imshow(
            means.reshape(samples.grid), vmin=0, vmax=1, cmap="cividis", interpolation="nearest"
        )
        axes.figure.colorbar(image, ax=axes, label="P(x = 1)")
        axes.set(xticks=[], yticks=[])
        return
    if len(means) > _MOST_BARS:
        order = np.argsort(means, kind="stable")
        means = means[order]
        errors = errors[order]
        axes.plot(means, color=COLOURS[0])
        axes.fill_between(
            np.arange(len(means)), means - errors, means + errors, color=COLOURS[5], alpha=0.5
        )
        axes.set(xlabel=f"{len(means):,} variables, sorted", ylabel="P(x = 1)", ylim=(0, 1))
        return
    axes.bar(np.arange(len(means)), means, yerr=errors, color=COLOURS[5])
    axes.set(xlabel="variable", ylabel="P(x = 1)", ylim=(0, 1))
    names = [printable(str(label)) for label in samples.labels]
    axes.set_xticks(range(len(names)), names, rotation=45)


def _paint_swaps(ladder: Ladder, axes: Any) -> None:
    """Paints the acceptance of the swaps between neighbours of a ladder."""
    _bars(ladder.acceptance, axes, COLOURS[5])
    axes.set(xlabel="pair of rungs, hottest first", ylabel="swap acceptance", ylim=(0, 1))


def _paint_round_trips(ladder: Ladder, axes: Any) -> None:
    """Paints the round trips of each ladder, or of each pair that swaps clusters."""
    _bars(ladder.round_trips, axes, COLOURS[3])
    axes.set(xlabel="group of ladders", ylabel="round trips")
    axes.locator_params(axis="y", integer=True)


def _paint_curve(curve: Curve, name: str, axes: Any) -> None:
    order = np.argsort(curve.temperature)
    mean, error = getattr(curve, name)[order].T
    error = np.where(np.isfinite(error), error, 0.0)
    axes.errorbar(
        curve.temperature[order], mean, yerr=error, marker="o", markersize=3, color=COLOURS[0]
    )
    axes.set(xlabel="temperature", ylabel=name.replace("_", " "))


def _bars(heights: Num[np.ndarray, "K"], axes: Any, colour: str) -> None:
    """Paints bars side by side."""
    axes.stairs(heights, np.arange(len(heights) + 1) - 0.5, color=colour, fill=True)
    axes.locator_params(axis="x", integer=True)


def _histogram(values: Float64[np.ndarray, "S"], bins: Any, axes: Any, colour: str) -> None:
    axes.hist(values, bins=bins, weights=np.full(len(values), 1 / len(values)), color=colour)


def _bins(values: Float64[np.ndarray, "S"]) -> Any:
    if np.ptp(values) == 0:
        # Of any magnitude: an edge at a fixed distance may be rounded to the value.
        half = max(0.5, abs(values[0]) * 1e-3)
        return values[0] + np.array([-half, half])
    return min(40, len(np.unique(values)))
