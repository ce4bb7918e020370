"""Formats that SciPy (Matrix Market), networkx (GML, GraphML, node-link JSON) and dimod (COO) read.

A reader takes a `Source` and returns pairs of a graph or model and its labels, as in `graph_files`. Messages name the
file, and the line where the package tells it.

Labels of graphs are those that the file gives; in JSON a list is a tuple. An attribute `weight` of edges or nodes is
their weight, which all must have if one has. Other attributes are skipped.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sl_discs.errors import InputError, MissingExtra
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import check_size, checked_node_weights, graph_from_networkx
from sl_discs.instances.graph_files import Labelled, offset_of, simple_graph
from sl_discs.instances.text import Lines, Source, show
from sl_discs.problem_names import FORM_PROBLEMS

if TYPE_CHECKING:
    import networkx as nx

# What parsers raise for text in another form: beside their own exceptions those of the text's parts.
_PARSING = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, SyntaxError, OverflowError)


def _refusal(source: Source, what: str, error: Exception) -> InputError:
    """Says what a package said about a file that it could not read."""
    said = " ".join(str(error).split())[:200]
    return InputError(f"{source.path}: not {what} ({said}); correct the file")


# Whole numbers that may be beyond 2^53, which SciPy and dimod round.
_LONG = re.compile(rb"(?<![\d.eE])\d{16,300}(?![\d.eE])")


def _check_exact(source: Source, text: bytes) -> None:
    """Refuses a text with a whole number that double precision does not hold."""
    for word in _LONG.findall(text):
        if int(word) != int(float(word)):
            raise InputError(
                f"{source.path}: {show(word)} is beyond 2^53 and not exact in double precision; scale the model"
            )


# Matrix Market: a square matrix, read as a graph or, for qubo and ising, as a matrix.
#
# Read as a graph, each non-zero value off the diagonal is an edge with that weight (a `pattern` has no weights). An
# entry and its mirror image are the same edge; one of them is enough, and if both are given they must agree. The
# diagonal must be zero. Read as a matrix M, the model is v'Mv over all entries, to be minimised, with v in {0, 1}^n
# for qubo and in {-1, 1}^n for ising, where the diagonal is therefore a constant.

_FIELDS = ("real", "integer", "unsigned-integer", "pattern")


def read_matrix_market(source: Source) -> Labelled:
    """Returns the graph of a file, or its model if the problem is qubo or ising; labels are 1 to n."""
    import scipy.io

    # SciPy 1.17 ends with a segmentation fault at blanks after the last line, and likewise at matrices of no rows.
    text = source.text.rstrip() + b"\n"
    try:
        rows, columns, entries, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(text))
        if field not in _FIELDS or symmetry not in ("general", "symmetric"):
            raise InputError(
                f"{source.path}:1: a {field}, {symmetry} matrix, which defines neither a graph nor a model; give one "
                "that is real, integer or pattern, and general or symmetric"
            )
        if rows != columns or not rows:
            raise InputError(f"{source.path}: a matrix of {rows} by {columns}; a graph or model needs a square one")
        check_size(str(source.path), rows)
        if entries > len(text):
            raise InputError(f"{source.path}: the header promises {entries} entries; is the file cut short?")
        with warnings.catch_warnings():
            # Of SciPy 1.18, on a default that changes nothing here; its argument came with 1.15.
            warnings.simplefilter("ignore", DeprecationWarning)
            matrix = scipy.io.mmread(io.BytesIO(text))
    except InputError:
        raise
    except (*_PARSING, MemoryError) as error:
        raise _refusal(source, "a readable MatrixMarket file", error) from None
    if layout == "coordinate":
        i, j, values = matrix.row.astype(np.int64), matrix.col.astype(np.int64), np.asarray(matrix.data)
    else:
        i, j = (part.ravel() for part in np.indices(matrix.shape))
        values = np.asarray(matrix).ravel()
    if len(np.unique(i * rows + j)) < len(i):
        raise InputError(f"{source.path}: an entry is given twice; give each once")
    _check_exact(source, text)
    kept = values != 0
    i, j, values = i[kept], j[kept], values[kept]
    labels = range(1, rows + 1)
    if source.problem in FORM_PROBLEMS:
        spins = FORM_PROBLEMS[source.problem]
        # Of spins, the diagonal stays among the pairs, which are constants there.
        own = (i == j) & (not spins)
        linear = np.zeros(rows)
        linear[i[own]] = values[own]
        pairs = np.stack([i[~own], j[~own]], axis=1)
        form = QuadraticForm.from_arrays(source.name, linear, pairs, values[~own], offset_of(source), spins=spins)
        return [(form, labels)]

    def refuse(bad: np.ndarray, message: str) -> None:
        if bad.any():
            place = int(np.argmax(bad))
            raise InputError(f"{source.path}: {message.format(i[place] + 1, j[place] + 1, values[place])}")

    weights = None if field == "pattern" else values
    return [(simple_graph(source.name, rows, (i, j), weights, refuse, merge=True), labels)]


# Graphs by networkx.


def read_gml(source: Source) -> Labelled:
    """Returns the graph of a GML file, whose labels are `id` unless each node has a `label` of its own."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        try:
            return nx.parse_gml(text)
        except nx.NetworkXError:  # two labels are equal, or one is missing
            return nx.parse_gml(text, label="id")

    return _networkx_graph(source, "GML", parse)


