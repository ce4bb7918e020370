"""Which format a file is in, by its content alone.

In this order, comments (`#`, `%`, and `c` above a `p` line) aside:

1. A zip archive is `npz`; `%%MatrixMarket` starts `matrix_market`; a first line `p cnf`, `p qubo`, `p edge`, `p
   edges`, `p col` or `p clq` says `cnf`, `qbsolv` or `dimacs`; a comment `# vartype=` says `coo`.
2. A first line of one whole number is `bqp`.
3. A first line of three columns, the first two whole numbers, is `coo` if the problem is qubo or ising, or if all
   of the first lines (a MiB) have three and one has the same number twice, which no graph has; otherwise it is
   `edge_list`.
4. A first line `n m` of two whole numbers, n at least 1, is a header of `rudy` if m lines follow, of three columns,
   or of two where n nodes can have m edges. With another number of lines it is `rudy` cut short if most have three
   columns, and if all have two it is the first edge of an `edge_list`, unless it reads like a header of more edges
   than there are, which is refused.
5. `metis` has as many lines as its header (two to four whole numbers) has nodes, and gives every edge twice. So
   where the number of lines allows it, METIS is tried before rules 3 and 4, and stands if the file agrees with
   itself.
6. Everything else is an `edge_list` if its first line has text, and else `metis`.
"""

from __future__ import annotations

from sl_discs.errors import InputError
from sl_discs.instances.formats.coo import VARTYPE
from sl_discs.instances.formats.source import Source

_TAGS = {
    b"cnf": "cnf",
    b"qubo": "qbsolv",
    b"edge": "dimacs",
    b"edges": "dimacs",
    b"col": "dimacs",
    b"clq": "dimacs",
}


def candidates(source: Source, problem: str | None) -> tuple[str, ...]:
    """Names of the formats to try, the likeliest first.

    Raises:
      InputError: no format begins like this file, or it was cut short.
    """
    if source.is_zip:
        return ("npz",)
    if source.head[:14].lower() == b"%%matrixmarket":
        return ("matrix_market",)
    lines = [words for words in map(bytes.split, source.head.split(b"\n")) if words]
    tagged = next((words for words in lines if not words[0].startswith(b"c")), [])
    if tagged[:1] == [b"p"] and len(tagged) > 1 and tagged[1] in _TAGS:
        return (_TAGS[tagged[1]],)
    if VARTYPE.search(source.head):
        return ("coo",)
    rows = [words for words in lines if words[0][0] not in b"#%"]
    if not rows:
        raise InputError(f"{source.path}: only comments at its start; is it one of the formats? Say with format=...")
    first = rows[0]
    if problem in ("qubo", "ising") and len(first) == 3:
        return ("coo",)
    if not all(word.isdigit() for word in first[:2]):
        return ("edge_list",)
    if len(first) == 1:
        return ("bqp",)
    listed = "coo" if _has_diagonal(rows) else "edge_list"
    if len(first) > 4 or not all(word.isdigit() and len(word) < 19 for word in first):
        return (listed,)
    return _by_counts(source, [int(word) for word in first], rows, listed)


def _has_diagonal(rows: list[list[bytes]]) -> bool:
    return all(len(words) == 3 for words in rows) and any(words[0] == words[1] for words in rows)


def _by_counts(source: Source, first: list[int], rows: list[list[bytes]], listed: str) -> tuple[str, ...]:
    """Rules 3 to 6, `listed` being what rule 3 says of lines of three columns."""
    n, m = first[:2]
    num_rows, num_lines = _count(source)
    metis = ("metis",) if max(num_rows, 1) <= n <= num_lines else ()
    if len(first) > 2:
        return (*metis, listed)
    if n == 0:
        return ("edge_list",)
    pairs = all(len(words) == 2 for words in rows)
    triples = 2 * sum(len(words) == 3 for words in rows[1:]) > len(rows) - 1  # most of them: one may be the mistake
    possible = m <= n * (n - 1) // 2
    if num_rows == m and (triples or (pairs and possible)):
        return (*metis, "rudy")
    if not pairs:
        return metis or (("rudy",) if triples else ("metis",))
    if not metis and num_rows < m and possible and _all_within(rows[1:], n):
        raise InputError(
            f"{source.path}: the first line reads as a header of {m} edges, but {num_rows} lines follow; is the file "
            "cut short? If that line is an edge, say format=edge_list"
        )
    return (*metis, "edge_list")


def _count(source: Source) -> tuple[int, int]:
    """Lines behind the first one that have words, and all lines behind it, comments left out of both."""
    with_words = lines = 0
    for block in source.blocks(quiet=True):
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        blank = comments = 0
        if (
            b"\n\n" in block
            or b"#" in block
            or b"%" in block
            or block[:1].isspace()
            or any(mark in block for mark in (b"\n ", b"\n\t", b"\r"))
        ):
            heads = [line.split(None, 1) for line in block.split(b"\n")]
            if block.endswith(b"\n"):
                heads.pop()
            blank = sum(not words for words in heads)
            comments = sum(bool(words) and words[0][0] in b"#%" for words in heads)
        lines += count - comments
        with_words += count - comments - blank
    return with_words - 1, lines - 1


def _all_within(rows: list[list[bytes]], n: int) -> bool:
    return all(word.isdigit() and len(word) < 19 and 1 <= int(word) <= n for words in rows for word in words)
