"""Exact reductions of a problem before any search."""

from __future__ import annotations

import pkgutil

from sl_discs.models.kinds import KINDS
from sl_discs.problems import Problem
from sl_discs.reductions.presolved import Presolved, unreduced


def presolve(problem: Problem) -> Presolved:
    """Removes variables by the exact rules of the problem's kind, with work that is bounded to a second or two.

    `mis` and `vertex_cover`: nodes whose neighbours are a clique, or all but one of them, and unconfined ones
    (`independent_rules`); solved where the nodes are covered by cliques that can all be met, and a search finds out
    how (`clique_cover`). `maxclique`: nodes that are in no clique larger than one found at once (`clique`). `qubo`,
    `ising` and `maxcut`: dominant couplings, spins with up to three couplings (`spin_rules`), and, where
    `dwave-preprocessing` is installed and there are linear terms, roof duality. Other kinds have no rules.

    A coefficient of what is left is rounded as sums in double precision are.
    """
    rules = KINDS[problem.kind].reduction
    return pkgutil.resolve_name(rules)(problem) if rules else unreduced(problem)
