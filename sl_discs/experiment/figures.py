"""The common part of all figures: their style, and how a figure is drawn and saved."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.files import write_atomically, write_text
from sl_discs.terminal import tell
from sl_discs.version import __version__

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
        raise InputError(
            "matplotlib is missing, so no figure; install it with: pip install -e '.[run]' in the clone"
            if isinstance(error, ModuleNotFoundError) and error.name == "matplotlib"
            else f"matplotlib cannot be imported, so no figure ({error})"
        ) from error


def can_draw() -> bool:
    """For commands with optional figures: whether figures can be drawn; if not, writes a line that says why."""
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


# Self-contained HTML pages with tables and plots, readable on a phone and in print.

_SIZE = 4.4, 2.7  # inches: small enough that a plot's letters can be read on a phone

_PAGE_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a;
  background: #fff; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1rem; margin: 0 0 0.25rem; }
.answer { font-size: 1.1rem; } .answer strong { font-size: 1.6rem; }
.good { color: #00644a; } .bad { color: #a33a00; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1.25rem; }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: 0.85rem; color: #444; }
svg { width: 100%; height: auto; display: block; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top;
  padding: 0.2rem 0.75rem 0.2rem 0; border-bottom: 1px solid #eee; overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; width: 1%; } thead th { width: auto; }
pre, .labels { background: #f5f5f5; padding: 0.75rem; overflow-wrap: anywhere; white-space: pre-wrap;
  font: 0.85rem/1.4 ui-monospace, monospace; }
footer { margin-top: 2rem; font-size: 0.85rem; color: #444; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .plots { grid-template-columns: 1fr 1fr; }
  details { display: none; } }
"""


def write_page(path: Path, title: str, sections: Iterable[str], command: str, note: str = "") -> Path:
    """Writes a page of HTML sections, atomically.

    Args:
      path: path of the .html file.
      title: title of the browser's window.
      sections: HTML of the sections, in order.
      command: the command that repeats the run.
      note: a remark on the whole page.
    """
    joined = "\n".join(sections)
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} - sl_discs</title>
<style>{_PAGE_STYLE}</style>
</head>
<body>
{f"<p class='bad'>{html.escape(note)}</p>" if note else ""}
{joined}
<h2>Repeat it</h2>
<pre>{html.escape(command)}</pre>
<p>The same seed gives the same result on the same machine, unless a time limit or an interruption decides how long
the run is.</p>
<footer>sl_discs {__version__}</footer>
</body>
</html>
"""
    return write_text(path, page)


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of text cells, where the first cell of a row is its title; `head` names the columns."""

    def row(cells: Sequence[str], kinds: Sequence[str]) -> str:
        pairs = zip(cells, kinds, strict=True)
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell, kind in pairs) + "</tr>"

    top = f"<thead>{row(head, ['th'] * len(head))}</thead>" if head else ""
    body = "".join(row(cells, ["th", *["td"] * (len(cells) - 1)]) for cells in rows)
    return f"<div class='table'><table>{top}<tbody>{body}</tbody></table></div>"


def side_by_side(number: int, shown: Iterable[tuple[str, Callable, str]]) -> str:
    """Plots side by side, each by name, drawing function and caption; `number` makes their identifiers unique."""
    figures = (
        f"<figure>{svg(f'{name}-{number}', paint)}<figcaption>{caption}</figcaption></figure>"
        for name, paint, caption in shown
    )
    return '<div class="plots">\n' + "\n".join(figures) + "\n</div>"


def svg(name: str, paint: Callable) -> str:
    """The drawing of `paint` as an <svg> element that fills its container's width.

    All plots of a page share one space of identifiers, so the name must be unique there.
    """
    figure = new_figure(_SIZE, paint)
    from matplotlib import rc_context

    buffer = io.StringIO()
    # Text stays text, drawn by the browser; the salt makes files reproducible.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    head, body = text[text.index("<svg") :].split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", f"{head}>{body}")
