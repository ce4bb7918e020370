"""The file of a set's references: its content, how it is extended, and when a reference is valid.

A reference is only valid for the graph on which it was found, identified by a digest of its content. It comes with a
partition that has this cut, so that it can be verified.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph
from sl_discs.models.kinds.maxcut import KIND as MAXCUT
from sl_discs.parse_json import parse_json

FOLDER = Path(__file__).parent
# Fields that identify a run: a graph that has had a run with equal fields is not run again.
_IDENTITY = ("sampler", "annealing", "chain_length", "batch_size", "seeds", "engine")


@dataclasses.dataclass(frozen=True)
class Reference:
    """The best known cut of a graph.

    Attributes:
      sha256: `digest` of the graph.
      cut: the largest of `starts`.
      solution: [N] zeros and ones, the side of each node; its cut is `cut`.
      starts: the best cut of each start, keyed by the position of its run in the file.
    """

    sha256: str
    cut: float
    solution: Int8[np.ndarray, "N"]
    starts: dict[int, tuple[float, ...]]

    def agrees(self) -> bool:
        """Whether at least two starts, each with its own seed, ended at this cut."""
        return sum(cut == self.cut for cuts in self.starts.values() for cut in cuts) > 1


@dataclasses.dataclass(frozen=True)
class ReferenceSet:
    """References of one generated set.

    Attributes:
      dataset: its name, such as `maxcut/er/r-er-0.15-n-256-300`.
      data_seed: data seed of its graphs.
      runs: how references were found: command, sampler, annealing, steps, chains, seeds, engine, version, commit.
      graphs: by the graph's position in the set.
    """

    dataset: str
    data_seed: int
    runs: tuple[dict[str, Any], ...] = ()
    graphs: dict[int, Reference] = dataclasses.field(default_factory=dict)

    def with_run(self, run: dict[str, Any]) -> tuple[ReferenceSet, int]:
        """The set with this run added, unless it has an equal run, and the position of the run."""
        for place, known in enumerate(self.runs):
            if all(known[key] == run[key] for key in _IDENTITY):
                return self, place
        return dataclasses.replace(self, runs=(*self.runs, run)), len(self.runs)

    def find(self, index: int, graph: Graph) -> Reference | None:
        """The reference of the graph at a position; None if there is none, or only one of another graph.

        Raises:
          InputError: the reference is of this graph, but its partition has another cut: the file is damaged.
        """
        known = self.graphs.get(index)
        if known is None or known.sha256 != digest(graph):
            return None
        if known.solution.size < graph.num_nodes or cut_of(graph, known.solution[: graph.num_nodes]) != known.cut:
            raise InputError(
                f"references of {self.dataset}: graph {index}: the partition does not have the cut {known.cut:g} "
                "that is claimed; get the file anew, or remove it and run sl-discs references"
            )
        return dataclasses.replace(known, solution=known.solution[: graph.num_nodes])

    def with_starts(
        self, index: int, graph: Graph, run: int, cuts: list[float], solution: Int8[np.ndarray, "N"]
    ) -> ReferenceSet:
        """The set after starts of a run on a graph; the larger of the old and the new cut is kept.

        A reference of another graph at this position is dropped.

        Args:
          index: position of the graph in the set.
          graph: the graph.
          run: position of the run in `runs`.
          cuts: best cut of each start.
          solution: the partition of the largest of them.

        Raises:
          InputError: the partition does not have the largest of the cuts, or as `find`.
        """
        cut = cut_of(graph, solution)
        if cut != max(cuts):
            raise InputError(f"{graph.name}: the partition has the cut {cut:g}, not {max(cuts):g} as claimed")
        new = Reference(digest(graph), cut, solution, {run: tuple(cuts)})
        old = self.find(index, graph)
        if old is not None:
            better = max(old, new, key=lambda one: one.cut)  # the old one if they are equal
            new = dataclasses.replace(better, starts=old.starts | new.starts)
        return dataclasses.replace(self, graphs=self.graphs | {index: new})


def digest(graph: Graph) -> str:
    """64 bits, in hexadecimal, of SHA-256 over nodes, edges and weights; an unweighted graph has weights 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    order = np.lexsort((graph.edges[:, 1], graph.edges[:, 0]))
    content = hashlib.sha256(np.array([graph.num_nodes, graph.num_edges], dtype="<i8").tobytes())
    content.update(graph.edges[order].astype("<i4").tobytes())
    content.update(weights[order].astype("<f8").tobytes())
    return content.hexdigest()[:16]


def cut_of(graph: Graph, solution: Int8[np.ndarray, "N"]) -> float:
    """The exact cut of a partition."""
    return MAXCUT.verifier(graph)(solution).objective


def path_of(dataset: str, data_seed: int, folder: Path = FOLDER) -> Path:
    """The file of a set's references."""
    return folder / f"{dataset.replace('/', '_')}_seed{data_seed}.json"


def load_references(dataset: str, data_seed: int, folder: Path = FOLDER) -> ReferenceSet:
    """The references of a set, which are empty if there is no file.

    Raises:
      InputError: the file cannot be read.
    """
    path = path_of(dataset, data_seed, folder)
    try:
        return _parse(path, path.read_text(encoding="utf-8"), dataset, data_seed)
    except FileNotFoundError:
        return ReferenceSet(dataset, data_seed)
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from None


def _parse(path: Path, text: str, dataset: str, data_seed: int) -> ReferenceSet:
    try:
        content = parse_json(text)
        runs = tuple(dict(run) for run in content["runs"])
        graphs = {int(index): _reference(fields) for index, fields in content["graphs"].items()}
        known = all(key in run for run in runs for key in _IDENTITY)
        known &= all(run in range(len(runs)) for one in graphs.values() for run in one.starts)
        if not known or (content["dataset"], content["data_seed"]) != (dataset, data_seed):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: not a file of references of {dataset}; sl-discs references writes them") from None
    return ReferenceSet(dataset, data_seed, runs, graphs)


def save_references(references: ReferenceSet, folder: Path = FOLDER) -> Path:
    """Writes a set of references atomically, with one line per graph.

    Raises:
      InputError: the folder cannot be written.
    """
    lines = [
        f" {json.dumps(str(index))}: {json.dumps(_fields(references.graphs[index]))}"
        for index in sorted(references.graphs)
    ]
    head = {"dataset": references.dataset, "data_seed": references.data_seed, "runs": list(references.runs)}
    text = json.dumps(head, indent=1).removesuffix("\n}") + ',\n "graphs": {\n' + ",\n".join(lines) + "\n }\n}\n"
    path = path_of(references.dataset, references.data_seed, folder)
    return write_atomically(path, lambda file: file.write(text.encode()))


def _fields(one: Reference) -> dict[str, Any]:
    return {
        "sha256": one.sha256,
        "cut": one.cut,
        "starts": {str(run): list(cuts) for run, cuts in sorted(one.starts.items())},
        "solution": base64.b64encode(np.packbits(one.solution.astype(np.uint8)).tobytes()).decode(),
    }


def _reference(fields: dict[str, Any]) -> Reference:
    starts = {int(run): tuple(map(float, cuts)) for run, cuts in fields["starts"].items()}
    # Padded to whole bytes; `find` removes the bits beyond the graph's nodes.
    packed = np.frombuffer(base64.b64decode(fields["solution"], validate=True), dtype=np.uint8)
    return Reference(str(fields["sha256"]), float(fields["cut"]), np.unpackbits(packed).astype(np.int8), starts)
