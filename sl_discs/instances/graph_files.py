"""Text formats with our own readers: rudy, DIMACS, METIS and edge lists; qbsolv, Biq Mac and COO;
formulas.

A reader takes a `SourceFile` and returns pairs of a graph or model, and the labels of its nodes or
variables. Messages name the file and the line.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import itertools
import os
import re
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from sl_discs.instances.form import FORM_PROBLEMS, QuadraticForm
from sl_discs.instances.graph import Graph, checked_node_weights, edge_codes
from sl_discs.instances.source import Source
from sl_discs.instances.text import Lines, Rows, SourceFile, is_real, is_whole, show
from sl_discs.support.errors import FormatError, InputError
from sl_discs.support.files import write_atomically

# What a reader returns: the graphs or models of a file, or other sources, and their labels.
Labelled = Sequence[tuple[Source, Sequence[Hashable]]]

# A number in a header.
_COUNT = rb"(\d{1,18})"
_NODES = rb"(?P<nodes>[1-9]\d{0,17})"


def _number_labels(rows: Rows) -> tuple[Sequence[int], np.ndarray]:
    """Returns the distinct numbers in the first two columns in ascending order, and the columns as
    their places.
    """
    numbers, indices = np.unique(np.concatenate(rows.columns[:2]), return_inverse=True)
    labels = numbers.tolist()
    gapless = labels and labels[-1] - labels[0] == len(labels) - 1
    return range(labels[0], labels[-1] + 1) if gapless else tuple(labels), indices.reshape(2, -1)


def _write_lines(path: str | os.PathLike, *lines: Iterable[str]) -> None:
    write_atomically(
        path,
        lambda file: file.writelines(
            line.encode("ascii") for line in itertools.chain.from_iterable(lines)
        ),
    )


def _shortest(weight: float) -> str:
    return repr(weight).removesuffix(".0")


# rudy's format (G. Rinaldi), used by Gset and by the Biq Mac library (A. Wiegele, 2007): a header
# `n m`, then m lines `i j w` with nodes from 1 to n, each edge once. A file may omit all weights.
# Lines that start with `#` or `%` are comments. The headers of the DIMACS torus graphs end with a
# 0.


def read_rudy(source: SourceFile) -> Labelled:
    """Returns the graph of a file, its labels 1 to n."""
    header, lines = source.lines(b"#", b"%").header(
        _NODES + b" " + _COUNT + b"(?: 0)?", "the numbers of nodes and edges, 'n m' or 'n m 0'"
    )
    num_nodes, num_edges = map(int, header.groups())
    rows = lines.rows(("ii", "iif"), "an edge and its weight, 'i j w'")
    lines.check_count(num_edges, len(rows.columns[0]), "edges")
    u, v = rows.indices(1, num_nodes)
    message = "edge {0} {1} is listed a second time; give each edge once, in one direction"
    rows.refuse_repeats(edge_codes(u, v, num_nodes), message)
    return [(rows.graph(num_nodes, (u, v)), range(1, num_nodes + 1))]


def write_rudy(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph atomically; weights are read back exactly, and are written as 1 if the graph
    has none.

    InputError where the graph has weights of nodes.
    """
    if graph.node_weights is not None:
        raise InputError(
            f"{path}: rudy has no weights of nodes, but {graph.name} has; write DIMACS or npz"
        )
    weights = [1.0] * graph.num_edges if graph.weights is None else graph.weights.tolist()
    edges = (graph.edges + 1).tolist()
    lines = (
        f"{u} {v} {_shortest(weight)}\n" for (u, v), weight in zip(edges, weights, strict=True)
    )
    _write_lines(path, [f"{graph.num_nodes} {graph.num_edges}\n"], lines)


# DIMACS graphs ("Clique and Coloring Problems Graph Format", Second Implementation Challenge,
# 1993): `p edge n m` or `p col n m`, then `e i j` with nodes from 1 to n; `c` is a comment.
#
# An edge may be repeated in either direction, as in many colouring files; it still counts as one
# edge. m may be the number of distinct edges, twice that, or the number of `e` lines, since files
# differ. `n i w` gives node i the weight w; nodes without such a line have the weight 1 where
# others have one. Collections of weighted covers and sets write `v i w` instead. Lines `d` and `x`,
# and `v` beside `d` (geometry), are irrelevant to the problems solved here: a remark counts them.
# The PACE challenges write `p td n m`, and then `i j`.

