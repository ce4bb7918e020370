"""Text formats of quadratic models: OR-Library's bqp, qbsolv, dimod's lists of coefficients, and MatrixMarket.

A reader takes a `Source` and returns pairs of a model, or for MatrixMarket a graph, and the labels of its variables.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph, edge_codes, first_rows
from sl_discs.instances.graph_files import number_labels, simple_graph
from sl_discs.instances.text import Lines, Rows, Source, check_count, header_counts, is_whole, read_rows, show
from sl_discs.problem_names import FORM_PROBLEMS

Labelled = list[tuple[QuadraticForm | Graph, Sequence[int | str]]]


def quadratic_form(
    name: str, num_variables: int, ends, values, rows: Rows, *, spins=False, maximise=False, add=False
) -> QuadraticForm:
    """The sum of values [E] times v_i v_j where i and j differ, and times v_i where i = j, both counted from 0.

    Repeated coefficients, in either direction, add up if `add`, and otherwise are an error that names their row.
    """
    i, j = ends
    rows.refuse(~np.isfinite(values), "coefficient {2} is too large; scale the model")
    own = i == j
    pairs = np.stack([i[~own], j[~own]], axis=1)
    if not add:
        again = _repeats(edge_codes(i, j, num_variables))
        rows.refuse(again, "the coefficient of {0} and {1} was given before; give each pair once, in one direction")
        linear = np.zeros(num_variables)
        linear[i[own]] = values[own]
        return QuadraticForm.from_arrays(name, linear, pairs, values[~own], spins=spins, maximise=maximise)
    with np.errstate(over="ignore"):
        largest = np.bincount(i[own], np.abs(values[own]), num_variables)
    summed = np.bincount(i[own], minlength=num_variables)[i] > 1
    rows.refuse(
        own & summed & (largest[i] >= 2**53),
        "the coefficients of {0} add up to too much, beyond 2^53; scale the model",
    )
    sums: list[list[float]] = [[] for _ in range(num_variables)]
    for place, number in zip(i[own].tolist(), values[own].tolist(), strict=True):
        sums[place].append(number)
    return QuadraticForm.from_sums(name, sums, pairs, values[~own], spins=spins, maximise=maximise)


def _both_directions(ends, values: np.ndarray) -> np.ndarray:
    """Coefficients v_i v_j of a symmetric matrix given by one of each two mirrored entries; inf on overflow."""
    with np.errstate(over="ignore"):
        return np.where(ends[0] == ends[1], values, 2 * values)


def _repeats(codes: np.ndarray) -> np.ndarray:
    return first_rows(codes) != np.arange(len(codes))


# OR-Library's `bqp` files: several problems "maximise x'Qx" with x in {0, 1}^n and Q symmetric.
#
# The file starts with the number of problems. Each problem is a line `n k` and then k lines `i j q`, with variables
# from 1 to n. A line gives both q(i,j) and q(j,i), so it means 2 q x_i x_j if i and j differ, and q x_i if i = j.
#
# Source: J.E. Beasley, OR-Library, page "Unconstrained binary quadratic programming": the sum over all i and all j is
# to be maximised, and q(i,j) = q(j,i) as the matrix is symmetric.

_BQP_HEADER = "the numbers of variables and coefficients, 'n k'"


def read_bqp(source: Source) -> Labelled:
    """The models of a file, to be maximised; their name is the file's, with a number from 1 if there are several."""
    path, lines = source.path, Lines(source)
    number, words = lines.one("the number of problems")
    if len(words) != 1 or not is_whole(words[0]) or len(words[0]) > 9 or not int(words[0]):
        raise InputError(f"{path}:{number}: {show(b' '.join(words))} is not a number of problems; write one")
    count = int(words[0])
    found: Labelled = []
    for k in range(1, count + 1):
        number, words = lines.one(_BQP_HEADER)
        num_variables, promised = header_counts(path, number, words, (2,), _BQP_HEADER)
        rows = read_rows(path, lines.blocks(promised), ("iif",), "a coefficient, 'i j q'")
        check_count(path, number, promised, len(rows), "coefficients")
        ends = rows.indices(1, num_variables)
        values = _both_directions(ends, rows.columns[2])
        name = source.name if count == 1 else f"{source.name}-{k}"
        form = quadratic_form(name, num_variables, ends, values, rows, maximise=True)
        found.append((form, range(1, num_variables + 1)))
    for extra, numbers in lines.blocks(1):
        raise InputError(
            f"{path}:{numbers[0]}: {show(extra[0].strip())} after the last of {count} problems; "
            "remove it or correct the header"
        )
    return found


