"""The graph, the common form of all graph instances, and datasets of graphs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import numbers
import pickle
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8, Int32, Int64, Num
from scipy import sparse

from sl_discs.instances.form import check_finite, check_sum, checked_pairs, known_reference
from sl_discs.support.checks import integer, real, real_array
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_memory, check_number

# Bytes per node: the label, as an object in a tuple and a set, and a chain's state, field, best
# states and temporaries.
_NODE_BYTES = 200


class Neighbours(NamedTuple):
    """Lists of the neighbours of N nodes; each of E pairs of nodes has two entries.

    Attributes:
      starts: [N + 1] the first entry of each node.
      others: [2 E] the neighbours of each node, in ascending order.
      numbers: [2 E] the pair of each entry.
      ends: [E, 2] the nodes of each pair.
    """

    starts: Int[np.ndarray, "N+1"]
    others: Int32[np.ndarray, "2E"]
    numbers: Int32[np.ndarray, "2E"]
    ends: Int[np.ndarray, "E 2"]

    def matrix(self, values: Num[np.ndarray, "E"]) -> sparse.csr_array:
        """Returns the symmetric matrix [N, N] that has the value of each pair."""
        size = len(self.starts) - 1
        return sparse.csr_array((values[self.numbers], self.others, self.starts), (size, size))


def neighbours_of(size: int, pairs: Int[np.ndarray, "E 2"]) -> Neighbours:
    """Returns the lists of nodes 0 .. size - 1."""
    heads, tails = np.concatenate([pairs, pairs[:, ::-1]]).T
    numbers = np.tile(np.arange(len(pairs), dtype=np.int32), 2)
    rows = sparse.csr_array((numbers, (heads, tails)), (size, size))
    return Neighbours(rows.indptr, rows.indices, rows.data, pairs)


def component_of(num_nodes: int, edges: Int[np.ndarray, "E 2"]) -> Int32[np.ndarray, "N"]:
    """Returns the component of each node; they count from 0 in the order of their smallest
    nodes.
    """
    # Imported here, as most graphs are read and drawn without linear algebra.
    from scipy.sparse import csgraph

    adjacency = sparse.coo_array(
        (np.ones(len(edges), bool), tuple(edges.T)), (num_nodes, num_nodes)
    )
    return csgraph.connected_components(adjacency, directed=False)[1]


@dataclasses.dataclass(frozen=True)
class Graph:
    """A simple undirected graph with optional weights of edges and nodes, the input of all graph
    problems.

    Attributes:
      name: name of this instance in results.
      num_nodes: number of nodes, isolated ones included; nodes are 0..num_nodes-1.
      edges: [E, 2] with u < v in each row, no row twice.
      weights: [E] of edges, or None for an unweighted graph.
      reference: best known objective, or None.
      node_weights: [N] of nodes, at least 0, or None.
      generated: whether a generator of this project drew it for a dataset, whose published graphs
        are others.
    """

    name: str
    num_nodes: int
    edges: Int32[np.ndarray, "E 2"]
    weights: Float64[np.ndarray, "E"] | None = None
    reference: float | None = None
    node_weights: Float64[np.ndarray, "N"] | None = None
    generated: bool = False

    @property
    def num_edges(self) -> int:
        """Number of edges E."""
        return len(self.edges)

    @functools.cached_property
    def neighbours(self) -> Neighbours:
        """The neighbours of each node, and its edges."""
        return neighbours_of(self.num_nodes, self.edges)

    def content(self) -> bytes:
        """Returns the sizes, edges and weights as bytes."""
        parts = [
            np.array([self.num_nodes, len(self.edges)], np.int64).tobytes(),
            self.edges.tobytes(),
        ]
        if self.weights is not None:
            parts.append(self.weights.tobytes())
        if self.node_weights is not None:
            parts.append(b"nodes" + self.node_weights.tobytes())
        return b"".join(parts)

    # What every source of problems has.

    words: ClassVar[tuple[str, str, str]] = ("graph", "node", "edge")
    own_problem: ClassVar[None] = None

    @property
    def coefficients(self) -> Mapping[str, np.ndarray]:
        """The weights of edges and nodes that it has."""
        weights = {"weights": self.weights, "weights of nodes": self.node_weights}
        return {name: array for name, array in weights.items() if array is not None}

    @property
    def num_variables(self) -> int:
        """Number of nodes."""
        return self.num_nodes

    @property
    def num_terms(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @classmethod
    def from_arrays(
        cls,
        name,
        num_nodes,
        edges,
        weights=None,
        reference=None,
        node_weights=None,
        generated=False,
    ) -> Graph:
        """Checks arrays of any integer or float dtype and puts them in the canonical form.

        Edges may be given in either direction; the order of rows is kept.

        Raises:
          InputError: no nodes, more than `check_size` allows, an index out of range, a self-loop, a
            repeated edge (in either direction, so also an asymmetric pair of weights), a weight
            that is not finite or a whole number that is not exact in double precision, weights too
            large to be added up, arrays of unequal length, or a weight of a node below 0.
        """
        if integer(f"{name}: num_nodes", num_nodes) < 1:
            raise InputError(f"{name}: the graph is empty; give at least one node")
        check_size(name, num_nodes)
        edges = checked_pairs(name, "edge", edges, "nodes", num_nodes)
        loops = edges[:, 0] == edges[:, 1]
        if loops.any():
            raise InputError(f"{name}: self-loop at node {edges[np.argmax(loops), 0]}; remove it")
        u, v = edges.astype(np.int32).T
        edges = np.stack([np.minimum(u, v), np.maximum(u, v)], axis=1)
        if have_repeats(codes := edge_codes(u, v, num_nodes)):
            row = int(np.argmax(first_rows(codes) != np.arange(len(codes))))
            raise InputError(
                f"{name}: edge {tuple(edges[row].tolist())} appears more than once; give each "
                "undirected edge one row (a symmetric matrix holds each twice)"
            )
        if weights is not None:
            weights = real_array(f"{name}: weights", weights)
            if weights.shape != (len(edges),):
                raise InputError(f"{name}: {weights.shape} weights for {len(edges)} edges")
            check_sum(name, weights[np.isfinite(weights)])
            check_finite(
                name, lambda row: f"the weight of edge {tuple(edges[row].tolist())}", weights
            )
        if node_weights is not None:
            node_weights = checked_node_weights(name, node_weights, range(num_nodes))
        return cls(
            str(name),
            int(num_nodes),
            edges,
            weights,
            known_reference(reference),
            node_weights,
            bool(generated),
        )

    def lighter_ends(self) -> Float64[np.ndarray, "E"]:
        """Returns the smaller of the weights of each edge's ends; 1 without weights of nodes."""
        if self.node_weights is None:
            return np.ones(self.num_edges)
        return self.node_weights[self.edges].min(axis=1)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Graphs of a dataset and their source.

    Attributes:
      name: `mis/er_density/r-0.10`, `maxclique/rb` and so on, as in the published tables.
      problem: name of the problem, such as `mis`.
      source: `discs files`, `archive` or `generated`.
      detail: the path, or the distribution and its seed.
      graphs: the requested graphs.
      index: position of each graph in the whole dataset; keys folded from it do not depend on the
        selection.
      total: number of graphs of the whole dataset.
      origin: the state from which distances of draws are counted; None: states are not drawn.
    """

    name: str
    problem: str
    source: str
    detail: str
    graphs: list[Graph]
    index: list[int]
    total: int
    origin: Int8[np.ndarray, "N"] | None = None

    @property
    def generated(self) -> bool:
        """Whether a generator of this project drew some of the graphs, now or for the file that
        holds them.
        """
        return self.source == "generated" or any(graph.generated for graph in self.graphs)

    def digest(self) -> str:
        """Returns the SHA-256 of the sizes, edges and weights of all graphs, in hexadecimal."""
        digest = hashlib.sha256()
        for graph in self.graphs:
            digest.update(graph.content())
        return digest.hexdigest()


def checked_node_weights(
    name: str, weights: Any, labels: Sequence[Hashable]
) -> Float64[np.ndarray, "N"]:
    """Returns weights of nodes in the order of the labels, from numbers [N] of any dtype or {label:
    number}.

    Raises:
      InputError: there is not one weight for each node, one is negative or not a finite number, or
        they are too large to be added up; the message names the node.
    """
    if isinstance(weights, Mapping):
        if unknown := set(weights).difference(labels):
            raise InputError(
                f"{name}: a weight of {unknown.pop()!r}, which is not a node; remove it"
            )
        if missing := [label for label in labels if label not in weights]:
            raise InputError(f"{name}: node {missing[0]!r} has no weight; give every node one")
        weights = [
            real(f"{name}: the weight of node {label!r}", weights[label], least=0)
            for label in labels
        ]
    weights = real_array(f"{name}: weights of nodes", weights)
    if weights.shape != (len(labels),):
        raise InputError(
            f"{name}: weights of nodes of shape {weights.shape} for {len(labels)} nodes; give one "
            "for each node"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        raise InputError(
            f"{name}: the weight of node {labels[node]!r} is {weights[node]}; expected a finite "
            "number of at least 0"
        )
    check_sum(name, weights)
    return weights


# What says which edge it is, and no more.
_NAMES = ("weight", "id", "key", "label", "source", "target")


def other_numbers(
    given: Iterable[tuple[Any, Mapping[str, Any]]], used: str | None = None
) -> dict[str, list[Any]]:
    """Returns the edges or nodes that have numbers which are no weights, by the names of the
    numbers.

    Args:
      given: edges or nodes, each with its attributes.
      used: a name that is not meant.
    """
    numbers_by_name: dict[str, list[Any]] = {}
    for place, attributes in given:
        for name, value in attributes.items():
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if number and name not in (*_NAMES, used):
                numbers_by_name.setdefault(str(name), []).append(place)
    return numbers_by_name


def check_size(name: str, num_nodes: int) -> None:
    """Refuses more nodes or variables than 32 bits can number, or than fit into memory with one
    chain.
    """
    check_number(f"{name}: {num_nodes} nodes", num_nodes, "so number them without gaps")
    check_memory(
        f"{name}: a single chain on {num_nodes} nodes",
        num_nodes * _NODE_BYTES,
        "correct their number",
    )


# A file or list with more nodes than this, and than its size explains, has a wrong number in its
# header.
_FEW_NODES = 10**6
_NODES_PER_BYTE = 10


def check_isolated(where: str, num_nodes: int, size: int, advice: str) -> None:
    """Refuses nodes or variables of which nearly all would have no term, before anything of their
    number is made.

    Args:
      where: the file and line, for the message.
      num_nodes: their number, as a header has it.
      size: of what lists the terms, in bytes.
      advice: what to do.
    """
    if num_nodes > max(_FEW_NODES, _NODES_PER_BYTE * size):
        raise InputError(
            f"{where}: {num_nodes} nodes, nearly all without a term in {size} bytes; {advice}"
        )


def edge_codes(u, v, num_nodes: int) -> Int64[np.ndarray, "E"]:
    """Returns a number for each edge, whatever its direction, that sorts by the smaller and then
    the larger node.
    """
    return np.minimum(u, v) * np.int64(num_nodes) + np.maximum(u, v)


def have_repeats(codes: Int64[np.ndarray, "E"]) -> bool:
    """Returns whether a number appears twice; by sorting, which is many times as fast as
    `np.unique`.
    """
    codes = np.sort(codes)
    return bool((codes[1:] == codes[:-1]).any())


def first_rows(codes: Int64[np.ndarray, "E"]) -> Int64[np.ndarray, "E"]:
    """Returns for each number the row in which it first appeared."""
    if not have_repeats(codes):
        return np.arange(len(codes))
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    return first[code.reshape(-1)]


# The complement of a graph: its cliques are the independent sets of the graph, and the other way
# round.

MOST_EDGES = 5 * 10**7


def complement(graph: Graph) -> Graph:
    """Returns the graph on the same nodes with exactly the edges that this one lacks, sorted; it
    has no reference.

    Weights of nodes stay as they are.

    Raises:
      InputError: the graph has weights other than 1, which its missing edges would lack, or there
        would be over 50 million edges.
    """
    n = graph.num_nodes
    if graph.weights is not None and (graph.weights != 1).any():
        raise InputError(
            f"{graph.name}: missing edges have no weights; give a graph without weights other than "
            "1"
        )
    count = n * (n - 1) // 2 - graph.num_edges
    if count > MOST_EDGES:
        raise InputError(
            f"{graph.name}: the complement has {count} edges; at most {MOST_EDGES} are supported"
        )
    missing = np.ones(n, bool)
    near = graph.neighbours
    neighbours = []
    for node in range(n):
        missing[:] = True
        missing[near.others[near.starts[node] : near.starts[node + 1]]] = False
        neighbours.append(np.flatnonzero(missing[node + 1 :]).astype(np.int32) + node + 1)
    heads = np.repeat(np.arange(n, dtype=np.int32), [len(row) for row in neighbours])
    edges = np.stack([heads, np.concatenate(neighbours)], axis=1)
    return Graph.from_arrays(graph.name, n, edges, node_weights=graph.node_weights)


# networkx graphs, live or pickled, as `Graph`.

if TYPE_CHECKING:
    import networkx as nx


class PickledGraph:
    """The contents of a pickled networkx graph of any version, with the few methods needed to read
    it.
    """

    proper = True  # neither directed nor a multigraph
    # A damaged stream may create a graph and never set its state; it is then empty and refused for
    # that.
    nodes: Mapping = MappingProxyType({})
    graph: Mapping = MappingProxyType({})  # the graph's own attributes
    _adj: Mapping = MappingProxyType({})

    def __setstate__(self, state: Any) -> None:
        """Keeps the dictionaries of the graph, nodes and adjacency; views and factories are
        dropped.
        """
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("a networkx graph without its attributes")
        for ours, names in (("nodes", ("_node", "node")), ("_adj", ("_adj", "adj"))):
            graph = next((state[name] for name in names if name in state), None)
            if not isinstance(graph, dict):
                raise pickle.UnpicklingError(f"a networkx graph without the dictionary {names[0]}")
            setattr(self, ours, graph)
        if isinstance(state.get("graph"), dict):
            self.graph = state["graph"]

    def adjacency(self) -> Iterator[tuple[Any, dict]]:
        """Pairs of a node and the dictionary from its neighbours to the edges' attributes."""
        return iter(self._adj.items())


