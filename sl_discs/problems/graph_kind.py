"""Kinds of problems on a graph: data and pure functions for the model, its violations, repair,
objective and bound.

Verification uses no number computed on a device: states are repaired and counted on the host. Sets
are counted in integers; a sum of weights, of nodes or edges, is exact and rounded once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8
from scipy import sparse

from sl_discs.instances.form import QuadraticForm, exact_sum, fraction
from sl_discs.instances.graph import Graph
from sl_discs.models.terms import are_integers, unit_of
from sl_discs.problems.kind import KINDS, PENALTY, Chosen, Evaluated, Kind, Units, checked_states
from sl_discs.support.errors import InputError

_PERCENT = "% of reference"
# The penalty of problems with fixed nodes is a multiple of 1 / this, about the precision of chains.
_PENALTY_UNITS = 2.0**23


class Edges:
    """A graph's edges, prepared for many states.

    Attributes:
      ends: [E, 2] as in the graph.
      u: [E] first ends, as indices.
      v: [E] second ends.
      weights: [E], or None.
      node_weights: [N], or None.
      add: sums weights, by default exactly and rounded once.
    """

    def __init__(self, graph: Graph, add: Callable[[np.ndarray], Any] = exact_sum):
        self.ends = graph.edges
        self.weights = graph.weights
        self.node_weights = graph.node_weights
        self.add = add
        self.u, self.v = (graph.edges[:, end].astype(np.intp) for end in (0, 1))
        self._graph = graph

    @functools.cached_property
    def _joined(self) -> sparse.csr_array:
        """[N, N] 1 where nodes are joined."""
        return self._graph.neighbours.matrix(np.ones(len(self.u)))

    @functools.cached_property
    def _weighted(self) -> sparse.csr_array:
        """[N, N] weights of edges."""
        return self._joined if self.weights is None else self._graph.neighbours.matrix(self.weights)

    def inside(self, chosen: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "E"]:
        """Returns whether each edge joins two chosen nodes."""
        return chosen[self.u] & chosen[self.v]

    def inside_each(self, chosen: Bool[np.ndarray, "B N"]) -> Int[np.ndarray, "B N"]:
        """Returns how many neighbours of each chosen node are chosen with it, in each of many
        choices at once.
        """
        x = chosen.T.astype(np.float64)
        return np.where(chosen, (self._joined @ x).T, 0).astype(np.int64)

    def weight_between(self, chosen: Bool[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Returns the weight of the edges that join a chosen node to another, in each of many
        choices at once.

        It is exact without weights, and rounded in each sum with them.
        """
        x = chosen.T.astype(np.float64)
        return (x * (self._weighted @ (1 - x))).sum(axis=0)

    def num_inside(self, chosen: Bool[np.ndarray, "N"]) -> int:
        """Returns how many edges join two chosen nodes."""
        return int(np.count_nonzero(self.inside(chosen)))

    def weight(self, which: Bool[np.ndarray, "E"]) -> float:
        """Returns the exact total weight of some edges, each 1 in a graph without weights."""
        return (
            float(np.count_nonzero(which))
            if self.weights is None
            else self.add(self.weights[which])
        )


def set_size(edges: Edges, chosen: Chosen) -> float:
    """Returns the number of chosen nodes, or their exact weight in a graph with weights of
    nodes.
    """
    return (
        float(np.count_nonzero(chosen))
        if edges.node_weights is None
        else edges.add(edges.node_weights[chosen])
    )


