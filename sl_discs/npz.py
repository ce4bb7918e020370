"""NumPy's `.npz` files, whoever wrote them: nothing is unpickled, and they unpack to a bounded size.

What a program writes together, arrays and plain values, is in one file: the values are JSON text in its array `json`.
"""

from __future__ import annotations

import json
import os
import tokenize
import types
import typing
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import jaxtyped

from sl_discs.atomic import open_regular, write_atomically
from sl_discs.errors import InputError
from sl_discs.parse_json import parse_json

# What NumPy raises for a file that is cut short or has a wrong bit somewhere. In order: of the archive, of what is
# packed in it, and of an array's header, which NumPy reads as Python source. The checksum of an array comes last.
_DAMAGED = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    KeyError,
    EOFError,
    zlib.error,
    ValueError,
    TypeError,
    SyntaxError,
    tokenize.TokenError,
    MemoryError,
)
# A file may unpack to so many bytes, or to so many times its own size if that is more. That is more than for lists of
# numbers in text, since an array of equal weights compresses 1000 to 1.
_UNPACKED_BYTES, _UNPACKED_RATIO = 2**28, 100
# Python unpacks these piece by piece; a block of the others may be of any size.
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npz(
    path: str | os.PathLike, required: Collection[str] = (), wanted: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Arrays of a file by their names.

    Args:
      path: of the file.
      required: names of the arrays that it must have.
      wanted: names of the arrays to read, where there are such; None: all.

    Raises:
      InputError: there is no such file, or it is not a regular one, cut short, damaged or no archive; it has Python
        objects, or unpacks to more than 256 MiB and more than a hundred times its size; or an array is missing.
    """
    with open_regular(path) as file:
        try:
            found = _names(path, file)
            missing = [name for name in required if name not in found]
            if missing:
                raise InputError(f"{path}: array {missing[0]!r} is missing; an archive has {', '.join(required)}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in found if wanted is None or name in wanted}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise ValueError("it holds other files")
            return arrays
        except InputError:
            raise
        except (OSError, *_DAMAGED) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"{path}: not an .npz archive, or cut short or damaged ({reason}); copy or make it again"
            ) from error


def _names(path: str | os.PathLike, file: BinaryIO) -> list[str]:
    """Names of the arrays of an archive whose directory promises no more than is allowed."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(_UNPACKED_BYTES, _UNPACKED_RATIO * file.seek(0, 2)):
        raise InputError(f"{path}: unpacks to {unpacked >> 20} MiB, far beyond its own size; make it again")
    if any(member.compress_type not in _PACKED for member in members):
        raise ValueError("packed in another way than NumPy does")
    return [member.filename.removesuffix(".npy") for member in members]


def save_npz(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays compressed, as long as `read_npz` unpacks any number of bytes that they may compress to."""
    size = sum(np.asarray(array).nbytes for array in arrays.values())
    save = np.savez_compressed if size < _UNPACKED_BYTES // 2 else np.savez
    save(file, allow_pickle=False, **arrays)


def write_document(path: Path, form: str, arrays: Mapping[str, Any], values: Mapping[str, Any]) -> Path:
    """Writes arrays, and values that JSON has, atomically; `form` names what they are, with its version.

    Raises:
      InputError: the name of the file does not end in .npz, or it cannot be written.
    """
    if path.suffix != ".npz":
        raise InputError(f"{path}: the name of this file must end in .npz, the only format that holds all of it")
    text = np.array(json.dumps({"format": form, **values}))
    return write_atomically(path, lambda file: save_npz(file, {**arrays, "json": text}))


def read_document(path: Path, form: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and values of `write_document`.

    Raises:
      InputError: as `read_npz`.
      ValueError: its content is something else.
    """
    arrays = read_npz(path)
    values = parse_json(str(arrays.pop("json", "")))
    if not isinstance(values, dict) or values.pop("format", None) != form:
        raise ValueError("another format")
    return arrays, values


def check_fields(kind: type, fields: Mapping[str, Any]) -> None:
    """Checks values against the annotations of a dataclass or NamedTuple, in which axes of one name have one length.

    Raises:
      ValueError: a value is missing, is one too many, or has another type, shape or type of elements.
    """
    hints = typing.get_type_hints(kind)
    if set(hints) != set(fields):
        raise ValueError(f"other fields: {', '.join(sorted(set(hints) ^ set(fields)))}")
    with jaxtyped("context"):
        for name, hint in hints.items():
            value = fields[name]
            if not _fits(value, hint):
                what = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
                raise ValueError(f"{name} is {what}, which does not fit {getattr(hint, '__name__', hint)}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if origin is Sequence:
        return isinstance(value, range) or (isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value))
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    if hasattr(hint, "_fields") and isinstance(value, hint):
        check_fields(hint, value._asdict())
    return isinstance(value, hint)
