"""Maximum clique: f(x) = |x| - penalty * (pairs inside that are not joined), so c = 1 and J = -penalty (11' - I - A).

With a penalty above 1 every maximiser is feasible. DISCS writes the penalty as n(n-1)/2 minus the edges inside; as a
function on {0,1}^N that is the same, but its derivative is off by penalty/2 and gives no exact gains.
"""

from __future__ import annotations

import numpy as np

from sl_discs.instances.graph import Graph
from sl_discs.models import bounds
from sl_discs.models.conflicts import drop_conflicts
from sl_discs.models.graph_kind import Chosen, Edges, GraphKind
from sl_discs.models.kind import EXCHANGE_PENALTY
from sl_discs.models.quadratic import Coefficients
from sl_discs.models.two_improvement import TwoImprovement


def _model(graph: Graph, penalty: float) -> Coefficients:
    size = graph.num_nodes
    terms = Coefficients(np.ones(size), graph.edges, np.zeros(graph.num_edges), -penalty, background=1.0)
    few_missing = size * (size - 1) // 2 - graph.num_edges < graph.num_edges
    return terms.listed() if few_missing else terms


def _violations(edges: Edges, chosen: Chosen) -> int:
    size = int(np.count_nonzero(chosen))
    return size * (size - 1) // 2 - int(np.count_nonzero(edges.inside(chosen)))


def _repair(edges: Edges, chosen: Chosen) -> Chosen:
    return drop_conflicts(chosen, edges.ends[edges.inside(chosen)], joined=True)


def _improve(graph: Graph) -> TwoImprovement | None:
    """Of independent sets of the complement, where that has fewer edges than the graph."""
    terms = _model(graph, 1.0)
    return None if terms.background else TwoImprovement(graph.num_nodes, terms.edges)


KIND = GraphKind(
    name="maxclique",
    task="The largest clique: nodes of which every two are joined.",
    problem="maximum clique",
    title="Largest clique",
    unit="clique size",
    recounted="recounted from the edges as given, which join every pair of its nodes",
    answer="{ones:,} nodes in the clique",
    model=_model,
    violations=_violations,
    repair=_repair,
    improve=_improve,
    bound=bounds.of_cliques,
    exchange_penalty=EXCHANGE_PENALTY,
    reduction="sl_discs.reductions.clique:reduce_maxclique",
    in_percent=True,
    discs_family=("rb", "_"),
)