PACE = (b"td", b"tw", b"ds")
DIMACS_HEADERS = (b"edge", b"edges", b"col", b"clq", *PACE)


def read_dimacs(source: SourceFile) -> Labelled:
    """Returns the graph of a file, its labels 1 to n."""
    pattern = rb"p (\S+) " + _NODES + b" " + _COUNT
    usage = "'p edge NODES EDGES'"
    header, lines = source.lines(b"c").header(pattern, usage)
    num_nodes, promised = map(int, header.groups()[1:])
    weights = None
    if header[1] in PACE:
        rows = lines.rows(("ii",), "an edge, 'i j'")
    else:
        letters = {b"c", b"d", b"e", b"n", b"v", b"x"}
        of = {
            letter: dataclasses.replace(lines, skipped=tuple(letters - {letter}))
            for letter in letters
        }
        rows = of[b"e"].rows(("eii",), "an edge, 'e i j'")
        weights = _dimacs_weights(
            num_nodes, of[b"n"].rows(("nif",), "the weight of a node, 'n i w'")
        )
        unused = {letter: [number for number, _ in of[letter]] for letter in (b"d", b"v", b"x")}
        if unused[b"v"] and not unused[b"d"]:
            if weights is not None:
                raise FormatError(
                    f"{source.path}: weights of nodes on lines 'n' and on lines 'v'; keep one kind"
                )
            message = "the weight of a node, 'v i w', where no line 'd' says that it is a place"
            weights = _dimacs_weights(num_nodes, of[b"v"].rows(("vif",), message))
            unused[b"v"] = []
        line_numbers = sorted(itertools.chain(*unused.values()))
        source.remark("lines 'd', 'v' and 'x' do not count", line_numbers, of="nodes", lost=False)
    graph = rows.graph(num_nodes, rows.indices(1, num_nodes))
    listed = len(rows.columns[0])
    if promised not in (listed, graph.num_edges, 2 * graph.num_edges):
        lines.check_count(promised, graph.num_edges, f"edges on {listed} lines")
    labels = range(1, num_nodes + 1)
    if weights is not None:
        graph = dataclasses.replace(
            graph, node_weights=checked_node_weights(source.name, weights, labels)
        )
    return [(graph, labels)]


def _dimacs_weights(num_nodes: int, rows: Rows) -> np.ndarray | None:
    """Returns the weights [N] of nodes, 1 for those without a line; None where no node has one."""
    nodes, values = rows.columns
    rows.refuse(
        (nodes < 1) | (nodes > num_nodes),
        f"node {{0}}, but nodes are 1 to {num_nodes}; correct the line",
    )
    rows.refuse_repeats(nodes, "node {0} has a weight already; give each node one")
    weights = np.ones(num_nodes)
    weights[nodes - 1] = values
    return weights if len(nodes) else None


def write_dimacs(path: str | os.PathLike, graph: Graph) -> None:
    """Writes a graph without weights of edges atomically; weights of nodes are read back
    exactly.
    """
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(
            f"{path}: DIMACS graphs have no weights of edges, but {graph.name} has; write rudy or "
            "npz"
        )
    weights = [] if graph.node_weights is None else graph.node_weights.tolist()
    nodes = (f"n {node} {_shortest(weight)}\n" for node, weight in enumerate(weights, 1))
    edges = (f"e {u} {v}\n" for u, v in (graph.edges + 1).tolist())
    _write_lines(path, [f"p edge {graph.num_nodes} {graph.num_edges}\n"], nodes, edges)


# Edge lists: one edge per line, `u v` or `u v w`; lines that start with `#` or `%` are comments,
# and a first line may be a heading such as `source target weight`.
#
# Labels of nodes are whole numbers from 0 on, and nodes are sorted by them. Almost any text would
# read as a list with words as labels, so they may be words only where the user has named the
# format. Words may begin with a mark, as `#tag`, and a line with them; so such lines with as many
# words as an edge are then edges, and a remark says so. Nodes without an edge do not exist. An edge
# may be repeated in either direction with the same weight, as in many collections; it still counts
# as one edge.
#
# `networkx.write_edgelist` writes this format, by default with attributes of edges, `u v {'weight':
# 3}`.

EDGE_LINE = (
    "an edge, 'u v' or 'u v w', with a weight everywhere or nowhere, between nodes that are "
    "whole numbers, or any words with --format=edge_list"
)
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
    names = [word.decode("ascii", "replace").strip("\"'#%").lower() for word in words]
    return len(names) in (2, 3) and _ENDS.issuperset(names[:2]) and _WEIGHTS.issuperset(names[2:])


