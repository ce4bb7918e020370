"""Text formats with our own readers: rudy, DIMACS and its relatives `p td`, `p cnf` and `p qubo`, METIS, edge lists.

A reader takes a `Source` and returns pairs of a graph or model, and the labels of its nodes or variables. Messages
name the file and the line.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph, checked_node_weights, edge_codes, first_rows, have_repeats
from sl_discs.instances.text import (
    Block,
    Lines,
    Rows,
    Source,
    check_count,
    header_counts,
    is_real,
    is_whole,
    read_rows,
    show,
    write_lines,
)

Labelled = list[tuple[Graph | QuadraticForm, Sequence[Hashable]]]


def simple_graph(name: str, num_nodes: int, ends, weights, refuse, merge: bool) -> Graph:
    """The graph with edges [E], in the order of the rows that they came from.

    `ends` are two arrays [E] of nodes from 0 on, `refuse` is `Rows.refuse` of their lines. If `merge`, an edge may be
    repeated, in either direction and with the same weight.
    """
    u, v = ends
    refuse(u == v, "an edge from node {0} to itself; remove the line (in a quadratic model, see format=coo)")
    if have_repeats(u, v, num_nodes):
        first = first_rows(edge_codes(u, v, num_nodes))
        again = first != np.arange(len(first))
        if not merge:
            refuse(again, "edge {0} {1} is listed a second time; give each edge once, in one direction")
        elif weights is not None:
            differs = weights != weights[first]
            refuse(differs, "edge {0} {1} was given before with another weight than {2}; keep one of them")
        u, v, weights = u[~again], v[~again], None if weights is None else weights[~again]
    return Graph.from_arrays(name, num_nodes, np.stack([u, v], axis=1, dtype=np.int32, casting="unsafe"), weights)


def number_labels(u: np.ndarray, v: np.ndarray) -> tuple[Sequence[int], tuple[np.ndarray, np.ndarray]]:
    """The distinct numbers of two arrays in ascending order, and the arrays as positions among these."""
    labels, index = np.unique(np.concatenate([u, v]), return_inverse=True)
    index = index.reshape(-1)
    gapless = len(labels) and labels[-1] - labels[0] == len(labels) - 1
    names = range(int(labels[0]), int(labels[-1]) + 1) if gapless else tuple(labels.tolist())
    return names, (index[: len(u)], index[len(u) :])


# rudy's format, used by Gset and by the Biq Mac library's MaxCut instances.
#
# A header `n m` is followed by m lines `i j w` with nodes from 1 to n; a file may omit all weights. Every edge is
# listed once. Lines that start with `#` or `%` are comments. The headers of the DIMACS torus graphs end with a 0.
#
# Source: G. Rinaldi, rudy, a graph generator; Biq Mac library (A. Wiegele, 2007), where a line is an edge and its
# weight.

_RUDY_HEADER = "the numbers of nodes and edges, 'n m' or 'n m 0'"


def read_rudy(source: Source) -> Labelled:
    """The graph of a file, its labels 1 to n."""
    lines = Lines(source, (b"#", b"%"))
    number, words = lines.one(_RUDY_HEADER)
    words = words[:2] if words[2:] == [b"0"] else words
    num_nodes, num_edges = header_counts(source.path, number, words, (2,), _RUDY_HEADER)
    rows = read_rows(source.path, lines.blocks(), ("ii", "iif"), "an edge and its weight, 'i j w'")
    check_count(source.path, number, num_edges, len(rows), "edges")
    ends = rows.indices(1, num_nodes)
    weights = rows.columns[2] if rows.layout == "iif" else None
    graph = simple_graph(source.name, num_nodes, ends, weights, rows.refuse, merge=False)
    return [(graph, range(1, num_nodes + 1))]


def write_rudy(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph atomically; weights are read back exactly, and are written as 1 if the graph has none.

    InputError where the graph has weights of nodes.
    """
    if graph.node_weights is not None:
        raise InputError(f"{path}: rudy has no weights of nodes, but {graph.name} has; write DIMACS or npz")
    write_lines(path, f"{graph.num_nodes} {graph.num_edges}\n", _edge_words(graph, "{} {} {}\n"))


