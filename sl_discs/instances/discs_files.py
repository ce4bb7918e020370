"""DISCS's own files: which of them make up a dataset, what each kind holds, and how graphs are read and written.

Most are pickles, which can run any code whose name their reader resolves. Here only the names of a short list
resolve: networkx graphs of versions 1 to 3 and their cached views, NumPy arrays, scalars and types, and plain
containers. Each resolves to a stand-in that accepts only data and cannot be altered; any other name is refused
without importing it. NumPy's own types would not do: in NumPy 2.4 an array of objects reads beyond the end of a list
that is too short, and a pickle can change the flags of a type. A pickle of at most 1 GiB is read; what it holds can
still take much memory and time.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import mmap
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sl_discs.errors import FormatError, errors_of
from sl_discs.files import open_regular, write_atomically
from sl_discs.instances.graph import Graph, PickledGraph, graph_from_networkx
from sl_discs.instances.graph_files import conflict_graph, read_cnf

if TYPE_CHECKING:
    import networkx as nx

Load = Callable[[], Graph]


@dataclasses.dataclass(frozen=True)
class DiscsFiles:
    """A dataset in DISCS's own form.

    Attributes:
      folder: its folder, relative to the data root.
      pattern: glob pattern of its file names; files are read in sorted order.
      read: yields a function for each graph of a file, which reads it if the format allows, so that graphs can be
        counted and skipped.
      pickles: the objects that a file of the given graphs holds, back to back; None if it is not written.
      per_file: the largest number of graphs in one file; None if one file holds all.
    """

    folder: str
    pattern: str
    read: Callable[[Path], Iterator[Load]]
    pickles: Callable[[Sequence[Graph]], Iterable[Any]] | None = None
    per_file: int | None = None

    def find(self, data_root: Path) -> list[Path]:
        """The dataset's files, sorted by name; empty if there are none."""
        return sorted(path for path in (data_root / self.folder).glob(self.pattern) if path.is_file())

    def load(self, files: list[Path], first: int, stop: int | None) -> tuple[list[Graph], int]:
        """Graphs first..stop-1 and the number of all graphs."""
        graphs, total = [], 0
        for path in files:
            for load in self.read(path):
                if total >= first and (stop is None or total < stop):
                    with errors_of(path):
                        graphs.append(load())
                total += 1
        return graphs, total

    def write(self, path: Path, graphs: Sequence[Graph]) -> Path:
        """Writes a file atomically, one object at a time, since networkx graphs take much more memory."""

        def write(file: BinaryIO) -> None:
            for item in self.pickles(graphs) if self.pickles else ():
                pickle.dump(item, file)

        return write_atomically(path, write)


def read_formula(path: Path) -> Iterator[Load]:
    """MIS `satlib`: one DIMACS formula per file."""
    yield lambda: conflict_graph(path.stem, read_cnf(path))


def read_single_graph(path: Path) -> Iterator[Load]:
    """MIS `ertest`: one pickled graph per file; nodes of a known solution carry `label` 1."""

    def load() -> Graph:
        graph = load_pickle(path)
        if not isinstance(graph, PickledGraph):
            raise FormatError(f"{path}: a {type(graph).__name__} where one networkx graph is expected")
        labels = (attributes.get("label") for attributes in graph.nodes.values() if isinstance(attributes, dict))
        size = sum(_number(path, label) for label in labels if label is not None)
        return graph_from_networkx(graph, path.stem, reference=size or None)

    yield load


def read_graph_list(path: Path) -> Iterator[Load]:
    """MIS `er_density`: one pickled list of graphs. No reference is known."""
    for k, graph in enumerate(_sequence(path, load_pickle(path), "graphs")):
        yield functools.partial(graph_from_networkx, graph, f"{path.name}[{k}]")


def read_cut_solutions(path: Path) -> Iterator[Load]:
    """MaxCut `er`, `ba`, `optsicom`: pickles back to back, each (weighted graph, (cut value, ...))."""
    for k, item in enumerate(iter_pickles(path)):
        graph, solution, *_ = _sequence(path, item, "a graph and a solution", 2)
        value, *_ = _sequence(path, solution, "the value of a solution", 1)
        reference = _number(path, value)
        yield functools.partial(graph_from_networkx, graph, f"{path.name}[{k}]", weighted=True, reference=reference)


