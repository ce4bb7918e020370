"""DISCS's own data: which files of a `data_root` make up a dataset, and what each kind of file contains."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.instances.graph_files import conflict_graph, read_cnf
from sl_discs.instances.graph import Graph, graph_from_networkx
from sl_discs.instances.pickled import PickledArray, PickledGraph
from sl_discs.instances.pickles import iter_pickles, load_pickle

Load = Callable[[], Graph]


@dataclasses.dataclass(frozen=True)
class DiscsFiles:
    """A dataset in DISCS's own form.

    Attributes:
      folder: its folder, relative to the data root.
      pattern: glob pattern of its file names; files are read in sorted order.
      read: yields, for one file, a function for each of its graphs. As far as the format allows, a graph is only
        read when its function is called, so that graphs can be counted and skipped.
    """

    folder: str
    pattern: str
    read: Callable[[Path], Iterator[Load]]

    def find(self, data_root: Path) -> list[Path]:
        """The dataset's files, sorted by name; empty if there are none."""
        return sorted(path for path in (data_root / self.folder).glob(self.pattern) if path.is_file())

    def load(self, files: list[Path], first: int, stop: int | None) -> tuple[list[Graph], int]:
        """Graphs first..stop-1 and the number of all graphs.

        Raises:
          InputError: a file is damaged, refused, or not in the expected format.
        """
        graphs, total = [], 0
        for path in files:
            for load in self.read(path):
                if total >= first and (stop is None or total < stop):
                    graphs.append(_load_from(path, load))
                total += 1
        return graphs, total


def read_formula(path: Path) -> Iterator[Load]:
    """MIS `satlib`: one DIMACS formula per file."""
    yield lambda: conflict_graph(path.stem, read_cnf(path))


def read_single_graph(path: Path) -> Iterator[Load]:
    """MIS `ertest`: one pickled graph per file; nodes of a known solution carry `label` 1."""
    yield functools.partial(_load_labelled, path)


def read_graph_list(path: Path) -> Iterator[Load]:
    """MIS `er_density`: one pickled list of graphs. No reference is known."""
    for k, graph in enumerate(_sequence(path, load_pickle(path), "graphs")):
        yield functools.partial(graph_from_networkx, graph, _name(path, k))


def read_cut_solutions(path: Path) -> Iterator[Load]:
    """MaxCut `er`, `ba`, `optsicom`: pickles back to back, each (weighted graph, (cut value, ...))."""
    for k, item in enumerate(iter_pickles(path)):
        graph, solution, *_ = _sequence(path, item, "a graph and a solution", 2)
        value, *_ = _sequence(path, solution, "the value of a solution", 1)
        reference = _number(path, value)
        yield functools.partial(graph_from_networkx, graph, _name(path, k), weighted=True, reference=reference)


def read_scored_graphs(path: Path) -> Iterator[Load]:
    """MaxClique `rb`: one pickled list of (clique number, graph)."""
    for k, item in enumerate(_sequence(path, load_pickle(path), "pairs")):
        value, graph, *_ = _sequence(path, item, "a clique number and a graph", 2)
        yield functools.partial(graph_from_networkx, graph, _name(path, k), reference=_number(path, value))


def read_graphs_and_scores(path: Path) -> Iterator[Load]:
    """MaxClique `twitter`: one pickled pair (graphs, clique numbers)."""
    graphs, values, *_ = _sequence(path, load_pickle(path), "graphs and clique numbers", 2)
    graphs, values = _sequence(path, graphs, "graphs"), _sequence(path, values, "clique numbers")
    if len(graphs) != len(values):
        raise InputError(f"{path}: {len(graphs)} graphs, but {len(values)} clique numbers")
    for k, (graph, value) in enumerate(zip(graphs, values, strict=True)):
        yield functools.partial(graph_from_networkx, graph, _name(path, k), reference=_number(path, value))


def _load_labelled(path: Path) -> Graph:
    """A single graph; the sum of its node labels, if it has any, is the reference."""
    graph = load_pickle(path)
    if not isinstance(graph, PickledGraph):
        raise InputError(f"{path}: a {type(graph).__name__} where one networkx graph is expected")
    size = 0.0
    for attributes in graph.nodes.values():
        if isinstance(attributes, dict) and "label" in attributes:
            size += _number(path, attributes["label"])
    return graph_from_networkx(graph, path.stem, reference=size or None)


def _load_from(path: Path, load: Load) -> Graph:
    """Calls `load` and adds the file's name to its errors."""
    try:
        return load()
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def _name(path: Path, k: int) -> str:
    """The name of graph k of a file in results and messages."""
    return f"{path.name}[{k}]"


def _sequence(path: Path, value: Any, what: str, least: int = 0) -> Any:
    """`value`, if it is a sequence of at least `least` items."""
    if not isinstance(value, list | tuple | PickledArray):
        raise InputError(f"{path}: a {type(value).__name__} where {what} should be; is it another dataset's file?")
    if len(value) < least:
        raise InputError(f"{path}: {len(value)} items where {what} should be; is it another dataset's file?")
    return value


def _number(path: Path, value: Any) -> float:
    """A reference value."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{path}: a reference value is a {type(value).__name__}, which is not a number") from None
