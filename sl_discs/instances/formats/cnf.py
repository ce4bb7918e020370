"""DIMACS CNF, read as the conflict graph of the formula, as in SATLIB's maximum independent set instances.

A node is an occurrence of a literal, labelled `CLAUSE:LITERAL` with clauses counted from 1; see `instances.cnf`.
"""

from __future__ import annotations

import collections

from sl_discs.errors import InputError
from sl_discs.instances.cnf import conflict_graph, parse_cnf
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.source import Source

# A single clause makes a number of edges that grows with the square of its length.
MOST_EDGES = 10**7


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The conflict graph of a file.

    Raises:
      InputError: as `instances.cnf.read_cnf`, or more than ten million conflicts.
    """
    clauses = parse_cnf(source.path, (line for block in source.blocks() for line in block.splitlines()))
    occurrences = collections.Counter(literal for clause in clauses for literal in clause)
    edges = sum(len(clause) * (len(clause) - 1) // 2 for clause in clauses)
    edges += sum(count * occurrences[-literal] for literal, count in occurrences.items() if literal > 0)
    if not occurrences:
        raise InputError(f"{source.path}: no clause has a literal; give a formula that says something")
    if edges > MOST_EDGES:
        raise InputError(f"{source.path}: {edges} conflicts between literals; graphs have at most {MOST_EDGES} edges")
    graph = conflict_graph(source.name, clauses)
    labels = tuple(f"{number}:{literal}" for number, clause in enumerate(clauses, 1) for literal in clause)
    return [Instance(graph, labels, "cnf", source.path)]
