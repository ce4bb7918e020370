"""Samples for a reader: tables of estimates with their evidence, marginals as CSV, and pictures."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.figures import COLOURS
from sl_discs.files import write_text
from sl_discs.models.terms import Terms
from sl_discs.sampling.diagnostics import Diagnostic
from sl_discs.sampling.draws import MAGNETISATION, OVERLAP, VALUE, Estimate, variable_name
from sl_discs.terminal import aligned, printable

if TYPE_CHECKING:
    from sl_discs.sampling.samples import Samples

_TITLES = "", "mean", "error", "R-hat", "limit", "ESS bulk", "ESS tail"


def summary_lines(samples: Samples) -> list[str]:
    """Returns how the draws were made, notes, and the table of estimates with their evidence."""
    chosen = f" ({samples.chosen})" if samples.chosen else ""
    how = ", ".join(f"{name} {value}" for name, value in samples.how.items())
    words = f"{len(samples):,} draws by {samples.method}{chosen}: {how}"
    table = (line.rstrip() for line in aligned([_TITLES, *estimates(samples)]))
    return [*(f"  {printable(line)}" for line in (words, *samples.notes)), "", *table]


def estimates(samples: Samples) -> list[tuple[str, ...]]:
    """Returns the rows of means, of the variables with the largest R-hat and the least ESS, and of log Z."""
    found = {one.name: one for one in samples.diagnostics}
    rows: list[tuple[str, ...]] = []
    for name in (VALUE, MAGNETISATION, OVERLAP):
        rows.append((name, *_numbers(samples.mean(name)), *_evidence(found.pop(name))))
    if found:
        known = {variable_name(label): label for label in samples.labels}
        apart = max(found.values(), key=lambda one: -1.0 if math.isnan(one.r_hat) else one.r_hat)
        least = min(found.values(), key=lambda one: min(one.ess_bulk, one.ess_tail))
        for one in dict.fromkeys((apart, least)):
            rows.append((f"P({one.name} = 1)", *_numbers(samples.marginal(known[one.name])), *_evidence(one)))
    if samples.log_z is not None:
        rows.append(("log Z", *_numbers(samples.log_z), "", "", "", ""))
    return rows


def marginal_lines(samples: Samples, top: int) -> list[str]:
    """Returns the table of the `top` marginals that are nearest to 1/2."""
    found = sorted(samples.marginals.items(), key=lambda row: abs(row[1].mean - 0.5))
    rows = [(str(label), *_numbers(one)) for label, one in found[:top]]
    lines = aligned([("variable", "P(x = 1)", "error"), *rows])
    left_out = [f"  (the {top} of {len(found):,} variables nearest to 1/2)"] if len(found) > top else []
    return lines + left_out


def _numbers(found: Estimate) -> tuple[str, str]:
    """Returns a mean to the digit of its error, and the error."""
    if found.error == 0:
        return f"{found.mean:.10g}", "exact"
    if math.isnan(found.error):
        return f"{found.mean:.10g}", "unknown: all draws agree"
    if not math.isfinite(found.error):
        return f"{found.mean:.6g}", "unknown"
    digits = min(12, max(0, 1 - math.floor(math.log10(found.error))))
    return f"{found.mean:,.{digits}f}", f"{found.error:,.{digits}f}"


def _evidence(found: Diagnostic) -> tuple[str, ...]:
    """Returns R-hat and its limit, empty where it has no meaning, and effective sample sizes."""
    known = not math.isnan(found.r_hat)
    r_hat = [f"{one:.3f}" if known and not math.isnan(one) else "" for one in (found.r_hat, found.limit)]
    return *r_hat, f"{found.ess_bulk:,.0f}", f"{found.ess_tail:,.0f}"


def write_marginals(path: Path, samples: Samples) -> Path:
    """Writes a CSV file with the label of each variable, the probability that it is 1, and the standard error."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("variable", "probability", "error"))
    rows.writerows((label, one.mean, one.error) for label, one in samples.marginals.items())
    return write_text(path, text.getvalue())


# Pictures of draws, of marginals, and of a ladder.

_MOST_POINTS, _MOST_GROUPS = 2_000, 8
_OVERLAP_BIN = 0.05
# The most variables whose labels are shown below their bars.
_MOST_LABELS = 24


def grid_of(terms: Terms) -> tuple[int, int] | None:
    """Returns rows and columns if all couplings are those of a grid or torus that is numbered row by row, else None.

    A log-density on matrices counts as a grid.
    """
    if terms.quadratic is None:
        shape: tuple[int, ...] = getattr(terms, "shape", ())
        return (shape[0], shape[1]) if len(shape) == 2 else None
    size, (first, second) = terms.num_sites, terms.quadratic.edges.T
    if terms.quadratic.background or len(first) < size:
        return None
    apart = second - first
    for columns in np.unique(apart[(apart > 1) & (size % np.maximum(apart, 1) == 0)]).tolist():
        rows, same = size // columns, first // columns == second // columns
        across = same & np.isin(apart, (1, columns - 1))
        down = ~same & np.isin(apart, (columns, (rows - 1) * columns))
        if (across | down).all():
            return rows, columns
    return None


