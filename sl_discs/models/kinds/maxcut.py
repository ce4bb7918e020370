"""Maximum cut: f(x) is the weight of the edges between the two sides, so c = row sums of w and J = -2 w."""

from __future__ import annotations

import numpy as np

from sl_discs.instances.graph import Graph
from sl_discs.models import bounds
from sl_discs.models.graph_kind import Chosen, Edges, GraphKind
from sl_discs.models.quadratic import Coefficients, are_whole


def _model(graph: Graph, penalty: float) -> Coefficients:
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    linear = np.zeros(graph.num_nodes)
    np.add.at(linear, graph.edges[:, 0], weights)
    np.add.at(linear, graph.edges[:, 1], weights)
    return Coefficients(linear, graph.edges, weights, -2.0)


def _count(edges: Edges, chosen: Chosen) -> float:
    return edges.weight(chosen[edges.u] != chosen[edges.v])


KIND = GraphKind(
    name="maxcut",
    task="The heaviest cut: nodes in two parts, and the weights of the edges between them.",
    problem="maximum cut",
    title="Heaviest cut",
    unit="cut weight",
    recounted="the weights of the cut edges, summed in exact arithmetic from the graph as given",
    answer="{ones:,} nodes on one side, {zeros:,} on the other",
    model=_model,
    count=_count,
    bound=bounds.of_cuts,
    whole=lambda graph: graph.weights is None or are_whole(graph.weights),
    reduction="sl_discs.reductions.quadratic:reduce_maxcut",
    penalty=None,
    weighted=True,
    in_percent=True,
    searched_references=True,
    discs_family=("ba", "r-ba-4-n-512-600"),
)
