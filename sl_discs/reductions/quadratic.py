"""Forms and cuts, reduced by rules on spins."""

from __future__ import annotations

import dataclasses

import numpy as np

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.reductions.presolved import Presolved, none_found, unreduced
from sl_discs.reductions.roof_duality import fix_by_roof_duality
from sl_discs.reductions.spin_rules import Reduced, reduce_terms
from sl_discs.reductions.spin_terms import cut_of_terms, form_of_terms, terms_of_cut, terms_of_form


def reduce_form(problem: Problem) -> Presolved:
    """Reduces a problem `qubo` or `ising`; what is left has the constant in its offset."""
    form = problem.source
    assert isinstance(form, QuadraticForm)
    fixed = fix_by_roof_duality(terms_of_form(form))
    rest = reduce_terms(fixed.terms)
    both = Reduced(
        rest.terms,
        fixed.kept[rest.kept],
        lambda spins: fixed.lift(rest.lift(spins)),
        fixed.removed + rest.removed,
        fixed.complete and rest.complete,
    )
    left = form_of_terms(rest.terms, form) if len(both.kept) else None
    constant = 0.0 if left else rest.terms.constant if form.maximise else -rest.terms.constant
    return _presolved(problem, both, left, constant)


def reduce_maxcut(problem: Problem) -> Presolved:
    """Reduces a problem `maxcut`; the weights of what is left can be fractions and of either sign."""
    graph = problem.source
    assert isinstance(graph, Graph)
    rest = reduce_terms(terms_of_cut(graph))
    left, constant = cut_of_terms(rest.terms, graph.name) if len(rest.kept) else (None, rest.terms.constant)
    return _presolved(problem, rest, left, constant)


def _presolved(problem: Problem, rest: Reduced, left: QuadraticForm | Graph | None, constant: float) -> Presolved:
    size, kept = problem.num_variables, rest.kept
    if len(kept) == size:
        return unreduced(problem, rest.complete)
    labels = tuple(problem.labels[k] for k in kept)
    return Presolved(
        original=problem,
        problem=None if left is None else dataclasses.replace(problem, labels=labels, source=left),
        kept=kept,
        constant=float(constant),
        found=none_found(size),
        removed=dict(rest.removed),
        complete=rest.complete,
        _lift=lambda states: (rest.lift(2 * states.T - 1).T > 0).astype(np.int8),
    )
