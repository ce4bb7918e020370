"""DISCS's own files: which of them make up a dataset, what each kind holds, and how graphs are read
and written.

Most are pickles, which can run any code whose name their reader resolves. Here only the names of a
short list resolve: networkx graphs of versions 1 to 3 and their cached views, NumPy arrays, scalars
and types, and plain containers. Each resolves to a stand-in that accepts only data and cannot be
altered; any other name is refused without importing it. NumPy's own types would not do: in NumPy
2.4 an array of objects reads beyond the end of a list that is too short, and a pickle can change
the flags of a type.
"""

from __future__ import annotations

import collections
import dataclasses
import mmap
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from sl_discs.instances.graph import Graph, PickledGraph, graph_from_networkx
from sl_discs.instances.graph_files import conflict_graph, read_cnf
from sl_discs.support.errors import FormatError, InputError, errors_of
from sl_discs.support.files import open_regular, write_atomically

if TYPE_CHECKING:
    import networkx as nx

# A graph of networkx and its reference, or None.
Record = tuple[Any, float | None]


class PickleLayout(NamedTuple):
    """How the pickles of a file, which may stand back to back, hold graphs and references.

    Attributes:
      read: graphs and references in the objects of a file.
      write: the objects of a file of graphs; an unknown reference, or 0, by which DISCS would
        divide, is 1 there.
    """

    read: Callable[[Iterator[Any]], Iterable[Record]]
    write: Callable[[Iterable[Record]], Iterable[Any]]


def _labelled(graph: nx.Graph, reference: float | None) -> nx.Graph:
    """Gives the reference to the first node as its label, as nodes of a known solution carry
    `label` 1.
    """
    if reference:
        graph.add_node(0, label=reference)
    return graph


# MIS, one graph a file: the reference is the sum of labels.
SINGLE = PickleLayout(
    lambda objects: [
        (
            graph,
            sum(float(data["label"]) for data in graph.nodes.values() if "label" in data) or None,
        )
        for (graph,) in [tuple(objects)]
    ],
    lambda pairs: (_labelled(graph, reference) for graph, reference in pairs),
)
# MIS: one list of graphs, without references.
LISTED = PickleLayout(
    lambda objects: [(graph, None) for (graphs,) in [tuple(objects)] for graph in graphs],
    lambda pairs: [[graph for graph, _ in pairs]],
)
# MaxCut: pairs of a weighted graph and a solution, whose first item is its cut.
CUTS = PickleLayout(
    lambda objects: ((graph, solution[0]) for graph, solution, *_ in objects),
    lambda pairs: ((graph, (reference or 1.0,)) for graph, reference in pairs),
)
# MaxClique, the RB set: one list of clique numbers and graphs.
SCORED = PickleLayout(
    lambda objects: [(graph, value) for (pairs,) in [tuple(objects)] for value, graph, *_ in pairs],
    lambda pairs: [[(reference or 1.0, graph) for graph, reference in pairs]],
)
# MaxClique, Twitter: one list of graphs, and one of clique numbers.
COLUMNS = PickleLayout(
    lambda objects: [
        pair for (lists,) in [tuple(objects)] for pair in zip(*lists[:2], strict=True)
    ],
    lambda pairs: [
        tuple(
            map(list, zip(*((graph, reference or 1.0) for graph, reference in pairs), strict=True))
        )
    ],
)