def _has_integer_sizes(graph: Graph) -> bool:
    return graph.node_weights is None or are_integers(graph.node_weights)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphKind(Kind):
    """A problem on a graph: which nodes to choose.

    Attributes:
      problem: its name in the literature.
      unit: of the objective.
      count: the exact objective of a feasible choice.
      violations: number of constraints that a choice violates; at least one if it is infeasible.
      repair: makes an infeasible choice feasible.
      most: of many choices [B, N], what the objective of each after its repair, times `sign`,
        surely does not exceed, found without repairs; None: nothing is known of it.
      proportional: whether values are proportional to the weights that count, so that these may be
        scaled.
      joined: whether the nodes of a feasible choice are all joined to each other, as those of a
        clique; otherwise rules on sets take it for a choice of which, or of whose complement, no
        two are.
      in_percent: whether results are compared as percentages of each graph's reference, instead of
        directly.
      discs_family: graph_type and cfg_str of the default dataset for DISCS; None: DISCS does not
        have this problem.
      task: its description in one sentence, for the documentation of the constructor of
        `register_problem`.
    """

    problem: str
    unit: str
    count: Callable[[Edges, Chosen], float] = set_size
    violations: Callable[[Edges, Chosen], int] = lambda edges, chosen: 0
    repair: Callable[[Edges, Chosen], Chosen] = lambda edges, chosen: chosen
    most: Callable[[Edges, Bool[np.ndarray, "B N"]], Float64[np.ndarray, "B"]] | None = None
    maximise: bool = True
    penalty: float | None = PENALTY
    proportional: bool = False
    joined: bool = False
    in_percent: bool = False
    discs_family: tuple[str, str] | None = None
    task: str = ""

    def __post_init__(self):
        if self.integral is None and self.count is set_size:
            object.__setattr__(self, "integral", _has_integer_sizes)

    @property
    def sign(self) -> float:
        """1.0 if the objective is maximised, otherwise -1.0: this times the objective is always
        maximised.
        """
        return 1.0 if self.maximise else -1.0

    @property
    def compared_unit(self) -> str:
        """The unit in which results are compared: percentage of the reference, or the objective's
        own.
        """
        return _PERCENT if self.in_percent else self.unit

    def accepts(self, source: Any) -> bool:
        return isinstance(source, Graph)

    def counted(self, source: Graph, weights_of_nodes: bool = True) -> Graph:
        """Returns the graph without weights of nodes where these do not count, or all are 1."""
        weights = source.node_weights
        if weights is None:
            return source
        counts = weights_of_nodes and self.weights_of_nodes and (weights != 1).any()
        return source if counts else dataclasses.replace(source, node_weights=None)

    def normal(self, source: Graph) -> tuple[Graph, Units]:
        name = "weights" if self.weighted else "node_weights"
        weights = getattr(source, name)
        if weights is None or not self.proportional:
            return super().normal(source)
        unit = unit_of(weights)
        return self.counted(dataclasses.replace(source, **{name: weights / unit})), Units(unit)

    def recounted_of(self, source: Graph) -> str:
        exactly = (
            ""
            if source.node_weights is None
            else "; weights of nodes as given, summed in exact arithmetic"
        )
        return self.recounted + exactly

    def fixed(self, source, penalty, state, free):
        """Returns a `qubo` with penalties: what is left of a graph has numbers at its nodes, of
        either sign.

        A conflict with a fixed node, which cannot be dropped, counts as much as the node's
        neighbour: fixed nodes are as heavy as the heaviest there, and their own weights are taken
        out again.

        The penalty is rounded up to a multiple of 1/_PENALTY_UNITS, so that its multiples cancel
        exactly where weights are integers.
        """
        penalty = float(np.ceil(penalty * _PENALTY_UNITS)) / _PENALTY_UNITS
        weights = source.node_weights
        excess = np.zeros(source.num_nodes)
        if weights is not None:
            heavy = np.where(free, weights, weights.max())
            source = dataclasses.replace(source, node_weights=heavy)
            excess = heavy - weights
        terms = self.model(source, penalty).listed()
        sign = self.sign
        own = np.flatnonzero(excess)
        form = QuadraticForm.from_arrays(
            source.name,
            sign * terms.linear,
            np.concatenate([terms.edges, np.stack([own, own], axis=1)]),
            np.concatenate([sign * terms.scale * terms.weights, -excess[own]]),
            sign * terms.constant,
            maximise=self.maximise,
        )
        return "qubo", form.fixed(state, free)

    def evaluator(self, source: Graph) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """Returns what repairs and evaluates states of a graph, zeros and ones of any dtype.

        A feasible state costs two gathers over the edges: a fraction of a millisecond at 90,000
        edges. Of states that are not of shape [B, N] (padding must be cut off first), or not all
        zeros and ones, it raises an InputError.
        """
        edges = Edges(source)

        def evaluate(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            repaired = checked_states(source.name, states, source.num_nodes)
            for row in repaired:
                if self.violations(edges, row):
                    row[:] = self.repair(edges, row)
            values = np.array([self.count(edges, row) for row in repaired], np.float64)
            feasible = np.array([self.violations(edges, row) == 0 for row in repaired], bool)
            return Evaluated(values, feasible, repaired.astype(np.int8))

        return evaluate

    def best_evaluator(self, source: Graph) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """Returns what repairs and evaluates only the first of the best of many states, in one row.

        It looks only at states that may still be the best, those that promise `most` first.
        """
        edges = Edges(source)
        evaluate = self.evaluator(source)

        def evaluate_best(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            states = checked_states(source.name, states, source.num_nodes)
            most = np.full(len(states), np.inf) if self.most is None else self.most(edges, states)
            evaluated: dict[int, Evaluated] = {}
            best = -np.inf
            for row in np.argsort(-most, kind="stable").tolist():
                if most[row] < best:
                    break
                evaluated[row] = evaluate(states[row, None])
                best = max(best, self.sign * float(evaluated[row].values[0]))
            return evaluated[
                min(row for row in evaluated if self.sign * evaluated[row].values[0] == best)
            ]

        return evaluate_best

    def exact_values(self, source: Graph, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
        edges = Edges(source, fraction)
        return [Fraction(self.count(edges, row)) for row in states.astype(bool)]


def weights_of_nodes(graph: Graph) -> Float64[np.ndarray, "N"]:
    """Returns the weights of a graph's nodes, 1 where it has none."""
    return np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights


def graph_kind(name: str) -> GraphKind:
    """Returns the problem on graphs of this name; InputError where there is none."""
    kind = KINDS.get(name)
    if not isinstance(kind, GraphKind):
        known = ", ".join(name for name, kind in KINDS.items() if isinstance(kind, GraphKind))
        raise InputError(f"unknown problem {name!r}; known: {known}")
    return kind


# Sets of nodes of which no two conflict: repair and exact local improvement, by size or by weight.


def drop_conflicts(
    chosen: Bool[np.ndarray, "N"],
    pairs: Int[np.ndarray, "P 2"],
    weights: Float64[np.ndarray, "N"] | None = None,
    *,
    joined: bool = False,
) -> Bool[np.ndarray, "N"]:
    """Drops chosen nodes until no two of the rest conflict: most conflicts first, ties to the
    lowest index.

    A conflict counts as much as the lighter of its nodes, and the node that is dropped is the one
    whose conflicts exceed its own weight by most. That of the lighter node of a conflict do, or are
    equal to it, so no drop costs more than the conflicts that it removes: what remains is worth at
    least the objective with penalties, the weight of the set minus lambda >= 1 times its conflicts,
    up to rounding.

    Args:
      chosen: [N] the set.
      pairs: [P, 2] the pairs that conflict, both ends chosen, each pair once.
      weights: [N] of nodes, at least 0; None: 1.
      joined: whether `pairs` are instead those that do not conflict, while all others do.

    Returns:
      [N] the remaining set.
    """
    weights = np.ones(len(chosen)) if weights is None else weights
    heads, tails, starts = _neighbour_lists(len(chosen), pairs)
    remaining = chosen.copy()
    degrees = np.diff(starts)
    conflicts = np.where(chosen, np.count_nonzero(chosen) - 1 - degrees, 0) if joined else degrees
    listed = np.bincount(heads, np.minimum(weights[heads], weights[tails]), len(chosen))
    gains = (_lighter_sums(chosen, weights) - listed if joined else listed) - weights
    gains[conflicts == 0] = -np.inf
    while gains[node := int(np.argmax(gains))] > -np.inf:
        remaining[node] = False
        near = tails[starts[node] : starts[node + 1]]
        if joined:
            strangers = remaining.copy()
            strangers[near] = False
            near = np.flatnonzero(strangers)
        conflicts[near] -= 1
        gains[near] -= np.minimum(weights[near], weights[node])
        gains[near[conflicts[near] == 0]] = -np.inf
        gains[node] = -np.inf
    return remaining


def _neighbour_lists(
    num_nodes: int, pairs: Int[np.ndarray, "P 2"]
) -> tuple[Int[np.ndarray, "Q"], Int[np.ndarray, "Q"], Int[np.ndarray, "N+1"]]:
    """Returns both directions of each pair as heads and tails, by head, and where the entries of
    each head begin.
    """
    heads, tails = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.argsort(heads, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=num_nodes))])
    return heads[order].astype(np.intp), tails[order].astype(np.intp), starts


