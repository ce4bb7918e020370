"""Maximum independent set: f(x) = |x| - penalty * (edges inside), so c = 1 and J = -penalty A.

With a penalty above 1 every maximiser is feasible.
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
    return Coefficients(np.ones(graph.num_nodes), graph.edges, np.ones(graph.num_edges), -penalty)


def _violations(edges: Edges, chosen: Chosen) -> int:
    return int(np.count_nonzero(edges.inside(chosen)))


def _repair(edges: Edges, chosen: Chosen) -> Chosen:
    return drop_conflicts(chosen, edges.ends[edges.inside(chosen)])


KIND = GraphKind(
    name="mis",
    task="The largest independent set: nodes of which no two are joined.",
    problem="maximum independent set",
    title="Largest independent set",
    unit="set size",
    recounted="recounted from the edges as given, none of which lies inside the set",
    answer="{ones:,} nodes in the set",
    model=_model,
    violations=_violations,
    repair=_repair,
    improve=lambda graph: TwoImprovement(graph.num_nodes, graph.edges),
    bound=bounds.of_sets,
    exchange_penalty=EXCHANGE_PENALTY,
    reduction="sl_discs.reductions.independent_set:reduce_mis",
    discs_family=("er_density", "r-0.10"),
)
