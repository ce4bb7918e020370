"""What works on a problem beside its chains, by kind: reductions, provers, greedy answers and local
searches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sl_discs.problems import Problem
from sl_discs.solving.cover_search import cover_search, greedy_state
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import Factory
from sl_discs.solving.provers.cliques import clique_prover
from sl_discs.solving.provers.covers import Cover
from sl_discs.solving.provers.integer import integer_prover
from sl_discs.solving.provers.semidefinite import semidefinite_prover
from sl_discs.solving.provers.tables import elimination, enumeration
from sl_discs.solving.set_reductions import greedy_clique, reduce_maxclique, reduce_sets
from sl_discs.solving.spin_reductions import reduce_spins
from sl_discs.solving.tabu_search import descent, tabu_search


class Workers(NamedTuple):
    """The workers on problems of a kind.

    Attributes:
      reduction: of a problem and seconds: what exact rules leave of it.
      provers: in the order of their first turns.
      greedy: of a problem: a state [1, N] to begin with.
      search: of what reductions left, a seed, seconds of a trial and a number of walks: a local
        search, or None.
      descent: of a problem and a state: a better one [1, N] that no change of a variable improves,
        if the state is not one.
    """

    reduction: Callable[[Problem, float], Presolved] | None = None
    provers: tuple[Factory, ...] = (enumeration,)
    greedy: Callable | None = None
    search: Callable | None = None
    descent: Callable | None = None


# Weights that are not whole are known to branch and bound up to rounding, and to enumeration
# exactly. Of cliques, most pairs have a term, so that no variable is eliminated.
ON_SETS = Workers(
    reduce_sets,
    (Cover, clique_prover, integer_prover, enumeration, elimination),
    greedy_state,
    cover_search,
)
# Of values that are functions of spins.
ON_SPINS = Workers(
    reduce_spins, (enumeration, elimination, semidefinite_prover), descent, tabu_search, descent
)

# By the name of a kind. A kind of your own may be given some: `WORKERS["mine"] = ON_SPINS`; without
# them, `solve` enumerates small problems.
WORKERS = {
    "mis": ON_SETS,
    "vertex_cover": ON_SETS,
    "maxclique": ON_SETS._replace(
        reduction=reduce_maxclique, provers=ON_SETS.provers[:-1], greedy=greedy_clique
    ),
    "maxcut": ON_SPINS,
    "qubo": ON_SPINS,
    "ising": ON_SPINS,
}


def workers_of(problem: Problem) -> Workers:
    """Returns the workers on problems of this kind."""
    return WORKERS.get(problem.kind, Workers())
