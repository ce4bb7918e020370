"""Writes graphs as DISCS's own files: the folders, names and pickles that DISCS's loaders and `discs_files` read."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import networkx as nx

from sl_discs.errors import InputError
from sl_discs.files import write_atomically
from sl_discs.instances.dataset import Dataset, Family, find_family
from sl_discs.instances.graph import Graph


@dataclasses.dataclass(frozen=True)
class _Form:
    """How a dataset is divided into files.

    Attributes:
      pickles: the objects that a file of the given graphs holds, back to back.
      per_file: the largest number of graphs in one file; None if one file holds all.
    """

    pickles: Callable[[Sequence[Graph]], Iterable[Any]]
    per_file: int | None = None


def write_discs(dataset: Dataset, data_root: str | os.PathLike, overwrite: bool = False) -> list[Path]:
    """Writes the graphs of a dataset below a data root; each file is complete or absent.

    DISCS reads every file of a dataset's folder, so other files of this dataset must not be there, with `overwrite`
    or without. Nodes are the integers 0..n-1, isolated ones included. MaxCut graphs have the edge attribute `weight`,
    1.0 if the dataset has no weights; other problems do not use weights, so none are written. The reference objective
    is written as 1 if it is unknown (or 0, by which DISCS would divide); MIS files omit it instead, and the format of
    `er_density` has no reference.

    Args:
      dataset: at least one graph, as `load_dataset` returns it.
      data_root: created if needed.
      overwrite: whether files with the same names are replaced.

    Returns:
      the files, sorted.

    Raises:
      InputError: DISCS has no such dataset or does not read it from graphs, conflicting files exist, or writing
        fails; files written before the error stay.
    """
    family = writable_family(*dataset.name.split("/"))
    own, form = family.discs[0], _FORMS[_kind(family)]
    count = len(dataset.graphs)
    per_file = form.per_file or count
    contents = {}
    for start in range(0, count, per_file):
        # Of a pattern, DISCS only checks the beginning of the name; it sorts names as text, hence the leading zeros.
        name = own.pattern.replace("*", f"{dataset.index[start]:05d}.pkl")
        contents[Path(data_root) / own.folder / name] = dataset.graphs[start : start + per_file]
    present = own.find(Path(data_root))
    if present and not overwrite:
        raise InputError(f"{present[0]} is already there; choose another data_root, or overwrite it with --overwrite")
    if others := [path for path in present if path not in contents]:
        raise InputError(f"{others[0]} belongs to the same dataset and would be read as well; move it away first")
    return [write_atomically(path, _writer(form, graphs)) for path, graphs in contents.items()]


def writable_family(problem: str, graph_type: str, cfg_str: str = "") -> Family:
    """The dataset that DISCS's flags name, if it can be written.

    Raises:
      InputError: there is no such dataset, or DISCS does not read it from graphs.
    """
    family = find_family(problem, graph_type, cfg_str)
    if not family.scored:
        raise InputError(f"{family.name} cannot be written: DISCS does not pose {family.problem}")
    if _kind(family) not in _FORMS:
        raise InputError(
            f"{family.name} cannot be written: DISCS makes its graphs from formulas (.cnf), not the other way round"
        )
    return family


def networkx_graph(graph: Graph, weighted: bool = False) -> nx.Graph:
    """The networkx graph, nodes and edges in order; if `weighted`, with the attribute `weight`, 1.0 by default."""
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_nodes))
    edges = graph.edges.tolist()  # plain integers, so that the pickles can be read without NumPy
    if weighted:
        weights = [1.0] * len(edges) if graph.weights is None else graph.weights.tolist()
        result.add_weighted_edges_from((u, v, weight) for (u, v), weight in zip(edges, weights, strict=True))
    else:
        result.add_edges_from(edges)
    return result


def _kind(family: Family) -> str:
    return family.name.partition("/r-")[0]


def _writer(form: _Form, graphs: Sequence[Graph]) -> Callable[[BinaryIO], None]:
    """A function that writes a file; it makes one object at a time, since networkx graphs take much more memory."""

    def write(file: BinaryIO) -> None:
        for item in form.pickles(graphs):
            pickle.dump(item, file)

    return write


def _reference(graph: Graph) -> float:
    return float(graph.reference or 1.0)


def _plain_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    yield [networkx_graph(graph) for graph in graphs]


def _labelled_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    for graph in graphs:
        result = networkx_graph(graph)
        if graph.reference:
            # Readers add up the labels of the nodes; which nodes are in the best known set is not known here.
            result.add_node(0, label=graph.reference)
        yield result


def _cut_solutions(graphs: Sequence[Graph]) -> Iterable[Any]:
    return ((networkx_graph(graph, weighted=True), (_reference(graph),)) for graph in graphs)


def _scored_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    yield [(_reference(graph), networkx_graph(graph)) for graph in graphs]


def _graphs_and_scores(graphs: Sequence[Graph]) -> Iterable[Any]:
    yield [networkx_graph(graph) for graph in graphs], [_reference(graph) for graph in graphs]


_FORMS = {
    "mis/er_density": _Form(_plain_graphs),
    "mis/ertest": _Form(_labelled_graphs, per_file=1),
    "maxcut/er": _Form(_cut_solutions),
    "maxcut/ba": _Form(_cut_solutions),
    "maxcut/optsicom": _Form(_cut_solutions),
    "maxclique/rb": _Form(_scored_graphs, per_file=100),  # a list is read as a whole, at about 5 MB per graph
    "maxclique/twitter": _Form(_graphs_and_scores),
}