def read_scored_graphs(path: Path) -> Iterator[Load]:
    """MaxClique `rb`: one pickled list of (clique number, graph)."""
    for k, item in enumerate(_sequence(path, load_pickle(path), "pairs")):
        value, graph, *_ = _sequence(path, item, "a clique number and a graph", 2)
        yield functools.partial(graph_from_networkx, graph, f"{path.name}[{k}]", reference=_number(path, value))


def read_graphs_and_scores(path: Path) -> Iterator[Load]:
    """MaxClique `twitter`: one pickled pair (graphs, clique numbers)."""
    graphs, values, *_ = _sequence(path, load_pickle(path), "graphs and clique numbers", 2)
    graphs, values = _sequence(path, graphs, "graphs"), _sequence(path, values, "clique numbers")
    if len(graphs) != len(values):
        raise FormatError(f"{path}: {len(graphs)} graphs, but {len(values)} clique numbers")
    for k, (graph, value) in enumerate(zip(graphs, values, strict=True)):
        yield functools.partial(graph_from_networkx, graph, f"{path.name}[{k}]", reference=_number(path, value))


def _sequence(path: Path, value: Any, what: str, least: int = 0) -> Any:
    if not isinstance(value, list | tuple | PickledArray):
        raise FormatError(f"{path}: a {type(value).__name__} where {what} should be; is it another dataset's file?")
    if len(value) < least:
        raise FormatError(f"{path}: {len(value)} items where {what} should be; is it another dataset's file?")
    return value


def _number(path: Path, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise FormatError(f"{path}: a reference value is a {type(value).__name__}, which is not a number") from None


def networkx_graph(graph: Graph, weighted: bool = False) -> nx.Graph:
    """The networkx graph, nodes and edges in order; if `weighted`, with the attribute `weight`, 1.0 by default."""
    import networkx as nx

    result = nx.Graph()
    result.add_nodes_from(range(graph.num_nodes))
    edges = graph.edges.tolist()  # plain integers, so that the pickles can be read without NumPy
    if weighted:
        weights = [1.0] * len(edges) if graph.weights is None else graph.weights.tolist()
        result.add_weighted_edges_from((u, v, weight) for (u, v), weight in zip(edges, weights, strict=True))
    else:
        result.add_edges_from(edges)
    return result


def _reference(graph: Graph) -> float:
    return float(graph.reference or 1.0)


def plain_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    """One list of graphs."""
    yield [networkx_graph(graph) for graph in graphs]


def labelled_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    """Graphs back to back; readers add up the labels of the nodes."""
    for graph in graphs:
        result = networkx_graph(graph)
        if graph.reference:
            # Which nodes are in the best known set is not known here.
            result.add_node(0, label=graph.reference)
        yield result


def cut_solutions(graphs: Sequence[Graph]) -> Iterable[Any]:
    """Pairs of a weighted graph and (cut value,)."""
    return ((networkx_graph(graph, weighted=True), (_reference(graph),)) for graph in graphs)


def scored_graphs(graphs: Sequence[Graph]) -> Iterable[Any]:
    """One list of (reference, graph)."""
    yield [(_reference(graph), networkx_graph(graph)) for graph in graphs]


def graphs_and_scores(graphs: Sequence[Graph]) -> Iterable[Any]:
    """One pair (graphs, references)."""
    yield [networkx_graph(graph) for graph in graphs], [_reference(graph) for graph in graphs]


# Pickles.

# Of one pickle, of which a file may have many: lists of all graphs of a dataset take up to some hundred MB.
_LARGEST_BYTES = 2**30


class _Improper(PickledGraph):
    """A directed graph or multigraph, which is read so that the error can say so."""

    proper = False


class _Ignored:
    """An object whose contents do not matter, such as a cached view of a graph."""

    def __setstate__(self, state: Any) -> None:
        pass


class PickledDtype:
    """A NumPy dtype of plain numbers or text; structured and object types are refused."""

    def __init__(self, code: str | bytes, align: bool = False, copy: bool = False) -> None:
        code = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(code, str) or not re.fullmatch(r"[biufc]\d{1,2}|[SU]\d{1,6}", code):
            raise pickle.UnpicklingError(f"NumPy type {code!r}; only plain numbers and text are read")
        self._code = code
        self._order = "="

    def __setstate__(self, state: tuple) -> None:
        # The code determines everything but the byte order of a plain type.
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError(f"NumPy byte order {order!r}")
        self._order = order

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self._order + self._code)


