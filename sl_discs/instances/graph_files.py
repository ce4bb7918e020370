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
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np

from sl_discs.errors import InputError
from sl_discs.files import write_atomically
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph, checked_node_weights, edge_codes, first_rows, have_repeats
from sl_discs.instances.text import (
    Lines,
    Rows,
    Source,
    check_count,
    header_counts,
    is_real,
    is_whole,
    read_rows,
    show,
)

Labelled = list[tuple[Graph | QuadraticForm, Sequence[Hashable]]]


def simple_graph(
    name: str,
    num_nodes: int,
    ends: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray | None,
    refuse: Callable[[np.ndarray, str], None],
    merge: bool,
) -> Graph:
    """Returns the graph with edges [E], in the order of the rows that they came from.

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
    return Graph.from_arrays(name, num_nodes, np.stack([u, v], axis=1), weights)


def number_labels(u: np.ndarray, v: np.ndarray) -> tuple[Sequence[int], tuple[np.ndarray, np.ndarray]]:
    """Returns the distinct numbers of two arrays in ascending order, and the arrays as positions among these."""
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
    """Returns the graph of a file, its labels 1 to n."""
    number, words, lines = Lines(source, (b"#", b"%")).first(_RUDY_HEADER)
    words = words[:2] if words[2:] == [b"0"] else words
    num_nodes, num_edges = header_counts(source.path, number, words, (2,), _RUDY_HEADER)
    rows = read_rows(source.path, lines, ("ii", "iif"), "an edge and its weight, 'i j w'")
    check_count(source.path, number, num_edges, len(rows.numbers), "edges")
    ends = rows.indices(1, num_nodes)
    graph = simple_graph(source.name, num_nodes, ends, _third(rows), rows.refuse, merge=False)
    return [(graph, range(1, num_nodes + 1))]


def _third(rows: Rows) -> np.ndarray | None:
    return rows.columns[2] if len(rows.columns) > 2 else None


def write_rudy(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph atomically; weights are read back exactly, and are written as 1 if the graph has none.

    InputError where the graph has weights of nodes.
    """
    if graph.node_weights is not None:
        raise InputError(f"{path}: rudy has no weights of nodes, but {graph.name} has; write DIMACS or npz")
    weights = itertools.repeat(1.0) if graph.weights is None else graph.weights.tolist()
    edges = (graph.edges + 1).tolist()
    lines = (f"{u} {v} {_shortest(weight)}\n" for (u, v), weight in zip(edges, weights, strict=False))
    _write_lines(path, f"{graph.num_nodes} {graph.num_edges}\n", lines)


def _shortest(weight: float) -> str:
    return repr(weight).removesuffix(".0")


def _write_lines(path: str | os.PathLike, header: str, lines: Iterable[str]) -> None:
    write_atomically(
        path, lambda file: file.writelines(line.encode("ascii") for line in itertools.chain([header], lines))
    )


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
    """Returns the graph of a file, its labels 1 to n."""
    path = source.path
    number, words, lines = Lines(source, (b"c",)).first(f"the header {_DIMACS_HEADER}")
    if words[0] != b"p" or len(words) != 4:
        raise InputError(f"{path}:{number}: {show(b' '.join(words))} is not a header; write {_DIMACS_HEADER}")
    num_nodes, promised = header_counts(path, number, words[2:], (2,), _DIMACS_HEADER)
    weights = None
    if words[1] in PACE:
        rows = read_rows(path, lines, ("ii",), "an edge, 'i j'")
    else:
        lines = dataclasses.replace(lines, skipped=(b"c", b"n", b"d", b"v", b"x"))
        rows = read_rows(path, lines, ("eii",), "an edge, 'e i j'")
        lines = dataclasses.replace(lines, skipped=(b"c", b"e", b"d", b"v", b"x"))
        weights = _dimacs_weights(num_nodes, read_rows(path, lines, ("nif",), "the weight of a node, 'n i w'"))
    ends = rows.indices(1, num_nodes)
    graph = simple_graph(source.name, num_nodes, ends, None, rows.refuse, merge=True)
    if promised not in (len(rows.numbers), graph.num_edges, 2 * graph.num_edges):
        raise InputError(
            f"{path}:{number}: the header promises {promised} edges, but there are {graph.num_edges} "
            f"on {len(rows.numbers)} lines; is the file cut short?"
        )
    return [(dataclasses.replace(graph, node_weights=weights), range(1, num_nodes + 1))]


