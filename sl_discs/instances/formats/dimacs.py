"""DIMACS graphs (.clq, .col): `p edge n m` or `p col n m`, then `e i j` with nodes from 1 to n; `c` is a comment.

An edge may be repeated in either direction, as in many colouring files; it still counts as one edge. m may be the
number of distinct edges, twice that, or the number of `e` lines, since files differ. Lines `n`, `d`, `v` and `x`
(weights of nodes, geometry) are irrelevant to the problems solved here and are skipped.

Source: "Clique and Coloring Problems Graph Format", DIMACS Second Implementation Challenge, 1993.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader, Lines
from sl_discs.instances.formats.number_rows import (
    Columns,
    header_counts,
    show,
)
from sl_discs.instances.formats.simple_graph import simple_graph
from sl_discs.instances.formats.source import Source
from sl_discs.instances.formats.write_lines import edge_words, write_lines
from sl_discs.instances.graph import Graph

_HEADER = "'p edge NODES EDGES'"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file, its labels 1 to n.

    Raises:
      InputError: a malformed header or line, a node out of range, a self-loop, or a number of edges that matches the
        header in none of the three ways.
    """
    reader = LineReader(source, b"c")
    number, words = reader.one(f"the header {_HEADER}")
    if words[0] != b"p" or len(words) != 4:
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a header; write {_HEADER}")
    num_nodes, promised = header_counts(source, number, words[2:], (2,), _HEADER)
    rows = Columns(source, ("-ii",), "an edge, 'e i j'")
    for lines in reader.groups():
        rows.add(_edges(source, lines))
    ends = rows.check_indices(1, num_nodes)
    graph = simple_graph(source.name, num_nodes, ends, None, rows, merge=True)
    if promised not in (len(rows), graph.num_edges, 2 * graph.num_edges):
        raise InputError(
            f"{source.path}:{number}: the header promises {promised} edges, but there are {graph.num_edges} "
            f"on {len(rows)} lines; is the file cut short?"
        )
    return [Instance(graph, range(1, num_nodes + 1), "dimacs", source.path)]


def write(path: str | os.PathLike, graph: Graph) -> None:
    """Writes an unweighted graph atomically.

    Raises:
      InputError: the graph has weights other than 1, or the file cannot be written.
    """
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(f"{path}: DIMACS graphs have no weights, but {graph.name} has; write rudy or npz")
    write_lines(Path(path), f"p edge {graph.num_nodes} {graph.num_edges}\n", edge_words(graph, "e {} {}\n"))


def _edges(source: Source, lines: Lines) -> Lines:
    """The lines of edges."""
    tags = lines.column(0)
    letters = np.where(tags.ends - tags.starts == 1, tags.block[tags.starts], 0)
    edges = letters == ord("e")
    if edges.all():
        return lines
    unknown = ~np.isin(letters, list(b"endvx"))
    if unknown.any():
        row = int(np.argmax(unknown))
        if letters[row] == ord("p"):
            raise InputError(f"{source.path}:{lines.numbers[row]}: a second header; a file holds one graph")
        raise InputError(
            f"{source.path}:{lines.numbers[row]}: {show(b' '.join(lines.line(row)))} is not a line of the format; "
            "write 'e i j'"
        )
    return lines[edges]