@dataclasses.dataclass(frozen=True)
class DiscsFiles:
    """A dataset in DISCS's own form.

    Attributes:
      folder: its folder, relative to the data root.
      pattern: glob pattern of its file names; files are read in sorted order.
      layout: of the pickles in a file; None: each file is a formula, and none is written.
      weighted: whether edges have weights.
      per_file: the largest number of graphs in one file; None if one file holds all.
    """

    folder: str
    pattern: str
    layout: PickleLayout | None = None
    weighted: bool = False
    per_file: int | None = None

    def find(self, data_root: Path) -> list[Path]:
        """Returns the dataset's files, sorted by name; empty if there are none."""
        return sorted(
            path for path in (data_root / self.folder).glob(self.pattern) if path.is_file()
        )

    def load(self, files: list[Path], first: int, stop: int | None) -> tuple[list[Graph], int]:
        """Returns graphs first..stop-1 and the number of all graphs."""
        graphs = []
        total = 0
        for path in files:
            for index, (graph, reference) in enumerate(self._records_of(path)):
                if total >= first and (stop is None or total < stop):
                    name = path.stem if self.per_file == 1 else f"{path.name}[{index}]"
                    with errors_of(path):
                        if self.layout is None:
                            loaded = conflict_graph(path.stem, read_cnf(path))
                        else:
                            loaded = graph_from_networkx(graph, name, self.weighted, reference)
                    graphs.append(
                        dataclasses.replace(loaded, generated=bool(_mark(graph).get("generated")))
                    )
                total += 1
        return graphs, total

    def _records_of(self, path: Path) -> Iterator[Record]:
        if self.layout is None:
            yield None, None
            return
        try:
            for graph, value in self.layout.read(iter_pickles(path)):
                value = _mark(graph).get("reference", value)
                yield graph, None if value is None else float(value)
        except InputError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise FormatError(
                f"{path}: not of the form of {self.folder} ({error}); is it another file?"
            ) from error

    def write(self, path: Path, graphs: Sequence[Graph]) -> Path:
        """Writes a file atomically, one object at a time, since networkx graphs take much more
        memory.
        """
        pairs = (
            (networkx_graph(graph, self.weighted), graph.reference and float(graph.reference))
            for graph in graphs
        )

        def write(file: BinaryIO) -> None:
            for item in self.layout.write(pairs) if self.layout else ():
                pickle.dump(item, file)

        return write_atomically(path, write)


# The attribute of a graph, which DISCS does not read, for what its files have no place for: the
# reference (None where DISCS is given a placeholder), and whether the graph was generated.
_MARK = "sl_discs"


def _mark(graph: Any) -> dict[str, Any]:
    """Returns what `networkx_graph` has written into the graph's attribute, if it is one of its
    graphs.
    """
    mark = getattr(graph, "graph", {}).get(_MARK)
    return mark if isinstance(mark, dict) else {}


def networkx_graph(graph: Graph, weighted: bool = False) -> nx.Graph:
    """Returns the networkx graph, nodes and edges in order; if `weighted`, edges have a `weight`,
    by default 1.0.
    """
    import networkx as nx

    result = nx.Graph()
    reference = None if graph.reference is None else float(graph.reference)
    result.graph[_MARK] = {"reference": reference, "generated": graph.generated}
    result.add_nodes_from(range(graph.num_nodes))
    edges = graph.edges.tolist()  # plain integers, so that the pickles can be read without NumPy
    if weighted:
        weights = [1.0] * len(edges) if graph.weights is None else graph.weights.tolist()
        result.add_weighted_edges_from(
            (u, v, weight) for (u, v), weight in zip(edges, weights, strict=True)
        )
    else:
        result.add_edges_from(edges)
    return result


# Pickles.


class _Improper(PickledGraph):
    """A directed graph or multigraph, which is read so that the error can say so."""

    proper = False


class _Ignored:
    """An object whose contents do not matter, such as a cached view of a graph."""

    def __setstate__(self, state: Any) -> None:
        pass


