"""Stand-ins for foreign classes while a pickle is read: plain data holders that the stream cannot misuse.

A pickle may call the objects that it names and set their attributes. It therefore gets none of the real classes,
except
for plain containers: each name on the list in `pickles.py` resolves to one of the objects below, which accept only
data and cannot be altered.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np


class PickledGraph:
    """The contents of a pickled networkx graph of any version, with the few methods needed to read it."""

    directed = False
    multigraph = False
    # A damaged stream may create a graph and never set its state; it is then empty and refused for that.
    _node: Mapping = MappingProxyType({})
    _adj: Mapping = MappingProxyType({})

    def __setstate__(self, state: Any) -> None:
        """Keeps the node and adjacency dictionaries; views and factories, which some versions store, are dropped."""
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
        """Pairs of a node and the dictionary from its neighbours to the edges' attributes."""
        return iter(self._adj.items())

    def is_directed(self) -> bool:
        """Whether it was one of networkx's directed classes."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether it was one of networkx's multigraph classes."""
        return self.multigraph


class PickledDiGraph(PickledGraph):
    """A directed graph; it can be read, so that the error can name its kind."""

    directed = True


class PickledMultiGraph(PickledGraph):
    """A multigraph; it can be read, so that the error can name its kind."""

    multigraph = True


class Ignored:
    """An object whose contents do not matter, such as a cached view of a graph."""

    def __setstate__(self, state: Any) -> None:
        """Discards the state."""


class PickledDtype:
    """A NumPy dtype of plain numbers or text; structured and object types are refused."""

    def __init__(self, code: str | bytes, align: bool = False, copy: bool = False) -> None:
        code = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(code, str) or not re.fullmatch(r"[biufc]\d{1,2}|[SU]\d{1,6}", code):
            raise pickle.UnpicklingError(f"NumPy type {code!r}; only plain numbers and text are read")
        self._code = code
        self._order = "="

    def __setstate__(self, state: tuple) -> None:
        """Reads the byte order; the code determines everything else about a plain type."""
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
        """Accepts (version, shape, dtype, Fortran order, bytes) for an array of a plain type."""
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
    """`copyreg._reconstructor` of protocols 0 and 1, restricted to the classes above."""
    if base is not object or state is not None or not isinstance(cls, type):
        raise pickle.UnpicklingError("an object of an unknown form")
    if not issubclass(cls, PickledGraph | Ignored):
        raise pickle.UnpicklingError(f"an object of type {cls.__name__} without its contents")
    return cls()


def encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """`_codecs.encode`, as protocols 0 to 2 use it for bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def empty_bytes() -> bytes:
    """`bytes()`, which protocols 0 to 2 use for empty bytes; a length or contents are not accepted."""
    return b""


def refuse_call(*args: Any) -> None:
    """Stand-in for a function that a pickle passes as an argument but has no reason to call."""
    raise pickle.UnpicklingError("an attempt to make an array from arguments")


NDARRAY = Sealed(refuse_call)  # stand-in for `numpy.ndarray`


def rebuild_array(cls: Any, shape: tuple, typecode: bytes | str) -> PickledArray:
    """An array without its state yet (`numpy.core.multiarray._reconstruct`)."""
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
    """The dtype in a stand-in."""
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
