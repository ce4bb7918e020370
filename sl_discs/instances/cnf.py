"""SAT formulas in DIMACS CNF, and the independent-set problem that each one defines."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph

Clause = tuple[int, ...]


def read_cnf(path: str | os.PathLike) -> list[Clause]:
    """The clauses of a DIMACS file, each a tuple of literals: v or -v for variable v >= 1.

    Comment lines (`c`) may appear anywhere, a clause may span several lines, and a line that starts with `%`, as
    in SATLIB's own files, ends the formula.

    Raises:
      InputError: the file cannot be read or has no header `p cnf <variables> <clauses>`; a word is not a literal, a
        variable exceeds the header's number, the number of clauses differs from it, or the last clause is unfinished.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a .cnf file") from error
    return parse_cnf(path, lines)


def parse_cnf(path: str | os.PathLike, lines: Iterable[bytes]) -> list[Clause]:
    """The clauses in the lines of a DIMACS file; `path` names the file in messages.

    Raises:
      InputError: as `read_cnf`, except for failures to read the file.
    """
    header: tuple[int, int] | None = None
    clauses: list[Clause] = []
    clause: list[int] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.isascii():
            raise InputError(f"{path}:{number}: not a text file; give a DIMACS .cnf file")
        words = line.decode("ascii").split()
        if not words or words[0].startswith("c"):
            continue
        if words[0].startswith("%"):
            break
        if words[0] == "p":
            header = _parse_header(f"{path}:{number}", words, header)
            header_line = number
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
    if header is None:
        raise InputError(f"{path}: no header; a DIMACS file starts with 'p cnf VARIABLES CLAUSES'")
    if clause:
        raise InputError(f"{path}:{number}: the last clause does not end with 0; is the file cut short?")
    if len(clauses) != header[1]:
        raise InputError(
            f"{path}:{header_line}: the header promises {header[1]} clauses, but there are {len(clauses)}; "
            "is the file cut short?"
        )
    return clauses


def conflict_graph(name: str, clauses: list[Clause]) -> Graph:
    """The graph whose independent sets are the ways to satisfy clauses together (the SATLIB MIS instances).

    The graph has one node for each literal of each clause, clause by clause. The nodes of one clause are joined,
    and each occurrence of a literal is joined to each occurrence of its negation. An independent set thus picks at
    most one literal per clause, without contradictions, and the size of the largest one is the largest number of
    clauses that can be satisfied at once. A literal repeated in a clause gives two joined nodes; x and -x in one
    clause are joined once; a clause without literals gives no node.

    The reference is the number of clauses that have literals. It is an upper bound, which is reached if and only if
    they can all be satisfied together. SATLIB's CBS formulas, which DISCS uses, are satisfiable, so there it is the
    optimum.

    Raises:
      InputError: no clause has a literal.
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


def _parse_header(where: str, words: list[str], earlier: tuple[int, int] | None) -> tuple[int, int]:
    """Numbers of variables and clauses of a `p cnf` line."""
    if earlier is not None:
        raise InputError(f"{where}: a second header; a file holds one formula")
    if len(words) != 4 or words[1] != "cnf" or not all(map(_is_number, words[2:])):
        raise InputError(f"{where}: {' '.join(words)!r} is not a header; write 'p cnf VARIABLES CLAUSES'")
    return int(words[2]), int(words[3])


def _parse_literal(where: str, word: str, num_variables: int) -> int:
    """A literal, or 0 for the end of a clause."""
    if not _is_number(word.removeprefix("-")):
        raise InputError(f"{where}: {word!r} is not a literal; write whole numbers, and 0 at the end of a clause")
    literal = int(word)
    if abs(literal) > num_variables:
        raise InputError(
            f"{where}: literal {literal}, but the header promises {num_variables} variables; correct one"
        )
    return literal


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) < 19
