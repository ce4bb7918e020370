"""The portable form of graphs and quadratic forms: NumPy `.npz` archives.

Arrays: `names [G]`, `num_nodes [G]`, `edge_ptr [G+1]`, `edges [E, 2]` (0-based; graph k owns the rows from
`edge_ptr[k]` up to `edge_ptr[k+1]`), optionally `edge_weight [E]` and `reference [G]` (best known objective;
NaN where there is none). Nothing in it is pickled, so an archive from a stranger is safe to open.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from sl_discs.errors import InputError
from sl_discs.files import read_npz, save_npz, write_atomically
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph

# Checks of the type and length of arrays in an `.npz` archive.


def check_names(path: str | os.PathLike, names: np.ndarray) -> int:
    """Number of names, one per instance.

    Raises:
      InputError: they are not text of shape [G].
    """
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InputError(f"{path}: names is {names.dtype} of shape {names.shape}; expected text of shape [G]")
    return len(names)


def check_array(path: str | os.PathLike, key: str, array: np.ndarray, shape: tuple[int, ...], kinds: str) -> None:
    """Checks an array of integers (kinds `iu`), truth values (`b`) or numbers (`fiub`).

    Raises:
      InputError: it has another type or shape.
    """
    if array.shape != shape or array.dtype.kind not in kinds:
        what = {"iu": "integers", "b": "truth values"}.get(kinds, "numbers")
        raise InputError(f"{path}: {key} is {array.dtype} of shape {array.shape}; expected {what} of shape {shape}")


def check_rows(path: str | os.PathLike, key: str, array: np.ndarray, pointer_key: str, pointer: np.ndarray) -> None:
    """Checks pairs of integers and the pointer that assigns them to instances.

    Raises:
      InputError: the pairs are not integers of shape [rows, 2], or the pointer does not rise from 0 to their number.
    """
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {key} is {array.dtype} of shape {array.shape}; expected integers of shape [rows, 2]"
        )
    if pointer[0] != 0 or pointer[-1] != len(array) or (pointer[1:] < pointer[:-1]).any():
        raise InputError(f"{path}: {pointer_key} must rise from 0 to the number of {key}, {len(array)}")


_REQUIRED = ("names", "num_nodes", "edge_ptr", "edges")


def read_archive(path: str | os.PathLike, start: int = 0, stop: int | None = None) -> list[Graph]:
    """Reads graphs start..stop-1 of an archive (all of them by default).

    The index arrays are checked in full, edges and weights only for the requested graphs.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or
        a length that contradicts another; a requested graph is not simple; or the range exceeds the archive.
    """
    arrays = read_npz(path, _REQUIRED, (*_REQUIRED, "edge_weight", "reference"))
    names, num_nodes, ptr, edges = (arrays[key] for key in _REQUIRED)
    count = _check_index(path, names, num_nodes, ptr, edges)
    weights = _optional(path, arrays, "edge_weight", len(edges))
    reference = _optional(path, arrays, "reference", count)
    stop = count if stop is None else stop
    if not 0 <= start <= stop <= count:
        raise InputError(f"{path}: graphs {start} to {stop} were asked for, but the archive holds {count}")
    graphs = []
    for k in range(start, stop):
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        try:
            graphs.append(
                Graph.from_arrays(
                    str(names[k]),
                    int(num_nodes[k]),
                    edges[rows],
                    None if weights is None else weights[rows],
                    None if reference is None else float(reference[k]),
                )
            )
        except InputError as error:
            raise InputError(f"{path}: graph {k}: {error}") from None
    return graphs


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
    graph has weights (edges of an unweighted graph get weight 1); `reference` is always written.
    """
    largest = max((graph.num_nodes for graph in graphs), default=0)
    edges = [np.zeros((0, 2), np.int32), *(graph.edges for graph in graphs)]
    arrays: dict[str, Any] = {
        "names": np.array([graph.name for graph in graphs], dtype=np.str_),
        "num_nodes": np.array([graph.num_nodes for graph in graphs], dtype=np.int32),
        "edge_ptr": np.cumsum([len(rows) for rows in edges], dtype=np.int64),
        "edges": np.concatenate(edges).astype(np.uint16 if largest < 2**16 else np.int32),
        "reference": np.array(
            [np.nan if graph.reference is None else graph.reference for graph in graphs], dtype=np.float64
        ),
    }
    if any(graph.weights is not None for graph in graphs):
        arrays["edge_weight"] = np.concatenate(
            [np.ones(graph.num_edges) if graph.weights is None else graph.weights for graph in graphs]
        )
    save_npz(file, arrays)


