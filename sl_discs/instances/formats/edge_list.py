"""Edge lists: a line an edge, `u v` or `u v w`; lines that start with `#` or `%` are comments.

Nodes are named by whole numbers from 0 on, and then come in their order, or else by words of UTF-8 text, and then
come in the order in which the file names them: the first line decides, and nodes without an edge do not exist. An
edge may stand there again in either direction with the same weight, as in many collections, and is one edge.

This is what `networkx.write_edgelist(graph, path, data=False)` and `write_weighted_edgelist` write.
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
      InputError: a malformed line, a number of columns that changes, a self-loop, weights of one edge that disagree,
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
