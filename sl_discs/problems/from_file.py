"""The problems that a file's graphs and models pose."""

from __future__ import annotations

import os
import warnings

from sl_discs.instances.formats import FORMATS, Instance, read_instances
from sl_discs.problems.kind import PENALTY, find_kind, kinds_of
from sl_discs.problems.problem import Problem, in_order
from sl_discs.support.checks import integer, join_names
from sl_discs.support.errors import InputError


def read(
    path: str | os.PathLike,
    problem: str | None = None,
    *,
    format: str | None = None,
    number: int | None = None,
    penalty: float | None = None,
    weights: bool | None = None,
    weight: str | None = None,
) -> Problem:
    """Returns the problem of a file of a graph, a QUBO or an Ising model, with the labels of the
    file.

    A warning says what of the file is left out. Where that could change the answer, the problem's
    results have no bound.

    Example:
        >>> written = Path("roads.txt").write_text("Rome Pisa 3\\nPisa Bari 2\\n")
        >>> problem = sl_discs.read("roads.txt", "maxcut", format="edge_list")
        >>> sl_discs.solve(problem).best_value
        5.0

    Args:
      path: the file, in one of the formats of `sl_discs.instances.formats.read_instances`, which
        recognises them.
      problem: what to pose on a graph: `mis`, `maxcut`, `maxclique`, `vertex_cover` or the name of
        a kind of your own; a model is a `qubo` or `ising`, and a SAT formula `mis`, without being
        told.
      format: the name of the format, where neither the file's first lines nor a suffix tell it.
      number: which graph or model of a file with several, from 0 on.
      penalty: of a conflict, where there are conflicts; None: the default.
      weights: whether weights of nodes in the file count; None: they do not, and a warning says so.
      weight: the attribute of edges (in `maxcut`) or of nodes that is their weight, in GML,
        GraphML, node-link JSON and edge lists with attributes; None: `weight`.

    Raises:
      InputError: the file cannot be read, has several graphs or models and no `number` is given, a
        graph comes without a problem, or an argument does not go with the problem.
    """
    if problem is not None:
        find_kind(problem)
    instances = read_instances(path, problem=problem, format=format, weight=weight)
    if number is None and len(instances) > 1:
        raise InputError(
            f"{path}: {len(instances)} graphs or models; choose one: number=0 to "
            f"{len(instances) - 1}"
        )
    if number is not None and integer("number", number) >= len(instances):
        raise InputError(f"{path}: number is {number}; expected 0 to {len(instances) - 1}")
    instance = instances[number or 0]
    return problem_of(instance, problem, penalty, weights, weight)


def problem_of(
    instance: Instance,
    kind: str | None,
    penalty: float | None,
    weights: bool | None,
    weight: str | None = None,
) -> Problem:
    """Returns the problem of a graph or model from a file; arguments, warnings and errors as of
    `read`.
    """
    content = instance.content
    name = kind or content.own_problem or FORMATS[instance.format].problem
    if name is None:
        raise InputError(
            f"{instance.path}: a {content.words[0]}; choose a problem: "
            f"{join_names(kinds_of(content))}"
        )
    known = find_kind(name)
    if not known.accepts(content):
        raise known.refusal(f"{instance.path}: {instance.format}", content)
    what = "edges" if known.weighted and not weights else "nodes"
    if weight is not None and what == "nodes":
        weights = True
    if penalty is not None and known.penalty is None:
        raise InputError(
            f"penalty has no effect in {known.name}, which has no conflicts; leave it out"
        )
    if weights and not known.weights_of_nodes:
        raise InputError(
            f"weights has no effect in {known.name}, where weights of nodes do not count; leave it "
            "out"
        )
    numbers = content.coefficients.get("weights" if what == "edges" else "weights of nodes")
    if numbers is None and (weights or weight is not None):
        there = "; ".join(map(str, instance.remarks)) or "name an attribute that they have, or none"
        raise InputError(
            f"{instance.path}: not all {what} have a number under {weight or 'weight'!r}; {there}"
        )
    if weights is None and known.weights_of_nodes and numbers is not None and (numbers != 1).any():
        warnings.warn(
            f"{instance.path}: the weights of its nodes do not count without weights=True; "
            "weights=False says so without this warning",
            stacklevel=3,
        )
    content = known.counted(content, weights_of_nodes=bool(weights))
    matters = {"any": True, "edges": known.weighted, "nodes": known.weights_of_nodes}
    remarks = [remark for remark in instance.remarks if matters.get(remark.of)]
    for remark in remarks:
        warnings.warn(f"{instance.path}: {remark}", stacklevel=3)
    penalty = known.penalty or PENALTY if penalty is None else penalty
    left_out = "; ".join(str(remark) for remark in remarks if remark.lost)
    return Problem(
        known.name, content.name, in_order(instance.labels), content, penalty, left_out=left_out
    )