def edge_lines(source: SourceFile) -> tuple[Lines, list[bytes], list[int], list[int]]:
    """Returns the lines of edges, the words of the first, and the numbers of the heading and of
    possible edges.

    Those begin like comments, but have as many words as the first edge, a number for a weight, and
    no blank after their mark.
    """
    lines = source.lines(b"#", b"%")
    header, rest = lines.first(EDGE_LINE)
    heading = []
    if is_heading(header):
        lines = rest
        heading = [rest.after]
        header, _ = lines.first(EDGE_LINE)
    marked = []
    for number, line in dataclasses.replace(lines, skipped=()):
        if line.startswith(lines.skipped):
            parts = line.split(None, 2)
            alike = len(parts) == min(len(header), 3) and all(
                is_real(cell) or cell[:1] == b"{" for cell in parts[2:]
            )
            if alike and parts[0].strip(b"#%") and not is_heading(parts):
                marked.append(number)
    return lines, header, heading, marked


def read_numbered_edges(source: SourceFile, lines: Lines, marked: list[int]) -> Labelled:
    """Returns the graph of a list whose nodes are whole numbers."""
    source.remark("lines that begin with # or %, and may be edges, are left out", marked)
    rows = lines.rows(("ii", "iif"), EDGE_LINE)
    labels, ends = _number_labels(rows)
    return [(rows.graph(len(labels), (ends[0], ends[1])), labels)]


# METIS and KaHIP graphs (METIS manual 5.1.0, section 4.1.1): `n m [fmt [1]]`, then one line per
# node with its neighbours, numbered from 1.
#
# The digits of fmt say, from the right, whether edges have weights (each neighbour is followed by
# one) and nodes have a weight (at the start of the line). An edge is listed in the lines of both
# its ends with the same weight, and m counts it once. A node without neighbours has an empty line;
# lines that start with `%` are comments. Weights are whole numbers. Sizes of nodes and several
# weights of each, which no problem here has, are not read.


