"""METIS and KaHIP graphs: `n m [fmt [ncon]]`, then one line a node with its neighbours, numbered from 1.

The digits of fmt say, from the right, whether edges have weights (each neighbour is followed by one), nodes have
weights (ncon of them, 1 by default, come first in the line) and nodes have sizes (which comes before those). An
edge stands in the lines of both its ends with the same weight, and m counts it once. A node without neighbours has
an empty line; lines that start with `%` are comments. Weights are whole numbers. Weights and sizes of nodes say
nothing about the problems solved here and are passed over.

Source: G. Karypis, METIS manual 5.1.0, section 4.1.1.
"""

from __future__ import annotations

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.number_rows import (
    LineReader,
    check_count,
    flatten,
    header_counts,
    show,
    whole_numbers,
)
from sl_discs.instances.formats.source import Source
from sl_discs.instances.graph import Graph

_HEADER = "'NODES EDGES', 'NODES EDGES FMT' or 'NODES EDGES FMT NCON'"
_FMTS = ("0", "1", "10", "11", "100", "101", "110", "111")


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file, its edges ordered by their smaller node, its labels 1 to n.

    Raises:
      InputError: a malformed header or line, a neighbour out of range, a self-loop, a neighbour that stands in a line
        twice or in the line of one end only, weights that disagree, or other numbers of lines or edges than the
        header has.
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
    for numbers, rows in reader.groups(num_nodes):
        adjacency.add(numbers, rows)
    check_count(source, number, num_nodes, adjacency.num_nodes, "lines, one a node")
    for numbers, rows in reader.groups():
        for k, words in enumerate(rows):
            if words:
                raise InputError(
                    f"{source.path}:{numbers[k]}: {show(b' '.join(words))} after the last of {num_nodes} nodes; "
                    "remove it or correct the header"
                )
    graph = adjacency.graph(source.name)
    check_count(source, number, num_edges, graph.num_edges, "edges")
    return [Instance(graph, range(1, num_nodes + 1), "metis", source.path)]


class _Adjacency:
    """Lines of neighbours as arrays of directed edges."""

    def __init__(self, source: Source, skipped: int, weighted: bool):
        self._path, self._skipped, self._step = source.path, skipped, 2 if weighted else 1
        self.num_nodes = 0
        self._numbers: list = []
        self._from, self._to, self._weights = [], [], []

    def add(self, numbers, rows) -> None:
        counts = np.fromiter(map(len, rows), np.int64, len(rows))
        bad = (counts < self._skipped) | ((counts - self._skipped) % self._step != 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self._path}:{numbers[row]}: {counts[row]} numbers; a line has {self._skipped} of the node and "
                f"then {self._step} for each neighbour, as the fmt of the header says"
            )
        try:
            values = whole_numbers(flatten(rows))
        except (ValueError, OverflowError):
            _refuse_word(self._path, numbers, rows)
        nodes = np.repeat(np.arange(self.num_nodes, self.num_nodes + len(rows)), counts)
        place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts) - self._skipped
        neighbour = (place >= 0) & (place % self._step == 0)
        self._from.append(nodes[neighbour])
        self._to.append(values[neighbour] - 1)
        if self._step == 2:
            self._weights.append(values[(place >= 0) & (place % 2 == 1)].astype(np.float64))
        self._numbers.append(numbers)
        self.num_nodes += len(rows)

    def graph(self, name: str) -> Graph:
        """The edges whose two directions agree; each node's line is at hand for a message."""
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
        self._refuse(u, again, v, "neighbour {} stands there twice; give it once")
        if not np.array_equal(codes[order], mirrored[back]):
            alone = ~np.isin(codes, mirrored)
            self._refuse(u, alone, v, "neighbour {} does not have this node in its own line; add it there")
        forth = u[order] < v[order]
        if weights is not None:
            differs = np.zeros(len(codes), bool)
            differs[order] = weights[order] != weights[back]
            self._refuse(
                u, differs, v, "the weight to neighbour {} is another in the line of that node; make them equal"
            )
            weights = weights[order][forth]
        return Graph.from_arrays(name, n, np.stack([u, v], axis=1)[order][forth], weights)

    def _refuse(self, u, bad, v, message: str) -> None:
        if bad.any():
            edge = int(np.argmax(bad))
            node = int(u[edge])
            for numbers in self._numbers:
                if node < len(numbers):
                    raise InputError(f"{self._path}:{numbers[node]}: {message.format(v[edge] + 1)}")
                node -= len(numbers)


def _refuse_word(path, numbers, rows):
    for number, words in zip(numbers, rows, strict=True):
        for word in words:
            try:
                whole_numbers([word])
            except (ValueError, OverflowError):
                raise InputError(f"{path}:{number}: {show(word)} is not a whole number; correct the line") from None
    raise InputError(f"{path}: a line holds something that is not a whole number; correct it")
