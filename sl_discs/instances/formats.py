"""Reads files of graphs and quadratic models in any known format.

Text formats whose lines are rows of numbers or words are in `graph_files`; here are Matrix Market
and those in which edges and nodes have attributes, the table of all formats, and how one is
recognised.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import dataclasses
import functools
import json
import os
import re
import shlex
import xml.etree.ElementTree
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.instances import graph_files as own
from sl_discs.instances.archive import FORM_ARRAYS, GRAPH_ARRAYS, read_archive, read_forms
from sl_discs.instances.form import FORM_PROBLEMS, QuadraticForm, check_finite
from sl_discs.instances.graph import (
    Graph,
    checked_node_weights,
    edge_codes,
    other_numbers,
)
from sl_discs.instances.source import Source
from sl_discs.instances.text import Remark, Rows, SourceFile, exact_number, show
from sl_discs.support.checks import check_label, file_path, join_names, one_of, real_array
from sl_discs.support.documents import names_in_npz
from sl_discs.support.errors import FormatError, InputError, NotSupported, errors_of


@dataclasses.dataclass(frozen=True)
class Instance:
    """A graph or a quadratic model, with the labels that its file gives to the nodes or variables.

    Attributes:
      content: the graph or model; its nodes are 0 .. N - 1.
      labels: [N] the file's label of each: a number, counted from 1 in formats that count from 1,
        or text; in `node_link` also a tuple of these.
      format: name of the format, one of `FORMATS`.
      path: the file.
      remarks: what was left out of the file, and what may not be expected.
    """

    content: Source
    labels: Sequence[Hashable]
    format: str
    path: Path
    remarks: Sequence[Remark]


@contextlib.contextmanager
def _parsing(source: SourceFile, what: str, number: int | None = None) -> Iterator[None]:
    """Turns what a parser raises, whatever it is, for what it cannot read, into an error with its
    place.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        missing = "no " if isinstance(error, KeyError) else ""
        reason = " ".join(f"{missing}{error}".split())[:200]
        line = "" if number is None else f":{number}"
        raise FormatError(f"{source.path}{line}: not {what} ({reason}); correct the file") from None


# Matrix Market: a square matrix, read as a graph or, for qubo and ising, as a matrix.
#
# Read as a graph, each non-zero value off the diagonal is an edge with that weight (a `pattern` has
# no weights). An entry and its mirror image are the same edge; one of them is enough, and if both
# are given they must agree. The diagonal must be zero. Read as a matrix M, the model is v'Mv over
# all entries, to be minimised, with v in {0, 1}^n for qubo and in {-1, 1}^n for ising, where the
# diagonal is therefore a constant.

_BANNER = (
    rb"%%matrixmarket matrix (coordinate|array) "
    rb"(?:real|double|(?:unsigned-)?integer|pattern) (general|symmetric)"
)
_SIZE = rb"(?P<nodes>[1-9]\d{0,17}) (\d{1,18})"


