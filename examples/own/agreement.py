"""A kind of problem of one's own: two groups such that those who agree are together."""

import numpy as np

import sl_discs
from sl_discs.instances.graph import Graph
from sl_discs.models.terms import SpinForm, from_spin
from sl_discs.problems.graph_kind import GraphKind
from sl_discs.solving.workers import ON_SPINS, WORKERS


def spins_of(graph):
    """An edge counts where (1 + s_u s_v) / 2 is 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    return SpinForm(np.zeros(graph.num_nodes), graph.edges, weights / 2, float(weights.sum() / 2))


def graph_of(spins, graph):
    """The way back, with the part of the value that no edge has."""
    weights = 2 * spins.couplings
    left = Graph.from_arrays(graph.name, spins.num_spins, spins.pairs, weights)
    return left, spins.constant - float(weights.sum() / 2)


agreement = sl_discs.register_problem(
    GraphKind(
        name="agreement",
        task="Two groups of nodes with the largest weight of the edges inside them.",
        problem="two groups that agree",
        unit="weight inside groups",
        recounted="the weights of the edges inside groups, summed in exact arithmetic",
        model=lambda graph, penalty: from_spin(spins_of(graph)),
        count=lambda edges, chosen: edges.weight(chosen[edges.u] == chosen[edges.v]),
        weighted=True,
        penalty=None,
        to_spins=spins_of,
        from_spins=graph_of,
    )
)
# What makes it smaller, searches it and proves answers: without these, only up to 30 variables
# are proved.
WORKERS["agreement"] = ON_SPINS