def _check_index(path, names, num_nodes, ptr, edges) -> int:
    """Checks the arrays that assign rows to graphs for consistency; returns the number of graphs."""
    count = check_names(path, names)
    check_array(path, "num_nodes", num_nodes, (count,), "iu")
    check_array(path, "edge_ptr", ptr, (count + 1,), "iu")
    check_rows(path, "edges", edges, "edge_ptr", ptr)
    return count


def _optional(path, arrays: dict[str, np.ndarray], key: str, length: int) -> np.ndarray | None:
    """An optional array of real numbers, checked for type and length."""
    array = arrays.get(key)
    if array is not None:
        check_array(path, key, array, (length,), "fiub")
    return array


# The portable form of quadratic models: one NumPy `.npz` archive that holds many, as `archive` does for graphs.
#
# Arrays: `names [G]`, `num_variables [G]`, `linear [sum of num_variables]` (model after model), `pair_ptr [G+1]`,
# `pairs [M, 2]` (0-based; model k owns the rows from `pair_ptr[k]` up to `pair_ptr[k+1]`), `couplings [M]`,
# `offset [G]`, `spins [G]` and `maximise [G]` (booleans), and `reference [G]` (best known value; NaN if there is
# none). Terms are stored as they were given, see `QuadraticForm`.

KEYS = (
    "names",
    "num_variables",
    "linear",
    "pair_ptr",
    "pairs",
    "couplings",
    "offset",
    "spins",
    "maximise",
    "reference",
)


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
        "reference": np.array(
            [np.nan if form.reference is None else form.reference for form in forms], dtype=np.float64
        ),
    }
    write_atomically(path, lambda file: save_npz(file, arrays))


def read_forms(path: str | os.PathLike) -> list[QuadraticForm]:
    """All models of an archive.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or a
        length that contradicts another; or a model is not valid.
    """
    arrays = read_npz(path, KEYS, KEYS)
    names, num_variables, linear, ptr, pairs, couplings, *_ = (arrays[key] for key in KEYS)
    count = check_names(path, names)
    for key, kinds in (
        ("num_variables", "iu"),
        ("spins", "b"),
        ("maximise", "b"),
        ("offset", "fiub"),
        ("reference", "f"),
    ):
        check_array(path, key, arrays[key], (count,), kinds)
    check_array(path, "pair_ptr", ptr, (count + 1,), "iu")
    check_rows(path, "pairs", pairs, "pair_ptr", ptr)
    check_array(path, "couplings", couplings, (len(pairs),), "fiub")
    if (num_variables < 0).any():
        raise InputError(f"{path}: num_variables has a negative number; make the archive again")
    ends = np.cumsum([0, *num_variables.tolist()])
    check_array(path, "linear", linear, (int(ends[-1]),), "fiub")
    forms = []
    for k in range(count):
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        try:
            forms.append(
                QuadraticForm.from_arrays(
                    str(names[k]),
                    linear[ends[k] : ends[k + 1]],
                    pairs[rows],
                    couplings[rows],
                    arrays["offset"][k],
                    spins=bool(arrays["spins"][k]),
                    maximise=bool(arrays["maximise"][k]),
                    reference=float(arrays["reference"][k]),
                )
            )
        except InputError as error:
            raise InputError(f"{path}: model {k}: {error}") from None
    return forms
