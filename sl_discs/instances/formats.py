"""Reads files of graphs and quadratic models in any known format."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError, NotSupported, errors_of
from sl_discs.files import read_npz
from sl_discs.instances.archive import read_archive, read_forms
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.instances.graph_files import (
    METIS_FMTS,
    PACE,
    is_heading,
    read_dimacs,
    read_edge_list,
    read_formula,
    read_metis,
    read_qbsolv,
    read_rudy,
)
from sl_discs.instances.library_files import (
    VARTYPE,
    read_coo,
    read_gml,
    read_graphml,
    read_matrix_market,
    read_node_link,
)
from sl_discs.instances.text import Lines, Progress, Source, is_real, is_whole, show
from sl_discs.problem_names import FORM_PROBLEMS, GRAPH_PROBLEMS, form_problem, in_words


@dataclasses.dataclass(frozen=True)
class Instance:
    """A graph or a quadratic model, with the labels that its file gives to the nodes or variables.

    Attributes:
      content: the graph or model; its nodes are 0 .. N - 1.
      labels: [N] the file's label of each: a number, counted from 1 in formats that count from 1, or text; in
        `node_link` also a tuple of these.
      format: name of the format, one of `READERS`.
      path: the file.
    """

    content: Graph | QuadraticForm
    labels: Sequence[Hashable]
    format: str
    path: Path


def _read_npz(source: Source) -> list[tuple[Any, range]]:
    """The graphs or models of one of our archives (see `archive`), labelled from 0 on.

    An archive with an array `couplings` holds models.
    """
    if read_npz(source.path, wanted=("couplings",)):
        return [(form, range(form.num_variables)) for form in read_forms(source.path)]
    return [(graph, range(graph.num_nodes)) for graph in read_archive(source.path)]


READERS: dict[str, Callable[[Source], Sequence[tuple[Any, Sequence[Hashable]]]]] = {
    "rudy": read_rudy,
    "dimacs": read_dimacs,
    "metis": read_metis,
    "edge_list": read_edge_list,
    "cnf": read_formula,
    "qbsolv": read_qbsolv,
    "matrix_market": read_matrix_market,
    "gml": read_gml,
    "graphml": read_graphml,
    "node_link": read_node_link,
    "coo": read_coo,
    "npz": _read_npz,
}
# By the word after `p` in a first line without comments, and by suffix.
_TAGS = {b"cnf": "cnf", b"qubo": "qbsolv"} | dict.fromkeys([b"edge", b"edges", b"col", b"clq", *PACE], "dimacs")
SUFFIXES = {
    suffix: format
    for format, suffixes in {
        "rudy": ".rudy .mc",
        "dimacs": ".clq .col .dimacs",
        "metis": ".graph .metis",
        "edge_list": ".edges .edgelist",
        "matrix_market": ".mtx",
        "cnf": ".cnf",
        "gml": ".gml",
        "graphml": ".graphml",
        "node_link": ".json",
        "qbsolv": ".qubo",
        "coo": ".coo",
    }.items()
    for suffix in suffixes.split()
}


def read_instances(
    path: str | os.PathLike,
    *,
    problem: str | None = None,
    format: str | None = None,
    progress: Progress | None = None,
) -> list[Instance]:
    """The graphs or models of a file: one, except for archives.

    The format is recognised by a file's header, else by its suffix; a file that fits two formats is refused (see
    `recognise`). Compression by gzip, bzip2 or xz is recognised as well.

    Args:
      path: the file.
      problem: one of `GRAPH_PROBLEMS` (expects a graph), `qubo` or `ising` (expect a model, binary or of spins), or
        None for any content. It decides the meaning of a MatrixMarket file and of a bare list `i j v`.
      format: one of `READERS`, to read the file in that format.
      progress: called with the number of bytes of the file that each block took, about a MiB at a time.

    Raises:
      FormatError: the file is damaged, or is not what its format asks for.
      NotSupported: its format is not one of these.
      InputError: the file cannot be read, fits two formats, or does not hold what the problem needs. Of each error,
        the message is one line that names the file, the line in it if there is one, and what to do.
    """
    known = (*GRAPH_PROBLEMS, *FORM_PROBLEMS)
    if problem not in (None, *known):
        raise InputError(f"unknown problem {problem!r}; choose one of {', '.join(known)}")
    if format not in (None, *READERS):
        raise InputError(f"unknown format {format!r}; choose one of {', '.join(READERS)}")
    source = Source(path, problem, progress, named=format is not None)
    if format is not None and source.is_zip != (format == "npz"):
        kind = "a zip archive" if source.is_zip else "not a zip archive"
        raise InputError(f"{path}: {kind}, so its format is not {format}; leave out the format")
    format = format or recognise(source)
    with errors_of(source.path):
        contents = READERS[format](source)
    found = [Instance(content, labels, format, source.path) for content, labels in contents]
    for instance in found:
        _check_problem(instance, problem)
    return found


def _check_problem(instance: Instance, problem: str | None) -> None:
    content, where = instance.content, f"{instance.path}: {instance.format}"
    if isinstance(content, QuadraticForm):
        if problem in GRAPH_PROBLEMS:
            raise InputError(
                f"{where} holds a quadratic model, but {problem} needs a graph; use {in_words(FORM_PROBLEMS)}"
            )
        if problem is not None and content.spins != FORM_PROBLEMS[problem]:
            kind = "spins" if content.spins else "zeros and ones"
            raise InputError(f"{where} holds a model of {kind}; use problem={form_problem(content.spins)}")
    elif problem in FORM_PROBLEMS:
        raise InputError(
            f"{where} holds a graph, but {problem} needs a quadratic model; use {in_words(GRAPH_PROBLEMS)}"
        )


# Which format a file is in.

# In GML, comments and what is said of the file may come before the graph.
_GML = re.compile(rb"(?:\s*(?:#.*|(?:creator|version|comment)\s.*)\n)*\s*graph\s*\[", re.IGNORECASE)
_TAG = re.compile(rb"(?:[^\S\n]*(?:c.*)?\n)*[^\S\n]*p[^\S\n]+(\S+)[^\S\n]*(\d?)")


def recognise(source: Source) -> str:
    """Name of the format of a file.

    A zip archive is `npz`; `%%MatrixMarket` starts `matrix_market`; a line `p cnf`, `p qubo`, `p edge`, `p edges`,
    `p col`, `p clq` or, of the PACE challenges, `p td`, `p tw` and `p ds` identifies `cnf`, `qbsolv` or `dimacs`; a
    comment `# vartype=` identifies `coo`; a brace starts `node_link`, `<` starts `graphml`, and `graph [` starts
    `gml`, after comments and lines about the file. Without such a tag the suffix of the file's name counts, if it is
    one of `SUFFIXES`; otherwise these remain, where comments (`#`, `%`) are no lines:

    - `rudy`, if the first line is a header `n m` or `n m 0` and m lines of edges follow;
    - `metis`, if it is a header `n m [fmt [ncon]]` and n lines follow;
    - `edge_list`, if all lines have two or three words, of which two are whole numbers, but for a heading; with three
      they may also be `coo`, and for qubo and ising they are. The first line cannot be of a list if m lines follow,
      nodes are 1 to n, and m is larger than n + 1: as an edge it would lead to a node far beyond all others.

    Raises:
      InputError: two formats fit, the first line is a header with a wrong number of lines, no format begins like this
        file, or a header is that of a graph where the problem needs a quadratic model.
    """
    if source.is_zip:
        return "npz"
    if source.head[:14].lower() == b"%%matrixmarket":
        return "matrix_market"
    tagged = _TAG.match(source.head)
    if tagged and tagged[1] in _TAGS:
        return _TAGS[tagged[1]]
    if tagged and tagged[2]:
        known = ", ".join(f"p {tag.decode()}" for tag in _TAGS)
        raise NotSupported(f"{source.path}: files of {show(b'p ' + tagged[1])} are not read; those of {known} are")
    if VARTYPE.search(source.head):
        return "coo"
    start = source.head.lstrip()
    if start.startswith(b"{"):
        return "node_link"
    if start.startswith(b"<") and b"<graphml" in start:
        return "graphml"
    if _GML.match(source.head):
        return "gml"
    if source.suffix in SUFFIXES:
        return SUFFIXES[source.suffix]
    rows = [words for words in map(bytes.split, source.head.split(b"\n")) if words and words[0][0] not in b"#%"]
    if not rows:
        raise InputError(f"{source.path}: only comments at its start; is it one of the formats? Say with --format")
    number, first = Lines(source, (b"#", b"%"), quiet=True).peek("a graph or model")
    if is_heading(first):
        return "edge_list"
    fits: tuple[str, ...] = ()
    if not (len(first) >= 2 and all(map(bytes.isdigit, first[:2]))):
        raise _unknown(source, number, first)
    if len(first) in (2, 3) and all(len(words) == len(first) for words in rows):
        graph = ("edge_list",) if first[0] != first[1] else ()  # which has no edge from a node to itself
        model = ("coo",) if len(first) == 3 and is_real(first[2]) else ()
        fits = model or graph if source.problem in FORM_PROBLEMS else graph if source.problem else (*graph, *model)
    if len(first) <= 4 and all(map(is_whole, first)) and int(first[0]):
        fits = _by_header(source, [int(word) for word in first], rows[1:], fits)
    if len(fits) > 1:
        by_problem = " or --problem" if {"edge_list", "coo"} <= set(fits) else ""
        raise InputError(
            f"{source.path}: the file reads as {' and as '.join(fits)}; say which it is with "
            f"--format={' or --format='.join(fits)}{by_problem} (--from in convert), or by its suffix"
        )
    if not fits and len(first) > 3:
        raise _unknown(source, number, first)
    return fits[0] if fits else "coo" if source.problem in FORM_PROBLEMS and len(first) == 3 else "edge_list"


def _unknown(source: Source, number: int, first: list[bytes]) -> NotSupported:
    """Says that a file is in a format that is not read, which is no fault of the file."""
    count = len(first)
    like = {1: "OR-Library's bqp begins like this", 4: "lists with a time beside the weight look like this"}
    hint = f" ({like[count]})" if count in like and all(map(is_real, first)) else ""
    return NotSupported(
        f"{source.path}:{number}: {show(b' '.join(first))} begins no format that is read{hint}; those are "
        f"{', '.join(READERS)}, and of edge lists the lines are 'u v' or 'u v w' with nodes as whole numbers, or any "
        "words with --format=edge_list"
    )


def _by_header(source: Source, first: list[int], rows: list[list[bytes]], lists: tuple[str, ...]) -> tuple[str, ...]:
    """The formats that fit if the first line is two to four whole numbers."""
    n, m, *rest = first
    weighted = bool(rows) and not rest and all(len(words) == 3 for words in rows)
    if weighted and source.problem in FORM_PROBLEMS:
        raise InputError(
            f"{source.path}: rudy holds a graph, but {source.problem} needs a quadratic model; if these lines are "
            "its coefficients, remove the header and say --format=coo"
        )
    if weighted and 3 * n != 2 * m:  # otherwise all nodes of a METIS file may have three neighbours
        return ("rudy",)
    num_rows, num_lines = _count(source)
    # Most lines have a weight: one without may be a mistake.
    edges = all(len(words) == 2 for words in rows) or 2 * sum(len(words) == 3 for words in rows) > len(rows)
    within = all(is_whole(word) and 1 <= int(word) <= n for words in rows for word in words[:2])
    certain = within and m > n + 1
    header = len(rest) <= 1 and n and m <= n * (n - 1) // 2 and (certain or not any(rest))
    rudy = ("rudy",) if header and num_rows == m and edges else ()
    fmt = str(rest[0]) if rest else "0"
    # Without weights, a METIS file gives each edge twice and nothing else.
    meant = fmt in METIS_FMTS and (fmt != "0" or sum(map(len, rows)) <= 2 * m)
    metis = ("metis",) if meant and max(num_rows, 1) <= n <= num_lines else ()
    if lists and header and within and not (metis or rudy) and (certain or num_rows < m):
        raise InputError(
            f"{source.path}: the first line reads as a header of {m} edges, but {num_rows} lines follow; is the file "
            f"cut short? If that line is like the others, say --format={lists[0]}"
        )
    fits = (*metis, *rudy, *(() if rudy and certain else lists))
    if not fits and len(first) == 4 and all(len(words) == 4 for words in rows):
        return ()
    # A header with a wrong number of lines: its reader says so.
    return fits or (("metis",) if not edges else ("rudy",) if len(first) == 2 else ())


def _count(source: Source) -> tuple[int, int]:
    """The number of lines with words after the first line, and that of all lines after it, without comments."""
    with_words = lines = 0
    for block, _ in Lines(source, (b"#", b"%"), keep_blank=True, quiet=True).blocks():
        with_words += sum(map(bool, map(bytes.strip, block)))
        lines += len(block)
    return with_words - 1, lines - 1