def read_graphml(source: Source) -> Labelled:
    """Returns the graph of a GraphML file; its labels are text."""
    import networkx as nx

    return _networkx_graph(source, "GraphML", nx.parse_graphml)


def read_node_link(source: Source) -> Labelled:
    """Returns the graph of a JSON file, with its edges under `edges`, or `links` as older versions of networkx do."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        data = json.loads(text)
        key = "edges" if "edges" in data else "links"
        if not (isinstance(data, dict) and isinstance(data.get("nodes"), list) and isinstance(data.get(key), list)):
            raise ValueError("no lists 'nodes' and 'edges' or 'links'")
        graph = nx.node_link_graph(data, directed=False, multigraph=False, edges=key)
        counts = len(data["nodes"]), len(data[key])
        if not graph.is_multigraph() and (len(graph), graph.number_of_edges()) != counts:
            raise ValueError("a node or edge is listed twice, or an edge leads to a node that is not listed")
        return graph

    return _networkx_graph(source, "node-link JSON", parse)


def _networkx_graph(source: Source, what: str, parse: Callable[[str], nx.Graph]) -> Labelled:
    import networkx as nx

    try:
        graph = parse(source.text.decode("utf-8"))
    except (*_PARSING, nx.NetworkXException) as error:
        raise _refusal(source, f"a graph in {what}", error) from None
    labels: list[Hashable] = list(graph)
    loop = next(nx.nodes_with_selfloops(graph), None)
    if loop is not None:
        raise InputError(f"{source.path}: an edge from node {loop!r} to itself; remove it")
    weighted = any("weight" in data for *_, data in graph.edges(data=True))
    # Numbers that are labels need not be in order.
    found = graph_from_networkx(nx.convert_node_labels_to_integers(graph), source.name, weighted)
    weights: list[Any] = [weight for _, weight in graph.nodes(data="weight")]
    if any(weight is not None for weight in weights):
        if None in weights:
            missing = labels[weights.index(None)]
            raise InputError(f"{source.path}: node {missing!r} has no weight, but others have; give every node one")
        found = dataclasses.replace(found, node_weights=checked_node_weights(source.name, weights, labels))
    plain: Sequence[Hashable] = range(len(labels))
    return [(found, plain if labels == list(plain) else tuple(labels))]


# Lists of coefficients `i j v`, as dimod writes a model without offset, to be minimised.
#
# A comment `# vartype=BINARY` or `# vartype=SPIN` gives the type of the variables; without it they are binary, or
# spins if the problem is `ising`. Labels are whole numbers from 0 on; only variables that appear in a line exist.
# dimod skips whatever it cannot read, such as numbers with an exponent, so lines are checked first.

VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)
_COEFFICIENT = re.compile(rb"\d+\s+\d+\s+[-+]?(\d+(\.\d+)?|\.\d+)")


def is_coo(source: Source) -> bool:
    """Returns whether each line is a coefficient."""
    return all(_COEFFICIENT.fullmatch(line) for _, line in Lines(source, (b"#", b"%")))


def read_coo(source: Source) -> Labelled:
    """Returns the model of a file; needs dimod."""
    try:
        from dimod.serialization import coo
    except ImportError:
        raise MissingExtra(
            f"{source.path}: a list of coefficients (coo), which dimod reads, the extra `dimod`; install it with: "
            "pip install dimod"
        ) from None
    for number, line in Lines(source, (b"#",)):
        if not _COEFFICIENT.fullmatch(line):
            raise InputError(
                f"{source.path}:{number}: {show(line)} is not a coefficient 'i j v', where v has no exponent; "
                "correct the line"
            )
        _check_exact(source, line.split()[2])
    default: Any = "SPIN" if FORM_PROBLEMS.get(source.problem or "", False) else "BINARY"
    model: Any
    try:
        model = coo.loads(
            source.text.decode("utf-8", "replace"), vartype=None if VARTYPE.search(source.text) else default
        )
    except _PARSING as error:
        raise _refusal(source, "a list of coefficients", error) from None
    labels = sorted(model.variables)
    if not labels:
        raise InputError(f"{source.path}: no coefficients; write lines 'i j v'")
    place = {label: number for number, label in enumerate(labels)}
    linear = [model.linear[label] for label in labels]
    pairs = np.array([(place[u], place[v]) for u, v in model.quadratic], np.int64).reshape(-1, 2)
    couplings = np.array(list(model.quadratic.values()), np.float64)
    spins = model.vartype.name == "SPIN"
    form = QuadraticForm.from_arrays(source.name, linear, pairs, couplings, offset_of(source), spins=spins)
    gapless = labels == list(range(labels[0], labels[0] + len(labels)))
    return [(form, range(labels[0], labels[-1] + 1) if gapless else tuple(labels))]
