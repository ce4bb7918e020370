"""Pictures of draws: a panel for each of values, magnetisation, overlaps, marginals, the ladder and
the curve.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Num

from sl_discs.sampling.drawn import VALUE, Curve
from sl_discs.support.checks import shown
from sl_discs.support.errors import InputError
from sl_discs.support.figures import COLOURS
from sl_discs.support.terminal import printable

if TYPE_CHECKING:
    from sl_discs.sampling.samples import Samples

_MOST_POINTS, _MOST_GROUPS = 2_000, 8
# The most bars of a panel, and the most of their labels, which are then shown evenly.
_MOST_BARS, _MOST_LABELS = 60, 24
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


def paint_trace(samples: Samples, axes: Any, observable: str = VALUE) -> None:
    """Paints an observable of each group by the number of the draw."""
    values = samples.observable(observable)
    every = -(-values.shape[1] // _MOST_POINTS)
    number = np.arange(values.shape[1])[::every]
    for group, row in enumerate(values[:_MOST_GROUPS]):
        axes.plot(number, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=observable)


def paint_values(samples: Samples, axes: Any) -> None:
    """Paints the distribution of values."""
    _histogram(samples.values, _bins(samples.values), axes, COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def paint_magnetisation(samples: Samples, axes: Any) -> None:
    """Paints the distribution of the mean spin."""
    _paint_spins(samples.group_magnetisations, axes, COLOURS[4], 2 / len(samples.labels))
    axes.set(xlabel="magnetisation", ylabel="probability")


def paint_overlaps(samples: Samples, axes: Any) -> None:
    """Paints P(q): where it has several peaks, draws of one mode differ from those of another."""
    _paint_spins(samples.group_overlaps, axes, COLOURS[2], 2 / len(samples.labels))
    axes.set(xlabel="overlap q", ylabel="P(q)")


def _paint_spins(values: Float64[np.ndarray, "C D"], axes: Any, colour: str, step: float) -> None:
    """Paints a distribution from -1 to 1 in bins of about .05, which all hold equally many
    multiples of a step.
    """
    width = step * max(1, round(_OVERLAP_BIN / step))
    bins = 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)
    _histogram(values.ravel(), bins, axes, colour)
    axes.set(xlim=(bins[0], bins[-1]))


def paint_marginals(samples: Samples, axes: Any) -> None:
    """Paints P(x = 1) of each variable.

    It is a map of a grid, otherwise bars with standard errors, or, of more than 60 variables, a
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
    places = (
        np.linspace(0, len(means) - 1, min(len(means), _MOST_LABELS)).round().astype(int).tolist()
    )
    axes.set_xticks(
        places, [printable(str(samples.labels[place])) for place in places], rotation=45
    )


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
    "magnetisation": paint_magnetisation,
    "overlaps": paint_overlaps,
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
_NEEDS = dict.fromkeys(("swaps", "round_trips"), "ladder") | dict.fromkeys(
    _CURVE, "curve over several temperatures"
)


def _checked(samples: Samples, panels: Sequence[str]) -> list[str]:
    """Returns the names of panels; InputError for one that there is not."""
    known = f"there are {', '.join(name for name in PANELS if _exists(samples, name))}"
    if isinstance(panels, str) or not panels:
        raise InputError(f"panels={shown(panels)}: expected a list of names; {known}")
    for name in panels:
        if name not in PANELS:
            raise InputError(f"panels: {shown(name)} is not one; {known}")
        if not _exists(samples, name):
            raise InputError(
                f"panels: draws by {samples.method} have no {_NEEDS[name]}, so no {name}; {known}"
            )
    return list(panels)


def _exists(samples: Samples, name: str) -> bool:
    """Returns whether these draws have a panel."""
    if name in _CURVE:
        return samples.curve is not None
    return samples.ladder is not None or name not in ("swaps", "round_trips")


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
    integral = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
    return (
        np.arange(values.min() - 0.5, values.max() + 1)
        if integral
        else min(40, max(1, len(np.unique(values))))
    )
