"""Reads files of graphs and quadratic models in any known format."""

from __future__ import annotations

import os

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import (
    bqp,
    cnf,
    coo,
    dimacs,
    edge_list,
    matrix_market,
    metis,
    npz,
    qbsolv,
    rudy,
)
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.recognise import candidates
from sl_discs.instances.formats.source import Progress, Source
from sl_discs.problem_names import FORM_PROBLEMS, ON_GRAPHS, form_problem, in_words

READERS = {
    "rudy": rudy.read,
    "dimacs": dimacs.read,
    "metis": metis.read,
    "edge_list": edge_list.read,
    "matrix_market": matrix_market.read,
    "cnf": cnf.read,
    "bqp": bqp.read,
    "qbsolv": qbsolv.read,
    "coo": coo.read,
    "npz": npz.read,
}


def read_instances(
    path: str | os.PathLike,
    *,
    problem: str | None = None,
    format: str | None = None,
    progress: Progress | None = None,
) -> list[Instance]:
    """The graphs or models of a file: one, except for OR-Library's files and archives.

    The format is recognised from the content and the problem (see `formats.recognise` for the rules). Compression by
    gzip, bzip2 or xz is recognised as well.

    Args:
      path: the file.
      problem: one of `ON_GRAPHS` (expects a graph), `qubo` or `ising` (expect a model, binary or of spins), or
        None for any content. It decides the meaning of a MatrixMarket file and of a bare list `i j v`.
      format: one of `READERS`, to read the file in that format.
      progress: called with the number of bytes of the file that each block took, about a MiB at a time.

    Raises:
      InputError: the file cannot be read, is malformed, fits two formats, or does not hold what the problem needs;
        the message is one line that names the file, the line in it if there is one, and what to do.
    """
    known = (*ON_GRAPHS, *FORM_PROBLEMS)
    if problem not in (None, *known):
        raise InputError(f"unknown problem {problem!r}; choose one of {', '.join(known)}")
    if format not in (None, *READERS):
        raise InputError(f"unknown format {format!r}; choose one of {', '.join(READERS)}")
    source = Source(path, progress)
    if format is not None and source.is_zip != (format == "npz"):
        kind = "a zip archive" if source.is_zip else "not a zip archive"
        raise InputError(f"{path}: {kind}, so its format is not {format}; leave out the format")
    found = _read(source, problem, (format,) if format else candidates(source, problem))
    for instance in found:
        _check_problem(instance, problem)
    return found


def _read(source: Source, problem: str | None, names: tuple[str, ...]) -> list[Instance]:
    """Reads the file in the one format that fits; METIS fits if the file is consistent."""
    if names[0] == "metis" and len(names) > 1:
        found = _try("metis", source, problem)
        names = tuple(name for name in names if name != "metis" and (found is None or _try(name, source, problem)))
        if found is not None:
            if not names:
                return found
            names = ("metis", *names)
    if len(names) > 1:
        by_problem = " or --problem" if {"edge_list", "coo"} <= set(names) else ""
        raise InputError(
            f"{source.path}: the file reads as {' and as '.join(names)}; say which it is with "
            f"--format={' or --format='.join(names)}{by_problem} (--from in convert)"
        )
    return READERS[names[0]](source, problem)


def _try(name: str, source: Source, problem: str | None) -> list[Instance] | None:
    try:
        return READERS[name](source, problem)
    except InputError:
        return None


def _check_problem(instance: Instance, problem: str | None) -> None:
    content, where = instance.content, f"{instance.path}: {instance.format}"
    if isinstance(content, QuadraticForm):
        if problem in ON_GRAPHS:
            raise InputError(
                f"{where} holds a quadratic model, but {problem} needs a graph; use {in_words(FORM_PROBLEMS)}"
            )
        if problem is not None and content.spins != FORM_PROBLEMS[problem]:
            kind = "spins" if content.spins else "zeros and ones"
            raise InputError(f"{where} holds a model of {kind}; use problem={form_problem(content.spins)}")
    elif problem in FORM_PROBLEMS:
        raise InputError(f"{where} holds a graph, but {problem} needs a quadratic model; use {in_words(ON_GRAPHS)}")