def read_metis(source: SourceFile) -> Labelled:
    """Returns the graph of a file, its labels 1 to n."""
    header, lines = source.lines(b"%", blank=True).header(
        _NODES + b" " + _COUNT + rb"(?: 0?([01]?[01])(?: 1)?)?",
        "'NODES EDGES' or 'NODES EDGES FMT', FMT 0, 1, 10 or 11",
    )
    num_nodes = int(header[1])
    num_edges = int(header[2])
    skipped, weighted = map(int, (header[3] or b"").decode().zfill(2))
    at, own, near = (array.array("q") for _ in range(3))
    ends: list[int] = []
    for node, (number, line) in enumerate(lines, 1):
        cells = line.split()
        if node > num_nodes:
            if cells:
                raise lines.error(
                    number,
                    f"{show(line)} after the last of {num_nodes} nodes; remove it or correct the "
                    "header",
                )
            continue
        if (
            not all(map(is_whole, cells))
            or len(cells) < skipped
            or (len(cells) - skipped) % (1 + weighted)
        ):
            usage = (
                f"whole numbers, {skipped} of the node and then {1 + weighted} for each "
                "neighbour, as FMT says"
            )
            raise lines.error(
                number, f"{show(line)} where every line should be {usage}; correct the line"
            )
        at.append(number)
        own.extend(map(int, cells[:skipped]))
        near.extend(map(int, cells[skipped:]))
        ends.append(len(near) // (1 + weighted))
    lines.check_count(num_nodes, len(at), "lines, one a node")
    counts = np.diff(ends, prepend=0)
    columns = [
        np.repeat(np.arange(1, num_nodes + 1), counts),
        *np.array(near, np.int64).reshape(-1, 1 + weighted).T,
    ]
    rows = Rows(source, columns, np.repeat(at, counts).tolist())
    u, v = rows.indices(1, num_nodes)
    codes = u * num_nodes + v
    rows.refuse_repeats(codes, "neighbour {1} is listed twice; give it once")
    rows.refuse(
        ~np.isin(v * num_nodes + u, codes),
        "neighbour {1} does not have this node in its own line; add it there",
    )
    graph = rows.graph(num_nodes, (u, v))
    labels = range(1, num_nodes + 1)
    lines.check_count(num_edges, graph.num_edges, "edges")
    if skipped:
        graph = dataclasses.replace(
            graph, node_weights=checked_node_weights(source.name, np.array(own), labels)
        )
    return [(graph, labels)]


# QUBOs of D-Wave's qbsolv, to be minimised: a header `p qubo 0 maxNodes nNodes nCouplers` is
# followed by nNodes lines `i i a` for a x_i and nCouplers lines `i j b` for b x_i x_j, with nodes
# from 0 to maxNodes - 1. A node or coupler must not be repeated; `c` starts a comment. Nodes
# without a line are variables without a linear term. A comment `c offset : 2.5` or `#
# ObjectiveOffset 2.5`, which some programs write, is the constant.

_CONSTANT = re.compile(
    rb"(?im)^[ \t]*(?:c|#|%)[ \t]*(?:objective[ _-]?)?(offset|constant|scale)"
    rb"(?:[ \t]*[:=][ \t]*(\S+)|[ \t]+([-+.\d]\S*)[ \t\r]*$)"
)


def offset_of(source: SourceFile) -> float:
    """Returns the constant that a comment of a model's file gives; 0 where none does.

    FormatError for two, for one that is no number, and for a scale other than 1, which programs
    take differently.
    """
    offsets: dict[str, float] = {}
    for match in _CONSTANT.finditer(source.text):
        word, marked, bare = match.groups()
        number = marked or bare
        name = "scale" if word.lower() == b"scale" else "offset"
        if name in offsets or not is_real(number) or (name == "scale" and float(number) != 1):
            raise FormatError(
                f"{source.path}: a comment with the {name} {show(number)}; expected one offset, "
                "a number, and no scale other than 1"
            )
        offsets[name] = float(number)
    return offsets.get("offset", 0.0)


def read_qbsolv(source: SourceFile) -> Labelled:
    """Returns the model of a file, to be minimised, its labels 0 to maxNodes - 1."""
    pattern = b"p qubo (?:0|unconstrained) " + _NODES + b" " + _COUNT + b" " + _COUNT
    header, lines = source.lines(b"c").header(pattern, "'p qubo 0 MAX_NODES NODES COUPLERS'")
    size, num_nodes, num_couplers = map(int, header.groups())
    rows = lines.rows(("iif",), "a node or coupler, 'i j value'")
    i, j = rows.indices(0, size - 1)
    own = int(np.count_nonzero(i == j))
    codes = edge_codes(i, j, size)
    lines.check_count(num_nodes, own, "nodes (lines 'i i a')")
    lines.check_count(num_couplers, len(i) - own, "couplers (lines 'i j b')")
    rows.refuse_repeats(
        codes, "the coefficient of {0} and {1} was given before; give each pair once"
    )
    return [
        (
            QuadraticForm.from_entries(source.name, size, i, j, rows.columns[2], offset_of(source)),
            range(size),
        )
    ]


# QUBOs of the Biq Mac Library (A. Wiegele, 2007), of QOBLIB and of MQLib: a header `n m`, then m
# lines `i j q` with variables from 1 to n, which are entries of a symmetric matrix Q, each pair
# once: the value is x'Qx, where an entry off the diagonal counts twice. Lines that start with `#`
# are comments; QOBLIB's `# ObjectiveOffset 2` is the constant. Biq Mac and QOBLIB minimise, MQLib
# maximises.


def read_biqmac(source: SourceFile, *, maximise: bool = False) -> Labelled:
    """Returns the model of a file, its labels 1 to n."""
    header, lines = source.lines(b"#").header(
        _NODES + b" " + _COUNT, "the numbers of variables and entries, 'n m'"
    )
    size, count = map(int, header.groups())
    rows = lines.rows(("iif",), "an entry of the matrix, 'i j q'")
    lines.check_count(count, len(rows.columns[0]), "entries")
    i, j = rows.indices(1, size)
    message = (
        "the entry of {0} and {1} was given before; give each pair once, which counts for both "
        "entries"
    )
    rows.refuse_repeats(edge_codes(i, j, size), message)
    values = np.where(i == j, 1.0, 2.0) * rows.columns[2]
    form = QuadraticForm.from_entries(
        source.name, size, i, j, values, offset_of(source), maximise=maximise
    )
    return [(form, range(1, size + 1))]


# Lists of coefficients `i j v`, as dimod writes a model without offset, to be minimised; `i i v` is
# a linear term.
#
# A comment `# vartype=BINARY` or `# vartype=SPIN` gives the type of the variables; without it they
# are binary, or spins if the problem is `ising`. Labels are whole numbers from 0 on; only variables
# that appear in a line exist.

VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)


