"""Reads files of graphs and quadratic models in any known format.

Text formats with our own readers are in `graph_files`; here are those that SciPy (Matrix Market) and networkx (GML,
GraphML, node-link JSON) read, the table of all formats, and how one is recognised.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import warnings
import xml.etree.ElementTree
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sl_discs.errors import (
    FormatError,
    InputError,
    NotSupported,
    errors_of,
    file_path,
    join_names,
    one_of,
    real_array,
)
from sl_discs.files import names_in_npz, parse_json
from sl_discs.instances import graph_files as own
from sl_discs.instances.archive import read_archive, read_forms
from sl_discs.instances.form import FORM_PROBLEMS, QuadraticForm, check_finite, form_problem
from sl_discs.instances.graph import GRAPH_PROBLEMS, Graph, checked_node_weights, have_repeats, other_numbers
from sl_discs.instances.other_files import check_separators, other_archive, other_json, table_in_python
from sl_discs.instances.text import Rows, Source, is_whole, show

if TYPE_CHECKING:
    import networkx as nx


@dataclasses.dataclass(frozen=True)
class Instance:
    """A graph or a quadratic model, with the labels that its file gives to the nodes or variables.

    Attributes:
      content: the graph or model; its nodes are 0 .. N - 1.
      labels: [N] the file's label of each: a number, counted from 1 in formats that count from 1, or text; in
        `node_link` also a tuple of these.
      format: name of the format, one of `FORMATS`.
      path: the file.
      others: names of the numbers, beside their weights, that its `edges` and `nodes` have.
    """

    content: Graph | QuadraticForm
    labels: Sequence[Hashable]
    format: str
    path: Path
    others: Mapping[str, tuple[str, ...]]


@contextlib.contextmanager
def _parsing(source: Source, what: str) -> Iterator[None]:
    """Turns what a package raises, whatever it is, for a file that it cannot read, into an error with its name."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise FormatError(f"{source.path}: not {what} ({said}); correct the file") from None


# Matrix Market: a square matrix, read as a graph or, for qubo and ising, as a matrix.
#
# Read as a graph, each non-zero value off the diagonal is an edge with that weight (a `pattern` has no weights). An
# entry and its mirror image are the same edge; one of them is enough, and if both are given they must agree. The
# diagonal must be zero. Read as a matrix M, the model is v'Mv over all entries, to be minimised, with v in {0, 1}^n
# for qubo and in {-1, 1}^n for ising, where the diagonal is therefore a constant.

_FIELDS = ("real", "integer", "unsigned-integer", "pattern")
# Whole numbers that may be beyond 2^53, which SciPy rounds.
_LONG = re.compile(rb"(?<![\d.eE])\d{16,300}(?![\d.eE])")


