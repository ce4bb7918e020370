"""The one form in which every problem instance leaves the `instances` station."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64, Int32

from sl_discs.capacity import check_number
from sl_discs.errors import InputError


@dataclasses.dataclass(frozen=True)
class Graph:
    """A simple undirected graph with optional edge weights, the input of MIS, MaxCut and MaxClique.

    Attributes:
      name: what results call this instance.
      num_nodes: number of nodes, isolated ones included; nodes are 0..num_nodes-1.
      edges: [E, 2] with u < v in each row, no row twice.
      weights: [E], or None for an unweighted graph.
      reference: best known objective, or None.
    """

    name: str
    num_nodes: int
    edges: Int32[np.ndarray, "E 2"]
    weights: Float64[np.ndarray, "E"] | None = None
    reference: float | None = None

    @property
    def num_edges(self) -> int:
        """Number of edges E."""
        return len(self.edges)

    @classmethod
    def from_arrays(cls, name, num_nodes, edges, weights=None, reference=None) -> Graph:
        """Checks arrays of any integer or float dtype and puts them in the canonical form.

        Rows may come in either direction; the order of rows is kept.

        Raises:
          InputError: no nodes, an index out of range, a self-loop, a repeated edge (in either direction, so
            also an asymmetric pair of weights), a weight that is not finite, arrays of unequal length, or more than
            2^31 - 1 nodes.
        """
        if num_nodes < 1:
            raise InputError(f"{name}: the graph is empty; give at least one node")
        check_number(f"{name}: nodes 0..{num_nodes - 1}", num_nodes, "so number them without gaps")
        edges = np.asarray(edges)
        edges = edges.reshape(-1, 2) if edges.size == 0 else edges
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"{name}: edges have shape {edges.shape}; expected [E, 2]")
        if edges.size and edges.dtype.kind not in "iu":
            raise InputError(f"{name}: edges have dtype {edges.dtype}; expected integers")
        if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
            row = int(np.argmax(((edges < 0) | (edges >= num_nodes)).any(axis=1)))
            raise InputError(f"{name}: edge {row} is {tuple(edges[row].tolist())}, but nodes are 0..{num_nodes - 1}")
        edges = edges.astype(np.int64)
        loops = edges[:, 0] == edges[:, 1]
        if loops.any():
            raise InputError(f"{name}: self-loop at node {edges[np.argmax(loops), 0]}; remove it")
        edges = np.sort(edges, axis=1)
        codes = edges[:, 0] * num_nodes + edges[:, 1]
        in_order = bool((np.diff(codes) > 0).all())  # the usual case, and then no edge repeats
        if not in_order and len(first := np.unique(codes, return_index=True)[1]) < len(edges):
            row = int(np.setdiff1d(np.arange(len(edges)), first)[0])
            raise InputError(
                f"{name}: edge {tuple(int(v) for v in edges[row])} appears more than once; give each "
                "undirected edge one row (a symmetric matrix holds each twice)"
            )
        if weights is not None:
            weights = np.asarray(weights, dtype=np.float64)
            if weights.shape != (len(edges),):
                raise InputError(f"{name}: {weights.shape} weights for {len(edges)} edges")
            if not np.isfinite(weights).all():
                row = int(np.argmax(~np.isfinite(weights)))
                raise InputError(f"{name}: the weight of edge {tuple(int(v) for v in edges[row])} is {weights[row]}")
        if reference is not None and not np.isfinite(reference):
            reference = None
        return cls(str(name), int(num_nodes), edges.astype(np.int32), weights, reference)