def read_matrix_market(source: SourceFile) -> own.Labelled:
    """Returns the graph of a file, or its model if the problem is qubo or ising; labels are
    1 to n.
    """
    cells, after = source.lines().first("the first line of a MatrixMarket file")
    banner = re.fullmatch(_BANNER, b" ".join(cells).lower())
    if banner is None:
        raise after.error(
            after.after,
            f"{show(b' '.join(cells))} defines neither a graph nor a model; expected a matrix "
            "that is coordinate or array, real, integer or pattern, and general or symmetric",
        )
    listed = banner[1] == b"coordinate"
    mirrored = banner[2] == b"symmetric"
    size_line = (
        (_SIZE + rb" (\d{1,18})", "'ROWS COLUMNS ENTRIES'") if listed else (_SIZE, "'ROWS COLUMNS'")
    )
    header, lines = source.lines(b"%").header(*size_line)
    size, columns, *count = map(int, header.groups())
    if size != columns:
        raise lines.error(
            lines.after, f"a matrix of {size} by {columns}; a graph or model needs a square one"
        )
    rows = lines.rows(
        ("iif", "ii") if listed else ("f",),
        "an entry, 'i j' or 'i j value'" if listed else "a value",
    )
    whole = size * (size + 1) // 2 if mirrored else size**2
    lines.check_count(count[0] if listed else whole, len(rows.columns[0]), "entries")
    if listed:
        i, j = rows.indices(1, size)
    else:
        j, i = np.triu_indices(size) if mirrored else np.divmod(np.arange(size**2), size)
        rows = dataclasses.replace(rows, columns=[i + 1, j + 1, *rows.columns])
    codes = edge_codes(i, j, size) if mirrored else i * size + j
    rows.refuse_repeats(codes, "the entry of {0} and {1} is given twice; give each once")
    values = np.ones(len(i)) if rows.weights is None else rows.weights
    labels = range(1, size + 1)
    if source.problem in FORM_PROBLEMS:
        values = np.where(mirrored & (i != j), 2.0, 1.0) * values
        offset = own.offset_of(source)
        if FORM_PROBLEMS[source.problem]:
            pairs = np.stack([i, j], axis=1)
            form = QuadraticForm.from_arrays(
                source.name, np.zeros(size), pairs, values, offset, spins=True
            )
        else:
            form = QuadraticForm.from_entries(source.name, size, i, j, values, offset)
        return [(form, labels)]
    kept = values != 0
    if listed:
        rows.remark(~kept, "entries of value 0 are no edges")
    return [(rows.only(kept).graph(size, (i[kept], j[kept])), labels)]


# Graphs with attributes: GML, GraphML, node-link JSON, and edge lists as networkx writes them by
# default.
#
# Labels are those that the file gives; in JSON a list is a tuple. An attribute `weight` of edges or
# nodes is their weight, which all must have if one has, or an attribute that the user names;
# remarks name the others. A directed graph is read as an undirected one; edges may be parallel or
# opposite if their weights agree, and count as one.

_Attributes = dict[str, Any]
_Nodes = Mapping[Any, _Attributes]
_Edges = Sequence[tuple[Hashable, Hashable, _Attributes]]


def read_gml(source: SourceFile) -> own.Labelled:
    """Returns the graph of a GML file, whose labels are `id` unless each node has a `label` of its
    own.
    """
    import networkx as nx

    with _parsing(source, "a graph in GML"):
        graph = nx.parse_gml(source.text.decode("utf-8"), label="id")
        names = {node: data.get("label") for node, data in graph.nodes.items()}
        if len({*names.values()} - {None}) == len(names):
            graph = nx.relabel_nodes(graph, names)
    return _attributed(source, dict(graph.nodes), list(graph.edges(data=True)))


# Attributes of XML that GraphML has for elements with data.
_XML_ATTRIBUTES = {
    "node": {"id", "parse.indegree", "parse.outdegree"},
    "edge": {"id", "source", "target", "directed", "sourceport", "targetport"},
}


def read_graphml(source: SourceFile) -> own.Labelled:
    """Returns the graph of a GraphML file; its labels are text."""
    import networkx as nx

    with _parsing(source, "a graph in GraphML"):
        text = source.text.decode("utf-8")
        if "<!ENTITY" in text:
            raise ValueError("entities are not read")
        root = xml.etree.ElementTree.fromstring(text)
        for key in root.findall("{*}key"):
            if key.get("for", "all") == "all":
                # networkx knows defaults of nodes and of edges, so this becomes a key of each.
                key.set("for", "node")
                of_edges = copy.deepcopy(key)
                of_edges.attrib |= {"for": "edge", "id": f"{key.get('id')} of edges"}
                root.append(of_edges)
        graph = nx.parse_graphml(xml.etree.ElementTree.tostring(root, "unicode"))
        counts: collections.Counter[str] = collections.Counter()
        for element in root.iter():
            name = element.tag.rpartition("}")[2]
            counts[name] += 1
            unknown = set(element.attrib) - _XML_ATTRIBUTES.get(name, set(element.attrib))
            if unknown:
                raise ValueError(
                    f"{unknown.pop()} is an attribute of an element <{name}>; numbers are read "
                    "from its elements <data>"
                )
            counts["values"] += len({data.get("key") for data in element.findall("{*}data")})
        # networkx makes the nodes that edges lead to, and reads one graph without those inside of
        # its nodes.
        nodes = dict(graph.nodes)
        edges = list(graph.edges(data=True))
        defaults = [graph.graph.get(f"{name}_default", {}) for name in ("node", "edge")]
        if (
            len(nodes) != counts["node"]
            or len(edges) != counts["edge"]
            or sum(map(len, defaults)) != counts["default"]
            or counts["values"] != counts["data"]
        ):
            raise ValueError(
                "something is listed twice or beside the one graph, an edge leads to what is not "
                "listed, or a key with a default is of neither nodes nor edges"
            )
    nodes = {node: defaults[0] | data for node, data in nodes.items()}
    return _attributed(source, nodes, [(u, v, defaults[1] | data) for u, v, data in edges])


