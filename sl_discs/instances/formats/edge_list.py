"""Edge lists: one edge per line, `u v` or `u v w`; lines that start with `#` or `%` are comments.

Labels of nodes are either whole numbers from 0 on, and nodes are sorted by them, or words of UTF-8 text, and nodes
are in the order of their first appearance. The first line decides which. Nodes without an edge do not exist. An edge
may be repeated in either direction with the same weight, as in many collections; it still counts as one edge.

`networkx.write_edgelist(graph, path, data=False)` and `write_weighted_edgelist` write this format.
"""

from __future__ import annotations

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_labels import number_labels
from sl_discs.instances.formats.number_rows import Columns, show
from sl_discs.instances.formats.simple_graph import simple_graph
from sl_discs.instances.formats.source import Source

_LINE = "an edge, 'u v' or 'u v w', with a weight everywhere or nowhere"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file.

    Raises:
      InputError: a malformed line, a number of columns that changes, a self-loop, conflicting weights of one edge,
        or no edges.
    """
    reader = LineReader(source, b"#%")
    _, first = reader.peek(_LINE)
    numbered = all(word.isdigit() for word in first[:2])
    names: dict[bytes, int] = {}
    rows = Columns(source, ("ii", "iif") if numbered else ("tt", "ttf"), _LINE, names)
    rows.extend(reader.groups())
    u, v, *weights = rows.arrays()
    labels, ends = number_labels(u, v) if numbered else (_texts(source, names), (u, v))
    graph = simple_graph(source.name, len(labels), ends, weights[0] if weights else None, rows, merge=True)
    return [Instance(graph, labels, "edge_list", source.path)]


def _texts(source: Source, names: dict[bytes, int]) -> tuple[str, ...]:
    try:
        return tuple(name.decode("utf-8") for name in names)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source.path}: label {show(error.object)} is not UTF-8 text; save the file as UTF-8"
        ) from None
