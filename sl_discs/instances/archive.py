"""The portable form of graphs and quadratic forms: NumPy `.npz` archives, many instances in each.

Nothing in them is pickled, so an archive from a stranger is safe to open. The tables below list the
arrays: what of the instances each holds, the kinds of its type, and its shape, with G instances of
N nodes or variables and E edges or pairs in all, instance after instance. Instance k owns the rows
of `edges` and `pairs` (both count from 0) from `edge_ptr[k]` up to `edge_ptr[k+1]`, and likewise
`pair_ptr`. A `reference` is the best known objective, NaN where there is none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph, check_isolated
from sl_discs.support.documents import read_npz, save_npz
from sl_discs.support.errors import FormatError, InputError, errors_of
from sl_discs.support.files import write_atomically

# Of each array: the attribute, kinds of NumPy types, and the shape. The second, third and fourth
# arrays are the sizes, where rows begin, and the rows.
_Table = Mapping[str, tuple[str, str, str]]
GRAPH_ARRAYS: _Table = {
    "names": ("name", "U", "G"),
    "num_nodes": ("num_nodes", "iu", "G"),
    "edge_ptr": ("", "iu", "G+1"),
    "edges": ("edges", "iu", "E 2"),
    "edge_weight": ("weights", "iufb", "E"),
    "node_weight": ("node_weights", "iufb", "N"),
    "reference": ("reference", "iufb", "G"),
    "generated": ("generated", "b", "G"),
}
FORM_ARRAYS: _Table = {
    "names": ("name", "U", "G"),
    "num_variables": ("num_variables", "iu", "G"),
    "pair_ptr": ("", "iu", "G+1"),
    "pairs": ("pairs", "iu", "E 2"),
    "linear": ("linear", "iufb", "N"),
    "couplings": ("couplings", "iufb", "E"),
    "offset": ("offset", "iufb", "G"),
    "spins": ("spins", "b", "G"),
    "maximise": ("maximise", "b", "G"),
    "reference": ("reference", "iufb", "G"),
}
_GRAPHS_NEED = ("names", "num_nodes", "edge_ptr", "edges")
_KINDS: Mapping[str, tuple[str, Any]] = {
    "U": ("text", np.str_),
    "iu": ("integers", np.int32),
    "iufb": ("numbers", np.float64),
    "b": ("truth values", np.bool_),
}


def _read(path: str | os.PathLike, table: _Table) -> list[dict[str, Any]]:
    """Returns the parts of each instance of an archive, whose types and shapes agree, by
    attribute.
    """
    arrays = read_npz(path, _GRAPHS_NEED if table is GRAPH_ARRAYS else table, table)
    for name, array in arrays.items():
        _, kind, shape = table[name]
        if array.dtype.kind not in kind or array.ndim != 1 + (shape == "E 2"):
            expected = f"{_KINDS[kind][0]} of shape [{shape}]"
            raise FormatError(
                f"{path}: {name} is {array.dtype} of shape {array.shape}; expected {expected}"
            )
    sizes, ptr, rows = (arrays[name] for name in tuple(table)[1:4])
    if (sizes < 0).any():
        raise FormatError(
            f"{path}: a negative number of nodes or variables; make the archive again"
        )
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    count = len(arrays["names"])
    if count == 0:
        raise FormatError(f"{path}: an archive without a graph or model; make the archive again")
    total = len(rows)
    shapes = {
        "G": (count,),
        "G+1": (count + 1,),
        "E": (total,),
        "E 2": (total, 2),
        "N": (int(starts[-1]),),
    }
    for name, array in arrays.items():
        if array.shape != (shape_of := shapes[table[name][2]]):
            raise FormatError(f"{path}: {name} has shape {array.shape}; expected {shape_of}")
    if ptr[0] != 0 or ptr[-1] != total or (ptr[1:] < ptr[:-1]).any():
        raise FormatError(
            f"{path}: {tuple(table)[2]} must rise from 0 to {total}; make the archive again"
        )

    def part(array: np.ndarray, shape: str, k: int) -> Any:
        bounds = starts if shape == "N" else ptr
        return array[k].item() if shape == "G" else array[int(bounds[k]) : int(bounds[k + 1])]

    columns = [(*table[name], array) for name, array in arrays.items() if table[name][0]]
    return [
        {field: part(array, shape, k) for field, _, shape, array in columns} for k in range(count)
    ]


def _write(path: str | os.PathLike, table: _Table, instances: Sequence[Any]) -> None:
    """Writes instances; an array of weights that none of them has is left out, and otherwise
    missing ones are 1.
    """
    of_sizes, of_starts, of_rows = tuple(table)[1:4]
    arrays: dict[str, Any] = {
        of_starts: np.cumsum([0, *(len(getattr(instance, of_rows)) for instance in instances)])
    }
    for name, (field, kind, shape) in table.items():
        parts = [getattr(instance, field) for instance in instances if field]
        if shape == "G":
            arrays[name] = np.array(parts, _KINDS[kind][1])  # None becomes NaN
        elif field and (
            any(part is not None for part in parts) or name in _GRAPHS_NEED or table is FORM_ARRAYS
        ):
            lengths = arrays[of_sizes] if shape == "N" else np.diff(arrays[of_starts])
            parts = [
                np.ones(length) if part is None else part
                for part, length in zip(parts, lengths, strict=True)
            ]
            empty = np.zeros((0, 2) if shape == "E 2" else 0, _KINDS[kind][1])
            arrays[name] = np.concatenate([empty, *parts])
    if max(arrays[of_sizes], default=0) < 2**16:
        arrays[of_rows] = arrays[of_rows].astype(np.uint16)
    write_atomically(path, lambda file: save_npz(file, arrays))


def read_archive(path: str | os.PathLike, start: int = 0, stop: int | None = None) -> list[Graph]:
    """Reads graphs start..stop-1 of an archive (all of them by default).

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the
        wrong type or a length that contradicts another; a requested graph is not simple; or the
        range exceeds the archive.
    """
    parts = _read(path, GRAPH_ARRAYS)
    stop = len(parts) if stop is None else stop
    if not 0 <= start <= stop <= len(parts):
        raise InputError(
            f"{path}: graphs {start} to {stop} were asked for, but the archive holds {len(parts)}"
        )
    graphs = []
    for k in range(start, stop):
        with errors_of(f"{path}: graph {k}"):
            graph = Graph.from_arrays(**parts[k])
            check_isolated(graph.name, graph.num_nodes, graph.edges.nbytes, "correct num_nodes")
        graphs.append(graph)
    return graphs


def count_graphs(path: str | os.PathLike) -> int:
    """Returns the number of graphs in an archive, without reading their edges; InputError as
    `read_archive`.
    """
    return len(read_npz(path, _GRAPHS_NEED, ("names",))["names"])


def write_archive(path: str | os.PathLike, graphs: Sequence[Graph]) -> None:
    """Writes graphs as an archive; a reader never sees a half-written file.

    Edges take two bytes per index if every graph has fewer than 65,536 nodes. `edge_weight` is
    written if any graph has weights (edges of an unweighted graph get weight 1), and `node_weight`
    likewise; `reference` is always written.

    Raises:
      InputError: the file cannot be written.
    """
    _write(path, GRAPH_ARRAYS, graphs)


def read_forms(path: str | os.PathLike) -> list[QuadraticForm]:
    """Reads all models of an archive, with their terms as they were given; InputError as
    `read_archive`.
    """
    forms = []
    for k, parts in enumerate(_read(path, FORM_ARRAYS)):
        del parts["num_variables"]
        with errors_of(f"{path}: model {k}"):
            forms.append(QuadraticForm.from_arrays(**parts))
    return forms


def write_forms(path: str | os.PathLike, forms: Sequence[QuadraticForm]) -> None:
    """Writes models as an archive, with the bits of their numbers; errors as of `write_archive`."""
    _write(path, FORM_ARRAYS, forms)
