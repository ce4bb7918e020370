"""Pictures of draws: a panel for each of values, magnetisation, overlaps, marginals, the ladder and
the curve.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Num

from sl_discs.sampling.drawn import MAGNETISATION, OVERLAP, VALUE, Curve
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

Paint = Callable[["Samples", Any], None]


def layout(
    samples: Samples, panels: Sequence[str] | None
) -> tuple[tuple[float, float], Callable[[Any], None]]:
    """Returns the size of a figure in inches, and a function that paints it.

    Args:
      samples: what it shows.
      panels: names of `PANELS`, in one row; None for all that there are, in rows by topic.

    Raises:
      InputError: there is no such panel, or these draws have none.
    """
    if panels is None:
        rows = [[name for name in row if _exists(samples, name)] for row in _ROWS]
    else:
        rows = [_checked(samples, panels)]
    rows = [row for row in rows if row]
    width = 9.6 if panels is None else 0.6 + 2.7 * len(rows[0])

    def paint(figure: Any) -> None:
        for part, row in zip(
            figure.subfigures(len(rows), 1, squeeze=False)[:, 0], rows, strict=True
        ):
            for name, axes in zip(row, part.subplots(1, len(row), squeeze=False)[0], strict=True):
                PANELS[name](samples, axes)
        title = f"{samples.name}: {samples.method}, temperature {samples.temperature:g}"
        figure.suptitle(printable(title), fontsize=10)

    return (width, 2.7 * len(rows)), paint


def paint_trace(samples: Samples, axes: Any) -> None:
    """Paints the value of each group by the number of the draw."""
    values = samples.group_values
    every = -(-values.shape[1] // _MOST_POINTS)
    steps = np.arange(0, values.shape[1], every)
    for group, row in enumerate(values[:_MOST_GROUPS]):
        axes.plot(steps, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=VALUE)


def paint_values(samples: Samples, axes: Any) -> None:
    """Paints the distribution of values."""
    _histogram(samples.values, _bins(samples.values), axes, COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def _paint_spins(samples: Samples, axes: Any, name: str) -> None:
    """Paints the distribution of the magnetisation, or P(q) of the overlap q, in bins of about .05,
    which all hold equally many of its values. Where P(q) has several peaks, draws of one mode
    differ from those of another.
    """
    step = 2 / len(samples.labels)
    width = step * max(1, round(_OVERLAP_BIN / step))
    bins = 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)
    _histogram(samples.observable(name).ravel(), bins, axes, COLOURS[2])
    axes.set(xlim=(bins[0], bins[-1]), xlabel=name, ylabel="probability")


def paint_marginals(samples: Samples, axes: Any) -> None:
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


def paint_swaps(samples: Samples, axes: Any) -> None:
    """Paints the acceptance of the swaps between neighbours of a ladder."""
    assert samples.ladder is not None
    _bars(samples.ladder.acceptance, axes, COLOURS[5])
    axes.set(xlabel="pair of rungs, hottest first", ylabel="swap acceptance", ylim=(0, 1))


def paint_round_trips(samples: Samples, axes: Any) -> None:
    """Paints the round trips of each ladder, or of each pair that swaps clusters."""
    assert samples.ladder is not None
    _bars(samples.ladder.round_trips, axes, COLOURS[3])
    axes.set(xlabel="group of ladders", ylabel="round trips")
    axes.locator_params(axis="y", integer=True)


def _paint_curve(samples: Samples, axes: Any, name: str) -> None:
    curve = samples.curve
    assert isinstance(curve, Curve)
    order = np.argsort(curve.temperature)
    mean, error = getattr(curve, name)[order].T
    error = np.where(np.isfinite(error), error, 0.0)
    axes.errorbar(
        curve.temperature[order], mean, yerr=error, marker="o", markersize=3, color=COLOURS[0]
    )
    axes.set(xlabel="temperature", ylabel=name.replace("_", " "))


_CURVE = ("value", "heat_capacity", "entropy")
PANELS: dict[str, Paint] = {
    "trace": paint_trace,
    "values": paint_values,
    "magnetisation": functools.partial(_paint_spins, name=MAGNETISATION),
    "overlaps": functools.partial(_paint_spins, name=OVERLAP),
    "marginals": paint_marginals,
    "swaps": paint_swaps,
    "round_trips": paint_round_trips,
    **{name: functools.partial(_paint_curve, name=name) for name in _CURVE},
}
_ROWS = (
    ("trace", "values", "magnetisation", "overlaps"),
    ("marginals", "swaps", "round_trips"),
    _CURVE,
)
# The field of `Samples` without which there is no such panel.
_NEEDS = dict.fromkeys(("swaps", "round_trips"), "ladder") | dict.fromkeys(_CURVE, "curve")


def _checked(samples: Samples, panels: Sequence[str]) -> list[str]:
    """Returns the names of panels; InputError for one that there is not."""
    known = [name for name in PANELS if _exists(samples, name)]
    if isinstance(panels, str) or not panels or not set(panels) <= set(known):
        raise InputError(
            f"panels={shown(panels)}: expected a list of names; there are {', '.join(known)}"
        )
    return list(panels)


def _exists(samples: Samples, name: str) -> bool:
    """Returns whether these draws have a panel."""
    return name not in _NEEDS or getattr(samples, _NEEDS[name]) is not None


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
