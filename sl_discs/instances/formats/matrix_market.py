"""MatrixMarket (.mtx): a square matrix, `coordinate` or `array`, read as a graph or, for qubo and ising, as a matrix.

Read as a graph, each non-zero value off the diagonal is an edge with that weight (a `pattern` has no weights). An
entry and its mirror image are the same edge; one of them is enough, and if both are given they must agree. The
diagonal must be zero.

Read as a matrix M, the model is v'Mv over all entries, to be minimised, with v in {0, 1}^n for qubo and in {-1, 1}^n
for ising, where the diagonal is therefore a constant. A `symmetric` file gives one of each two mirrored entries,
which counts for both.

Source: R.F. Boisvert, R. Pozo, K.A. Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR 5935,
1996. Rows and columns count from 1; an `array` lists one column after the other, one value per line, and starts each
column at the diagonal if it is symmetric. `complex`, `hermitian` and `skew-symmetric` matrices are refused, as they
define neither a graph nor a model.

`scipy.io.mmread` is not used: it accepts `1x`, words after a value and 1.5 in an `integer` file, rounds integers
beyond 2^53, does not report the line of an entry, and allocates whatever size a header declares.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_rows import (
    Columns,
    check_count,
    header_counts,
    show,
)
from sl_discs.instances.formats.quadratic_form import both_directions
from sl_discs.instances.formats.simple_graph import simple_graph
from sl_discs.instances.formats.source import Source
from sl_discs.instances.graph import Graph
from sl_discs.problem_names import FORM_PROBLEMS

_BANNER = "'%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric'"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The graph of a file, or its model if the problem is qubo or ising; labels 1 to n.

    Raises:
      InputError: a malformed banner, header or line, a matrix that is not square or not of a supported kind, an entry
        out of range or given twice, a number of entries that differs from the header, or, for a graph, an entry on
        the diagonal or two mirrored entries that differ.
    """
    banner = source.head.split(b"\n", 1)[0].lower().split()
    kind = [word.decode("ascii", "replace") for word in banner[2:]]
    if (
        banner[:2] != [b"%%matrixmarket", b"matrix"]
        or len(kind) != 3
        or kind[0] not in ("coordinate", "array")
        or kind[1] not in ("real", "integer", "pattern")
        or kind[2] not in ("general", "symmetric")
        or kind[:2] == ["array", "pattern"]
    ):
        raise InputError(f"{source.path}:1: {show(b' '.join(banner))} is not a supported matrix; write {_BANNER}")
    layout, field, symmetry = kind
    reader = LineReader(source, b"%")
    usage = "'ROWS COLUMNS ENTRIES'" if layout == "coordinate" else "'ROWS COLUMNS'"
    number, words = reader.one(f"the size, {usage}")
    sizes = header_counts(source, number, words, (3 if layout == "coordinate" else 2,), usage)
    n = sizes[0]
    if sizes[1] != n:
        raise InputError(
            f"{source.path}:{number}: a matrix of {n} by {sizes[1]}; a graph or model needs a square one"
        )
    if layout == "coordinate":
        usage = "an entry, 'i j'" if field == "pattern" else "an entry, 'i j value'"
        rows = Columns(source, ("ii" if field == "pattern" else "iif",), usage).extend(reader.groups())
        check_count(source, number, sizes[2], len(rows), "entries")
        i, j = rows.check_indices(1, n)
        values = np.ones(len(rows)) if field == "pattern" else rows.arrays()[2]
    else:
        rows = Columns(source, ("f",), "one value").extend(reader.groups())
        check_count(source, number, n * n if symmetry == "general" else n * (n + 1) // 2, len(rows), "values")
        (values,) = rows.arrays()
        i, j = _places(n, len(rows), symmetry)
    _refuse_repeats(rows, i, j, n, symmetry)
    if problem in FORM_PROBLEMS:
        content = _form(source.name, n, i, j, values, rows, symmetry, FORM_PROBLEMS[problem])
    else:
        content = _graph(source.name, n, i, j, values, rows, weighted=field != "pattern")
    return [Instance(content, range(1, n + 1), "matrix_market", source.path)]


def _places(n: int, count: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the values of an array, from 0 on."""
    if symmetry == "general":
        j, i = np.divmod(np.arange(count), n)
        return i, j
    lengths = np.arange(n, 0, -1)
    j = np.repeat(np.arange(n), lengths)
    return np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths) + j, j


def _refuse_repeats(rows: Columns, i, j, n: int, symmetry: str) -> None:
    """Refuses repeated entries and, in a symmetric file, mirrored ones."""
    codes = i * np.int64(n) + j if symmetry == "general" else np.minimum(i, j) * np.int64(n) + np.maximum(i, j)
    order = np.argsort(codes, kind="stable")
    again = np.zeros(len(codes), bool)
    again[order[1:]] = np.diff(codes[order]) == 0
    rows.refuse(again, "entry {0} {1} was given before; give it once")


def _graph(name: str, n: int, i, j, values, rows: Columns, weighted: bool) -> Graph:
    """Edges from the non-zero entries; two mirrored entries must agree, even if one is zero."""
    rows.refuse((i == j) & (values != 0), "an entry on the diagonal, an edge from a node to itself; remove it")
    off = np.flatnonzero(i != j)
    entries = _Entries(rows, off, i, j, values)
    graph = simple_graph(name, n, (i[off], j[off]), values[off], entries, merge=True)
    given = np.asarray(graph.weights)
    kept = given != 0
    return dataclasses.replace(graph, edges=graph.edges[kept], weights=given[kept] if weighted else None)


class _Entries:
    """Rows and columns of the off-diagonal entries, for messages; the lines of an `array` do not contain them."""

    def __init__(self, rows: Columns, off: np.ndarray, i, j, values):
        self._rows, self._off, self._entries = rows, off, (i, j, values)

    def refuse(self, bad: np.ndarray, message: str) -> None:
        if bad.any():
            row = int(self._off[np.argmax(bad)])
            i, j, value = (column[row].item() for column in self._entries)
            self._rows.refuse_row(row, message.format(i + 1, j + 1, value))


def _form(name: str, n: int, i, j, values, rows: Columns, symmetry: str, spins: bool) -> QuadraticForm:
    if symmetry == "symmetric":
        values = both_directions(i, j, values)
        rows.refuse(~np.isfinite(values), "an entry is too large; scale the matrix")
    own = i == j
    linear = np.zeros(n)
    offset = 0.0
    if not spins:
        linear[i[own]] = values[own]
    else:
        try:
            offset = math.fsum(values[own])
        except OverflowError:
            rows.refuse(own, "the diagonal adds up to too much, from here on; scale the matrix")
    pairs = np.stack([i[~own], j[~own]], axis=1)
    return QuadraticForm.from_arrays(name, linear, pairs, values[~own], offset, spins=spins)