def _edge_words(graph: Graph, template: str, at_once: int = 2**16) -> Iterator[str]:
    """Lines of edges, many at a time; the template takes two nodes, from 1 on, and the weight's shortest text."""
    for start in range(0, graph.num_edges, at_once):
        u, v = (graph.edges[start : start + at_once] + 1).T.tolist()
        if graph.weights is None:
            words = ["1"] * len(u)
        else:
            words = list(map(_shortest, graph.weights[start : start + at_once].tolist()))
        yield "".join(map(template.format, u, v, words))


def _shortest(weight: float) -> str:
    return repr(weight).removesuffix(".0")


# DIMACS graphs (.clq, .col): `p edge n m` or `p col n m`, then `e i j` with nodes from 1 to n; `c` is a comment.
#
# An edge may be repeated in either direction, as in many colouring files; it still counts as one edge. m may be the
# number of distinct edges, twice that, or the number of `e` lines, since files differ. `n i w` gives node i the
# weight w; nodes without such a line have the weight 1 where others have one. Lines `d`, `v` and `x` (geometry) are
# irrelevant to the problems solved here and are skipped. The PACE challenges write `p td n m`, and then `i j`.
#
# Sources: "Clique and Coloring Problems Graph Format", DIMACS Second Implementation Challenge, 1993; pages of PACE.

_DIMACS_HEADER = "'p edge NODES EDGES'"
PACE = (b"td", b"tw", b"ds")


def read_dimacs(source: Source) -> Labelled:
    """The graph of a file, its labels 1 to n."""
    lines = Lines(source, (b"c",))
    number, words = lines.one(f"the header {_DIMACS_HEADER}")
    if words[0] != b"p" or len(words) != 4:
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a header; write {_DIMACS_HEADER}")
    num_nodes, promised = header_counts(source.path, number, words[2:], (2,), _DIMACS_HEADER)
    of_nodes: list[Block] = []
    if words[1] in PACE:
        rows = read_rows(source.path, lines.blocks(), ("ii",), "an edge, 'i j'")
    else:
        edges = _dimacs_edges(source.path, lines.blocks(), of_nodes)
        rows = read_rows(source.path, edges, ("-ii",), "an edge, 'e i j'")
    ends = rows.indices(1, num_nodes)
    graph = simple_graph(source.name, num_nodes, ends, None, rows.refuse, merge=True)
    if of_nodes:
        graph = dataclasses.replace(graph, node_weights=_dimacs_weights(source.path, num_nodes, of_nodes))
    if promised not in (len(rows), graph.num_edges, 2 * graph.num_edges):
        raise InputError(
            f"{source.path}:{number}: the header promises {promised} edges, but there are {graph.num_edges} "
            f"on {len(rows)} lines; is the file cut short?"
        )
    return [(graph, range(1, num_nodes + 1))]


