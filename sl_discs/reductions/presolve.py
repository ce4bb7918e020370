"""Exact reductions of a problem before any search."""

from __future__ import annotations

from collections.abc import Callable

from sl_discs.problems import Problem
from sl_discs.reductions.clique import reduce_maxclique
from sl_discs.reductions.independent_set import reduce_mis, reduce_vertex_cover
from sl_discs.reductions.presolved import Presolved
from sl_discs.reductions.quadratic import reduce_form, reduce_maxcut

_REDUCE: dict[str, Callable[[Problem], Presolved]] = {
    "ising": reduce_form,
    "maxclique": reduce_maxclique,
    "maxcut": reduce_maxcut,
    "mis": reduce_mis,
    "qubo": reduce_form,
    "vertex_cover": reduce_vertex_cover,
}


def presolve(problem: Problem) -> Presolved:
    """Removes variables by exact rules, with work that is bounded to a second or two.

    `mis` and `vertex_cover`: nodes whose neighbours are a clique, or all but one of them, and unconfined ones
    (`independent_rules`); solved where the nodes are covered by cliques that can all be met, and a search finds out
    how (`clique_cover`). `maxclique`: nodes that are in no clique larger than one found at once (`clique`). `qubo`,
    `ising` and `maxcut`: dominant couplings, spins with up to three couplings (`spin_rules`), and, where
    `dwave-preprocessing` is installed and there are linear terms, roof duality.

    A coefficient of what is left is rounded as sums in double precision are.
    """
    return _REDUCE[problem.kind](problem)