def read_matrix_market(source: Source) -> own.Labelled:
    """Returns the graph of a file, or its model if the problem is qubo or ising; labels are 1 to n."""
    import scipy.io
    from scipy import sparse

    path = source.path
    # SciPy 1.17 ends with a segmentation fault at blanks after the last line, and likewise at matrices of no rows.
    text = source.text.rstrip() + b"\n"
    with _parsing(source, "a readable MatrixMarket file"):
        size, columns, entries, _, field, symmetry = scipy.io.mminfo(io.BytesIO(text))
        if field not in _FIELDS or symmetry not in ("general", "symmetric"):
            raise FormatError(
                f"{path}:1: a {field}, {symmetry} matrix, which defines neither a graph nor a model; expected "
                "real, integer or pattern, and general or symmetric"
            )
        if size != columns or not size:
            raise FormatError(f"{path}: a matrix of {size} by {columns}; a graph or model needs a square one")
        _, after = source.lines(b"%").first("the numbers of rows, columns and entries")
        after.check_nodes(after.after, size)
        if entries > len(text):
            raise FormatError(f"{path}: the header promises {entries} entries; is the file cut short?")
        with warnings.catch_warnings():
            # Of SciPy 1.18, on a default that changes nothing here; its argument came with 1.15.
            warnings.simplefilter("ignore", DeprecationWarning)
            matrix = sparse.coo_array(scipy.io.mmread(io.BytesIO(text)))
    i, j, values = matrix.row.astype(np.int64), matrix.col.astype(np.int64), matrix.data
    if have_repeats(i * size + j):
        raise FormatError(f"{path}: an entry is given twice; give each once")
    if rounded := [word for word in _LONG.findall(text) if int(word) != int(float(word))]:
        raise FormatError(
            f"{path}: {show(rounded[0])} is beyond 2^53 and not exact in double precision; scale the model"
        )
    kept = values != 0
    i, j, values = i[kept], j[kept], values[kept]
    if source.problem in FORM_PROBLEMS:
        if FORM_PROBLEMS[source.problem]:
            pairs, offset = np.stack([i, j], axis=1), own.offset_of(source)
            form = QuadraticForm.from_arrays(source.name, np.zeros(size), pairs, values, offset, spins=True)
        else:
            form = QuadraticForm.from_entries(source.name, size, i, j, values, own.offset_of(source))
        return [(form, range(1, size + 1))]
    rows = Rows(path, [i + 1, j + 1] if field == "pattern" else [i + 1, j + 1, values])
    return [(rows.graph(source.name, size, (i, j), model="--problem=qubo"), range(1, size + 1))]


# Graphs by networkx.
#
# Labels are those that the file gives; in JSON a list is a tuple. An attribute `weight` of edges or nodes is their
# weight, which all must have if one has, or an attribute that the user names. A directed graph is read as an
# undirected one; edges may be parallel or opposite if their weights agree, and still count as one.


def read_gml(source: Source) -> own.Labelled:
    """Returns the graph of a GML file, whose labels are `id` unless each node has a `label` of its own."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        try:
            return nx.parse_gml(text)
        except nx.NetworkXError:  # two labels are equal, or one is missing
            return nx.parse_gml(text, label="id")

    return _networkx_graph(source, "GML", parse)


def read_graphml(source: Source) -> own.Labelled:
    """Returns the graph of a GraphML file; its labels are text."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        graph = nx.parse_graphml(text)
        # networkx makes the nodes that edges lead to.
        listed = sum(
            element.tag.rpartition("}")[2] == "node" for element in xml.etree.ElementTree.fromstring(text).iter()
        )
        if listed != len(graph):
            raise ValueError("a node is listed twice or elsewhere, or an edge leads to a node that is not listed")
        return graph

    return _networkx_graph(source, "GraphML", parse)


