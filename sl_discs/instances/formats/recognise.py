"""Which formats a file may be in, judged by its content and the requested problem.

Some formats carry a tag: a zip archive is `npz`; `%%MatrixMarket` starts `matrix_market`; a line `p cnf`, `p qubo`,
`p edge`, `p edges`, `p col` or `p clq` identifies `cnf`, `qbsolv` or `dimacs`; a comment `# vartype=` identifies
`coo`; a first line of one whole number is `bqp`. Comments (`#`, `%`, and `c` above a `p` line) do not count as lines.

The other formats are distinguished by their shape, in this order:

1. `metis` has as many lines as its header (two to four whole numbers) has nodes, and gives every edge twice. If the
   number of lines matches, the file is METIS if it is consistent.
2. A first line `n m` (or `n m 0`) is the header of `rudy` if m lines follow and n nodes can have m edges. It may also
   be the first line of a list, if it has as many columns as the others. It is certainly a header if nodes are 1 to n
   and m is larger than n + 1: as an edge it would lead to a node far beyond all others.
3. A list of lines `u v` is an `edge_list`. A list `i j v` is `coo` if the problem is qubo or ising, or if a line has
   the same number twice, which no graph has, and an `edge_list` for other problems.

A file that fits two formats is refused, and so is a list whose first line is a header with a wrong number of lines.
"""

from __future__ import annotations

import re

from sl_discs.errors import InputError
from sl_discs.instances.formats.coo import VARTYPE
from sl_discs.instances.formats.lines import split
from sl_discs.instances.formats.source import Source
from sl_discs.problem_names import FORM_PROBLEMS

_TAGS = {
    b"cnf": "cnf",
    b"qubo": "qbsolv",
    b"edge": "dimacs",
    b"edges": "dimacs",
    b"col": "dimacs",
    b"clq": "dimacs",
}
_TAG = re.compile(rb"(?:[^\S\n]*(?:c.*)?\n)*[^\S\n]*p[^\S\n]+(\S+)")

Rows = list[list[bytes]]


def candidates(source: Source, problem: str | None) -> tuple[str, ...]:
    """Names of the formats that the file may be in; `metis`, which a reading must confirm, comes first.

    Raises:
      InputError: no format begins like this file, it was cut short, or it has the shape of a graph where the problem
        needs a quadratic model.
    """
    if source.is_zip:
        return ("npz",)
    if source.head[:14].lower() == b"%%matrixmarket":
        return ("matrix_market",)
    tagged = _TAG.match(source.head)
    if tagged and tagged[1] in _TAGS:
        return (_TAGS[tagged[1]],)
    if VARTYPE.search(source.head):
        return ("coo",)
    rows = [words for words in map(bytes.split, source.head.split(b"\n")) if words and words[0][0] not in b"#%"]
    if not rows:
        raise InputError(f"{source.path}: only comments at its start; is it one of the formats? Say with --format")
    first = rows[0]
    if len(first) == 1 and first[0].isdigit():
        return ("bqp",)
    lists = _lists(rows, problem)
    if not 2 <= len(first) <= 4 or not all(word.isdigit() and len(word) < 19 for word in first):
        return lists or (("coo",) if problem in FORM_PROBLEMS and len(first) == 3 else ("edge_list",))
    return _by_header(source, [int(word) for word in first], rows, lists, problem)


def _lists(rows: Rows, problem: str | None) -> tuple[str, ...]:
    """The formats that fit if no line is a header; none if lines differ in their number of columns."""
    first = rows[0]
    if len(first) not in (2, 3) or any(len(words) != len(first) for words in rows):
        return ()
    if len(first) == 2 or problem not in (None, *FORM_PROBLEMS):
        return ("edge_list",)
    if problem in FORM_PROBLEMS or any(words[0] == words[1] for words in rows):
        return ("coo",)
    return (
        ("edge_list", "coo") if all(word.isdigit() for word in first[:2]) and _is_number(first[2]) else ("edge_list",)
    )


def _by_header(
    source: Source, first: list[int], rows: Rows, lists: tuple[str, ...], problem: str | None
) -> tuple[str, ...]:
    """The formats that fit if the first line is two to four whole numbers."""
    n, m, *rest = first
    num_rows, num_lines = _count(source)
    metis = ("metis",) if max(num_rows, 1) <= n <= num_lines else ()
    pairs = all(len(words) == 2 for words in rows[1:])
    triples = 2 * sum(len(words) == 3 for words in rows[1:]) > len(rows) - 1  # most: one may be a mistake
    within = _all_within(rows[1:], n)
    certain = within and m > n + 1
    header = len(rest) <= 1 and n and m <= n * (n - 1) // 2 and (certain or not any(rest))
    if num_rows == m and triples and len(first) == 2 and problem in FORM_PROBLEMS:
        raise InputError(
            f"{source.path}: rudy holds a graph, but {problem} needs a quadratic model; if these lines are its "
            "coefficients, remove the header (coo, minimise) or write a line '1' above it (bqp, maximise x'Qx)"
        )
    if header and num_rows == m and (pairs or triples):
        rivals = () if certain else tuple(name for name in lists if name == "coo" or n != m)
        return (*metis, "rudy", *rivals)
    if not lists:
        if n == 0:
            return ("edge_list",)
        return metis or (("rudy" if len(first) == 2 else "edge_list",) if triples else ("metis",))
    if not metis and header and within and (certain or num_rows < m):
        raise InputError(
            f"{source.path}: the first line reads as a header of {m} edges, but {num_rows} lines follow; is the file "
            f"cut short? If that line is like the others, say --format={lists[0]}"
        )
    return (*metis, *lists)


def _count(source: Source) -> tuple[int, int]:
    """The number of lines with words after the first line, and that of all lines after it, without comments."""
    with_words = lines = 0
    for block in source.blocks(quiet=True):
        found, _ = split(block, 1, b"#%", keep_blank=True)
        with_words += int((found.counts > 0).sum())
        lines += len(found)
    return with_words - 1, lines - 1


def _all_within(rows: Rows, n: int) -> bool:
    return all(word.isdigit() and len(word) < 19 and 1 <= int(word) <= n for words in rows for word in words[:2])


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
