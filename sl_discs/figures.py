"""The common part of all figures: their style, and how a figure is drawn and saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError, MissingExtra
from sl_discs.files import write_atomically
from sl_discs.terminal import tell

# Okabe and Ito's palette, which can also be distinguished by colour-blind readers and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_FIGURE_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "savefig.dpi": 200,
    # Names of instances and samplers are not TeX, even if they contain dollar signs and backslashes.
    "text.parse_math": False,
}


def check_matplotlib() -> None:
    """For commands that will draw a figure: InputError without matplotlib, before a long run."""
    try:
        import matplotlib.figure  # noqa: F401
    except Exception as error:  # broken installations fail in many ways
        raise MissingExtra(
            "matplotlib is missing, so no figure; install it with: pip install -e '.[run]' in the clone"
            if isinstance(error, ModuleNotFoundError) and error.name == "matplotlib"
            else f"matplotlib cannot be imported, so no figure ({error})"
        ) from error


def can_draw() -> bool:
    """For studies with optional figures: whether figures can be drawn; if not, writes a line that says why."""
    try:
        check_matplotlib()
    except InputError as error:
        tell(f"warning: {error}")
        return False
    return True


def new_figure(size: tuple[float, float], paint: Callable):
    """Lets `paint` fill a matplotlib figure and returns it; names in it are never TeX. InputError as above."""
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

    with rc_context(_FIGURE_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure)
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            if axis.get_scale() == "log":  # its default labels are TeX
                axis.set_major_formatter(LogFormatter())
                axis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
        return figure


def save_figure(path: str | Path, size: tuple[float, float], paint: Callable) -> Path:
    """Lets `paint` fill a matplotlib figure and writes it as a PNG file, atomically; InputError if it cannot."""
    figure = new_figure(size, paint)
    from matplotlib import rc_context

    with rc_context(_FIGURE_STYLE):  # for what is only drawn now
        return write_atomically(Path(path), lambda file: figure.savefig(file, format="png"))


def or_warn(draw: Callable[[], Path]) -> Path | None:
    """Draws an optional figure at the end of a run, and returns its path; a failure is a line that says why."""
    try:
        return draw()
    except Exception as error:
        tell(f"warning: {' '.join(str(error).split())}; results are not affected")
        return None
