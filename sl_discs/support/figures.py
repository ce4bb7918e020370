"""The common part of all figures: their style, and how a figure is drawn and saved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from sl_discs.support.errors import MissingExtra
from sl_discs.support.files import write_atomically
from sl_discs.support.terminal import tell

# Okabe and Ito's palette, which can also be distinguished by colour-blind readers and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_FIGURE_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.4,
    "savefig.dpi": 200,
    # Names of instances and samplers are not TeX, even if they contain dollar signs and
    # backslashes.
    "text.parse_math": False,
}


def check_matplotlib() -> None:
    """For commands that will draw a figure: InputError without matplotlib, before a long run."""
    try:
        import matplotlib.figure  # noqa: F401
    except Exception as error:  # broken installations fail in many ways
        raise MissingExtra(
            "matplotlib is missing, so no figure; install it with: pip install -e '.[run]' in the "
            "clone"
            if isinstance(error, ModuleNotFoundError) and error.name == "matplotlib"
            else f"matplotlib cannot be imported, so no figure ({error})"
        ) from error


def new_figure(size: tuple[float, float], paint: Callable):
    """Lets `paint` fill a matplotlib figure and returns it; names in it are never TeX. InputError
    as above.
    """
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
    """Lets `paint` fill a matplotlib figure and writes it as a PNG file, atomically; InputError if
    it cannot.
    """
    figure = new_figure(size, paint)
    from matplotlib import rc_context

    with rc_context(_FIGURE_STYLE):  # for what is only drawn now
        return write_atomically(Path(path), lambda file: figure.savefig(file, format="png"))


def or_warn(draw: Callable[[], Path]) -> Path | None:
    """Draws an optional figure at the end of a run, and returns its path; a failure is a line that
    says why.
    """
    try:
        return draw()
    except Exception as error:
        tell(f"warning: {' '.join(str(error).split())}; results are not affected")
        return None


# The most nodes that are named in a drawing, and the most edges that are all shown.
_NAMED, _MOST_EDGES = 40, 500


def paint_graph(
    axes: Any,
    edges: Int[np.ndarray, "E 2"],
    chosen: Bool[np.ndarray, "N"],
    labels: Sequence[Hashable],
    names: tuple[str, str],
    *,
    inside: bool = False,
) -> None:
    """Draws a graph with its nodes in two colours, and the edges that matter darker than others.

    Of more than 500 edges the others are left out.

    Args:
      axes: of matplotlib.
      edges: positions of nodes in `labels`.
      chosen: the nodes of the first colour.
      labels: of the nodes, shown for up to 40.
      names: of the two colours, for the legend.
      inside: whether edges between chosen nodes matter, as of a clique, in place of those between
        the colours.
    """
    import networkx as nx  # imported here, as runs do without it

    graph = nx.empty_graph(len(chosen))
    graph.add_edges_from(edges.tolist())
    positions = nx.spring_layout(graph, seed=0)
    is_small = len(chosen) <= _NAMED
    first, second = chosen[edges].T
    dark = first & second if inside else first != second
    pale = ~dark if len(edges) <= _MOST_EDGES else np.zeros_like(dark)
    for part, colour in ((pale, "0.85"), (dark, "0.45")):
        nx.draw_networkx_edges(
            graph, positions, edges[part].tolist(), width=0.7, edge_color=colour, ax=axes
        )
    for part, colour, name in ((chosen, COLOURS[5], names[0]), (~chosen, "white", names[1])):
        nx.draw_networkx_nodes(
            graph,
            positions,
            np.flatnonzero(part).tolist(),
            node_size=110 if is_small else 22,
            node_color=colour,
            edgecolors="0.3",
            linewidths=0.7,
            label=name,
            ax=axes,
        )
    if is_small:
        texts = dict(enumerate(map(str, labels)))
        nx.draw_networkx_labels(graph, positions, texts, font_size=6.5, ax=axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    axes.axis("off")