def paint_all(samples: Samples, figure: Any) -> None:
    """Paints values, their distribution and that of overlaps, and below them marginals and the ladder, if any."""
    grid = figure.add_gridspec(2, 3)
    for column, paint in enumerate((paint_traces, paint_values, paint_overlaps)):
        paint(samples, figure.add_subplot(grid[0, column]))
    ladder = () if samples.ladder is None else (paint_swaps, paint_round_trips)
    paint_marginals(samples, figure.add_subplot(grid[1, : 3 - len(ladder)]))
    for column, paint in enumerate(ladder, start=1):
        paint(samples, figure.add_subplot(grid[1, column]))
    figure.suptitle(printable(f"{samples.name}: {samples.method}, temperature {samples.temperature:g}"), fontsize=10)


def paint_traces(samples: Samples, axes: Any, observable: str = VALUE) -> None:
    """Paints an observable of each group by the number of the draw."""
    values = samples.observable(observable)
    every = -(-values.shape[1] // _MOST_POINTS)
    number = np.arange(values.shape[1])[::every]
    for group, row in enumerate(values[:_MOST_GROUPS]):
        axes.plot(number, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=observable)


def paint_values(samples: Samples, axes: Any) -> None:
    """Paints the distribution of values."""
    shares = np.full(len(samples), 1 / len(samples))
    axes.hist(samples.values, bins=_bins(samples.values), weights=shares, color=COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def paint_overlaps(samples: Samples, axes: Any) -> None:
    """Paints P(q): where it has several peaks, draws of one mode differ from those of another."""
    overlaps, bins = samples.group_overlaps.ravel(), overlap_bins(len(samples.labels))
    axes.hist(overlaps, bins=bins, weights=np.full(len(overlaps), 1 / len(overlaps)), color=COLOURS[2])
    axes.set(xlabel="overlap q", ylabel="P(q)", xlim=(bins[0], bins[-1]))


def overlap_bins(size: int) -> Float64[np.ndarray, "B"]:
    """Returns edges of bins of about .05 that all hold equally many of the overlaps that N variables can have."""
    step = 2 / size
    width = step * max(1, round(_OVERLAP_BIN / step))
    return 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)


def paint_marginals(samples: Samples, axes: Any) -> None:
    """Paints P(x = 1) of each variable: a map where the couplings are a grid, otherwise bars with standard errors."""
    means, errors = np.array(list(samples.marginals.values())).T
    if samples.grid is not None:
        image = axes.imshow(means.reshape(samples.grid), vmin=0, vmax=1, cmap="cividis", interpolation="nearest")
        axes.figure.colorbar(image, ax=axes, label="P(x = 1)")
        axes.set(xticks=[], yticks=[])
        return
    axes.bar(np.arange(len(means)), means, yerr=np.where(np.isfinite(errors), errors, 0.0), color=COLOURS[5])
    axes.set(xlabel="variable", ylabel="P(x = 1)", ylim=(0, 1))
    if len(means) <= _MOST_LABELS:
        axes.set_xticks(np.arange(len(means)), [printable(str(label)) for label in samples.labels], rotation=45)


def paint_swaps(samples: Samples, axes: Any) -> None:
    """Paints the acceptance of the swaps between neighbours of a ladder."""
    assert samples.ladder is not None
    axes.bar(np.arange(len(samples.ladder.acceptance)), samples.ladder.acceptance, color=COLOURS[5])
    axes.set(xlabel="pair of rungs, hottest first", ylabel="swap acceptance", ylim=(0, 1))


def paint_round_trips(samples: Samples, axes: Any) -> None:
    """Paints the round trips of each ladder, or of each pair that exchanges clusters."""
    assert samples.ladder is not None
    axes.bar(np.arange(len(samples.ladder.round_trips)), samples.ladder.round_trips, color=COLOURS[3])
    axes.set(xlabel="group of ladders", ylabel="round trips")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _bins(values: np.ndarray):
    if np.ptp(values) == 0:
        # Of any magnitude: an edge at a fixed distance may be rounded to the value.
        half = max(0.5, abs(values[0]) * 1e-3)
        return values[0] + np.array([-half, half])
    integral = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
    return np.arange(values.min() - 0.5, values.max() + 1) if integral else min(40, max(1, len(np.unique(values))))
