"""Exact reductions: a smaller problem whose best states give best states of the original."""

from __future__ import annotations

import math
from collections.abc import Callable

from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS, Structure
from sl_discs.reductions.presolve import Presolved, unreduced

__all__ = ["Presolved", "presolve"]


def presolve(problem: Problem, seconds: float = math.inf) -> Presolved:
    """Removes variables by the exact rules of the problem's kind, with work that is bounded to a second or two.

    With fewer `seconds`, about that much work is done. It is counted, so that results only depend on the machine
    where slow rules take twice as long, and are ended.

    `mis` and `vertex_cover`: nodes whose neighbours are a clique, or all but one of them, and unconfined ones
    (`independent_set`); solved where the nodes are covered by cliques in each of which a set can have a node,
    which a search finds (`clique_cover`); not with weights of nodes. `maxclique`: nodes with too few neighbours for a
    clique larger than one found at once (`clique`). `qubo`, `ising` and `maxcut`: dominant couplings,
    spins with up to three couplings (`quadratic`), and, where `dwave-preprocessing` is installed and there are linear
    terms, roof duality. Other kinds have no rules.

    A coefficient of what is left is rounded as sums in double precision are.
    """
    rules = _rules_of(KINDS[problem.kind].structure)
    return unreduced(problem) if rules is None else rules(problem, seconds)


def _rules_of(structure: Structure | None) -> Callable[[Problem, float], Presolved] | None:
    """Imports rules where they are needed, since numba takes a while; None: there are none."""
    match structure:
        case Structure.SETS:
            from sl_discs.reductions.independent_set import reduce_sets

            return reduce_sets
        case Structure.CLIQUES:
            from sl_discs.reductions.clique import reduce_maxclique

            return reduce_maxclique
        case Structure.CUT:
            from sl_discs.reductions.quadratic import reduce_maxcut

            return reduce_maxcut
        case Structure.FORM:
            from sl_discs.reductions.quadratic import reduce_form

            return reduce_form
    return None
