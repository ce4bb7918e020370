"""Exact evaluation on the host: what a state is worth, its violations repaired and everything recounted.

Nothing here trusts a number that a device computed. Sets are counted in integers; cuts are summed in int64
when every weight is an integer and the total stays below 2**53, and with `math.fsum` (the correctly rounded
sum of the weights as given) otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int8

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph

PROBLEMS = ("mis", "maxcut", "maxclique")
_LARGEST_EXACT = 2.0**53


class Verified(NamedTuple):
    """A state after repair, with its exact objective.

    Attributes:
      objective: set size, clique size or cut weight of `solution`.
      feasible: whether `solution` satisfies the constraints, recounted after the repair.
      solution: [N] zeros and ones.
    """

    objective: float
    feasible: bool
    solution: Int8[np.ndarray, "N"]


class Verifier:
    """Verifies many states of one instance; what depends on the graph alone is prepared once.

    A feasible state costs two gathers over the edges: a fraction of a millisecond at 90,000 edges.

    Raises:
      InputError: the problem is not `mis`, `maxcut` or `maxclique`.
    """

    def __init__(self, problem: str, graph: Graph):
        if problem not in PROBLEMS:
            raise InputError(f"{graph.name}: unknown problem {problem!r}; use one of {', '.join(PROBLEMS)}")
        self.problem = problem
        self.graph = graph
        self._u = graph.edges[:, 0].astype(np.intp)
        self._v = graph.edges[:, 1].astype(np.intp)
        self._integer_weights = None if graph.weights is None else _as_integers(graph.weights)

    def __call__(self, x: np.ndarray) -> Verified:
        """Repairs and evaluates one state x, [N] zeros and ones of any dtype.

        Raises:
          InputError: x is not of shape [N] (padding must be cut off first), or not all zeros and ones.
        """
        chosen = self._checked(x)
        if self.problem == "maxcut":
            return Verified(self._cut(chosen), True, chosen.astype(np.int8))
        if self._num_violations(chosen):
            inner = self.graph.edges[self._inner(chosen)]
            chosen = drop_conflicts(chosen, inner, joined=self.problem == "maxclique")
        size = int(np.count_nonzero(chosen))
        return Verified(float(size), self._num_violations(chosen) == 0, chosen.astype(np.int8))

    def _checked(self, x: np.ndarray) -> Bool[np.ndarray, "N"]:
        x = np.asarray(x)
        if x.shape != (self.graph.num_nodes,):
            raise InputError(
                f"{self.graph.name}: the state has shape {x.shape}, the graph {self.graph.num_nodes} nodes; "
                "give one entry a node, without padding"
            )
        chosen = x.astype(bool)
        if x.dtype != np.bool_ and not np.array_equal(x, chosen):
            raise InputError(f"{self.graph.name}: the state holds values other than 0 and 1; round it first")
        return chosen

    def _inner(self, chosen: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "E"]:
        return chosen[self._u] & chosen[self._v]

    def _num_violations(self, chosen: Bool[np.ndarray, "N"]) -> int:
        inner = int(np.count_nonzero(self._inner(chosen)))
        if self.problem == "mis":
            return inner
        size = int(np.count_nonzero(chosen))
        return size * (size - 1) // 2 - inner

    def _cut(self, chosen: Bool[np.ndarray, "N"]) -> float:
        crossing = chosen[self._u] != chosen[self._v]
        if self.graph.weights is None:
            return float(np.count_nonzero(crossing))
        if self._integer_weights is not None:
            return float(self._integer_weights[crossing].sum())
        return math.fsum(self.graph.weights[crossing])


def verify(problem: str, graph: Graph, x: np.ndarray) -> Verified:
    """Repairs and evaluates one state of one graph; for many states of the same graph keep a `Verifier`.

    Raises:
      InputError: unknown problem, or a state that is not [N] zeros and ones.
    """
    return Verifier(problem, graph)(x)


def drop_conflicts(
    chosen: Bool[np.ndarray, "N"], pairs: Int[np.ndarray, "P 2"], *, joined: bool = False
) -> Bool[np.ndarray, "N"]:
    """Drops chosen nodes until no two that remain conflict: most conflicts first, ties to the lowest index.

    Every drop settles at least one of V conflicts, so at most V nodes go: at least |chosen| - V remain, hence never
    fewer than the floor of the penalised objective |chosen| - lambda V when lambda >= 1.

    Args:
      chosen: [N] the set.
      pairs: [P, 2] the pairs that conflict, both ends chosen, each pair once.
      joined: the pairs are those that do not conflict, and all others do.

    Returns:
      [N] the remaining set.
    """
    heads = np.concatenate([pairs[:, 0], pairs[:, 1]])
    tails = np.concatenate([pairs[:, 1], pairs[:, 0]])[np.argsort(heads, kind="stable")]
    degrees = np.bincount(heads, minlength=len(chosen))
    starts = np.concatenate([[0], np.cumsum(degrees)])
    remaining = chosen.copy()
    conflicts = np.where(chosen, np.count_nonzero(chosen) - 1 - degrees, 0) if joined else degrees
    while conflicts[node := int(np.argmax(conflicts))] > 0:
        remaining[node] = False
        others = tails[starts[node] : starts[node + 1]]
        if joined:
            conflicts -= remaining
            conflicts[others] += remaining[others]
        else:
            conflicts[others] -= 1
        conflicts[node] = 0
    return remaining


def _as_integers(weights: np.ndarray) -> Int[np.ndarray, "E"] | None:
    whole = np.array_equal(weights, np.rint(weights)) and np.abs(weights).sum() < _LARGEST_EXACT
    return weights.astype(np.int64) if whole else None
