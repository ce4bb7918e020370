"""qbsolv's `.qubo` files, to be minimised: a header `p qubo 0 maxNodes nNodes nCouplers`.

It is followed by nNodes lines `i i a` for a x_i and nCouplers lines `i j b` with i < j for b x_i x_j, with nodes
from 0 to maxNodes - 1. A node or coupler must not be repeated; `c` starts a comment. Nodes without a line are
variables without a linear term.

Source: README of qbsolv (D-Wave Systems), section "qbsolv QUBO Input File Format".
"""

from __future__ import annotations

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_rows import (
    Columns,
    check_count,
    header_counts,
    show,
)
from sl_discs.instances.formats.quadratic_form import quadratic_form
from sl_discs.instances.formats.source import Source

_HEADER = "'p qubo 0 MAX_NODES NODES COUPLERS'"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The model of a file, to be minimised, its labels 0 to maxNodes - 1.

    Raises:
      InputError: a malformed header or line, a topology other than `0` or `unconstrained`, a node out of range, a
        coupler with i > j, a repeated line, or numbers of nodes or couplers that differ from the header.
    """
    reader = LineReader(source, b"c")
    number, words = reader.one(f"the header {_HEADER}")
    if words[:2] != [b"p", b"qubo"] or len(words) != 6 or words[2] not in (b"0", b"unconstrained"):
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a header; write {_HEADER}")
    num_variables, num_nodes, num_couplers = header_counts(source, number, words[3:], (3,), _HEADER)
    rows = Columns(source, ("iif",), "a node or coupler, 'i j value'").extend(reader.groups())
    i, j = rows.check_indices(0, num_variables - 1)
    rows.refuse(i > j, "coupler {0} {1}; the smaller node comes first")
    check_count(source, number, num_nodes, int((i == j).sum()), "nodes (lines 'i i a')")
    check_count(source, number, num_couplers, int((i != j).sum()), "couplers (lines 'i j b')")
    form = quadratic_form(source.name, num_variables, i, j, rows.arrays()[2], rows)
    return [Instance(form, range(num_variables), "qbsolv", source.path)]