def is_networkx(graph: Any) -> bool:
    """Returns whether this is a networkx graph; does not import networkx, as its owner has imported
    it already.
    """
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def graph_from_networkx(
    graph: nx.Graph | PickledGraph,
    name: str,
    weighted: bool = False,
    reference: float | None = None,
    weight: str = "weight",
) -> Graph:
    """Converts a simple undirected graph; its edges are sorted by (u, v).

    Nodes labelled 0..n-1, in any order, keep their labels; otherwise nodes are numbered by their
    position. If `weighted`, weights are the edge attribute `weight`, or another of that name, or 1
    if no edge has it.

    Raises:
      InputError: `graph` is not a graph, is directed or a multigraph, is not simple, has a weight
        on only some edges or one that is not a finite number, or the two directions of an edge
        disagree.
    """
    if not (is_networkx(graph) or isinstance(graph, PickledGraph)):
        raise InputError(f"{name}: a {type(graph).__name__} where a networkx graph is expected")
    proper = (
        graph.proper
        if isinstance(graph, PickledGraph)
        else not (graph.is_directed() or graph.is_multigraph())
    )
    if not proper:
        raise InputError(
            f"{name}: a directed graph or multigraph; make a networkx.Graph of it, and decide "
            "what becomes of weights of opposite or parallel edges, of which "
            "networkx.Graph(graph) keeps one"
        )
    labels = list(graph.nodes)
    if set(labels) == set(range(len(labels))):
        labels = range(len(labels))
    index = {label: i for i, label in enumerate(labels)}
    source = []
    target = []
    weights = []
    try:
        for node, neighbours in graph.adjacency():
            source += [index[node]] * len(neighbours)
            target += [index[other] for other in neighbours]
            if weighted:
                weights += [data[weight] for data in neighbours.values() if weight in data]
    except KeyError as error:
        raise InputError(f"{name}: an edge leads to {error}, which is not a node") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: edges or weights in an unknown form ({error})") from None
    weights = real_array(f"{name}: weights", weights)
    if 0 < len(weights) < len(source):
        raise InputError(
            f"{name}: some edges have a weight and some have none; give every edge one"
        )
    check_finite(
        name, lambda k: f"the weight of edge {(labels[source[k]], labels[target[k]])}", weights
    )
    weights = weights if len(weights) else np.ones(len(source))
    both = np.array([source, target], dtype=np.int64)
    edges, weights = one_direction(f"{name}: make the graph undirected", both, weights)
    return Graph.from_arrays(name, len(labels), edges, weights if weighted else None, reference)


def one_direction(
    where: str, both: Int64[np.ndarray, "2 M"], weights: Float64[np.ndarray, "M"]
) -> tuple[Int64[np.ndarray, "E 2"], Float64[np.ndarray, "E"]]:
    """Keeps the columns with u <= v, sorted, of edges that are listed in both directions, which
    must agree.
    """
    forth = both[0] <= both[1]
    back = both[0] >= both[1]
    order = np.lexsort((both[1, forth], both[0, forth]))
    edges = both[:, forth].T[order]
    values = weights[forth][order]
    order = np.lexsort((both[0, back], both[1, back]))
    mirrored = both[::-1, back].T[order]
    mirrored_values = weights[back][order]
    if not (
        np.array_equal(edges, mirrored) and np.array_equal(values, mirrored_values, equal_nan=True)
    ):
        raise InputError(f"{where}; an edge differs between its two directions")
    return edges, values
