"""The problems that a file's graphs and models pose."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
from pathlib import Path

from sl_discs.errors import InputError
from sl_discs.instances.formats import Instance, read_instances
from sl_discs.instances.graph import Graph
from sl_discs.problem_names import COLORING, ON_GRAPHS, form_problem, in_words
from sl_discs.problems.categorical import coloring
from sl_discs.problems.constraints import from_cqm
from sl_discs.problems.graph_kind import GRAPH_KINDS
from sl_discs.problems.kind import KINDS, PENALTY
from sl_discs.problems.problem import Problem, in_order, timed


@timed
def read(
    path: str | os.PathLike,
    problem: str | None = None,
    *,
    format: str | None = None,
    number: int | None = None,
    penalty: float | None = None,
    colors: int | None = None,
    weights: bool = False,
) -> Problem:
    """The problem of a file of a graph, a QUBO or an Ising model, with the labels of the file.

    Args:
      path: the file, in one of the formats of `sl_discs.instances.read_instances`, which recognises them; or a
        quadratic model with linear constraints, an LP file (.lp) or one of dimod's CQMs (.cqm), by dimod.
      problem: what to pose on a graph: `mis`, `maxcut`, `maxclique`, `vertex_cover` or `coloring`; a model is a
        `qubo` or `ising`, and a SAT formula `mis`, without being told.
      format: the name of the format, where a file fits two.
      number: which graph or model of a file with several, from 0 on.
      penalty: of a conflict, where there are conflicts; None: the default.
      colors: the number of colours of `coloring`.
      weights: whether weights of nodes in the file count.

    Raises:
      InputError: the file cannot be read, has several graphs or models and no `number` is given, a graph comes
        without a problem, or an argument does not go with the problem.
    """
    check_colors(problem, colors)
    if is_constrained(path):
        if number:
            raise InputError(f"{path}: number is {number}, but the file has a single model; leave number out")
        return read_constrained(path, problem, format, penalty, weights)
    instances = read_instances(path, problem=problem, format=format)
    if number is None and len(instances) > 1:
        raise InputError(f"{path}: {len(instances)} graphs or models; choose one: number=0 to {len(instances) - 1}")
    if number is not None and not 0 <= number < len(instances):
        raise InputError(f"{path}: number is {number}; expected 0 to {len(instances) - 1}")
    return problem_of(instances[number or 0], problem, penalty, colors, weights)


_CONSTRAINED = ".lp", ".cqm"


def is_constrained(path: str | os.PathLike) -> bool:
    """Whether a file, by its suffix, has a model with constraints."""
    return Path(path).suffix.lower() in _CONSTRAINED


def read_constrained(
    path: str | os.PathLike, problem: str | None, format: str | None, penalty: float | None, weights: bool
) -> Problem:
    """The problem of a file with constraints: in the sense of an LP file, and minimised from a CQM; InputError as of
    `read`, or without dimod.
    """
    path = Path(path)
    if problem not in (None, "qubo", "constrained") or format is not None or penalty is not None or weights:
        raise InputError(f"{path}: a model with constraints; leave out problem, format, penalty and weights")
    try:
        dimod = importlib.import_module("dimod")
    except ImportError:
        raise InputError(f"{path}: reading it needs dimod; install it with: pip install dimod") from None
    maximise = False
    try:
        if path.suffix.lower() == ".lp":
            maximise, model = _sense_and_rest(path, path.read_text("utf-8-sig"))
            if "::" in model:  # dimod skips these
                raise InputError(f"{path}: special ordered sets, which are not supported; write them as constraints")
            # Of what a file maximises, dimod changes the sign.
            cqm = dimod.lp.loads(f"Minimize\n {model}")
        else:
            cqm = dimod.ConstrainedQuadraticModel.from_file(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except InputError:
        raise
    except Exception as error:  # whatever its parsers meet
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: dimod cannot read it ({words}); correct the file") from None
    return from_cqm(cqm, maximise=maximise, name=path.stem)


# The words with which an LP file begins that dimod knows; it takes any other file for an empty model.
_SENSES = {word: word.startswith("max") for word in ("min", "minimize", "minimum", "max", "maximize", "maximum")}


def _sense_and_rest(path: Path, text: str) -> tuple[bool, str]:
    """Whether an LP file maximises, and what follows that word, without comments; InputError if it is no LP file."""
    first, rest = (*re.sub(r"\\.*", "", text).split(maxsplit=1), "", "")[:2]
    if first.lower() not in _SENSES:
        raise InputError(
            f"{path}: not an LP file that dimod understands: its first word is {first[:40]!r}; "
            "begin it with Minimize or Maximize"
        )
    return _SENSES[first.lower()], rest


def check_colors(kind: str | None, colors: int | None) -> None:
    """InputError for a number of colors without `coloring`, or the other way round; before a file is read."""
    if (colors is not None) != (kind == COLORING):
        raise InputError(f"a number of colors and the problem {COLORING} go together; give both or neither")


def problem_of(
    instance: Instance, kind: str | None, penalty: float | None, colors: int | None, weights: bool
) -> Problem:
    """The problem of a graph or model from a file; arguments and errors as of `read`."""
    content = instance.content
    if isinstance(content, Graph):
        kind = kind or ("mis" if instance.format == "cnf" else None)
        if kind is None:
            raise InputError(f"{instance.path}: a graph; choose a problem: {in_words(ON_GRAPHS)}")
        if penalty is not None and KINDS[kind].penalty is None:
            raise InputError(f"penalty has no effect in {kind}, which has no penalty; leave it out")
        if weights and not (kind in GRAPH_KINDS and GRAPH_KINDS[kind].weights_of_nodes):
            raise InputError(f"weights has no effect in {kind}, where weights of nodes do not count; leave it out")
        if weights and content.node_weights is None:
            raise InputError(f"{instance.path}: the file has no weights of nodes; leave weights out")
        if colors is not None:
            return dataclasses.replace(coloring(content, colors), labels=in_order(instance.labels))
        source = GRAPH_KINDS[kind].counted(content if weights else dataclasses.replace(content, node_weights=None))
        return Problem(
            kind, content.name, in_order(instance.labels), source, penalty or KINDS[kind].penalty or PENALTY
        )
    if weights:
        raise InputError("weights has no effect in a quadratic model, which has no nodes; leave it out")
    if penalty is not None:
        raise InputError("penalty has no effect in a quadratic model, which has no conflicts; leave it out")
    return Problem(form_problem(content.spins), content.name, in_order(instance.labels), content)