def _lighter_sums(
    chosen: Bool[np.ndarray, "N"], weights: Float64[np.ndarray, "N"]
) -> Float64[np.ndarray, "N"]:
    """For each node the sum over the other chosen nodes of the smaller of the two weights; right
    for chosen ones.
    """
    sizes = np.sort(weights[chosen])
    below = np.searchsorted(sizes, weights)
    sums = np.concatenate([[0.0], np.cumsum(sizes)])
    return sums[below] + weights * (len(sizes) - below - 1)


class TwoImprovement:
    """Exact local improvement of independent sets (Andrade, Resende and Werneck 2012, "Fast local
    search for the maximum independent set problem"): one node of the set for two others, while
    there are such, and free nodes.

    A node outside the set that has one neighbour in it is held by that neighbour alone. A node of
    the set can be exchanged for two where two of the nodes that it alone holds are not joined.

    With weights, two nodes must be heavier together than the one that they replace, and a node also
    replaces all its neighbours in the set where it is heavier than they are (Nogueira, Pinheiro and
    Subramanian 2018, "A hybrid iterated local search heuristic for the maximum weight independent
    set problem").

    Sets of one graph are improved: what depends on the graph alone is prepared once. A round looks
    at all edges at once for nodes that can be exchanged, then exchanges them one by one: O(edges) a
    round, of which there are few, and the degrees of what is exchanged.
    """

    def __init__(
        self,
        num_nodes: int,
        pairs: Int[np.ndarray, "P 2"],
        weights: Float64[np.ndarray, "N"] | None = None,
    ):
        """`pairs` of the graph's nodes are joined, each pair once; weights are at least 0,
        None: 1.
        """
        self._weighted = weights is not None
        self._weights = np.ones(num_nodes) if weights is None else weights
        self._heads, self._tails, self._starts = _neighbour_lists(num_nodes, pairs)

    def __call__(self, chosen: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
        """An independent set, at least as large or heavy as the independent set given, to which no
        node can be added and in which none can be exchanged for two, or neighbours for one, with a
        gain; the same for the same set.
        """
        chosen = chosen.copy()
        # Of each node, how many of its neighbours are chosen.
        held = np.bincount(self._tails[chosen[self._heads]], minlength=len(chosen))
        self._add_free(chosen, held, np.flatnonzero(held == 0))
        improved = True
        while improved:
            inserted = [self._insert(chosen, held, node) for node in self._heavier(chosen)]
            exchanged = [
                self._exchange(chosen, held, node) for node in self._exchangeable(chosen, held)
            ]
            improved = any(inserted) or any(exchanged)
        return chosen

    def _neighbours(self, node: int) -> Int[np.ndarray, "D"]:
        return self._tails[self._starts[node] : self._starts[node + 1]]

    def _add(self, chosen, held, node) -> None:
        chosen[node] = True
        held[self._neighbours(node)] += 1

    def _add_free(self, chosen, held, nodes) -> None:
        """Adds those of the nodes that no chosen one holds, heavy ones first, and otherwise in
        their order.
        """
        for node in self._by_weight(nodes):
            if held[node] == 0 and not chosen[node]:
                self._add(chosen, held, node)

    def _by_weight(self, nodes) -> Int[np.ndarray, "K"]:
        return nodes[np.argsort(-self._weights[nodes], kind="stable")]

    def _heavier(self, chosen) -> Int[np.ndarray, "K"]:
        """Returns the nodes that are heavier than their neighbours in the set; none without
        weights, where those are free.
        """
        if not self._weighted:
            return np.empty(0, np.intp)
        from_chosen = chosen[self._heads]
        heads = self._heads[from_chosen]
        tails = self._tails[from_chosen]
        instead_of = np.bincount(tails, self._weights[heads], len(chosen))
        return self._by_weight(np.flatnonzero(~chosen & (self._weights > instead_of)))

    def _insert(self, chosen, held, node) -> bool:
        """Puts a node in the place of its neighbours in the set, if that is still a gain; whether
        it was.
        """
        neighbours = self._neighbours(node)
        out = neighbours[chosen[neighbours]]
        # `fsum` is rounded correctly, so a sum that is rounded to less than a weight is less.
        if chosen[node] or math.fsum(self._weights[out].tolist()) >= self._weights[node]:
            return False
        for neighbour in out:
            chosen[neighbour] = False
            held[self._neighbours(neighbour)] -= 1
        self._add(chosen, held, node)
        for neighbour in out:
            self._add_free(chosen, held, self._neighbours(neighbour))
        return True

    def _exchangeable(self, chosen, held) -> Int[np.ndarray, "K"]:
        """Returns the nodes of the set that may be exchanged for two; without weights they
        can be.
        """
        alone = ~chosen & (held == 1)
        from_alone = alone[self._heads]
        heads = self._heads[from_alone]
        tails = self._tails[from_alone]
        holder = np.zeros(len(chosen), np.intp)
        holding = chosen[tails]
        holder[heads[holding]] = tails[holding]
        group = np.bincount(holder[alone], minlength=len(chosen))
        joined = np.bincount(
            heads[alone[tails] & (holder[heads] == holder[tails])], minlength=len(chosen)
        )
        heavy = np.bincount(holder[alone], self._weights[alone], len(chosen)) > self._weights
        return np.unique(holder[alone & (joined < group[holder] - 1) & heavy[holder]])

    def _exchange(self, chosen, held, node) -> bool:
        """Exchanges a chosen node for two or more, if that is possible still, and a gain; whether
        it was.
        """
        if not chosen[node]:
            return False
        neighbours = self._neighbours(node)
        weights = self._weights
        group = neighbours[held[neighbours] == 1]
        for first in group:
            candidates = np.setdiff1d(group, np.append(self._neighbours(first), first))
            if weights[candidates].max(initial=-np.inf) + weights[first] > weights[node]:
                chosen[node] = False
                held[neighbours] -= 1
                self._add(chosen, held, first)
                self._add_free(chosen, held, candidates)
                self._add_free(chosen, held, np.sort(neighbours))
                return True
        return False
