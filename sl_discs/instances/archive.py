"""The portable form of graphs and quadratic forms: NumPy `.npz` archives, many instances in each.

Nothing in them is pickled, so an archive from a stranger is safe to open. Arrays of graphs: `names [G]`,
`num_nodes [G]`, `edge_ptr [G+1]`, `edges [E, 2]` (0-based; graph k owns the rows from `edge_ptr[k]` up to
`edge_ptr[k+1]`), optionally `edge_weight [E]`, `node_weight [sum of num_nodes]` (graph after graph) and
`reference [G]` (best known objective; NaN where there is none).

Arrays of forms: `names [G]`, `num_variables [G]`, `linear [sum of num_variables]` (form after form),
`pair_ptr [G+1]`, `pairs [M, 2]` with `couplings [M]`, `offset [G]`, `spins [G]` and `maximise [G]` (booleans), and
`reference [G]`, and `offset_rest [G, K]`, filled with 0, where a form has further constants. Terms are stored as they
were given, see `QuadraticForm`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, TypeVar

import numpy as np

from sl_discs.errors import FormatError, InputError, errors_of
from sl_discs.files import read_npz, save_npz, write_atomically
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph

_One = TypeVar("_One", Graph, QuadraticForm)
_REQUIRED = ("names", "num_nodes", "edge_ptr", "edges")
KEYS = (
    "names", "num_variables", "linear", "pair_ptr", "pairs", "couplings", "offset", "spins", "maximise", "reference",
)  # fmt: skip


def read_archive(path: str | os.PathLike, start: int = 0, stop: int | None = None) -> list[Graph]:
    """Reads graphs start..stop-1 of an archive (all of them by default).

    The index arrays are checked in full, edges and weights only for the requested graphs.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or
        a length that contradicts another; a requested graph is not simple; or the range exceeds the archive.
    """
    arrays = read_npz(path, _REQUIRED, (*_REQUIRED, "edge_weight", "node_weight", "reference"))
    count = _check_index(path, arrays, "edges", "edge_ptr", {"num_nodes": "iu", "reference": "fiub"})
    names, num_nodes, ptr, edges = (arrays[key] for key in _REQUIRED)
    weights, of_nodes, reference = (arrays.get(key) for key in ("edge_weight", "node_weight", "reference"))
    if weights is not None:
        _check_array(path, "edge_weight", weights, len(edges), "fiub")
    if of_nodes is not None:
        ends = np.cumsum([0, *num_nodes.tolist()])
        _check_array(path, "node_weight", of_nodes, int(ends[-1]), "fiub")
    stop = count if stop is None else stop
    if not 0 <= start <= stop <= count:
        raise InputError(f"{path}: graphs {start} to {stop} were asked for, but the archive holds {count}")

    def graph(k: int) -> Graph:
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        its_weights = None if weights is None else weights[rows]
        its_reference = None if reference is None else float(reference[k])
        its_nodes = None if of_nodes is None else of_nodes[ends[k] : ends[k + 1]]
        return Graph.from_arrays(str(names[k]), int(num_nodes[k]), edges[rows], its_weights, its_reference, its_nodes)

    return _made(f"{path}: graph", range(start, stop), graph)


def count_graphs(path: str | os.PathLike) -> int:
    """Number of graphs in an archive, without reading their edges.

    Raises:
      InputError: as `read_archive`, for errors that the names reveal.
    """
    return len(read_npz(path, _REQUIRED, ("names",))["names"])


def write_archive(path: str | os.PathLike, graphs: Sequence[Graph]) -> None:
    """Writes graphs as an archive; a reader never sees a half-written file.

    Raises:
      InputError: the file cannot be written.
    """
    write_atomically(path, lambda file: save_graphs(file, graphs))


def save_graphs(file: BinaryIO, graphs: Sequence[Graph]) -> None:
    """Writes graphs as an archive into an open file.

    Edges take two bytes per index if every graph has fewer than 65,536 nodes. `edge_weight` is written if any
    graph has weights (edges of an unweighted graph get weight 1), and `node_weight` likewise; `reference` is always
    written.
    """
    largest = max((graph.num_nodes for graph in graphs), default=0)
    edges = [np.zeros((0, 2), np.int32), *(graph.edges for graph in graphs)]
    arrays: dict[str, Any] = {
        "names": np.array([graph.name for graph in graphs], dtype=np.str_),
        "num_nodes": np.array([graph.num_nodes for graph in graphs], dtype=np.int32),
        "edge_ptr": np.cumsum([len(rows) for rows in edges], dtype=np.int64),
        "edges": np.concatenate(edges).astype(np.uint16 if largest < 2**16 else np.int32),
        "reference": np.array([graph.reference for graph in graphs], dtype=np.float64),  # None becomes NaN
    }
    if any(graph.weights is not None for graph in graphs):
        arrays["edge_weight"] = np.concatenate(
            [np.ones(graph.num_edges) if graph.weights is None else graph.weights for graph in graphs]
        )
    if any(graph.node_weights is not None for graph in graphs):
        arrays["node_weight"] = np.concatenate(
            [np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights for graph in graphs]
        )
    save_npz(file, arrays)


def write_forms(path: str | os.PathLike, forms: Sequence[QuadraticForm]) -> None:
    """Writes models as an archive, bit by bit; a reader never sees a half-written file.

    Raises:
      InputError: the file cannot be written.
    """
    pairs = [np.zeros((0, 2), np.int32), *(form.pairs for form in forms)]
    arrays: dict[str, Any] = {
        "names": np.array([form.name for form in forms], dtype=np.str_),
        "num_variables": np.array([form.num_variables for form in forms], dtype=np.int32),
        "linear": np.concatenate([np.zeros(0), *(form.linear for form in forms)]),
        "pair_ptr": np.cumsum([len(rows) for rows in pairs], dtype=np.int64),
        "pairs": np.concatenate(pairs),
        "couplings": np.concatenate([np.zeros(0), *(form.couplings for form in forms)]),
        "offset": np.array([form.offset for form in forms], dtype=np.float64),
        "spins": np.array([form.spins for form in forms], dtype=bool),
        "maximise": np.array([form.maximise for form in forms], dtype=bool),
        "reference": np.array([form.reference for form in forms], dtype=np.float64),
    }
    if any(form.offset_rest for form in forms):
        rests = itertools.zip_longest(*(form.offset_rest for form in forms), fillvalue=0.0)
        arrays["offset_rest"] = np.array(list(rests), dtype=np.float64).T
    write_atomically(path, lambda file: save_npz(file, arrays))


def read_forms(path: str | os.PathLike) -> list[QuadraticForm]:
    """All models of an archive.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or a
        length that contradicts another; or a model is not valid.
    """
    arrays = read_npz(path, KEYS, (*KEYS, "offset_rest"))
    kinds = {"num_variables": "iu", "spins": "b", "maximise": "b", "offset": "fiub", "reference": "f"}
    count = _check_index(path, arrays, "pairs", "pair_ptr", kinds)
    names, num_variables, linear, ptr, pairs, couplings, *_ = (arrays[key] for key in KEYS)
    _check_array(path, "couplings", couplings, len(pairs), "fiub")
    if (num_variables < 0).any():
        raise FormatError(f"{path}: num_variables has a negative number; make the archive again")
    ends = np.cumsum([0, *num_variables.tolist()])
    _check_array(path, "linear", linear, int(ends[-1]), "fiub")
    rests = arrays.get("offset_rest", np.zeros((count, 0)))
    if rests.ndim != 2 or len(rests) != count or rests.dtype.kind not in "fiub":
        raise FormatError(f"{path}: offset_rest is {rests.dtype} of shape {rests.shape}; expected [{count}, K]")

    def form(k: int) -> QuadraticForm:
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        return QuadraticForm.from_arrays(
            str(names[k]),
            linear[ends[k] : ends[k + 1]],
            pairs[rows],
            couplings[rows],
            arrays["offset"][k],
            spins=bool(arrays["spins"][k]),
            maximise=bool(arrays["maximise"][k]),
            reference=float(arrays["reference"][k]),
            offset_rest=rests[k][rests[k] != 0],
        )

    return _made(f"{path}: model", range(count), form)


def _check_index(
    path, arrays: Mapping[str, np.ndarray], rows_key: str, ptr_key: str, kinds: Mapping[str, str]
) -> int:
    """Checks names, pairs and the pointer that assigns them to instances, and arrays [G]; returns G."""
    names, rows, ptr = (arrays[key] for key in ("names", rows_key, ptr_key))
    if names.ndim != 1 or names.dtype.kind != "U":
        raise FormatError(f"{path}: names is {names.dtype} of shape {names.shape}; expected text of shape [G]")
    for key in kinds.keys() & arrays.keys():
        _check_array(path, key, arrays[key], len(names), kinds[key])
    _check_array(path, ptr_key, ptr, len(names) + 1, "iu")
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise FormatError(
            f"{path}: {rows_key} is {rows.dtype} of shape {rows.shape}; expected integers of shape [rows, 2]"
        )
    if ptr[0] != 0 or ptr[-1] != len(rows) or (ptr[1:] < ptr[:-1]).any():
        raise FormatError(f"{path}: {ptr_key} must rise from 0 to the number of {rows_key}, {len(rows)}")
    return len(names)


def _check_array(path, key: str, array: np.ndarray, length: int, kinds: str) -> None:
    """Checks an array of integers (kinds `iu`), truth values (`b`) or numbers (`fiub`)."""
    if array.shape != (length,) or array.dtype.kind not in kinds:
        what = {"iu": "integers", "b": "truth values"}.get(kinds, "numbers")
        raise FormatError(
            f"{path}: {key} is {array.dtype} of shape {array.shape}; expected {what} of shape ({length},)"
        )


def _made(what: str, numbers: Iterable[int], make: Callable[[int], _One]) -> list[_One]:
    """The instances of some numbers, whose errors say which they are of."""
    found = []
    for k in numbers:
        with errors_of(f"{what} {k}"):
            found.append(make(k))
    return found
