"""MIS, MaxCut and MaxClique as binary quadratic models.

| problem   | c           | J                    | f(x) on feasible states |
|-----------|-------------|----------------------|-------------------------|
| mis       | 1           | -penalty A           | size of the set         |
| maxclique | 1           | -penalty (11' - I - A) | size of the clique |
| maxcut    | row sums of w | -2 w               | weight of the cut       |

With a penalty above 1 every maximiser of f is feasible. DISCS writes the clique penalty as n(n-1)/2 minus the edges
inside; as a function on {0,1}^N that is the same, but its derivative is off by penalty/2 and gives no exact gains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32
from scipy import sparse

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
      edges: [M, 2] pairs with u < v, each once.
      weights: [M] K on those pairs.
      scale: J = scale K.
      background: K on all other pairs.
    """

    linear: Float64[np.ndarray, "N"]
    edges: Int32[np.ndarray, "M 2"]
    weights: Float64[np.ndarray, "M"]
    scale: float
    background: float = 0.0

    def max_degree(self) -> int:
        """The largest number of terms that a site takes part in; with a background at most all others."""
        if self.background:
            return len(self.linear) - 1
        return int(np.bincount(self.edges.ravel(), minlength=1).max()) if len(self.edges) else 0

    def largest_coupling(self) -> float:
        """The largest absolute value of K; that of the background counts wherever there is one."""
        return float(np.abs(self.weights).max(initial=abs(self.background)))

    def listed(self) -> Coefficients:
        """The same terms, all of them in the list: O(N^2) memory where there is a background."""
        if not self.background:
            return self
        others = np.triu(np.ones((len(self.linear), len(self.linear)), bool), 1)
        others[self.edges[:, 0], self.edges[:, 1]] = False
        pairs = np.argwhere(others).astype(np.int32)
        kept = self.weights != 0
        edges = np.concatenate([self.edges[kept], pairs])
        weights = np.concatenate([self.weights[kept], np.full(len(pairs), self.background)])
        return Coefficients(self.linear, edges, weights, self.scale)


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
    linear, scale, size = np.ones(graph.num_nodes), -float(penalty), graph.num_nodes
    if problem == "mis":
        return Coefficients(linear, graph.edges, np.ones(graph.num_edges), scale)
    terms = Coefficients(linear, graph.edges, np.zeros(graph.num_edges), scale, background=1.0)
    few_missing = size * (size - 1) // 2 - graph.num_edges < graph.num_edges
    return terms.listed() if few_missing else terms


def form_coefficients(form: QuadraticForm) -> tuple[Coefficients, float]:
    """The terms of a form as a function of x in {0,1}^N to be maximised, and the constant that they leave out.

    For a form that is to be minimised both are those of its negative. Spins are 2x - 1; pairs that repeat are added
    up, and those of a variable with itself are linear.
    """
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs.T
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
    ends = np.minimum(first, second)[~own], np.maximum(first, second)[~own]
    upper = sparse.csr_matrix((couplings[~own], ends), (size, size))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(upper.indptr))
    edges = np.stack([rows, upper.indices], axis=1)
    return Coefficients(sign * linear, edges, upper.data, sign), sign * constant


def quadratic_params(terms: Coefficients, num_sites: int, degree: int | None) -> QuadraticParams:
    """Host arrays of a model padded to num_sites, with neighbour lists of `degree` or, if None, dense rows."""
    linear = np.zeros(num_sites, np.float32)
    linear[: len(terms.linear)] = terms.linear
    if degree is None:
        coupling = dense_coupling(terms.edges, terms.weights, len(terms.linear), terms.background, num_sites)
    else:
        terms = terms.listed()
        coupling = sparse_coupling(terms.edges, terms.weights, num_sites, degree)
    return QuadraticParams(linear, coupling, np.float32(terms.scale))
