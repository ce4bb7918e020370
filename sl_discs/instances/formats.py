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
    is_coo,
    read_coo,
    read_gml,
    read_graphml,
    read_matrix_market,
    read_node_link,
)
from sl_discs.instances.text import Lines, Source, is_real, is_whole, show
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
    """Reads the graphs or models of one of our archives (see `archive`), labelled from 0 on.

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
) -> list[Instance]:
    """Reads the graphs or models of a file: one, except for archives.

    The format is recognised by a file's header, else by its suffix; a file that fits two formats is refused (see
    `recognise`). Compression by gzip, bzip2 or xz is recognised as well.

    Args:
      path: the file.
      problem: one of `GRAPH_PROBLEMS` (expects a graph), `qubo` or `ising` (expect a model, binary or of spins), or
        None for any content. It decides the meaning of a MatrixMarket file and of a bare list `i j v`.
      format: one of `READERS`, to read the file in that format.

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
    source = Source(path, problem, named=format is not None)
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
            f"{where} holds a graph, but {problem} needs a quadratic model; use {in_words(GRAPH_PROBLEMS)}, or "
            "--format=coo if its lines are couplings 'i j value'"
        )


# Which format a file is in.

# Beginnings that no other format has. In GML, comments and what is said of the file may come before the graph.
_COMMENTS = rb"(?:[^\S\n]*(?:c.*)?\n)*[^\S\n]*"
_BEGINNINGS = {
    "matrix_market": re.compile(rb"%%matrixmarket", re.IGNORECASE),
    "cnf": re.compile(_COMMENTS + rb"p\s+cnf\s"),
    "qbsolv": re.compile(_COMMENTS + rb"p\s+qubo\s"),
    "dimacs": re.compile(_COMMENTS + rb"p\s+(edge|edges|col|clq|" + b"|".join(PACE) + rb")\s"),
    "node_link": re.compile(rb"\s*\{"),
    "graphml": re.compile(rb"\s*<(?s:.{0,2000}?)graphml"),
    "gml": re.compile(rb"(?:\s*(?:#.*|(?:creator|version|comment)\s.*)\n)*\s*graph\s*\[", re.IGNORECASE),
}
_OTHER_HEADER = re.compile(_COMMENTS + rb"(p\s+\S+)\s+\d")


def recognise(source: Source) -> str:
    """Returns the name of the format of a file.

    A zip archive is `npz`; `%%MatrixMarket` starts `matrix_market`; a line `p cnf`, `p qubo`, `p edge`, `p edges`,
    `p col`, `p clq` or, of the PACE challenges, `p td`, `p tw` and `p ds` identifies `cnf`, `qbsolv` or `dimacs`; a
    comment `# vartype=` identifies `coo`; a brace starts `node_link`, `<` starts `graphml`, and `graph [` starts
    `gml`, after comments and lines about the file. Without such a beginning the suffix of the file's name counts, if
    it is one of `SUFFIXES`; otherwise the file must begin with two whole numbers, after comments and a heading, and
    be read without an error in exactly one of the formats `rudy`, `metis`, `edge_list` and `coo` (see `_by_content`).

    Raises:
      InputError: two formats fit, or the file has an error in the one that it looks like.
      NotSupported: no format begins like this file.
    """
    if source.is_zip:
        return "npz"
    for name, pattern in _BEGINNINGS.items():
        if pattern.match(source.text):
            return name
    if VARTYPE.search(source.text):
        return "coo"
    if other := _OTHER_HEADER.match(source.text):
        known = "p cnf, p qubo, p edge, p col and p td"
        raise NotSupported(f"{source.path}: files of {show(other[1])} are not read; those of {known} are")
    return SUFFIXES.get(source.suffix) or _by_content(source)


def _by_content(source: Source) -> str:
    """Returns the format in which a file can be read, if there is one.

    A list of edges has as many words on each line as on the first one. That line may be a header `n m` if no node is
    above n. It is no edge then if m is larger than n + 1, where as an edge it would lead to a node far beyond all
    others, or larger than the number of lines that follow; and the file may be `rudy` if that number is m.
    """
    number, first, rest = Lines(source, (b"#", b"%")).first("a graph or model")
    if is_heading(first):
        return "edge_list"
    if not (2 <= len(first) <= 4 and all(map(is_whole, first[:2]))):
        raise _unknown(source, number, first)
    widths = {len(line.split()) for _, line in rest}
    ends = [word for _, line in rest for word in line.split()[:2]]
    n, m = map(int, first[:2])
    bounded = first[2:] in ([], [b"0"]) and all(is_whole(word) and int(word) <= n for word in ends)
    is_header = bounded and (m > n + 1 or 2 * m > len(ends))
    is_list = len(first) < 4 and widths <= {len(first)}
    tries = ["rudy", "metis"]
    if is_list and not is_header and source.problem not in FORM_PROBLEMS:
        tries.append("edge_list")
    if is_list and not is_header and source.problem not in GRAPH_PROBLEMS and is_coo(source):
        tries.append("coo")
    errors: dict[str, InputError] = {}
    for name in tries:
        try:
            with errors_of(source.path):
                READERS[name](source)
        except InputError as error:
            errors[name] = error
    may_be_rudy = bounded and 2 * m == len(ends) and widths in ({2}, {3})
    fits = [name for name in tries if name not in errors or (name == "rudy" and may_be_rudy)]
    if len(fits) > 1:
        by_problem = " or --problem" if {"edge_list", "coo"} <= set(fits) else ""
        raise InputError(
            f"{source.path}: the file reads as {' and as '.join(fits)}; say which it is with "
            f"--format={' or --format='.join(fits)}{by_problem} (--from in convert), or by its suffix"
        )
    if fits:
        return fits[0]
    if len(first) == 4 and widths == {4}:
        raise _unknown(source, number, first)
    if is_list and is_header:
        raise InputError(f"{errors['rudy']} If the first line is like the others, say --format=edge_list")
    # The reader of the likeliest format says what is wrong.
    if source.problem in FORM_PROBLEMS and len(first) == 3:
        return "coo"
    if is_list or not n:
        return "edge_list"
    return "rudy" if widths <= {2, 3} else "metis"


def _unknown(source: Source, number: int, first: list[bytes]) -> NotSupported:
    """Returns the error for a file in a format that is not read, which is no fault of the file."""
    count = len(first)
    like = {1: "OR-Library's bqp begins like this", 4: "lists with a time beside the weight look like this"}
    hint = f" ({like[count]})" if count in like and all(map(is_real, first)) else ""
    if any(b"," in word for word in first):
        hint = " (of a table with commas, write the columns of nodes and weights with spaces between them)"
    return NotSupported(
        f"{source.path}:{number}: {show(b' '.join(first))} begins no format that is read{hint}; those are "
        f"{', '.join(READERS)}, and of edge lists the lines are 'u v' or 'u v w' with nodes as whole numbers, or any "
        "words with --format=edge_list"
    )