# qbsolv's `.qubo` files, to be minimised: a header `p qubo 0 maxNodes nNodes nCouplers`.
#
# It is followed by nNodes lines `i i a` for a x_i and nCouplers lines `i j b` with i < j for b x_i x_j, with nodes
# from 0 to maxNodes - 1. A node or coupler must not be repeated; `c` starts a comment. Nodes without a line are
# variables without a linear term.
#
# Source: README of qbsolv (D-Wave Systems), section "qbsolv QUBO Input File Format".

_QBSOLV_HEADER = "'p qubo 0 MAX_NODES NODES COUPLERS'"


def read_qbsolv(source: Source) -> Labelled:
    """The model of a file, to be minimised, its labels 0 to maxNodes - 1."""
    path, lines = source.path, Lines(source, (b"c",))
    number, words = lines.one(f"the header {_QBSOLV_HEADER}")
    if words[:2] != [b"p", b"qubo"] or len(words) != 6 or words[2] not in (b"0", b"unconstrained"):
        raise InputError(f"{path}:{number}: {show(b' '.join(words))} is not a header; write {_QBSOLV_HEADER}")
    num_variables, num_nodes, num_couplers = header_counts(path, number, words[3:], (3,), _QBSOLV_HEADER)
    rows = read_rows(path, lines.blocks(), ("iif",), "a node or coupler, 'i j value'")
    i, j = rows.indices(0, num_variables - 1)
    rows.refuse(i > j, "coupler {0} {1}; the smaller node comes first")
    check_count(path, number, num_nodes, int((i == j).sum()), "nodes (lines 'i i a')")
    check_count(path, number, num_couplers, int((i != j).sum()), "couplers (lines 'i j b')")
    form = quadratic_form(source.name, num_variables, (i, j), rows.columns[2], rows)
    return [(form, range(num_variables))]


# Lists of coefficients `i j v`, as dimod writes a model without offset, to be minimised.
#
# The model is the sum of v x_i x_j, or v x_i if i = j (for spins too); repeated coefficients add up. A comment
# `# vartype=BINARY` or `# vartype=SPIN` gives the type of the variables; without it they are binary, or spins if the
# problem is `ising`. Labels are arbitrary whole numbers from 0 on; only variables that appear in a line exist.
#
# Source: documentation of dimod (D-Wave Systems), `dimod.serialization.coo`.

VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)


def read_coo(source: Source) -> Labelled:
    """The model of a file, to be minimised."""
    types = sorted(set(VARTYPE.findall(source.head)))
    if len(types) > 1 or not set(types) <= {b"BINARY", b"SPIN"}:
        raise InputError(f"{source.path}: vartype {show(b' and '.join(types))}; write BINARY or SPIN, and once")
    spins = types == [b"SPIN"] if types else FORM_PROBLEMS.get(source.problem or "", False)
    rows = read_rows(source.path, Lines(source, (b"#",)).blocks(), ("iif",), "a coefficient, 'i j v'")
    if not len(rows):
        raise InputError(f"{source.path}: no coefficients; write lines 'i j v'")
    labels, ends = number_labels(*rows.columns[:2])
    return [(quadratic_form(source.name, len(labels), ends, rows.columns[2], rows, spins=spins, add=True), labels)]


# MatrixMarket (.mtx): a square matrix, `coordinate` or `array`, read as a graph or, for qubo and ising, as a matrix.
#
# Read as a graph, each non-zero value off the diagonal is an edge with that weight (a `pattern` has no weights). An
# entry and its mirror image are the same edge; one of them is enough, and if both are given they must agree. The
# diagonal must be zero.
#
# Read as a matrix M, the model is v'Mv over all entries, to be minimised, with v in {0, 1}^n for qubo and in
# {-1, 1}^n for ising, where the diagonal is therefore a constant. A `symmetric` file gives one of each two mirrored
# entries, which counts for both.
#
# Source: R.F. Boisvert, R. Pozo, K.A. Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR 5935,
# 1996. Rows and columns count from 1; an `array` lists one column after the other, one value per line, and starts
# each column at the diagonal if it is symmetric. `complex`, `hermitian` and `skew-symmetric` matrices are refused, as
# they define neither a graph nor a model.
#
# `scipy.io.mmread` (1.17) is not used: it reads `1x` as 1, `0x10` as 0 and 1.5 as 1 in an `integer` file, ignores
# words after a value, rounds whole numbers beyond 2^53 in a `real` file, and does not tell the line of an entry.

