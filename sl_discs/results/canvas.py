"""What all figures share: their style, and how one is painted and saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError

# Okabe and Ito's palette, told apart also by colour-blind readers and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLE = {
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
}


def new_figure(size: tuple[float, float], paint: Callable):
    """Lets `paint` fill a matplotlib figure and returns it.

    Raises:
      InputError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "matplotlib is missing, so no figure; install it with: pip install 'sl_discs[run]'"
        ) from error
    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure)
        return figure


def save_figure(path: str | Path, size: tuple[float, float], paint: Callable) -> Path:
    """Lets `paint` fill a matplotlib figure and writes it as a PNG file, atomically.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
    figure = new_figure(size, paint)
    from matplotlib import rc_context

    with rc_context(_STYLE):  # what is drawn only now has the style too
        return write_atomically(Path(path), lambda file: figure.savefig(file, format="png"))