def read_node_link(source: SourceFile) -> own.Labelled:
    """Returns the graph of a JSON file, with its edges under `edges`, or `links` as older versions
    of networkx do.
    """

    def label_of(plain: Any) -> Hashable:
        if isinstance(plain, list):
            return tuple(map(label_of, plain))
        check_label(str(source.path), plain)
        return plain

    def distinct(pairs: Sequence[tuple[str, Any]]) -> _Attributes:
        if len(unique := dict(pairs)) < len(pairs):
            raise ValueError(f"an object has one of the names {join_names(unique, 'and')} twice")
        return unique

    with _parsing(source, "a graph in node-link JSON"):
        data = json.loads(source.text, object_pairs_hook=distinct)
        lists = []
        if isinstance(data, dict) and isinstance(data.get("nodes"), list):
            lists = [name for name, value in data.items() if isinstance(value, list)]
            lists.remove("nodes")
        if not {"edges", "links"} & {*lists}:
            raise ValueError(
                "no lists 'nodes' and 'edges' or 'links', as networkx.node_link_data makes them"
            )
        if len(lists) > 1:
            raise ValueError(
                f"lists {join_names(lists, 'and')} beside the nodes; keep that of the edges"
            )
        listed = data["nodes"]
        links = data[lists[0]]
        if not all(isinstance(element, dict) for element in (*listed, *links)):
            raise ValueError("a node or an edge is not an object with names and values")
        nodes = {label_of(node.pop("id", number)): node for number, node in enumerate(listed)}
        if len(nodes) != len(listed):
            raise ValueError("a node is listed twice")
        edges = [
            (label_of(edge.pop("source")), label_of(edge.pop("target")), edge) for edge in links
        ]
    return _attributed(source, nodes, edges)


def read_edge_list(source: SourceFile) -> own.Labelled:
    """Returns the graph of a list of edges.

    Nodes are whole numbers. Where edges have attributes in a dict, as networkx writes them by
    default, or the user has named the format, nodes may be any words of UTF-8 text, which are
    labels in the order of their appearance.
    """
    lines, first, heading, marked = own.edge_lines(source)
    with_dicts = len(first) > 2 and first[2].startswith(b"{")
    if not with_dicts and (not source.named or all(word.isdigit() for word in first[:2])):
        return own.read_numbered_edges(source, lines, marked)
    source.remark("line is left out as a heading", heading)
    source.remark(
        "lines that begin with # or % are read as edges, not as comments", marked, lost=False
    )
    read = set(marked)
    edges: list[tuple[Any, Any, _Attributes]] = []
    known: dict[bytes, _Attributes] = {b"": {}}
    for number, line in dataclasses.replace(lines, skipped=()):
        if line.startswith(lines.skipped) and number not in read:
            continue
        with _parsing(source, own.EDGE_LINE, number):
            u, v, text = (*line.split(None, 2), b"")[:3]
            if text not in known:
                known[text] = (
                    dict(ast.literal_eval(text.decode()))
                    if with_dicts
                    else {"weight": exact_number(text)}
                )
            edges.append((u.decode(), v.decode(), known[text]))
    if with_dicts and all(end.isdecimal() and len(end) < 19 for edge in edges for end in edge[:2]):
        edges = [(int(u), int(v), data) for u, v, data in edges]
    return _attributed(source, {end: {} for edge in edges for end in edge[:2]}, edges)


