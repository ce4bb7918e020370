"""rudy's format, used by Gset and by the Biq Mac library's MaxCut instances.

A header `n m` is followed by m lines `i j w` with nodes from 1 to n; a file may omit all weights. Every edge is
listed once. Lines that start with `#` or `%` are comments. The headers of the DIMACS torus graphs end with a 0.

Source: G. Rinaldi, rudy, a graph generator; Biq Mac library (A. Wiegele, 2007), where a line is an edge and its
weight.
"""

from __future__ import annotations

import os
from pathlib import Path

from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_rows import Columns, check_count, header_counts
from sl_discs.instances.formats.simple_graph import simple_graph
from sl_discs.instances.formats.source import Source
from sl_discs.instances.formats.write_lines import edge_words, write_lines
from sl_discs.instances.graph import Graph

_HEADER = "the numbers of nodes and edges, 'n m' or 'n m 0'"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file, its labels 1 to n.

    Raises:
      InputError: a malformed header or line, a node out of range, a self-loop, a repeated edge, or a number of edges
        that differs from the header.
    """
    reader = LineReader(source, b"#%")
    number, words = reader.one(_HEADER)
    num_nodes, num_edges = header_counts(source, number, words[:2] if words[2:] == [b"0"] else words, (2,), _HEADER)
    rows = Columns(source, ("ii", "iif"), "an edge and its weight, 'i j w'").extend(reader.groups())
    check_count(source, number, num_edges, len(rows), "edges")
    ends = rows.check_indices(1, num_nodes)
    weights = rows.arrays()[2] if rows.layout == "iif" else None
    graph = simple_graph(source.name, num_nodes, ends, weights, rows, merge=False)
    return [Instance(graph, range(1, num_nodes + 1), "rudy", source.path)]


def write(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph atomically; weights are read back exactly, and are written as 1 if the graph has none.

    Raises:
      InputError: the file cannot be written.
    """
    write_lines(Path(path), f"{graph.num_nodes} {graph.num_edges}\n", edge_words(graph, "{} {} {}\n"))
