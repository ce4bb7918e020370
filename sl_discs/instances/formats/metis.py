"""METIS and KaHIP graphs: `n m [fmt [ncon]]`, then one line per node with its neighbours, numbered from 1.

The digits of fmt say, from the right, whether edges have weights (each neighbour is followed by one), nodes have
weights (ncon of them, 1 by default, at the start of the line) and nodes have sizes (before the weights). An edge is
listed in the lines of both its ends with the same weight, and m counts it once. A node without neighbours has an
empty line; lines that start with `%` are comments. Weights are whole numbers. Weights and sizes of nodes are
irrelevant to the problems solved here and are skipped.

Source: G. Karypis, METIS manual 5.1.0, section 4.1.1.
"""

from __future__ import annotations

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader, Lines
from sl_discs.instances.formats.number_rows import (
    check_count,
    header_counts,
    show,
)
from sl_discs.instances.formats.number_words import whole_numbers
from sl_discs.instances.formats.source import Source
from sl_discs.instances.graph import Graph

_HEADER = "'NODES EDGES', 'NODES EDGES FMT' or 'NODES EDGES FMT NCON'"
_FMTS = ("0", "1", "10", "11", "100", "101", "110", "111")


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file, its edges ordered by their smaller node, its labels 1 to n.

    Raises:
      InputError: a malformed header or line, a neighbour out of range, a self-loop, a neighbour that is repeated in a
        line or listed at one end of an edge only, conflicting weights, or numbers of lines or edges that differ from
        the header.
    """
    reader = LineReader(source, b"%", keep_blank=True)
    number, words = reader.one(f"the header {_HEADER}")
    num_nodes, num_edges, *rest = header_counts(source, number, words, (2, 3, 4), _HEADER)
    fmt = words[2].decode().lstrip("0") or "0" if rest else "0"
    if fmt not in _FMTS:
        raise InputError(f"{source.path}:{number}: fmt {fmt}; it is one of {', '.join(_FMTS)}")
    fmt = fmt.zfill(3)
    num_weights = (rest[1] if len(rest) == 2 else 1) if fmt[1] == "1" else 0
    adjacency = _Adjacency(source, int(fmt[0] == "1") + num_weights, fmt[2] == "1")
    for lines in reader.groups(num_nodes):
        adjacency.add(lines)
    check_count(source, number, num_nodes, adjacency.num_nodes, "lines, one a node")
    for lines in reader.groups():
        if lines.counts.any():
            row = int(np.argmax(lines.counts > 0))
            raise InputError(
                f"{source.path}:{lines.numbers[row]}: {show(b' '.join(lines.line(row)))} after the last of "
                f"{num_nodes} nodes; remove it or correct the header"
            )
    graph = adjacency.graph(source.name)
    check_count(source, number, num_edges, graph.num_edges, "edges")
    return [Instance(graph, range(1, num_nodes + 1), "metis", source.path)]


class _Adjacency:
    """Lines of neighbours as arrays of directed edges."""

    def __init__(self, source: Source, skipped: int, weighted: bool):
        self._path, self._skipped, self._step = source.path, skipped, 2 if weighted else 1
        self.num_nodes = 0
        self._numbers: list[np.ndarray] = []
        self._from: list[np.ndarray] = []
        self._to: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []

    def add(self, lines: Lines) -> None:
        counts = lines.counts
        bad = (counts < self._skipped) | ((counts - self._skipped) % self._step != 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self._path}:{lines.numbers[row]}: {counts[row]} numbers; a line has {self._skipped} of the node "
                f"and then {self._step} for each neighbour, as the fmt of the header says"
            )
        words = lines.all_words()
        values, wrong = whole_numbers(words)
        nodes = np.repeat(np.arange(len(lines)), counts)
        if wrong.any():
            k = int(np.argmax(wrong))
            (word,) = words[k : k + 1].tolist()
            raise InputError(
                f"{self._path}:{lines.numbers[nodes[k]]}: {show(word)} is not a whole number; correct the line"
            )
        nodes += self.num_nodes
        place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts) - self._skipped
        neighbour = (place >= 0) & (place % self._step == 0)
        self._from.append(nodes[neighbour])
        self._to.append(values[neighbour] - 1)
        if self._step == 2:
            self._weights.append(values[(place >= 0) & (place % 2 == 1)])
        self._numbers.append(lines.numbers)
        self.num_nodes += len(lines)

    def graph(self, name: str) -> Graph:
        """The graph; raises with the node's line if the two directions of an edge disagree."""
        n = self.num_nodes
        u, v = np.concatenate(self._from), np.concatenate(self._to)
        weights = np.concatenate(self._weights) if self._weights else None
        self._refuse(
            u, (v < 0) | (v >= n), v, f"neighbour {{}}, but nodes are 1 to {n}; correct the line or the header"
        )
        self._refuse(u, u == v, v, "node {} is its own neighbour; remove that")
        codes, mirrored = u * np.int64(n) + v, v * np.int64(n) + u
        order, back = np.argsort(codes, kind="stable"), np.argsort(mirrored, kind="stable")
        again = np.zeros(len(codes), bool)
        again[order[1:]] = np.diff(codes[order]) == 0
        self._refuse(u, again, v, "neighbour {} is listed twice; give it once")
        if not np.array_equal(codes[order], mirrored[back]):
            alone = ~np.isin(codes, mirrored)
            self._refuse(u, alone, v, "neighbour {} does not have this node in its own line; add it there")
        forth = u[order] < v[order]
        if weights is not None:
            doubles = weights.astype(np.float64)
            exact = doubles < 2.0**63
            exact[exact] = doubles[exact].astype(np.int64) == weights[exact]
            self._refuse(
                u, ~exact, weights - 1, "{} is beyond 2^53 and not exact in double precision; scale the weights"
            )
            differs = np.zeros(len(codes), bool)
            differs[order] = weights[order] != weights[back]
            self._refuse(
                u, differs, v, "the weight to neighbour {} differs in the line of that node; make them equal"
            )
            weights = doubles[order][forth]
        return Graph.from_arrays(name, n, np.stack([u, v], axis=1)[order][forth], weights)

    def _refuse(self, u, bad, v, message: str) -> None:
        if bad.any():
            edge = int(np.argmax(bad))
            number = np.concatenate(self._numbers)[u[edge]]
            raise InputError(f"{self._path}:{number}: {message.format(v[edge] + 1)}")
