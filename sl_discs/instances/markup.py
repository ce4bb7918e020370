"""Graphs in GML and in networkx's node-link JSON, which networkx parses.

Labels are those that the file gives: in GML the `label` of each node where all have one, and otherwise its `id`; in
node-link JSON the `id`, where a list is a tuple. An attribute `weight` of edges or nodes is their weight, which all
must have if one has. Other attributes are skipped.

Sources: M. Himsolt, "GML: A portable Graph File Format", 1996; networkx's `node_link_data`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph, checked_node_weights, graph_from_networkx
from sl_discs.instances.text import Source

if TYPE_CHECKING:
    import networkx as nx

# What its parsers raise for text that is no graph: beside its own exception those of the text's parts.
_PARSING = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


def read_gml(source: Source) -> list[tuple[Graph, Sequence[Hashable]]]:
    """The graph of a GML file."""
    import networkx as nx

    # By `id`, since networkx would refuse a file in which some nodes have no label.
    graph = _parsed(source, "GML", lambda text: nx.parse_gml(text, label="id"))
    labels = [data["label"] for _, data in graph.nodes(data=True) if "label" in data]
    if len(labels) != len(graph):
        labels = list(graph)
    return [(_graph_of(source, graph, labels), _as_range(labels))]


def read_node_link(source: Source) -> list[tuple[Graph, Sequence[Hashable]]]:
    """The graph of a JSON file, with its edges under `edges`, or `links` as older versions of networkx have it."""
    import networkx as nx

    def parse(text: str) -> nx.Graph:
        data = json.loads(text)
        key = "edges" if "edges" in data else "links"
        if not (isinstance(data, dict) and isinstance(data.get("nodes"), list) and isinstance(data.get(key), list)):
            raise ValueError("no lists 'nodes' and 'edges' or 'links'")
        graph = nx.node_link_graph(data, directed=False, multigraph=False, edges=key)
        if not graph.is_multigraph() and len(graph) != len(data["nodes"]):
            raise ValueError("a node is listed twice, or an edge leads to one that is not listed")
        if not graph.is_multigraph() and graph.number_of_edges() != len(data[key]):
            raise ValueError("an edge is listed twice")
        return graph

    graph = _parsed(source, "node-link JSON", parse)
    labels = list(graph)
    return [(_graph_of(source, graph, labels), _as_range(labels))]


def _parsed(source: Source, what: str, parse: Callable[[str], nx.Graph]) -> nx.Graph:
    import networkx as nx

    try:
        graph = parse(b"".join(source.blocks()).decode("utf-8"))
    except (*_PARSING, nx.NetworkXException) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(f"{source.path}: not a graph in {what} ({said}); correct the file") from None
    if graph.is_directed() or graph.is_multigraph():
        raise InputError(f"{source.path}: a directed graph or multigraph; convert it to networkx.Graph first")
    return graph


def _graph_of(source: Source, graph: nx.Graph, labels: Sequence[Hashable]) -> Graph:
    """The graph with nodes in the order of the labels."""
    import networkx as nx

    if len(set(labels)) < len(labels):
        again = next(label for at, label in enumerate(labels) if label in labels[:at])
        raise InputError(f"{source.path}: two nodes have the label {again!r}; give each its own")
    place = {node: number for number, node in enumerate(graph)}
    loop = next((place[node] for node in nx.nodes_with_selfloops(graph)), None)
    if loop is not None:
        raise InputError(f"{source.path}: an edge from node {labels[loop]!r} to itself; remove it")
    weighted = any("weight" in data for *_, data in graph.edges(data=True))
    # In this order, which numbers that are labels need not have.
    found = graph_from_networkx(nx.relabel_nodes(graph, place), source.name, weighted)
    of_nodes = dict(graph.nodes(data="weight"))
    if all(weight is None for weight in of_nodes.values()):
        return found
    missing = next((labels[place[node]] for node, weight in of_nodes.items() if weight is None), None)
    if missing is not None:
        raise InputError(f"{source.path}: node {missing!r} has no weight, but others have; give every node one")
    weights: Any = list(of_nodes.values())
    return dataclasses.replace(found, node_weights=checked_node_weights(source.name, weights, labels))


def _as_range(labels: list[Hashable]) -> Sequence[Hashable]:
    """The labels, as a range where they are 0 .. N - 1 in this order."""
    return range(len(labels)) if labels == list(range(len(labels))) else tuple(labels)
