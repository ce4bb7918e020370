"""MIS, MaxCut and MaxClique as binary quadratic models.

| problem   | c           | J                    | f(x) on feasible states |
|-----------|-------------|----------------------|-------------------------|
| mis       | 1           | -penalty A           | size of the set         |
| maxclique | 1           | -penalty (complement of A) | size of the clique |
| maxcut    | row sums of w | -2 w               | weight of the cut       |

With a penalty above 1 every maximiser of f is feasible. DISCS writes the clique penalty as n(n-1)/2 minus the edges
inside; as a function on {0,1}^N that is the same, but its derivative is off by penalty/2 and gives no exact gains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.models.coupling import dense_coupling, sparse_coupling
from sl_discs.models.quadratic import QuadraticParams

PROBLEMS = ("mis", "maxcut", "maxclique")


class Coefficients(NamedTuple):
    """A quadratic model as a list of its terms, on the host.

    Attributes:
      linear: [N] c.
      edges: [M, 2] pairs with u < v.
      weights: [M] K on those pairs.
      scale: J = scale K.
    """

    linear: Float64[np.ndarray, "N"]
    edges: Int32[np.ndarray, "M 2"]
    weights: Float64[np.ndarray, "M"]
    scale: float

    def max_degree(self) -> int:
        """The largest number of terms that a site takes part in."""
        return int(np.bincount(self.edges.ravel(), minlength=1).max()) if len(self.edges) else 0


def complement_edges(graph: Graph) -> Int32[np.ndarray, "M 2"]:
    """The pairs u < v that are not edges."""
    absent = np.triu(np.ones((graph.num_nodes, graph.num_nodes), bool), 1)
    absent[graph.edges[:, 0], graph.edges[:, 1]] = False
    return np.argwhere(absent).astype(np.int32)


def coefficients(problem: str, graph: Graph, penalty: float) -> Coefficients:
    """The terms of a problem on a graph.

    Raises:
      InputError: an unknown problem, or a penalty not above 1 for MIS and at least 1 for MaxClique.
    """
    if problem == "maxcut":
        weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
        linear = np.zeros(graph.num_nodes)
        np.add.at(linear, graph.edges[:, 0], weights)
        np.add.at(linear, graph.edges[:, 1], weights)
        return Coefficients(linear, graph.edges, weights, -2.0)
    if problem not in PROBLEMS:
        raise InputError(f"model.name is {problem!r}; known: {', '.join(PROBLEMS)}")
    if not (np.isfinite(penalty) and penalty >= 1):
        raise InputError(f"penalty is {penalty}; expected at least 1, so that dropping a conflict never costs")
    edges = graph.edges if problem == "mis" else complement_edges(graph)
    return Coefficients(np.ones(graph.num_nodes), edges, np.ones(len(edges)), -float(penalty))


def form_coefficients(form: QuadraticForm) -> tuple[Coefficients, float]:
    """The terms of a form as a function of x in {0,1}^N to be maximised, and the constant that they leave out.

    For a form that is to be minimised both are those of its negative. Spins are 2x - 1; pairs that repeat are added
    up, and those of a variable with itself are linear.
    """
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs[:, 0].astype(np.int64), form.pairs[:, 1].astype(np.int64)
    own = first == second
    linear, constant = form.linear.copy(), form.offset
    couplings = form.couplings
    if form.spins:
        # s_a s_b = 4 x_a x_b - 2 x_a - 2 x_b + 1 and s_a s_a = 1.
        constant += couplings.sum() - linear.sum()
        linear *= 2
        for ends in (first, second):
            np.add.at(linear, ends[~own], -2 * couplings[~own])
        couplings = 4 * couplings
    else:
        np.add.at(linear, first[own], couplings[own])
    size = form.num_variables
    codes = np.minimum(first, second)[~own] * size + np.maximum(first, second)[~own]
    kept, place = np.unique(codes, return_inverse=True)
    weights = np.zeros(len(kept))
    np.add.at(weights, place, couplings[~own])
    kept, weights = kept[weights != 0], weights[weights != 0]
    edges = np.stack([kept // size, kept % size], axis=1).astype(np.int32)
    return Coefficients(sign * linear, edges, weights, sign), sign * constant


def quadratic_params(terms: Coefficients, num_sites: int, degree: int | None) -> QuadraticParams:
    """Host arrays of a model padded to num_sites, with neighbour lists of `degree` or, if None, dense rows."""
    linear = np.zeros(num_sites, np.float32)
    linear[: len(terms.linear)] = terms.linear
    if degree is None:
        coupling = dense_coupling(terms.edges, terms.weights, num_sites)
    else:
        coupling = sparse_coupling(terms.edges, terms.weights, num_sites, degree)
    return QuadraticParams(linear, coupling, np.float32(terms.scale))