def _attributed(source: SourceFile, nodes: _Nodes, edges: _Edges) -> own.Labelled:
    name = source.weight or "weight"
    labels = list(nodes)
    index = {label: k for k, label in enumerate(labels)}
    with _parsing(source, "a graph whose nodes are all listed"):
        ends = np.array([(index[u], index[v]) for u, v, _ in edges], np.int64).reshape(-1, 2)
    rows = Rows(source, [np.fromiter((edge[side] for edge in edges), object) for side in (0, 1)])
    values = [data[name] for *_, data in edges if name in data]
    if len(values) == len(edges) > 0:
        weights = real_array(f"{source.name}: {name} of edges", values)
        check_finite(source.name, lambda k: f"the {name} of edge {edges[k][:2]}", weights)
        rows.columns.append(weights)
    elif values and not source.weight:
        raise InputError(
            f"{source.name}: some edges have a weight and some have none; give every edge one"
        )
    graph = rows.graph(len(labels), (ends[:, 0], ends[:, 1]))
    if of_nodes := {node: data[name] for node, data in nodes.items() if name in data}:
        try:
            graph = dataclasses.replace(
                graph, node_weights=checked_node_weights(source.name, of_nodes, labels)
            )
        except InputError as error:
            message = f"nodes have weights, which do not count ({error})"
            source.remark(message, labels, at="node {!r}", of="nodes", lost=False)
    of_edges = (((u, v), data) for u, v, data in edges)
    _remark_on_numbers(source, "edges", of_edges, used=graph.weights is not None)
    _remark_on_numbers(source, "nodes", nodes.items(), used=graph.node_weights is not None)
    return [(graph, labels)]


def _remark_on_numbers(
    source: SourceFile, what: str, given: Iterable[tuple[Any, _Attributes]], *, used: bool
) -> None:
    """Remarks on numbers of edges or nodes that are not their weights, which matter if no others
    are used.
    """
    of = "" if used or source.weight else what
    for name, rows in other_numbers(given, source.weight).items():
        message = f"{what} have numbers under {name!r} that do not count; weight={name} uses them"
        source.remark(message, rows, at=what[:-1] + " {!r}", of=of, lost=what == "edges")


# All formats.


def read_npz_archive(source: SourceFile) -> own.Labelled:
    """Reads the graphs or models of one of our archives (see `archive`), labelled from 0 on.

    An archive with an array `couplings` holds models. NotSupported for an archive of another
    program.
    """
    if "names" not in (names := names_in_npz(source.path)):
        raise NotSupported(
            f"{source.path}: an archive of another program, with {', '.join(names[:5])}; unpack "
            "it, or load it in Python, and pose a problem on its arrays"
        )
    table, read = (
        (FORM_ARRAYS, read_forms) if "couplings" in names else (GRAPH_ARRAYS, read_archive)
    )
    unknown = [name for name in names if name not in table]
    source.remark("arrays are left out, which are none of this format", unknown, at="{}")
    return [(instance, range(instance.num_variables)) for instance in read(source.path)]


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
      suffixes: of names of such files.
      read: returns the graphs or models of a file and their labels.
      begins: how only files in this format begin, if there is such a beginning.
      write: writes a graph, where that is possible.
      problem: that files of this format pose, where their content poses none by itself.
    """

    suffixes: str
    read: Callable[[SourceFile], own.Labelled]
    begins: bytes | None = None
    write: Callable[[str | os.PathLike, Graph], None] | None = None
    problem: str | None = None


# Comments and what is said of the file may come before the graph.
_GML = rb"(?i)(?:\s*+(?:#.*|(?:creator|version|comment)\s.*)\n)*+\s*+graph\s*+\["
_WITH_DICTS = (
    rb"(?:[^\S\n]*+(?:#.*+)?+\n)*+[^\S\n]*+[^\s#]\S*+[^\S\n]++\S++[^\S\n]++\{.*\}[^\S\n]*+(?:\n|$)"
)
FORMATS = {
    "rudy": Format(".rudy .mc", own.read_rudy, write=own.write_rudy),
    "dimacs": Format(".clq .col .dimacs", own.read_dimacs, write=own.write_dimacs),
    "metis": Format(".graph .metis", own.read_metis),
    "edge_list": Format(".edges .edgelist", read_edge_list, _WITH_DICTS),
    "cnf": Format(".cnf", own.read_formula, problem="mis"),
    "qbsolv": Format(".qubo", own.read_qbsolv),
    "matrix_market": Format(".mtx", read_matrix_market, rb"(?i)%%matrixmarket"),
    "gml": Format(".gml", read_gml, _GML),
    "graphml": Format(".graphml", read_graphml, rb"\s*<(?s:.{0,2000}?)graphml"),
    "node_link": Format(".json", read_node_link, rb"\s*\{"),
    "biqmac": Format(".sparse .qs", own.read_biqmac),
    "mqlib": Format("", functools.partial(own.read_biqmac, maximise=True)),
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

    The format is recognised by a file's header, or else by its suffix, and compression by gzip,
    bzip2 or xz as well.

    Args:
      path: the file.
      problem: that will be posed, or None. `qubo` and `ising` make a model, binary or of spins, of
        a MatrixMarket file and of a bare list `i j v`; nothing else depends on it.
      format: one of `FORMATS`, to read the file in that format.
      weight: the attribute of edges or nodes that is their weight, in formats with attributes;
        None: `weight`.

    Raises:
      FormatError: the file is damaged, or is not what its format asks for.
      NotSupported: its format is not one of these.
      InputError: the file cannot be read. Of each error, the message is one line that names the
        file, the line in it if there is one, and what to do.
    """
    if format is not None:
        one_of("format", format, FORMATS)
    source = SourceFile(file_path("path", path), problem, named=format is not None, weight=weight)
    if b"\0" in source.text:
        raise NotSupported(
            f"{source.path}: a binary file, or text in UTF-16; give text in UTF-8 (as by iconv -f "
            "UTF-16 -t UTF-8), or an .npz archive"
        )
    if format is not None and FORMATS[format].begins in (None, _WITH_DICTS):
        _check_separators(source)
    format = format or recognise(source)
    if (
        weight is not None
        and format not in _WITH_ATTRIBUTES
        and not re.match(_WITH_DICTS, source.text)
    ):
        raise InputError(
            f"{path}: {format} has no names of weights; leave weight={weight} out, which is for "
            f"{join_names(_WITH_ATTRIBUTES)}",
        )
    with errors_of(source.path):
        contents = FORMATS[format].read(source)
    return [
        Instance(content, labels, format, source.path, source.remarks)
        for content, labels in contents
    ]


