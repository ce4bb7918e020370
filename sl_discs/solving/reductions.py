"""Exact reductions: a smaller problem whose best states give best states of the original."""

from __future__ import annotations

import math

from sl_discs.problems import Problem
from sl_discs.solving.presolved import Presolved, unreduced
from sl_discs.solving.workers import workers_of


def presolve(problem: Problem, seconds: float = math.inf) -> Presolved:
    """Removes variables by the exact rules of the problem's kind, with work that is bounded to a
    second or two.

    Example:
        >>> presolve(sl_discs.maxcut(nx.path_graph(5)))
        Presolved(0 of 5 variables left: merged 4, free 1)

    After `seconds` of wall time no further rule is applied, and rules that would surely take longer
    do not begin.

    `mis` and `vertex_cover`: nodes whose neighbours are a clique, or all but one of them, and
    unconfined ones (`set_reductions`); not with weights of nodes. `maxclique`: nodes with too few
    neighbours for a clique larger than one found at once. `qubo`, `ising` and `maxcut`: dominant
    couplings, spins with up to three couplings (`spin_reductions`), and, where
    `dwave-preprocessing` is installed and there are linear terms, roof duality. Other kinds have
    the rules that `WORKERS` gives them.

    A coefficient of what is left is rounded as sums in double precision are.
    """
    reduce = workers_of(problem).reduction
    return unreduced(problem) if reduce is None else reduce(problem, seconds)
