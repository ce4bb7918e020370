"""The portable form of graphs and quadratic forms: NumPy `.npz` archives, many instances in each.

Nothing in them is pickled, so an archive from a stranger is safe to open. The tables below list the arrays, with the
kinds of their types and their shapes: G instances with N nodes or variables and E edges or pairs in all, instance
after instance. Instance k owns the rows of `edges` and `pairs` (both count from 0) from `edge_ptr[k]` up to
`edge_ptr[k+1]`, and likewise `pair_ptr`. A `reference` is the best known objective, NaN where there is none.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Int64

from sl_discs.errors import FormatError, InputError, errors_of
from sl_discs.files import read_npz, save_npz, write_atomically
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph

GRAPH_ARRAYS = {
    "names": ("U", "G"),
    "num_nodes": ("iu", "G"),
    "edge_ptr": ("iu", "G+1"),
    "edges": ("iu", "E 2"),
    "edge_weight": ("iufb", "E"),
    "node_weight": ("iufb", "N"),
    "reference": ("iufb", "G"),
}
FORM_ARRAYS = {
    "names": ("U", "G"),
    "num_variables": ("iu", "G"),
    "pair_ptr": ("iu", "G+1"),
    "pairs": ("iu", "E 2"),
    "linear": ("iufb", "N"),
    "couplings": ("iufb", "E"),
    "offset": ("iufb", "G"),
    "spins": ("b", "G"),
    "maximise": ("b", "G"),
    "reference": ("iufb", "G"),
}
_REQUIRED = ("names", "num_nodes", "edge_ptr", "edges")
_KINDS = {"U": "text", "iu": "integers", "iufb": "numbers", "b": "truth values"}


def _read(
    path: str | os.PathLike, kinds: Mapping[str, tuple[str, str]], required: Collection[str]
) -> tuple[dict[str, np.ndarray], Int64[np.ndarray, "G+1"]]:
    """Returns the arrays of an archive, whose types and shapes agree, and where the nodes of each instance begin."""
    arrays = read_npz(path, required, kinds)
    for name, array in arrays.items():
        kind, shape = kinds[name]
        if array.dtype.kind not in kind or array.ndim != 1 + (shape == "E 2"):
            raise FormatError(
                f"{path}: {name} is {array.dtype} of shape {array.shape}; expected {_KINDS[kind]} of shape [{shape}]"
            )
    sizes, ptr, rows = (arrays[name] for name in tuple(kinds)[1:4])
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    if (sizes < 0).any():
        raise FormatError(f"{path}: a negative number of nodes or variables; make the archive again")
    count, num_rows = len(arrays["names"]), len(rows)
    shapes = {"G": (count,), "G+1": (count + 1,), "E": (num_rows,), "E 2": (num_rows, 2), "N": (int(starts[-1]),)}
    for name, array in arrays.items():
        if array.shape != shapes[kinds[name][1]]:
            raise FormatError(f"{path}: {name} has shape {array.shape}; expected {shapes[kinds[name][1]]}")
    if ptr[0] != 0 or ptr[-1] != num_rows or (ptr[1:] < ptr[:-1]).any():
        raise FormatError(f"{path}: {tuple(kinds)[2]} must rise from 0 to {num_rows}; make the archive again")
    return arrays, starts


def read_archive(path: str | os.PathLike, start: int = 0, stop: int | None = None) -> list[Graph]:
    """Reads graphs start..stop-1 of an archive (all of them by default).

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or
        a length that contradicts another; a requested graph is not simple; or the range exceeds the archive.
    """
    arrays, nodes = _read(path, GRAPH_ARRAYS, _REQUIRED)
    names, num_nodes, ptr, edges = (arrays[key] for key in _REQUIRED)
    weights, node_weights, reference = (arrays.get(key) for key in ("edge_weight", "node_weight", "reference"))
    stop = len(names) if stop is None else stop
    if not 0 <= start <= stop <= len(names):
        raise InputError(f"{path}: graphs {start} to {stop} were asked for, but the archive holds {len(names)}")
    found = []
    for k in range(start, stop):
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        with errors_of(f"{path}: graph {k}"):
            graph = Graph.from_arrays(
                str(names[k]),
                int(num_nodes[k]),
                edges[rows],
                None if weights is None else weights[rows],
                None if reference is None else float(reference[k]),
                None if node_weights is None else node_weights[nodes[k] : nodes[k + 1]],
            )
        found.append(graph)
    return found


def count_graphs(path: str | os.PathLike) -> int:
    """Returns the number of graphs in an archive, without reading their edges; InputError as `read_archive`."""
    return len(read_npz(path, _REQUIRED, ("names",))["names"])


def write_archive(path: str | os.PathLike, graphs: Sequence[Graph]) -> None:
    """Writes graphs as an archive; a reader never sees a half-written file.

    Edges take two bytes per index if every graph has fewer than 65,536 nodes. `edge_weight` is written if any
    graph has weights (edges of an unweighted graph get weight 1), and `node_weight` likewise; `reference` is always
    written.

    Raises:
      InputError: the file cannot be written.
    """
    largest = max((graph.num_nodes for graph in graphs), default=0)
    edges = [np.zeros((0, 2), np.int32), *(graph.edges for graph in graphs)]
    arrays = {
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
    write_atomically(path, lambda file: save_npz(file, arrays))


def read_forms(path: str | os.PathLike) -> list[QuadraticForm]:
    """Reads all models of an archive, with their terms as they were given.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or a
        length that contradicts another; or a model is not valid.
    """
    arrays, variables = _read(path, FORM_ARRAYS, FORM_ARRAYS)
    ptr = arrays["pair_ptr"]
    found = []
    for k, name in enumerate(arrays["names"]):
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        with errors_of(f"{path}: model {k}"):
            form = QuadraticForm.from_arrays(
                str(name),
                arrays["linear"][variables[k] : variables[k + 1]],
                arrays["pairs"][rows],
                arrays["couplings"][rows],
                arrays["offset"][k],
                spins=bool(arrays["spins"][k]),
                maximise=bool(arrays["maximise"][k]),
                reference=float(arrays["reference"][k]),
            )
        found.append(form)
    return found


def write_forms(path: str | os.PathLike, forms: Sequence[QuadraticForm]) -> None:
    """Writes models as an archive, bit by bit; a reader never sees a half-written file.

    Raises:
      InputError: the file cannot be written.
    """
    pairs = [np.zeros((0, 2), np.int32), *(form.pairs for form in forms)]
    arrays = {
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
    write_atomically(path, lambda file: save_npz(file, arrays))