# Which format a file is in.


def _check_separators(source: SourceFile) -> None:
    """Refuses lines whose words are parted by commas or semicolons; with semicolons, commas stand
    in numbers.
    """
    _, line = next(iter(source.lines(b"#", b"%")), (0, b" "))
    cells = line.split(None, 1)
    if not (cells and re.search(b"[,;]$" if len(cells) > 1 else b"[,;]", cells[0])):
        return
    marks = "';,' ' .'" if b";" in cells[0] else "',' ' '"
    raise NotSupported(
        f"{source.path}: columns parted by commas or semicolons; part them by blanks: tr {marks} < "
        f"{shlex.quote(str(source.path))} > NEW.edges, or see docs/files.md"
    )


# After lines of comments.
_HEADER = re.compile(
    rb"(?:[^\S\n]*+(?:[c#%].*+)?+\n)*+[^\S\n]*+p[^\S\n]++(\S++)[^\S\n]++(?:\d|unconstr)"
)
_HEADERS = {b"cnf": "cnf", b"qubo": "qbsolv", **dict.fromkeys(own.DIMACS_HEADERS, "dimacs")}


def recognise(source: SourceFile) -> str:
    """Returns the name of the format of a file, by how it begins, after comments, or else by the
    suffix of its name.

    Raises:
      NotSupported: neither tells.
    """
    if source.is_zip:
        return "npz"
    for name, format in FORMATS.items():
        if format.begins and re.match(format.begins, source.text):
            return name
    if (header := _HEADER.match(source.text)) and header[1] in _HEADERS:
        return _HEADERS[header[1]]
    if own.VARTYPE.search(source.text):
        return "coo"
    _check_separators(source)
    if source.suffix not in SUFFIXES:
        raise NotSupported(
            f"{source.path}: neither its first lines nor a suffix tells the format; say "
            f"--format=NAME (--from in convert), which is one of {join_names(FORMATS)}, or see "
            "docs/files.md on files of other programs"
        )
    return SUFFIXES[source.suffix]
