"""Documents in files: JSON, and NumPy's archives with a form, whose fields are checked against
their types.
"""

import contextlib
import json
import os
import types
import typing
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import jaxtyped

from sl_discs.support.errors import FormatError, InputError
from sl_discs.support.files import check_unpacked, open_regular, write_atomically, write_text

# JSON, from files that anybody may have written.


def parse_json(text: str | bytes) -> Any:
    """Returns what `json.loads` gives; ValueError also where lists stand in lists too deeply to be
    parsed.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("objects nested too deeply") from None


class Damaged(Exception):
    """A file is there, but is not what was written."""


def write_json(
    path: Path, content: dict[str, Any], *, indent: int | None = 1, allow_nan: bool = True
) -> Path:
    """Writes a file atomically; InputError where that is impossible, ValueError at NaN if not
    allowed.
    """
    return write_text(path, json.dumps(content, indent=indent, allow_nan=allow_nan) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads the content of a file of `write_json`, None where there is none; Damaged if it holds
    something else.
    """
    try:
        with open_regular(path) as file:
            content = parse_json(file.read())
    except (OSError, ValueError) as error:
        if isinstance(error.__context__, FileNotFoundError):
            return None
        raise Damaged(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise Damaged(f"{path}: cannot be read (it holds no object)")
    return content


# NumPy's `.npz` files, whoever wrote them: nothing is unpickled.
#
# What a program writes together, arrays and plain values, is in one file: the values are JSON text
# in its array `json`.

# Compressing more than this takes longer than it is worth.
_COMPRESSED_BYTES = 2**27


def read_npz(
    path: str | os.PathLike, required: Collection[str] = (), wanted: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Reads arrays of a file by their names: those that are `wanted`, or all; `required` ones must
    be there.

    Raises:
      InputError: there is no such file, or it is not a regular one, cut short, damaged or no
        archive; it has Python objects; or an array is missing.
    """
    with _open_npz(path) as archive:
        if missing := [name for name in required if name not in archive.files]:
            raise FormatError(
                f"{path}: array {missing[0]!r} is missing of {', '.join(required)}; make it again"
            )
        arrays = {name: archive[name] for name in archive.files if wanted is None or name in wanted}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds other files")
        return arrays


def names_in_npz(path: str | os.PathLike) -> list[str]:
    """Returns the names of the arrays, and of other files, in an archive; InputError as of
    `read_npz`.
    """
    with _open_npz(path) as archive:
        return list(archive.files)


@contextlib.contextmanager
def _open_npz(path: str | os.PathLike) -> Iterator[Any]:
    with open_regular(path) as file:
        try:
            # Of any other file NumPy only says how it could be loaded as a pickle.
            if not zipfile.is_zipfile(file):
                raise ValueError("no zip file")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                size = sum(member.file_size for member in archive.zip.infolist())
                check_unpacked(path, file, size, _COMPRESSED_BYTES)
                yield archive
        except InputError:
            raise
        # Whatever zipfile and NumPy raise on damaged archives, headers and contents.
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise FormatError(
                f"{path}: not an .npz archive, or cut short or damaged ({reason}); copy or make it "
                "again"
            ) from error


def save_npz(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays, compressed if they are not many."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise ValueError(f"{', '.join(objects)}: arrays of Python objects cannot be saved")
    save = (
        np.savez_compressed
        if sum(array.nbytes for array in arrays.values()) < _COMPRESSED_BYTES
        else np.savez
    )
    # Without `allow_pickle`, which NumPy before 2.1 would save as one more array.
    save(file, **arrays)


def write_document(
    path: Path, form: str, arrays: Mapping[str, Any], values: Mapping[str, Any]
) -> Path:
    """Writes arrays, and values that JSON has, to an .npz file; `form` names what they are, with
    its version.
    """
    if path.suffix != ".npz":
        raise InputError(
            f"{path}: the name of this file must end in .npz, the only format that holds all of it"
        )
    text = np.array(json.dumps({"format": form, **values}))
    return write_atomically(path, lambda file: save_npz(file, {**arrays, "json": text}))


def read_document(path: Path, form: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and values of `write_document`; ValueError if the content is something else."""
    arrays = read_npz(path)
    values = parse_json(str(arrays.pop("json", "")))
    if not isinstance(values, dict) or values.pop("format", None) != form:
        raise ValueError("another format")
    return arrays, values


def check_fields(kind: type, fields: Mapping[str, Any]) -> None:
    """Checks values against the annotations of a dataclass or NamedTuple, in which axes of one name
    have one length.

    ValueError: a value is missing, is one too many, or has another type, shape or type of elements.
    """
    hints = typing.get_type_hints(kind)
    if set(hints) != set(fields):
        raise ValueError(f"other fields: {', '.join(sorted(set(hints) ^ set(fields)))}")
    with jaxtyped("context"):
        for name, hint in hints.items():
            value = fields[name]
            if not _fits(value, hint):
                what = (
                    f"{value.dtype}{list(value.shape)}"
                    if isinstance(value, np.ndarray)
                    else type(value).__name__
                )
                raise ValueError(
                    f"{name} is {what}, which does not fit {getattr(hint, '__name__', hint)}"
                )


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, hint_of_part) for hint_of_part in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(
            _fits(hint_of_part, inner[0]) for hint_of_part in value
        )
    if origin is Mapping:
        return isinstance(value, dict) and all(
            _fits(hint_of_part, inner[1]) for hint_of_part in value.values()
        )
    if origin is Sequence:
        return isinstance(value, range) or (
            isinstance(value, tuple)
            and all(_fits(hint_of_part, inner[0]) for hint_of_part in value)
        )
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    if hasattr(hint, "_fields") and isinstance(value, hint):
        check_fields(hint, value._asdict())
    return isinstance(value, hint)
