"""Self-contained HTML pages with tables and plots, readable on a phone and in print."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sl_discs.atomic import write_atomically
from sl_discs.results.canvas import new_figure
from sl_discs.version import __version__

_SIZE = 4.4, 2.7  # inches: small enough that a plot's letters can be read on a phone

_STYLE = """
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
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
  padding: 0.2rem 0.75rem 0.2rem 0; border-bottom: 1px solid #eee; overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; width: 1%; } thead th { width: auto; }
pre, .labels { background: #f5f5f5; padding: 0.75rem; overflow-wrap: anywhere; white-space: pre-wrap;
  font: 0.85rem/1.4 ui-monospace, monospace; }
footer { margin-top: 2rem; font-size: 0.85rem; color: #444; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .plots { grid-template-columns: 1fr 1fr; }
  details { display: none; } }
"""


def write_page(path: Path, title: str, sections: Iterable[str], command: str, note: str = "") -> Path:
    """Writes a page, atomically.

    Args:
      path: path of the .html file.
      title: title of the browser's window.
      sections: HTML of the sections, in order.
      command: the command that repeats the run.
      note: a remark on the whole page.

    Raises:
      InputError: the file cannot be written.
    """
    joined = "\n".join(sections)
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} - sl_discs</title>
<style>{_STYLE}</style>
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
    return write_atomically(path, lambda file: file.write(page.encode()))


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of text cells, where the first cell of a row is its title; `head` names the columns."""

    def row(cells: Sequence[str], kinds: Sequence[str]) -> str:
        pairs = zip(cells, kinds, strict=True)
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell, kind in pairs) + "</tr>"

    top = f"<thead>{row(head, ['th'] * len(head))}</thead>" if head else ""
    body = "".join(row(cells, ["th", *["td"] * (len(cells) - 1)]) for cells in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def side_by_side(number: int, shown: Iterable[tuple[str, Callable, str]]) -> str:
    """Plots side by side.

    Args:
      number: number of the section, which makes identifiers unique.
      shown: name, drawing function and caption of each plot.

    Raises:
      InputError: matplotlib is not installed.
    """
    figures = (
        f"<figure>{svg(f'{name}-{number}', paint)}<figcaption>{caption}</figcaption></figure>"
        for name, paint, caption in shown
    )
    return '<div class="plots">\n' + "\n".join(figures) + "\n</div>"


def svg(name: str, paint: Callable) -> str:
    """The drawing of `paint` as an <svg> element that fills its container's width.

    Args:
      name: name of the plot, unique on the page, since all plots share one space of identifiers.
      paint: fills a matplotlib figure.

    Raises:
      InputError: matplotlib is not installed.
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
    # All plots of a page share one space of identifiers.
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", f"{head}>{body}")
