"""What stands in for foreign classes while a pickle is read: plain data holders that the stream cannot misuse.

A pickle may call what it names, and set attributes of what it gets. So none of the real classes is handed out
(plain containers apart): each name on the list of `pickles.py` leads to one of the objects below, which accept
data and nothing else, and refuse to be altered themselves.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np


class PickledGraph:
    """The contents of a pickled networkx graph of any version, with the few methods that reading it takes."""

    directed = False
    multigraph = False
    # A damaged stream may make a graph and never give it a state: that is an empty graph, refused as such.
    _node: Mapping = MappingProxyType({})
    _adj: Mapping = MappingProxyType({})

    def __setstate__(self, state: Any) -> None:
        """Takes node and adjacency dictionaries; views and factories, which some versions store, are dropped."""
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("a networkx graph without its attributes")
        for ours, names in (("_node", ("_node", "node")), ("_adj", ("_adj", "adj"))):
            found = next((state[name] for name in names if name in state), None)
            if not isinstance(found, dict):
                raise pickle.UnpicklingError(f"a networkx graph without the dictionary {names[0]}")
            setattr(self, ours, found)

    @property
    def nodes(self) -> Mapping:
        """Attributes of each node, in the order in which nodes were added."""
        return self._node

    def adjacency(self) -> Iterator[tuple[Any, dict]]:
        """Pairs of a node and the dictionary of its neighbours, whose values are the edges' attributes."""
        return iter(self._adj.items())

    def is_directed(self) -> bool:
        """Whether it was one of networkx's directed classes."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether it was one of networkx's multigraph classes."""
        return self.multigraph


class PickledDiGraph(PickledGraph):
    """A directed graph: read only so that it can be refused by its kind."""

    directed = True


class PickledMultiGraph(PickledGraph):
    """A multigraph: read only so that it can be refused by its kind."""

    multigraph = True


class Ignored:
    """An object whose contents do not matter, such as a cached view of a graph."""

    def __setstate__(self, state: Any) -> None:
        """Forgets the state."""


class PickledDtype:
    """A NumPy dtype of plain numbers or text; structured and object types are refused."""

    def __init__(self, code: str | bytes, align: bool = False, copy: bool = False) -> None:
        code = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(code, str) or not re.fullmatch(r"[biufc]\d{1,2}|[SU]\d{1,6}", code):
            raise pickle.UnpicklingError(f"NumPy type {code!r}; only plain numbers and text are read")
        self._code = code
        self._order = "="

    def __setstate__(self, state: tuple) -> None:
        """Takes the byte order; everything else of a plain type follows from its code."""
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError(f"NumPy byte order {order!r}")
        self._order = order

    @property
    def dtype(self) -> np.dtype:
        """The dtype itself."""
        return np.dtype(self._order + self._code)


class PickledArray(np.ndarray):
    """A NumPy array whose state is checked before NumPy sees it."""

    def __setstate__(self, state: tuple) -> None:
        """Takes (version, shape, dtype, Fortran order, bytes) of an array of a plain type."""
        _, shape, dtype, fortran, raw = state
        dtype = _plain(dtype)
        raw = _raw_bytes(raw)
        super().__setstate__((shape, dtype, bool(fortran), raw))  # type: ignore[arg-type]  # a version is optional


class Sealed:
    """A function that a pickle may call but not alter."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        """Calls the function."""
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("an attempt to alter a function")


def rebuild_object(cls: type, base: type, state: Any) -> Any:
    """What `copyreg._reconstructor` does for protocols 0 and 1, for the classes above alone."""
    if base is not object or state is not None or not isinstance(cls, type):
        raise pickle.UnpicklingError("an object of an unknown form")
    if not issubclass(cls, PickledGraph | Ignored):
        raise pickle.UnpicklingError(f"an object of type {cls.__name__} without its contents")
    return cls()


def encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """What `_codecs.encode` does for the bytes of protocols 0 to 2."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def empty_bytes() -> bytes:
    """What `bytes()` gives, the form of empty bytes in protocols 0 to 2; a length or contents are not accepted."""
    return b""


def refuse_call(*args: Any) -> None:
    """Stands for a name that a pickle passes on, and has no reason to call."""
    raise pickle.UnpicklingError("an attempt to make an array from arguments")


NDARRAY = Sealed(refuse_call)  # what `numpy.ndarray` leads to


def rebuild_array(cls: Any, shape: tuple, typecode: bytes | str) -> PickledArray:
    """An array that awaits its state (`numpy.core.multiarray._reconstruct`)."""
    if cls is not NDARRAY:
        raise pickle.UnpicklingError("an array of an unknown class")
    return PickledArray((0,), dtype=np.uint8)


def array_from_buffer(buffer: bytes, dtype: PickledDtype, shape: tuple, order: Any) -> np.ndarray:
    """An array from its bytes (`numpy.core.numeric._frombuffer`, protocol 5)."""
    return np.frombuffer(_raw_bytes(buffer), dtype=_plain(dtype)).reshape(shape, order=order)


def scalar_from_bytes(dtype: PickledDtype, raw: bytes | str = b"") -> np.generic:
    """A NumPy scalar from its bytes (`numpy.core.multiarray.scalar`)."""
    dtype = _plain(dtype)
    raw = _raw_bytes(raw)
    if len(raw) != dtype.itemsize:
        raise pickle.UnpicklingError(f"a NumPy scalar of {len(raw)} bytes; {dtype} takes {dtype.itemsize}")
    return np.frombuffer(raw, dtype=dtype)[0]


def _plain(dtype: Any) -> np.dtype:
    """The dtype that a stand-in holds."""
    if not isinstance(dtype, PickledDtype):
        raise pickle.UnpicklingError("an array without a NumPy type")
    return dtype.dtype


def _raw_bytes(raw: Any) -> bytes:
    """The bytes of an array; a number, from which `bytes` would make that many zeros, is refused."""
    if isinstance(raw, str):
        return raw.encode("latin1")
    if not isinstance(raw, bytes | bytearray | pickle.PickleBuffer):
        raise pickle.UnpicklingError(f"an array whose contents are a {type(raw).__name__}")
    return bytes(raw)
