"""networkx graphs, live or pickled, as `Graph`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from sl_discs.checks import real_array
from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph
from sl_discs.instances.pickled import PickledGraph

if TYPE_CHECKING:
    import networkx as nx


def is_networkx(graph: Any) -> bool:
    """Whether this is a networkx graph; does not import networkx, as its owner has imported it already."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def graph_from_networkx(
    graph: nx.Graph | PickledGraph, name: str, weighted: bool = False, reference: float | None = None
) -> Graph:
    """Converts a simple undirected graph; its edges are sorted by (u, v).

    Nodes labelled 0..n-1, in any order, keep their labels; otherwise nodes are numbered by their position. If
    `weighted`, weights are the edge attribute `weight`, or 1 if no edge has it.

    Raises:
      InputError: `graph` is not a graph, is directed or a multigraph, is not simple, has a weight on only some edges
        or one that is not a number, or the two directions of an edge disagree.
    """
    if not (is_networkx(graph) or isinstance(graph, PickledGraph)):
        raise InputError(f"{name}: a {type(graph).__name__} where a networkx graph is expected")
    if graph.is_directed() or graph.is_multigraph():
        raise InputError(f"{name}: a directed graph or multigraph; convert it to networkx.Graph first")
    labels = list(graph.nodes)
    if set(labels) == set(range(len(labels))):
        labels = range(len(labels))
    index = {label: i for i, label in enumerate(labels)}
    source, target, weights = [], [], []
    try:
        for node, neighbours in graph.adjacency():
            source += [index[node]] * len(neighbours)
            target += [index[other] for other in neighbours]
            if weighted:
                weights += [data["weight"] for data in neighbours.values() if "weight" in data]
    except KeyError as error:
        raise InputError(f"{name}: an edge leads to {error}, which is not a node") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: edges or weights in an unknown form ({error})") from None
    weights = real_array(f"{name}: weights", weights)
    if 0 < len(weights) < len(source):
        raise InputError(f"{name}: some edges have a weight and some have none; give every edge one")
    weights = weights if len(weights) else np.ones(len(source))
    edges, weights = _one_direction(name, np.array([source, target], dtype=np.int64), weights)
    return Graph.from_arrays(name, len(labels), edges, weights if weighted else None, reference)


def _one_direction(name: str, both: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keeps the columns with u <= v of [2, 2E], which lists every edge in both directions; the two must agree."""
    forth, back = both[0] <= both[1], both[0] >= both[1]
    order = np.lexsort((both[1, forth], both[0, forth]))
    edges, values = both[:, forth].T[order], weights[forth][order]
    order = np.lexsort((both[0, back], both[1, back]))
    mirrored, mirrored_values = both[::-1, back].T[order], weights[back][order]
    if not (np.array_equal(edges, mirrored) and np.array_equal(values, mirrored_values, equal_nan=True)):
        raise InputError(f"{name}: an edge differs between its two directions; make the graph undirected")
    return edges, values