class _Dtype:
    """A NumPy type of plain numbers or text; structured and object types are refused."""

    def __init__(self, code: str | bytes, align: bool = False, copy: bool = False) -> None:
        code = code.decode("ascii") if isinstance(code, bytes) else code
        # Text of no length would allow arrays of any size without contents.
        if not isinstance(code, str) or not re.fullmatch(r"[biufc]\d{1,2}|[SU][1-9]\d{0,5}", code):
            raise pickle.UnpicklingError(
                f"NumPy type {code!r}; only plain numbers and text are read"
            )
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        # The code determines everything but the byte order of a plain type.
        order: Any = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        self.dtype = self.dtype.newbyteorder(order)

    def array(self, raw: Any) -> np.ndarray:
        """Returns the numbers in some bytes; a length is refused, which `bytes` would turn into
        that many zeros.
        """
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(raw, bytes | bytearray | pickle.PickleBuffer):
            raise pickle.UnpicklingError(f"an array whose contents are a {type(raw).__name__}")
        return np.frombuffer(memoryview(raw), self.dtype)


class PickledArray(np.ndarray):
    """A NumPy array whose state is checked before NumPy sees it."""

    def __setstate__(self, state: tuple) -> None:
        _, shape, dtype, fortran, raw = state
        super().__setstate__((shape, dtype.dtype, bool(fortran), dtype.array(raw).tobytes()))  # type: ignore[arg-type]