def read_coo(source: SourceFile) -> Labelled:
    """Returns the model of a file, of which each line adds a term."""
    rows = source.lines(b"#", b"%").rows(("iif",), "a coefficient, 'i j v'")
    labels, (i, j) = _number_labels(rows)
    if not labels:
        raise FormatError(f"{source.path}: no coefficients; write lines 'i j v'")
    vartype = VARTYPE.search(source.text)
    spins = FORM_PROBLEMS.get(source.problem or "", False)
    if vartype:
        if vartype[1] not in (b"BINARY", b"SPIN"):
            raise FormatError(f"{source.path}: vartype={show(vartype[1])}; expected BINARY or SPIN")
        spins = vartype[1] == b"SPIN"
    values = rows.columns[2]
    offset = offset_of(source)
    return [
        (
            QuadraticForm.from_entries(source.name, len(labels), i, j, values, offset, spins=spins),
            labels,
        )
    ]


# SAT formulas in DIMACS CNF, read as the conflict graph of the formula, as in SATLIB's independent
# set instances.
#
# A node is an occurrence of a literal, labelled `CLAUSE:LITERAL` with clauses counted from 1.

Clause = tuple[int, ...]
# A single clause makes a number of edges that grows with the square of its length.
_MOST_CONFLICTS = 10**7


def read_cnf(path: str | os.PathLike) -> list[Clause]:
    """Returns the clauses of a DIMACS file, each a tuple of literals: v or -v for variable v >= 1.

    Comment lines (`c`) may appear anywhere, a clause may span several lines, and a line that starts
    with `%`, as in SATLIB's own files, ends the formula.
    """
    return _read_clauses(SourceFile(path))


def _read_clauses(source: SourceFile) -> list[Clause]:
    header, lines = source.lines(b"c").header(
        b"p cnf " + _NODES + b" " + _COUNT, "'p cnf VARIABLES CLAUSES'"
    )
    num_variables, num_clauses = map(int, header.groups())
    clauses: list[Clause] = []
    clause: list[int] = []
    number = lines.after
    for number, line in lines:
        if line.startswith(b"%"):
            break
        for word in line.split():
            if not is_whole(word.removeprefix(b"-")) or abs(int(word)) > num_variables:
                raise lines.error(
                    number,
                    f"{show(word)} is not a literal of {num_variables} variables; write whole "
                    "numbers, and 0 at the "
                    "end of a clause",
                )
            if int(word):
                clause.append(int(word))
            else:
                clauses.append(tuple(clause))
                clause = []
    if clause:
        raise lines.error(number, "the last clause does not end with 0; is the file cut short?")
    lines.check_count(num_clauses, len(clauses), "clauses")
    return clauses


def read_formula(source: SourceFile) -> Labelled:
    """Returns the conflict graph of a file."""
    # A literal that a clause repeats says nothing new, and labels are distinct.
    clauses = [tuple(dict.fromkeys(clause)) for clause in _read_clauses(source)]
    occurrences = collections.Counter(literal for clause in clauses for literal in clause)
    edges = sum(len(clause) * (len(clause) - 1) // 2 for clause in clauses)
    edges += sum(
        count * occurrences[-literal] for literal, count in occurrences.items() if literal > 0
    )
    if edges > _MOST_CONFLICTS:
        raise FormatError(
            f"{source.path}: {edges} conflicts between literals; graphs have at most "
            f"{_MOST_CONFLICTS} edges"
        )
    labels = tuple(
        f"{number}:{literal}" for number, clause in enumerate(clauses, 1) for literal in clause
    )
    return [(conflict_graph(source.name, clauses), labels)]


def conflict_graph(name: str, clauses: list[Clause]) -> Graph:
    """Returns the graph whose independent sets are the ways to satisfy clauses together (the SATLIB
    MIS instances).

    The graph has one node for each literal of each clause, clause by clause. The nodes of one
    clause are joined, and each occurrence of a literal is joined to each occurrence of its
    negation. The size of the largest independent set is the largest number of clauses that can be
    satisfied at once. A literal repeated in a clause gives two joined nodes; x and -x in one clause
    are joined once; a clause without literals gives no node.

    The reference is the number of clauses that have literals, an upper bound that is reached if and
    only if they can all be satisfied together, as in SATLIB's CBS formulas, which DISCS uses.
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