def _dimacs_weights(num_nodes: int, rows: Rows) -> np.ndarray | None:
    """Returns the weights [N] of nodes, 1 for those without a line; None where no node has one."""
    nodes, values = rows.columns
    rows.refuse((nodes < 1) | (nodes > num_nodes), f"node {{0}}, but nodes are 1 to {num_nodes}; correct the line")
    rows.refuse(first_rows(nodes) != np.arange(len(nodes)), "node {0} has a weight already; give each node one")
    rows.refuse(~(values >= 0), "the weight of node {0} is {1}; expected at least 0")
    weights = np.ones(num_nodes)
    weights[nodes - 1] = values
    return weights if len(nodes) else None


def write_dimacs(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph without weights of edges atomically; weights of nodes are read back exactly."""
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(f"{path}: DIMACS graphs have no weights of edges, but {graph.name} has; write rudy or npz")
    weights = [] if graph.node_weights is None else graph.node_weights.tolist()
    nodes = (f"n {node} {_shortest(weight)}\n" for node, weight in enumerate(weights, 1))
    edges = (f"e {u} {v}\n" for u, v in (graph.edges + 1).tolist())
    _write_lines(path, f"p edge {graph.num_nodes} {graph.num_edges}\n", itertools.chain(nodes, edges))


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
    "from", "to", "source", "target", "src", "dst", "u", "v", "i", "j", "node1", "node2", "fromnodeid", "tonodeid",
}  # fmt: skip
_WEIGHTS = {"w", "weight", "value"}


def is_heading(words: Sequence[bytes]) -> bool:
    """Returns whether the first line of an edge list names its columns, perhaps in quotes."""
    names = [word.decode("ascii", "replace").strip("\"'").lower() for word in words]
    return len(names) in (2, 3) and _ENDS.issuperset(names[:2]) and _WEIGHTS.issuperset(names[2:])


def read_edge_list(source: Source) -> Labelled:
    """Returns the graph of a file."""
    path, lines = source.path, Lines(source, (b"#", b"%"))
    number, first, rest = lines.first(_EDGE_LINE)
    if is_heading(first):
        lines = rest
        number, first, _ = lines.first(_EDGE_LINE)
    labels: Sequence[int | str]
    if all(word.isdigit() for word in first[:2]):
        rows = read_rows(path, lines, ("ii", "iif"), _EDGE_LINE)
        labels, ends = number_labels(*rows.columns[:2])
    elif source.named:
        names, numbered = _number_words(lines)
        rows = read_rows(path, numbered, ("ii", "iif"), _EDGE_LINE)
        labels, ends = _texts(path, names), (rows.columns[0], rows.columns[1])
        others = set(labels) - {label.decode("utf-8") for label in first[:2]}
        if others and all(map(bytes.isalpha, first[:2])) and all(map(str.isdigit, others)):
            raise InputError(
                f"{path}:{number}: {show(b' '.join(first))} above numbers reads as a heading; "
                "remove the line, or begin it with #"
            )
    else:
        raise InputError(
            f"{path}:{number}: {show(b' '.join(first))} is not an edge between nodes that are whole numbers; "
            "if they have other names, say --format=edge_list"
        )
    return [(simple_graph(source.name, len(labels), ends, _third(rows), rows.refuse, merge=True), labels)]


def _number_words(lines: Lines) -> tuple[dict[bytes, int], list[tuple[int, bytes]]]:
    """Returns a number for each word that stands for a node, and the lines with these numbers."""
    names: dict[bytes, int] = {}
    numbered = []
    for number, line in lines:
        words = line.split()
        if len(words) in (2, 3):
            words[:2] = (b"%d" % names.setdefault(word, len(names)) for word in words[:2])
        numbered.append((number, b" ".join(words)))
    return names, numbered


def _texts(path: Path, names: Iterable[bytes]) -> tuple[str, ...]:
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
_METIS_FMTS = ("000", "001", "010", "011", "100", "101", "110", "111")


def read_metis(source: Source) -> Labelled:
    """Returns the graph of a file, its edges ordered by their smaller node, its labels 1 to n."""
    path = source.path
    number, words, lines = Lines(source, (b"%",), blank=True).first(f"the header {_METIS_HEADER}")
    num_nodes, num_edges, *rest = header_counts(path, number, words, (2, 3, 4), _METIS_HEADER)
    fmt = words[2].decode().zfill(3) if rest else "000"
    if fmt not in _METIS_FMTS:
        raise InputError(f"{path}:{number}: fmt {fmt}; it is one of {', '.join(_METIS_FMTS)}")
    num_weights = 0 if fmt[1] == "0" else rest[1] if len(rest) > 1 else 1
    skipped, step = int(fmt[0]) + num_weights, 1 + int(fmt[2])
    words_of, numbers = _metis_lines(path, lines, num_nodes, skipped, step)
    check_count(path, number, num_nodes, len(numbers), "lines, one a node")
    counts = [(len(words) - skipped) // step for words in words_of]
    u = np.repeat(np.arange(num_nodes), counts)
    pairs = np.array([word for words in words_of for word in words[skipped:]], np.int64).reshape(-1, step)
    rows = Rows(path, [pairs[:, 0]], np.repeat(np.array(numbers), counts).tolist())
    graph = _mutual(source.name, num_nodes, u, pairs[:, 0] - 1, pairs[:, 1] if step == 2 else None, rows)
    check_count(path, number, num_edges, graph.num_edges, "edges")
    if num_weights == 1:
        weights = checked_node_weights(
            source.name, [words[skipped - 1] for words in words_of], range(1, num_nodes + 1)
        )
        graph = dataclasses.replace(graph, node_weights=weights)
    return [(graph, range(1, num_nodes + 1))]


def _metis_lines(
    path: Path, lines: Lines, num_nodes: int, skipped: int, step: int
) -> tuple[list[list[int]], list[int]]:
    """Returns the numbers on the line of each node, and the number of each line."""
    words_of: list[list[int]] = []
    numbers = []
    for number, line in lines:
        words = line.split()
        if len(words_of) == num_nodes and words:
            raise InputError(
                f"{path}:{number}: {show(line)} after the last of {num_nodes} nodes; remove it or correct the header"
            )
        if len(words_of) == num_nodes:
            continue
        if line.translate(None, b"0123456789 \t") or len(max(words, key=len, default=b"")) > 18:
            wrong = next((word for word in words if not (is_whole(word) and len(word) <= 18)), line)
            raise InputError(f"{path}:{number}: {show(wrong)} is not a whole number; correct the line")
        if len(words) < skipped or (len(words) - skipped) % step:
            raise InputError(
                f"{path}:{number}: {len(words)} numbers; a line has {skipped} of the node and then {step} for each "
                "neighbour, as the fmt of the header says"
            )
        words_of.append(list(map(int, words)))
        numbers.append(number)
    return words_of, numbers


def _mutual(name: str, n: int, u: np.ndarray, v: np.ndarray, weights: np.ndarray | None, rows: Rows) -> Graph:
    """Returns the graph of directed edges, of which each must have its opposite."""
    rows.refuse((v < 0) | (v >= n), f"neighbour {{0}}, but nodes are 1 to {n}; correct the line or the header")
    rows.refuse(u == v, "node {0} is its own neighbour; remove that")
    # The last bit is the direction.
    codes = 2 * edge_codes(u, v, n) + (u > v)
    rows.refuse(first_rows(codes) != np.arange(len(codes)), "neighbour {0} is listed twice; give it once")
    rows.refuse(~np.isin(codes ^ 1, codes), "neighbour {0} does not have this node in its own line; add it there")
    forth, back = np.argsort(codes).reshape(-1, 2).T
    if weights is not None:
        differs = np.zeros(len(codes), bool)
        differs[forth] = weights[forth] != weights[back]
        rows.refuse(differs, "the weight to neighbour {0} differs in the line of that node; make them equal")
        weights = weights[forth]
    return Graph.from_arrays(name, n, np.stack([u, v], axis=1)[forth], weights)


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
    for word, number in _CONSTANT.findall(source.text):
        name = "scale" if word.lower() == b"scale" else "offset"
        if name in found or not is_real(number) or (name == "scale" and float(number) != 1):
            raise InputError(
                f"{source.path}: a comment with the {name} {show(number)}; expected one offset, a number, and no "
                "scale other than 1"
            )
        found[name] = float(number)
    return found.get("offset", 0.0)


def read_qbsolv(source: Source) -> Labelled:
    """Returns the model of a file, to be minimised, its labels 0 to maxNodes - 1."""
    path = source.path
    number, words, lines = Lines(source, (b"c",)).first(f"the header {_QBSOLV_HEADER}")
    if words[:2] != [b"p", b"qubo"] or len(words) != 6 or words[2] not in (b"0", b"unconstrained"):
        raise InputError(f"{path}:{number}: {show(b' '.join(words))} is not a header; write {_QBSOLV_HEADER}")
    size, num_nodes, num_couplers = header_counts(path, number, words[3:], (3,), _QBSOLV_HEADER)
    rows = read_rows(path, lines, ("iif",), "a node or coupler, 'i j value'")
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
_CNF_HEADER = "'p cnf VARIABLES CLAUSES'"
# A single clause makes a number of edges that grows with the square of its length.
_MOST_CONFLICTS = 10**7


def read_cnf(path: str | os.PathLike) -> list[Clause]:
    """Returns the clauses of a DIMACS file, each a tuple of literals: v or -v for variable v >= 1.

    Comment lines (`c`) may appear anywhere, a clause may span several lines, and a line that starts with `%`, as
    in SATLIB's own files, ends the formula.
    """
    return _read_clauses(Source(path))


def _read_clauses(source: Source) -> list[Clause]:
    path = source.path
    header, words, lines = Lines(source, (b"c",)).first(f"the header {_CNF_HEADER}")
    if words[:2] != [b"p", b"cnf"]:
        raise InputError(f"{path}:{header}: {show(b' '.join(words))} is not a header; write {_CNF_HEADER}")
    num_variables, num_clauses = header_counts(path, header, words[2:], (2,), _CNF_HEADER)
    clauses: list[Clause] = []
    clause: list[int] = []
    number = header
    for number, line in lines:
        if line.startswith(b"%"):
            break
        for word in line.split():
            if not is_whole(word.removeprefix(b"-")) or abs(int(word)) > num_variables:
                raise InputError(
                    f"{path}:{number}: {show(word)} is not a literal of {num_variables} variables; write whole "
                    "numbers, and 0 at the end of a clause"
                )
            if int(word):
                clause.append(int(word))
            else:
                clauses.append(tuple(clause))
                clause = []
    if clause:
        raise InputError(f"{path}:{number}: the last clause does not end with 0; is the file cut short?")
    check_count(path, header, num_clauses, len(clauses), "clauses")
    return clauses


def read_formula(source: Source) -> Labelled:
    """Returns the conflict graph of a file."""
    # A literal that a clause repeats says nothing new, and labels are distinct.
    clauses = [tuple(dict.fromkeys(clause)) for clause in _read_clauses(source)]
    occurrences = collections.Counter(literal for clause in clauses for literal in clause)
    edges = sum(len(clause) * (len(clause) - 1) // 2 for clause in clauses)
    edges += sum(count * occurrences[-literal] for literal, count in occurrences.items() if literal > 0)
    if not occurrences:
        raise InputError(f"{source.path}: no clause has a literal; give a formula that says something")
    if edges > _MOST_CONFLICTS:
        raise InputError(
            f"{source.path}: {edges} conflicts between literals; graphs have at most {_MOST_CONFLICTS} edges"
        )
    labels = tuple(f"{number}:{literal}" for number, clause in enumerate(clauses, 1) for literal in clause)
    return [(conflict_graph(source.name, clauses), labels)]


def conflict_graph(name: str, clauses: list[Clause]) -> Graph:
    """Returns the graph whose independent sets are the ways to satisfy clauses together (the SATLIB MIS instances).

    The graph has one node for each literal of each clause, clause by clause. The nodes of one clause are joined,
    and each occurrence of a literal is joined to each occurrence of its negation. The size of the largest
    independent set is the largest number of clauses that can be satisfied at once. A literal repeated in a clause
    gives two joined nodes; x and -x in one clause are joined once; a clause without literals gives no node.

    The reference is the number of clauses that have literals, an upper bound that is reached if and only if they can
    all be satisfied together, as in SATLIB's CBS formulas, which DISCS uses.
    """
    nodes_of: dict[int, list[int]] = collections.defaultdict(list)
    edges: set[tuple[int, int]] = set()
    count = 0
    for clause in clauses:
        edges.update(itertools.combinations(range(count, count + len(clause)), 2))
        for literal in clause:
            edges.update((node, count) for node in nodes_of[-literal])
            nodes_of[literal].append(count)
            count += 1
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    return Graph.from_arrays(name, count, pairs, reference=float(sum(map(bool, clauses))))
