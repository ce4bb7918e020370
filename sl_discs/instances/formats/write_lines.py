"""Edges as text, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sl_discs.files import write_atomically
from sl_discs.instances.graph import Graph

_EDGES = 2**16


def edge_words(graph: Graph, template: str) -> Iterator[str]:
    """Lines of edges, many at a time; the template takes two nodes, from 1 on, and the weight's shortest text."""
    for start in range(0, graph.num_edges, _EDGES):
        u, v = (graph.edges[start : start + _EDGES] + 1).T.tolist()
        if graph.weights is None:
            words = ["1"] * len(u)
        else:
            words = [repr(w).removesuffix(".0") for w in graph.weights[start : start + _EDGES].tolist()]
        yield "".join(map(template.format, u, v, words))


def write_lines(path: Path, header: str, pieces: Iterator[str]) -> None:
    """Writes ASCII text atomically.

    Raises:
      InputError: the file cannot be written.
    """

    def write(file: BinaryIO) -> None:
        file.write(header.encode("ascii"))
        file.writelines(piece.encode("ascii") for piece in pieces)

    write_atomically(path, write)
