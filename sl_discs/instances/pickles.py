"""Reads pickles of graphs without trusting them: a pickle can run any code whose name its reader resolves.

Only the names below resolve, each to a harmless stand-in (`pickled.py`): networkx graphs of versions 1 to 3 and their
cached views, NumPy arrays, scalars and types, and plain containers. Any other name is refused without importing it.
"""

from __future__ import annotations

import collections
import io
import mmap
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from sl_discs.errors import InputError
from sl_discs.instances import pickled
from sl_discs.instances.pickle_work import TooMuchWork, check_work

_GRAPHS = {
    ("networkx.classes.graph", "Graph"): pickled.PickledGraph,
    ("networkx.classes.ordered", "OrderedGraph"): pickled.PickledGraph,
    ("networkx.classes.digraph", "DiGraph"): pickled.PickledDiGraph,
    ("networkx.classes.multigraph", "MultiGraph"): pickled.PickledMultiGraph,
    ("networkx.classes.multidigraph", "MultiDiGraph"): pickled.PickledMultiGraph,
}
_VIEWS = {
    ("networkx.classes.reportviews", name): pickled.Ignored
    for name in ("NodeView", "NodeDataView", "EdgeView", "EdgeDataView", "DegreeView")
} | {("networkx.classes.coreviews", name): pickled.Ignored for name in ("AtlasView", "AdjacencyView")}
_NUMPY = {("numpy", "ndarray"): pickled.NDARRAY, ("numpy", "dtype"): pickled.PickledDtype} | {
    (f"numpy.{core}.{module}", name): pickled.Sealed(function)
    for core in ("core", "_core")
    for module, name, function in (
        ("multiarray", "_reconstruct", pickled.rebuild_array),
        ("multiarray", "scalar", pickled.scalar_from_bytes),
        ("numeric", "_frombuffer", pickled.array_from_buffer),
    )
}
_PYTHON = {
    (module, kind.__name__): kind
    for module in ("builtins", "__builtin__")
    for kind in (dict, list, tuple, set, frozenset, object)
} | {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "bytes"): pickled.Sealed(pickled.empty_bytes),
    ("__builtin__", "bytes"): pickled.Sealed(pickled.empty_bytes),
    ("_codecs", "encode"): pickled.Sealed(pickled.encode_latin1),
    ("copyreg", "_reconstructor"): pickled.Sealed(pickled.rebuild_object),
    ("copy_reg", "_reconstructor"): pickled.Sealed(pickled.rebuild_object),
}
_ALLOWED = _GRAPHS | _VIEWS | _NUMPY | _PYTHON

# Exceptions that the unpickler raises on a damaged stream (the pickle module's documentation names some of these).
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    MemoryError,
    RecursionError,
)


class _Refused(Exception):
    """The stream names something that is not on the list."""


class _Reader(pickle.Unpickler):
    """An unpickler that resolves only the names on the list."""

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for `module.name`; nothing is ever imported."""
        if (module, name) not in _ALLOWED:
            raise _Refused(ascii(f"{module}.{name}"))  # the stream may hold line breaks and escapes
        return _ALLOWED[module, name]


def iter_pickles(path: str | os.PathLike) -> Iterator[Any]:
    """Yields the objects of a file that holds pickles back to back, as DISCS's MaxCut files do.

    Graphs are returned as `PickledGraph`. The file is read as the iterator advances and stays open meanwhile.

    Raises:
      InputError: the file is missing, empty, cut short or damaged, or names something that is not allowed.
    """
    try:
        with Path(path).open("rb") as file:
            if not file.peek(1):
                raise InputError(f"{path}: an empty file, not a pickle; copy it again")
            while file.peek(1):
                yield load_next(path, file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a pickle") from error


def load_pickle(path: str | os.PathLike) -> Any:
    """The single object of a pickle file.

    Raises:
      InputError: as `iter_pickles`, or the file holds more than one pickle.
    """
    objects = list(iter_pickles(path))
    if len(objects) > 1:
        raise InputError(f"{path}: {len(objects)} pickles in a file that should hold one")
    return objects[0]


def load_next(path: str | os.PathLike, file: BinaryIO) -> Any:
    """Reads the next pickle of an open file."""
    start = file.tell()
    try:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            end = check_work(data, start)
            pickled_bytes = data[start:end]
        file.seek(end)
        return _Reader(io.BytesIO(pickled_bytes), encoding="latin1").load()
    except TooMuchWork as refused:
        raise InputError(
            f"{path}: refused: the pickle holds {refused}, which graph data does not need; "
            "do not trust this file, or save its graphs again as an .npz archive"
        ) from None
    except _Refused as refused:
        raise InputError(
            f"{path}: refused: the pickle asks for {refused}, which graph data does not need; "
            "do not trust this file, or save its graphs again as an .npz archive"
        ) from None
    except _DAMAGE as error:
        raise InputError(f"{path}: not a readable pickle of graphs ({error}); copy or make it again") from error
