"""Minimum vertex cover: f(x) = -|x| - penalty * (edges without a chosen end), which is maximised.

An edge is uncovered where (1 - x_u)(1 - x_v) = 1, so c = penalty * degrees - 1, J = -penalty A, and the constant
-penalty * (number of edges) remains. With a penalty above 1 every maximiser is a cover. The nodes that are left out
are an independent set, so this is MIS with ones and zeros exchanged.
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
    degrees = np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)
    ones = np.ones(graph.num_edges)
    return Coefficients(penalty * degrees - 1, graph.edges, ones, -penalty, constant=-penalty * graph.num_edges)


def _violations(edges: Edges, chosen: Chosen) -> int:
    return int(np.count_nonzero(edges.inside(~chosen)))


def _repair(edges: Edges, chosen: Chosen) -> Chosen:
    """Adds the node that covers most uncovered edges, until none is left: at most one node for each of them."""
    return ~drop_conflicts(~chosen, edges.ends[edges.inside(~chosen)])


def _improve(graph: Graph):
    """Of the nodes that are left out."""
    improved = TwoImprovement(graph.num_nodes, graph.edges)
    return lambda chosen: ~improved(~chosen)


KIND = GraphKind(
    name="vertex_cover",
    task="The smallest vertex cover: nodes of which every edge has one at least.",
    problem="minimum vertex cover",
    title="Smallest vertex cover",
    unit="cover size",
    recounted="recounted from the edges as given, each of which has an end in the cover",
    answer="{ones:,} nodes in the cover",
    model=_model,
    violations=_violations,
    repair=_repair,
    improve=_improve,
    bound=bounds.of_covers,
    exchange_penalty=EXCHANGE_PENALTY,
    reduction="sl_discs.reductions.independent_set:reduce_vertex_cover",
    maximise=False,
)