class PickledArray(np.ndarray):
    """A NumPy array whose state is checked before NumPy sees it."""

    def __setstate__(self, state: tuple) -> None:
        _, shape, dtype, fortran, raw = state
        super().__setstate__((shape, _plain(dtype), bool(fortran), _raw_bytes(raw)))  # type: ignore[arg-type]  # a version is optional


class _Sealed:
    """A function that a pickle may call but not alter."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable | None) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)  # type: ignore[misc]  # a TypeError where there is none

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("an attempt to alter a function")


def _rebuild_object(cls: type, base: type, state: Any) -> Any:
    """`copyreg._reconstructor` of protocols 0 and 1, restricted to the classes above."""
    if base is not object or state is not None or not isinstance(cls, type):
        raise pickle.UnpicklingError("an object of an unknown form")
    if not issubclass(cls, PickledGraph | _Ignored):
        raise pickle.UnpicklingError(f"an object of type {cls.__name__} without its contents")
    return cls()


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """`_codecs.encode`, as protocols 0 to 2 use it for bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


# Protocols 0 to 2 make empty bytes by a call; a length or contents are not accepted.
_BYTES = _Sealed(lambda: b"")
# Stand-in for `numpy.ndarray`, which a pickle passes as an argument but has no reason to call.
_NDARRAY = _Sealed(None)


def _rebuild_array(cls: Any, shape: tuple, typecode: bytes | str) -> PickledArray:
    """An array without its state yet (`numpy.core.multiarray._reconstruct`)."""
    if cls is not _NDARRAY:
        raise pickle.UnpicklingError("an array of an unknown class")
    return PickledArray((0,), dtype=np.uint8)


def _array_from_buffer(buffer: bytes, dtype: PickledDtype, shape: tuple, order: Any) -> np.ndarray:
    """An array from its bytes (`numpy.core.numeric._frombuffer`, protocol 5)."""
    return np.frombuffer(_raw_bytes(buffer), dtype=_plain(dtype)).reshape(shape, order=order)


def _scalar_from_bytes(dtype: PickledDtype, raw: bytes | str = b"") -> np.generic:
    """A NumPy scalar from its bytes (`numpy.core.multiarray.scalar`)."""
    dtype, raw = _plain(dtype), _raw_bytes(raw)
    if len(raw) != dtype.itemsize:
        raise pickle.UnpicklingError(f"a NumPy scalar of {len(raw)} bytes; {dtype} takes {dtype.itemsize}")
    return np.frombuffer(raw, dtype=dtype)[0]


def _plain(dtype: Any) -> np.dtype:
    if not isinstance(dtype, PickledDtype):
        raise pickle.UnpicklingError("an array without a NumPy type")
    return dtype.dtype


def _raw_bytes(raw: Any) -> bytes:
    """The bytes of an array; a number is refused, since `bytes` would turn it into that many zeros."""
    if isinstance(raw, str):
        return raw.encode("latin1")
    if not isinstance(raw, bytes | bytearray | pickle.PickleBuffer):
        raise pickle.UnpicklingError(f"an array whose contents are a {type(raw).__name__}")
    return bytes(raw)