def read_node_link(source: Source) -> own.Labelled:
    """Returns the graph of a JSON file, with its edges under `edges`, or `links` as older versions of networkx do."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        data = parse_json(text)
        key = "edges" if "edges" in data else "links"
        if not (isinstance(data, dict) and isinstance(data.get("nodes"), list) and isinstance(data.get(key), list)):
            raise other_json(source)
        graph = nx.node_link_graph(data, directed=False, multigraph=False, edges=key)
        if (len(graph), graph.number_of_edges()) != (len(data["nodes"]), len(data[key])):
            raise ValueError("a node or edge is listed twice, or an edge leads to a node that is not listed")
        return graph

    return _networkx_graph(source, "node-link JSON", parse)


def _networkx_graph(source: Source, what: str, parse: Callable[[str], nx.Graph]) -> own.Labelled:
    with _parsing(source, f"a graph in {what}"):
        graph = parse(source.text.decode("utf-8"))
    name = source.weight or "weight"
    labels: list[Hashable] = list(graph)
    place = {label: k for k, label in enumerate(labels)}
    edges, nodes = list(graph.edges(data=True)), dict(graph.nodes(data=True))
    source.others = {"edges": other_numbers(data for *_, data in edges), "nodes": other_numbers(nodes.values())}
    rows = Rows(source.path, [_objects(u for u, _, _ in edges), _objects(v for _, v, _ in edges)])
    given = [data[name] for *_, data in edges if name in data]
    if len(given) == len(edges) > 0:
        weights = real_array(f"{source.name}: {name} of edges", given)
        check_finite(source.name, lambda k: f"the {name} of edge {edges[k][:2]}", weights)
        rows.columns.append(weights)
    elif given and not source.weight:
        raise InputError(f"{source.name}: some edges have a weight and some have none; give every edge one")
    ends = np.array([(place[u], place[v]) for u, v, _ in edges], np.int64).reshape(-1, 2)
    found = rows.graph(source.name, len(labels), (ends[:, 0], ends[:, 1]))
    of_nodes = {node: data[name] for node, data in nodes.items() if name in data}
    if of_nodes and (len(of_nodes) == len(labels) or not source.weight):
        found = dataclasses.replace(found, node_weights=checked_node_weights(source.name, of_nodes, labels))
    return [(found, range(len(labels)) if labels == list(range(len(labels))) else tuple(labels))]


def _objects(labels: Iterable[Hashable]) -> np.ndarray:
    """Returns labels as they are in an array [M]."""
    return np.fromiter(labels, object)


# All formats.


def read_npz_archive(source: Source) -> own.Labelled:
    """Reads the graphs or models of one of our archives (see `archive`), labelled from 0 on.

    An archive with an array `couplings` holds models. NotSupported for an archive of another program.
    """
    if "names" not in (names := names_in_npz(source.path)):
        raise other_archive(source, names)
    if "couplings" in names:
        return [(form, range(form.num_variables)) for form in read_forms(source.path)]
    return [(graph, range(graph.num_nodes)) for graph in read_archive(source.path)]


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
      suffixes: of names of such files.
      read: returns the graphs or models of a file and their labels.
      begins: how only files in this format begin, if there is such a beginning.
      write: writes a graph, where that is possible.
    """

    suffixes: str
    read: Callable[[Source], own.Labelled]
    begins: bytes | None = None
    write: Callable[[str | os.PathLike, Graph], None] | None = None


# Lines of comments before a header.
_COMMENTS = rb"(?:[^\S\n]*(?:c.*)?\n)*[^\S\n]*"
FORMATS = {
    "rudy": Format(".rudy .mc", own.read_rudy, write=own.write_rudy),
    "dimacs": Format(
        ".clq .col .dimacs",
        own.read_dimacs,
        _COMMENTS + rb"p\s+(?:" + b"|".join(own.DIMACS_HEADERS) + rb")\s",
        own.write_dimacs,
    ),
    "metis": Format(".graph .metis", own.read_metis),
    "edge_list": Format(".edges .edgelist", own.read_edge_list),
    "cnf": Format(".cnf", own.read_formula, _COMMENTS + rb"p\s+cnf\s"),
    "qbsolv": Format(".qubo", own.read_qbsolv, _COMMENTS + rb"p\s+qubo\s"),
    "matrix_market": Format(".mtx", read_matrix_market, rb"(?i)%%matrixmarket"),
    # Comments and what is said of the file may come before the graph.
    "gml": Format(".gml", read_gml, rb"(?i)(?:\s*(?:#.*|(?:creator|version|comment)\s.*)\n)*\s*graph\s*\["),
    "graphml": Format(".graphml", read_graphml, rb"\s*<(?s:.{0,2000}?)graphml"),
    "node_link": Format(".json", read_node_link, rb"\s*\{"),
    "biqmac": Format(".sparse .qs", own.read_biqmac),
    "mqlib": Format("", own.read_mqlib),
    "coo": Format(".coo", own.read_coo),
    "npz": Format(".npz", read_npz_archive),
}
_WITH_ATTRIBUTES = ("gml", "graphml", "node_link")
SUFFIXES = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes.split()}