_BANNER = "'%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric'"


def read_matrix_market(source: Source) -> Labelled:
    """The graph of a file, or its model if the problem is qubo or ising; labels 1 to n."""
    path = source.path
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
        raise InputError(f"{path}:1: {show(b' '.join(banner))} is not a supported matrix; write {_BANNER}")
    layout, field, symmetry = kind
    lines = Lines(source, (b"%",))
    usage = "'ROWS COLUMNS ENTRIES'" if layout == "coordinate" else "'ROWS COLUMNS'"
    number, words = lines.one(f"the size, {usage}")
    n, columns, *promised = header_counts(path, number, words, (3 if layout == "coordinate" else 2,), usage)
    if columns != n:
        raise InputError(f"{path}:{number}: a matrix of {n} by {columns}; a graph or model needs a square one")
    if layout == "coordinate":
        usage = "an entry, 'i j'" if field == "pattern" else "an entry, 'i j value'"
        rows = read_rows(path, lines.blocks(), ("ii" if field == "pattern" else "iif",), usage)
        check_count(path, number, promised[0], len(rows), "entries")
        i, j = rows.indices(1, n)
        values = np.ones(len(rows)) if field == "pattern" else rows.columns[2]
    else:
        rows = read_rows(path, lines.blocks(), ("f",), "one value")
        check_count(path, number, n * n if symmetry == "general" else n * (n + 1) // 2, len(rows), "values")
        (values,) = rows.columns
        i, j = _places(n, len(rows), symmetry)
        rows.columns = [i + 1, j + 1, values]
    again = _repeats(i * np.int64(n) + j if symmetry == "general" else edge_codes(i, j, n))
    rows.refuse(again, "entry {0} {1} was given before; give it once")
    content: QuadraticForm | Graph
    if source.problem in FORM_PROBLEMS:
        content = _matrix_form(source.name, n, (i, j), values, rows, symmetry, FORM_PROBLEMS[source.problem])
    else:
        content = _matrix_graph(source.name, n, (i, j), values, rows, weighted=field != "pattern")
    return [(content, range(1, n + 1))]


def _places(n: int, count: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the values of an array, from 0 on."""
    if symmetry == "general":
        j, i = np.divmod(np.arange(count), n)
        return i, j
    lengths = np.arange(n, 0, -1)
    j = np.repeat(np.arange(n), lengths)
    return np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths) + j, j


def _matrix_graph(name: str, n: int, ends, values: np.ndarray, rows: Rows, weighted: bool) -> Graph:
    """Edges from the non-zero entries; two mirrored entries must agree, even if one is zero."""
    i, j = ends
    rows.refuse((i == j) & (values != 0), "an entry on the diagonal, an edge from a node to itself; remove it")
    off = np.flatnonzero(i != j)

    def refuse(bad: np.ndarray, message: str) -> None:
        of_all = np.zeros(len(values), bool)
        of_all[off[bad]] = True
        rows.refuse(of_all, message)

    graph = simple_graph(name, n, (i[off], j[off]), values[off], refuse, merge=True)
    given = np.asarray(graph.weights)
    kept = given != 0
    return dataclasses.replace(graph, edges=graph.edges[kept], weights=given[kept] if weighted else None)


def _matrix_form(
    name: str, n: int, ends, values: np.ndarray, rows: Rows, symmetry: str, spins: bool
) -> QuadraticForm:
    i, j = ends
    if symmetry == "symmetric":
        values = _both_directions(ends, values)
        rows.refuse(~np.isfinite(values), "an entry is too large; scale the matrix")
    # Of spins, the diagonal stays among the pairs, which are constants there.
    own = (i == j) & (not spins)
    linear = np.zeros(n)
    linear[i[own]] = values[own]
    pairs = np.stack([i[~own], j[~own]], axis=1)
    return QuadraticForm.from_arrays(name, linear, pairs, values[~own], spins=spins)