_GRAPHS = {
    ("networkx.classes.graph", "Graph"): PickledGraph,
    ("networkx.classes.ordered", "OrderedGraph"): PickledGraph,
    ("networkx.classes.digraph", "DiGraph"): _Improper,
    ("networkx.classes.multigraph", "MultiGraph"): _Improper,
    ("networkx.classes.multidigraph", "MultiDiGraph"): _Improper,
}
_VIEWS = {
    (f"networkx.classes.{module}", name): _Ignored
    for module, names in (
        ("reportviews", "NodeView NodeDataView EdgeView EdgeDataView DegreeView"),
        ("coreviews", "AtlasView AdjacencyView"),
    )
    for name in names.split()
}
_NUMPY = {("numpy", "ndarray"): _NDARRAY, ("numpy", "dtype"): PickledDtype} | {
    (f"numpy.{core}.{module}", name): _Sealed(function)
    for core in ("core", "_core")
    for module, name, function in (
        ("multiarray", "_reconstruct", _rebuild_array),
        ("multiarray", "scalar", _scalar_from_bytes),
        ("numeric", "_frombuffer", _array_from_buffer),
    )
}
_PYTHON = {
    (module, kind.__name__): kind
    for module in ("builtins", "__builtin__")
    for kind in (dict, list, tuple, set, frozenset, object)
} | {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "bytes"): _BYTES,
    ("__builtin__", "bytes"): _BYTES,
    ("_codecs", "encode"): _Sealed(_encode_latin1),
    ("copyreg", "_reconstructor"): _Sealed(_rebuild_object),
    ("copy_reg", "_reconstructor"): _Sealed(_rebuild_object),
}
_ALLOWED = _GRAPHS | _VIEWS | _NUMPY | _PYTHON

# Exceptions that the unpickler raises on a damaged stream (the pickle module's documentation names some of these).
_DAMAGE = (
    pickle.UnpicklingError, EOFError, AttributeError, ImportError, LookupError, TypeError, ValueError, OverflowError,
    MemoryError, RecursionError,
)  # fmt: skip


class _Refused(Exception):
    """The stream names something that is not on the list."""


class _Reader(pickle.Unpickler):
    """An unpickler that resolves only the names on the list."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _Refused(ascii(f"{module}.{name}"))  # the stream may hold line breaks and escapes
        return _ALLOWED[module, name]


def iter_pickles(path: str | os.PathLike) -> Iterator[Any]:
    """Yields the objects of a file that holds pickles back to back, as DISCS's MaxCut files do.

    Graphs are returned as `PickledGraph`. The file is read as the iterator advances and stays open meanwhile.

    Raises:
      InputError: the file is missing, empty, cut short or damaged, or names something that is not allowed.
    """
    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            raise FormatError(f"{path}: an empty file, not a pickle; copy it again")
        file.seek(0)
        while file.tell() < size:
            yield load_next(path, file)


def load_pickle(path: str | os.PathLike) -> Any:
    """The single object of a pickle file.

    Raises:
      InputError: as `iter_pickles`, or the file holds more than one pickle.
    """
    objects = list(iter_pickles(path))
    if len(objects) > 1:
        raise FormatError(f"{path}: {len(objects)} pickles in a file that should hold one")
    return objects[0]


def load_next(path: str | os.PathLike, file: BinaryIO) -> Any:
    """The next pickle of an open file; errors as `iter_pickles`."""
    start = file.tell()
    first = start - start % mmap.ALLOCATIONGRANULARITY
    size = os.fstat(file.fileno()).st_size - first
    try:
        # A length in the stream that exceeds what is mapped takes no memory.
        with mmap.mmap(file.fileno(), min(size, _LARGEST_BYTES), access=mmap.ACCESS_READ, offset=first) as data:
            data.seek(start - first)
            found = _Reader(data, encoding="latin1").load()
            file.seek(first + data.tell())
            return found
    except _Refused as refused:
        raise FormatError(
            f"{path}: refused: the pickle asks for {refused}, which graph data does not need; "
            "do not trust this file, or save its graphs again as an .npz archive"
        ) from None
    except _DAMAGE as error:
        if size > _LARGEST_BYTES and isinstance(error, EOFError | pickle.UnpicklingError):
            raise FormatError(
                f"{path}: a pickle of more than {_LARGEST_BYTES >> 20} MiB; save its graphs as an .npz archive"
            ) from None
        raise FormatError(f"{path}: not a readable pickle of graphs ({error}); copy or make it again") from error