def read_instances(
    path: str | os.PathLike,
    *,
    problem: str | None = None,
    format: str | None = None,
    weight: str | None = None,
) -> list[Instance]:
    """Reads the graphs or models of a file: one, except for archives.

    The format is recognised by a file's header, else by its suffix; a file that fits two formats is refused (see
    `recognise`). Compression by gzip, bzip2 or xz is recognised as well.

    Args:
      path: the file.
      problem: `qubo` or `ising` (expect a model, binary or of spins), any other name (expects a graph), or None for
        any content. It decides the meaning of a MatrixMarket file and of a bare list `i j v`.
      format: one of `FORMATS`, to read the file in that format.
      weight: the attribute of edges or nodes that is their weight, in formats with attributes; None: `weight`.

    Raises:
      FormatError: the file is damaged, or is not what its format asks for.
      NotSupported: its format is not one of these.
      InputError: the file cannot be read, fits two formats, or does not hold what the problem needs. Of each error,
        the message is one line that names the file, the line in it if there is one, and what to do.
    """
    if format is not None:
        one_of("format", format, FORMATS)
    source = Source(file_path("path", path), problem, named=format is not None, weight=weight)
    if format is not None and source.is_zip != (format == "npz"):
        kind = "a zip archive" if source.is_zip else "not a zip archive"
        raise InputError(f"{path}: {kind}, so its format is not {format}; leave out the format")
    if format is not None and FORMATS[format].begins is None:
        check_separators(source)
    format = format or recognise(source)
    if weight is not None and format not in _WITH_ATTRIBUTES:
        raise InputError(
            f"{path}: {format} has no names of weights; leave weight={weight} out, which is for "
            f"{join_names(_WITH_ATTRIBUTES)}",
        )
    with errors_of(source.path):
        contents = FORMATS[format].read(source)
    found = [Instance(content, labels, format, source.path, source.others) for content, labels in contents]
    for instance in found:
        _check_problem(instance, problem)
    return found


def _check_problem(instance: Instance, problem: str | None) -> None:
    content, where = instance.content, f"{instance.path}: {instance.format}"
    if isinstance(content, QuadraticForm):
        if problem not in (None, *FORM_PROBLEMS):
            raise InputError(
                f"{where} holds a quadratic model, but {problem} needs a graph; use {join_names(FORM_PROBLEMS)}"
            )
        if problem is not None and content.spins != FORM_PROBLEMS[problem]:
            kind = "spins" if content.spins else "zeros and ones"
            raise InputError(f"{where} holds a model of {kind}; use problem={form_problem(content.spins)}")
    elif problem in FORM_PROBLEMS:
        listed = ", or --format=coo if its lines are couplings 'i j value'" if instance.format == "edge_list" else ""
        raise InputError(
            f"{where} holds a graph, but {problem} needs a quadratic model; use {join_names(GRAPH_PROBLEMS)}{listed}"
        )


# Which format a file is in.

_OTHER_HEADER = re.compile(_COMMENTS + rb"(p\s+\S+)\s+\d")


def recognise(source: Source) -> str:
    """Returns the name of the format of a file.

    It is known by how the file begins, after comments (in `coo` by a comment `# vartype=`), or else by the suffix of
    its name. Otherwise the file must begin with two whole numbers, after comments and a heading, and be read without
    an error in exactly one of `rudy`, `metis`, `edge_list`, `coo`, `biqmac` and `mqlib` (see `_by_content`).

    Raises:
      InputError: two formats fit, or the file has an error in the one that it looks like.
      NotSupported: no format begins like this file.
    """
    if source.is_zip:
        return "npz"
    for name, format in FORMATS.items():
        if format.begins and re.match(format.begins, source.text):
            return name
    if own.VARTYPE.search(source.text):
        return "coo"
    if other := _OTHER_HEADER.match(source.text):
        known = join_names([f"p {word.decode()}" for word in (*own.DIMACS_HEADERS, b"cnf", b"qubo")], "and")
        raise NotSupported(f"{source.path}: files of {show(other[1])} are not read; those of {known} are")
    check_separators(source)
    return SUFFIXES.get(source.suffix) or _by_content(source)