def write_dimacs(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph without weights of edges atomically; weights of nodes are read back exactly."""
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(f"{path}: DIMACS graphs have no weights of edges, but {graph.name} has; write rudy or npz")
    weights = [] if graph.node_weights is None else graph.node_weights.tolist()
    of_nodes = (f"n {node} {_shortest(weight)}\n" for node, weight in enumerate(weights, 1))
    header = f"p edge {graph.num_nodes} {graph.num_edges}\n"
    write_lines(path, header, itertools.chain(of_nodes, _edge_words(graph, "e {} {}\n")))


def _dimacs_weights(path: Path, num_nodes: int, blocks: Iterable[Block]) -> np.ndarray:
    """The weights [N] of nodes; those without a line have the weight 1."""
    rows = read_rows(path, blocks, ("-if",), "the weight of a node, 'n i w'")
    nodes, values = rows.columns
    rows.refuse((nodes < 1) | (nodes > num_nodes), f"node {{0}}, but nodes are 1 to {num_nodes}; correct the line")
    again = np.ones(len(nodes), bool)
    again[np.unique(nodes, return_index=True)[1]] = False
    rows.refuse(again, "node {0} has a weight already; give each node one")
    rows.refuse(~(values >= 0), "the weight of node {0} is {1}; expected at least 0")
    weights = np.ones(num_nodes)
    weights[nodes - 1] = values
    return weights


def _dimacs_edges(path: Path, blocks: Iterable[Block], of_nodes: list[Block]) -> Iterator[Block]:
    """The lines of edges; those of nodes are added to `of_nodes`."""
    for lines, numbers in blocks:
        if b"\n".join([b"", *lines]).count(b"\ne ") != len(lines):
            tags = [line.split(None, 1)[0] for line in lines]
            for tag, line, number in zip(tags, lines, numbers, strict=True):
                if tag == b"p":
                    raise InputError(f"{path}:{number}: a second header; a file holds one graph")
                if tag not in (b"e", b"n", b"d", b"v", b"x"):
                    raise InputError(
                        f"{path}:{number}: {show(line.strip())} is not a line of the format; write 'e i j'"
                    )
            nodes, kept = ([k for k, tag in enumerate(tags) if tag == word] for word in (b"n", b"e"))
            if nodes:
                of_nodes.append(([lines[k] for k in nodes], [numbers[k] for k in nodes]))
            lines, numbers = [lines[k] for k in kept], [numbers[k] for k in kept]
        if lines:
            yield lines, numbers


# Edge lists: one edge per line, `u v` or `u v w`; lines that start with `#` or `%` are comments, and a first line may
# be a heading such as `source target weight`.
#
# Labels of nodes are whole numbers from 0 on, and nodes are sorted by them. Almost any text would read as a list with
# words as labels, so they may be words of UTF-8 text only where the user has named the format, and nodes are then in
# the order of their first appearance. Nodes without an edge do not exist. An edge may be repeated in either direction
# with the same weight, as in many collections; it still counts as one edge.
#
# `networkx.write_edgelist(graph, path, data=False)` and `write_weighted_edgelist` write this format.

_EDGE_LINE = "an edge, 'u v' or 'u v w', with a weight everywhere or nowhere"
_ENDS = {
    "from",
    "to",
    "source",
    "target",
    "src",
    "dst",
    "u",
    "v",
    "i",
    "j",
    "node1",
    "node2",
    "fromnodeid",
    "tonodeid",
}
_WEIGHTS = {"w", "weight", "value"}


def is_heading(words: Sequence[bytes]) -> bool:
    """Returns whether the first line of an edge list names its columns, perhaps in quotes."""
    names = [word.decode("ascii", "replace").strip("\"'").lower() for word in words]
    return len(names) in (2, 3) and _ENDS.issuperset(names[:2]) and _WEIGHTS.issuperset(names[2:])


def read_edge_list(source: Source) -> Labelled:
    """The graph of a file."""
    lines = Lines(source, (b"#", b"%"))
    number, first = lines.peek(_EDGE_LINE)
    if is_heading(first):
        lines.one(_EDGE_LINE)
        number, first = lines.peek(_EDGE_LINE)
    names: dict[bytes, int] = {}
    numbered = all(word.isdigit() for word in first[:2])
    if not (numbered or source.named):
        raise InputError(
            f"{source.path}:{number}: {show(b' '.join(first))} is not an edge between nodes that are whole numbers; "
            "if they have other names, say --format=edge_list"
        )
    blocks = lines.blocks() if numbered else _numbered(lines.blocks(), names)
    rows = read_rows(source.path, blocks, ("ii", "iif"), _EDGE_LINE)
    labels: Sequence[int | str]
    if numbered:
        labels, ends = number_labels(*rows.columns[:2])
    else:
        labels, ends = _texts(source.path, names), (rows.columns[0], rows.columns[1])
        # Two words that come nowhere else, above numbers alone.
        words = all(word[:1].isalpha() for word in first[:2]) and np.sum(np.less(ends, 2)) == 2
        if words and len(names) > 2 and all(map(bytes.isdigit, [*names][2:])):
            raise InputError(
                f"{source.path}:{number}: {show(b' '.join(first))} above numbers reads as a heading; "
                "remove the line, or begin it with #"
            )
    weights = rows.columns[2] if rows.layout == "iif" else None
    return [(simple_graph(source.name, len(labels), ends, weights, rows.refuse, merge=True), labels)]


def _numbered(blocks: Iterable[Block], names: dict[bytes, int]) -> Iterator[Block]:
    """Lines with numbers in place of the names of nodes, which are added to `names`; other lines as they are."""
    for lines, numbers in blocks:
        found = []
        for line in lines:
            words = line.split()
            if 2 <= len(words) <= 3:
                u, v = (names.setdefault(word, len(names)) for word in words[:2])
                line = b"%d %d %b" % (u, v, words[2]) if words[2:] else b"%d %d" % (u, v)
            found.append(line)
        yield found, numbers


def _texts(path: Path, names: dict[bytes, int]) -> tuple[str, ...]:
    try:
        return tuple(name.decode("utf-8") for name in names)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: label {show(error.object)} is not UTF-8 text; save the file as UTF-8") from None


# METIS and KaHIP graphs: `n m [fmt [ncon]]`, then one line per node with its neighbours, numbered from 1.
#
# The digits of fmt say, from the right, whether edges have weights (each neighbour is followed by one), nodes have
# weights (ncon of them, 1 by default, at the start of the line) and nodes have sizes (before the weights). An edge is
# listed in the lines of both its ends with the same weight, and m counts it once. A node without neighbours has an
# empty line; lines that start with `%` are comments. Weights are whole numbers. Several weights of each node, and
# sizes of nodes, are irrelevant to the problems solved here and are skipped.
#
# Source: G. Karypis, METIS manual 5.1.0, section 4.1.1.

_METIS_HEADER = "'NODES EDGES', 'NODES EDGES FMT' or 'NODES EDGES FMT NCON'"
METIS_FMTS = ("0", "1", "10", "11", "100", "101", "110", "111")


def read_metis(source: Source) -> Labelled:
    """The graph of a file, its edges ordered by their smaller node, its labels 1 to n."""
    path, lines = source.path, Lines(source, (b"%",), keep_blank=True)
    number, words = lines.one(f"the header {_METIS_HEADER}")
    num_nodes, num_edges, *rest = header_counts(path, number, words, (2, 3, 4), _METIS_HEADER)
    fmt = words[2].decode().lstrip("0") or "0" if rest else "0"
    if fmt not in METIS_FMTS:
        raise InputError(f"{path}:{number}: fmt {fmt}; it is one of {', '.join(METIS_FMTS)}")
    fmt = fmt.zfill(3)
    skipped = int(fmt[0] == "1") + ((rest[1] if len(rest) == 2 else 1) if fmt[1] == "1" else 0)
    step = 2 if fmt[2] == "1" else 1
    counts, values, numbers = _adjacency(path, lines.blocks(num_nodes), skipped, step)
    check_count(path, number, num_nodes, len(counts), "lines, one a node")
    for extra, where in lines.blocks():
        for line, at in zip(extra, where, strict=True):
            if line.strip():
                raise InputError(
                    f"{path}:{at}: {show(line.strip())} after the last of {num_nodes} nodes; "
                    "remove it or correct the header"
                )
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts) - skipped
    neighbour = (place >= 0) & (place % step == 0)
    u = np.repeat(np.arange(num_nodes), counts)[neighbour]
    weights = values[(place >= 0) & (place % 2 == 1)] if step == 2 else None
    one_weight = fmt[1] == "1" and skipped - int(fmt[0]) == 1
    of_nodes = values[place == -1] if one_weight else None
    edges = Rows(path, "", [values[neighbour]], [numbers[u]])
    graph = _mutual(source.name, num_nodes, u, values[neighbour] - 1, weights, edges)
    if of_nodes is not None:
        of_nodes = checked_node_weights(source.name, of_nodes, range(1, num_nodes + 1))
        graph = dataclasses.replace(graph, node_weights=of_nodes)
    check_count(path, number, num_edges, graph.num_edges, "edges")
    return [(graph, range(1, num_nodes + 1))]


def _adjacency(
    path: Path, blocks: Iterable[Block], skipped: int, step: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of words on each line, all words as numbers, and the numbers of the lines."""
    counts, values, numbers = ([np.zeros(0, np.int64)] for _ in range(3))
    for lines, where in blocks:
        count = np.fromiter((len(line.split()) for line in lines), np.int64, len(lines))
        bad = (count < skipped) | ((count - skipped) % step != 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{path}:{where[row]}: {count[row]} numbers; a line has {skipped} of the node "
                f"and then {step} for each neighbour, as the fmt of the header says"
            )
        text = b" ".join(lines)
        # Lines have different lengths, which `np.loadtxt` does not read.
        value = np.zeros(0, np.int64)
        if not text.translate(None, b"0123456789 \t\r\v\f"):
            value = np.fromstring(text, np.int64, sep=" ") if text.strip() else value
        # What is too large is the largest number.
        if len(value) != count.sum() or value.max(initial=0) == 2**63 - 1:
            for line, at in zip(lines, where, strict=True):
                for word in line.split():
                    if not is_whole(word):
                        raise InputError(f"{path}:{at}: {show(word)} is not a whole number; correct the line")
        counts.append(count)
        values.append(value)
        numbers.append(np.asarray(where, np.int64))
    return np.concatenate(counts), np.concatenate(values), np.concatenate(numbers)


def _mutual(name: str, n: int, u: np.ndarray, v: np.ndarray, weights: np.ndarray | None, rows: Rows) -> Graph:
    """The graph of directed edges, of which each must have its opposite."""
    rows.refuse((v < 0) | (v >= n), f"neighbour {{0}}, but nodes are 1 to {n}; correct the line or the header")
    rows.refuse(u == v, "node {0} is its own neighbour; remove that")
    codes, mirrored = u * np.int64(n) + v, v * np.int64(n) + u
    order, back = np.argsort(codes, kind="stable"), np.argsort(mirrored, kind="stable")
    again = np.zeros(len(codes), bool)
    again[order[1:]] = np.diff(codes[order]) == 0
    rows.refuse(again, "neighbour {0} is listed twice; give it once")
    if not np.array_equal(codes[order], mirrored[back]):
        rows.refuse(~np.isin(codes, mirrored), "neighbour {0} does not have this node in its own line; add it there")
    forth = u[order] < v[order]
    if weights is not None:
        doubles = weights.astype(np.float64)
        exact = doubles < 2.0**63
        exact[exact] = doubles[exact].astype(np.int64) == weights[exact]
        if not exact.all():
            row = int(np.argmin(exact))
            rows.refuse_row(
                row, f"{weights[row]} is beyond 2^53 and not exact in double precision; scale the weights"
            )
        differs = np.zeros(len(codes), bool)
        differs[order] = weights[order] != weights[back]
        rows.refuse(differs, "the weight to neighbour {0} differs in the line of that node; make them equal")
        weights = doubles[order][forth]
    return Graph.from_arrays(name, n, np.stack([u, v], axis=1)[order][forth], weights)


# QUBOs of qbsolv (.qubo), to be minimised: a header `p qubo 0 maxNodes nNodes nCouplers`.
#
# It is followed by nNodes lines `i i a` for a x_i and nCouplers lines `i j b` with i < j for b x_i x_j, with nodes
# from 0 to maxNodes - 1. A node or coupler must not be repeated; `c` starts a comment. Nodes without a line are
# variables without a linear term. A comment `c offset : 2.5`, which some programs write, is the constant.
#
# Source: README of qbsolv (D-Wave Systems), section "qbsolv QUBO Input File Format".

_QBSOLV_HEADER = "'p qubo 0 MAX_NODES NODES COUPLERS'"
_CONSTANT = re.compile(rb"(?im)^[ \t]*(?:c|#|%)[ \t]*(offset|constant|scale)[ \t]*[:=][ \t]*(\S+)")


def offset_of(source: Source) -> float:
    """Returns the constant that a comment of a model's file gives; 0 where none does.

    InputError for two, for one that is no number, and for a scale other than 1, whose sense differs between programs.
    """
    found: dict[str, float] = {}
    for block in source.blocks(quiet=True):
        for word, number in _CONSTANT.findall(block):
            name = "scale" if word.lower() == b"scale" else "offset"
            if name in found or not is_real(number) or (name == "scale" and float(number) != 1):
                raise InputError(
                    f"{source.path}: a comment with the {name} {show(number)}; expected one offset, a number, and no "
                    "scale other than 1"
                )
            found[name] = float(number)
    return found.get("offset", 0.0)


def read_qbsolv(source: Source) -> Labelled:
    """The model of a file, to be minimised, its labels 0 to maxNodes - 1."""
    path, lines = source.path, Lines(source, (b"c",))
    number, words = lines.one(f"the header {_QBSOLV_HEADER}")
    if words[:2] != [b"p", b"qubo"] or len(words) != 6 or words[2] not in (b"0", b"unconstrained"):
        raise InputError(f"{path}:{number}: {show(b' '.join(words))} is not a header; write {_QBSOLV_HEADER}")
    size, num_nodes, num_couplers = header_counts(path, number, words[3:], (3,), _QBSOLV_HEADER)
    rows = read_rows(path, lines.blocks(), ("iif",), "a node or coupler, 'i j value'")
    i, j = rows.indices(0, size - 1)
    rows.refuse(i > j, "coupler {0} {1}; the smaller node comes first")
    own, values, codes = i == j, rows.columns[2], edge_codes(i, j, size)
    check_count(path, number, num_nodes, int(own.sum()), "nodes (lines 'i i a')")
    check_count(path, number, num_couplers, int((~own).sum()), "couplers (lines 'i j b')")
    again = first_rows(codes) != np.arange(len(codes))
    rows.refuse(again, "the coefficient of {0} and {1} was given before; give each pair once")
    linear = np.zeros(size)
    linear[i[own]] = values[own]
    pairs = np.stack([i[~own], j[~own]], axis=1)
    form = QuadraticForm.from_arrays(source.name, linear, pairs, values[~own], offset_of(source))
    return [(form, range(size))]


# SAT formulas in DIMACS CNF, read as the conflict graph of the formula, as in SATLIB's independent set instances.
#
# A node is an occurrence of a literal, labelled `CLAUSE:LITERAL` with clauses counted from 1.

Clause = tuple[int, ...]
# A single clause makes a number of edges that grows with the square of its length.
_MOST_CONFLICTS = 10**7


def read_cnf(path: str | os.PathLike) -> list[Clause]:
    """The clauses of a DIMACS file, each a tuple of literals: v or -v for variable v >= 1.

    Comment lines (`c`) may appear anywhere, a clause may span several lines, and a line that starts with `%`, as
    in SATLIB's own files, ends the formula.
    """
    return _read_clauses(Source(path))


def read_formula(source: Source) -> Labelled:
    """The conflict graph of a file."""
    clauses = _read_clauses(source)
    occurrences = collections.Counter(literal for clause in clauses for literal in clause)
    edges = sum(len(clause) * (len(clause) - 1) // 2 for clause in clauses)
    edges += sum(count * occurrences[-literal] for literal, count in occurrences.items() if literal > 0)
    if not occurrences:
        raise InputError(f"{source.path}: no clause has a literal; give a formula that says something")
    if edges > _MOST_CONFLICTS:
        raise InputError(
            f"{source.path}: {edges} conflicts between literals; graphs have at most {_MOST_CONFLICTS} edges"
        )
    # A literal that a clause repeats says nothing new, and labels are distinct.
    clauses = [tuple(dict.fromkeys(clause)) for clause in clauses]
    labels = tuple(f"{number}:{literal}" for number, clause in enumerate(clauses, 1) for literal in clause)
    return [(conflict_graph(source.name, clauses), labels)]


def conflict_graph(name: str, clauses: list[Clause]) -> Graph:
    """The graph whose independent sets are the ways to satisfy clauses together (the SATLIB MIS instances).

    The graph has one node for each literal of each clause, clause by clause. The nodes of one clause are joined,
    and each occurrence of a literal is joined to each occurrence of its negation. The size of the largest
    independent set is the largest number of clauses that can be satisfied at once. A literal repeated in a clause
    gives two joined nodes; x and -x in one clause are joined once; a clause without literals gives no node.

    The reference is the number of clauses that have literals, an upper bound that is reached if and only if they can
    all be satisfied together, as in SATLIB's CBS formulas, which DISCS uses.
    """
    literals = [literal for clause in clauses for literal in clause]
    ends = np.cumsum([0, *(len(clause) for clause in clauses)]).tolist()
    within = (itertools.combinations(range(a, b), 2) for a, b in itertools.pairwise(ends))
    occurrences: dict[int, list[int]] = {}
    for node, literal in enumerate(literals):
        occurrences.setdefault(literal, []).append(node)
    against = (
        itertools.product(nodes, occurrences.get(-literal, []))
        for literal, nodes in occurrences.items()
        if literal > 0
    )
    edges = list(itertools.chain(itertools.chain.from_iterable(within), itertools.chain.from_iterable(against)))
    edges = np.unique(np.sort(np.array(edges, dtype=np.int64).reshape(-1, 2), axis=1), axis=0)
    return Graph.from_arrays(name, len(literals), edges, reference=float(sum(map(bool, clauses))))


def _read_clauses(source: Source) -> list[Clause]:
    path, header, header_line = source.path, None, 0
    clauses: list[Clause] = []
    clause: list[int] = []
    number = 0
    for lines, numbers in Lines(source, (b"c",)).blocks():
        for line, number in zip(lines, numbers, strict=True):
            words = line.split()
            if words[0].startswith(b"%"):
                break
            if words[0] == b"p":
                if header is not None:
                    raise InputError(f"{path}:{number}: a second header; a file holds one formula")
                if len(words) != 4 or words[1] != b"cnf" or not all(map(is_whole, words[2:])):
                    raise InputError(
                        f"{path}:{number}: {show(b' '.join(words))} is not a header; write 'p cnf VARIABLES CLAUSES'"
                    )
                header, header_line = (int(words[2]), int(words[3])), number
                continue
            if header is None:
                raise InputError(f"{path}:{number}: a clause before the header; start with 'p cnf VARIABLES CLAUSES'")
            for word in words:
                literal = _parse_literal(f"{path}:{number}", word, header[0])
                if literal:
                    clause.append(literal)
                else:
                    clauses.append(tuple(clause))
                    clause = []
        else:
            continue
        break
    if header is None:
        raise InputError(f"{path}: no header; a DIMACS file starts with 'p cnf VARIABLES CLAUSES'")
    if clause:
        raise InputError(f"{path}:{number}: the last clause does not end with 0; is the file cut short?")
    check_count(path, header_line, header[1], len(clauses), "clauses")
    return clauses


def _parse_literal(where: str, word: bytes, num_variables: int) -> int:
    """A literal, or 0 for the end of a clause."""
    if not is_whole(word.removeprefix(b"-")):
        raise InputError(f"{where}: {show(word)} is not a literal; write whole numbers, and 0 at the end of a clause")
    literal = int(word)
    if abs(literal) > num_variables:
        raise InputError(
            f"{where}: literal {literal}, but the header promises {num_variables} variables; correct one"
        )
    return literal