class _Sealed:
    """A function that a pickle may call but not alter."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("an attempt to alter a function")


def _new_array(*args: Any) -> PickledArray:
    """Returns an array without its state yet (`numpy.core.multiarray._reconstruct`)."""
    return PickledArray((0,), dtype=np.uint8)


def _array_from_buffer(buffer: Any, dtype: _Dtype, shape: tuple, order: Any) -> np.ndarray:
    """Returns an array from its bytes (`numpy.core.numeric._frombuffer`, protocol 5)."""
    return dtype.array(buffer).reshape(shape, order=order)


def _scalar(dtype: _Dtype, raw: bytes | str = b"") -> np.generic:
    """Returns a NumPy scalar from its bytes (`numpy.core.multiarray.scalar`)."""
    (value,) = dtype.array(raw)
    return value


def _new_object(cls: type, base: type, state: Any) -> Any:
    """Returns a graph or view without its state (`copyreg._reconstructor` of protocols 0 and 1)."""
    if not (isinstance(cls, type) and issubclass(cls, PickledGraph | _Ignored)):
        raise pickle.UnpicklingError("an object of an unknown form")
    return cls()


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Returns bytes as protocols 0 to 2 write them (`_codecs.encode`)."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def _refuse_call(*args: Any) -> None:
    raise pickle.UnpicklingError("a call of a type")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("networkx.classes.graph", "Graph"): PickledGraph,
    ("networkx.classes.ordered", "OrderedGraph"): PickledGraph,
    ("networkx.classes.digraph", "DiGraph"): _Improper,
    ("networkx.classes.multigraph", "MultiGraph"): _Improper,
    ("networkx.classes.multidigraph", "MultiDiGraph"): _Improper,
    ("networkx.classes.coreviews", "AtlasView"): _Ignored,
    ("networkx.classes.coreviews", "AdjacencyView"): _Ignored,
    ("numpy", "ndarray"): _Sealed(_refuse_call),
    ("numpy", "dtype"): _Dtype,
    ("collections", "OrderedDict"): _Sealed(collections.OrderedDict),
    # Of protocols 0 to 2, with neither a length nor contents.
    ("builtins", "bytes"): _Sealed(lambda: b""),
    ("_codecs", "encode"): _Sealed(_encode),
    ("copyreg", "_reconstructor"): _Sealed(_new_object),
}
for _kind in (set, frozenset):
    _ALLOWED["builtins", _kind.__name__] = _Sealed(_kind)
for _name in ("dict", "list", "tuple", "object"):  # named as factories and bases alone
    _ALLOWED["builtins", _name] = _Sealed(_refuse_call)
for _view in ("NodeView", "NodeDataView", "EdgeView", "EdgeDataView", "DegreeView"):
    _ALLOWED["networkx.classes.reportviews", _view] = _Ignored
for _core in ("numpy.core", "numpy._core"):
    _ALLOWED[f"{_core}.multiarray", "_reconstruct"] = _Sealed(_new_array)
    _ALLOWED[f"{_core}.multiarray", "scalar"] = _Sealed(_scalar)
    _ALLOWED[f"{_core}.numeric", "_frombuffer"] = _Sealed(_array_from_buffer)


class _Refused(Exception):
    """The stream names something that is not on the list."""


class _Reader(pickle.Unpickler):
    """An unpickler that resolves only the names on the list."""

    def find_class(self, module: str, name: str) -> Any:
        # Of Python 2.
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
        if (module, name) not in _ALLOWED:
            raise _Refused(ascii(f"{module}.{name}"))  # the stream may hold line breaks and escapes
        return _ALLOWED[module, name]


# Instructions of a pickle for which the unpickler takes no room ahead: of a fixed size, and of one
# or two lines.
_PLAIN = re.compile(
    rb"(?s:[()0-2NQRabdeolstu\]\x81\x85-\x89\x8f-\x94\x97\x98\x93}]|[\x80\x82Khq].|[\x83M]..|[\x84Jj]....|G.{8}"
    rb"|r..[\0-\x0f]\0|p\d{1,7}\n|[FILPSVg][^\n]*+\n|[ci][^\n]*+\n[^\n]*+\n)*+"
)
# Of others: the bytes of the length that follows, of contents or of a frame, or of the number of an
# object.
_COUNTED = (
    dict.fromkeys(b"UC\x8a\x8c", 1)
    | dict.fromkeys(b"TBX\x8b", 4)
    | dict.fromkeys(b"\x8d\x8e\x96", 8)
)
_WIDTHS = _COUNTED | {ord("r"): 4, 0x95: 8}


def _check_sizes(content: mmap.mmap, position: int) -> None:
    """Refuses a pickle with a length or a number of an object that its file is too short for, in
    linear time.

    The unpickler makes room for as much before it reads on, so that nine bytes would take
    gigabytes.
    """
    while match := _PLAIN.match(content, position):
        after = match.end() + 1
        code = content[match.end() : after]
        if code in (b".", b""):
            return
        position = after + _WIDTHS.get(code[0], 0)
        number = int.from_bytes(content[after:position], "little")
        if code[0] not in _WIDTHS or number >= len(content):
            raise pickle.UnpicklingError("it is cut short or damaged, or a length in it is wrong")
        position += number if code[0] in _COUNTED else 0


def iter_pickles(path: str | os.PathLike) -> Iterator[Any]:
    """Yields the objects of a file that holds pickles back to back, as DISCS's MaxCut files do.

    Graphs are returned as `PickledGraph`. The file is read as the iterator advances and stays open
    meanwhile.

    Raises:
      InputError: the file is missing, empty, cut short or damaged, or names something that is not
        allowed.
    """
    with open_regular(path) as file:
        yield load_next(path, file)
        while file.peek(1):
            yield load_next(path, file)


def load_pickle(path: str | os.PathLike) -> Any:
    """Returns the single object of a pickle file.

    Raises:
      InputError: as `iter_pickles`, or the file holds more than one pickle.
    """
    objects = list(iter_pickles(path))
    if len(objects) > 1:
        raise FormatError(f"{path}: {len(objects)} pickles in a file that should hold one")
    return objects[0]


def load_next(path: str | os.PathLike, file: BinaryIO) -> Any:
    """Returns the next pickle of an open file; errors as `iter_pickles`."""
    try:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _check_sizes(content, file.tell())
        return _Reader(file, encoding="latin1").load()
    except _Refused as refused:
        raise FormatError(
            f"{path}: refused: the pickle asks for {refused}, which graph data does not need; "
            "do not trust this file, or save its graphs again as an .npz archive"
        ) from None
    except Exception as error:  # whatever the unpickler raises on a damaged stream
        reason = " ".join(str(error).split())
        raise FormatError(
            f"{path}: not a readable pickle of graphs ({reason}); copy or make it again"
        ) from error