def _by_content(source: Source) -> str:
    """Returns the format in which a file can be read, if there is one.

    A list of edges has as many words on each line as on the first one. That line may be a header `n m` if no node is
    above n. It is no edge then if m is larger than n + 1, where as an edge it would lead to a node far beyond all
    others, or larger than the number of lines that follow; and the file may be `rudy` if that number is m. With a
    header it is a matrix, `biqmac` or `mqlib`, if it poses a `qubo` or has entries on the diagonal. A square table,
    symmetric or triangular, may be a whole matrix, which no format is.
    """
    first, rest = source.lines(b"#", b"%").first("a graph or model")
    if own.is_heading(first):
        return "edge_list"
    words = [line.split() for _, line in rest]
    table = table_in_python(source, [first, *words])
    if not (2 <= len(first) <= 4 and all(map(is_whole, first[:2]))):
        raise _unknown(source, rest.after, first, table)
    widths = set(map(len, words))
    ends = [word for line in words for word in line[:2]]
    n, m = map(int, first[:2])
    bounded = first[2:] in ([], [b"0"]) and all(is_whole(word) and int(word) <= n for word in ends)
    is_header = bounded and (m > n + 1 or 2 * m > len(ends))
    is_list = len(first) < 4 and widths <= {len(first)}
    on_diagonal = widths == {3} and any(line[0] == line[1] for line in words)
    poses_graph = source.problem not in (None, *FORM_PROBLEMS)
    of_matrix = on_diagonal and not poses_graph
    tries = ["rudy", "metis"]
    if len(first) == 2 and (of_matrix or source.problem == "qubo"):
        tries = ["biqmac", "mqlib", "metis"]
    if is_list and not is_header:
        tries += [] if source.problem in FORM_PROBLEMS else ["edge_list"]
        tries += [] if poses_graph or len(first) == 2 else ["coo"]
    errors: dict[str, InputError] = {}
    for name in tries:
        try:
            with errors_of(source.path):
                FORMATS[name].read(source)
        except InputError as error:
            errors[name] = error
    may_be_rudy = bounded and 2 * m == len(ends) and widths in ({2}, {3})
    fits = [name for name in tries if name not in errors or (name == "rudy" and may_be_rudy)]
    if table and not fits:
        raise _unknown(source, rest.after, first, table)
    if len(fits) > 1 or table:
        by_problem = " or --problem" if {"edge_list", "coo"} <= set(fits) else ""
        senses = " (biqmac is minimised, mqlib maximised)" if "mqlib" in fits else ""
        matrix = f"; a table goes through {table}" if table else ""
        kinds = " and as ".join([*fits, *["a square table"] * bool(table)])
        raise InputError(
            f"{source.path}: the file reads as {kinds}; say which it is with "
            f" --format={' or --format='.join(fits)}{senses}{by_problem} (--from in convert), or by its "
            f"suffix{matrix}"
        )
    if fits:
        return fits[0]
    if len(first) == 4 and widths == {4}:
        raise _unknown(source, rest.after, first, table)
    if is_list and is_header and "rudy" in errors:
        raise InputError(f"{errors['rudy']} (if the first line is like the others, say --format=edge_list)")
    # The reader of the likeliest format says what is wrong.
    if "biqmac" in errors and bounded and widths <= {3}:
        return "biqmac"
    if source.problem in FORM_PROBLEMS and len(first) == 3:
        return "coo"
    if is_list or not n:
        return "edge_list"
    return "rudy" if widths <= {2, 3} else "metis"


def _unknown(source: Source, number: int, first: list[bytes], table: str) -> NotSupported:
    """Returns the error for a file in a format that is not read, which is no fault of the file."""
    if table:
        return NotSupported(f"{source.path}: a square table, which is read in Python alone; say {table}")
    return NotSupported(
        f"{source.path}:{number}: {show(b' '.join(first))} begins no format that is read; those are "
        f"{', '.join(FORMATS)}, and of edge lists the lines are 'u v' or 'u v w' with nodes as whole numbers, or any "
        "words with --format=edge_list"
    )
