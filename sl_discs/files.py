"""Files that are complete or absent, JSON and `.npz` with checks, and the identity of finished work."""

import contextlib
import hashlib
import io
import json
import os
import re
import types
import typing
import uuid
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import jaxtyped

from sl_discs.errors import FormatError, InputError


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> Path:
    """Lets `write` fill a temporary file beside `path` and moves it there; InputError if the system refuses."""
    path = Path(path)
    write_together({path: write})
    return path


def write_together(files: Mapping[Path, Callable[[BinaryIO], object]]) -> None:
    """Writes files that belong together: if the last one is there, all of them are complete.

    All are filled beside their paths before any is moved there, so a full disk leaves those that were there before.
    Of several, the last one is removed before others are replaced.

    Args:
      files: path to the function that fills the file.

    Raises:
      InputError: the system refuses a file.
    """
    temporary: dict[Path, Path] = {}
    try:
        for path, write in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            # The name of the file itself may have the length that the system allows.
            temporary[path] = path.with_name(f".{uuid.uuid4().hex}.tmp")
            with temporary[path].open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
        if len(files) > 1:
            path.unlink(missing_ok=True)
        for path in files:
            os.replace(temporary[path], path)  # noqa: PTH105
    except OSError as error:
        raise InputError(
            f"{path}: cannot write ({error.strerror or error}); free some space or choose another folder"
        ) from error
    finally:
        for one in temporary.values():
            _remove(one)


_TEMPORARY = re.compile(r"\.(probe\.)?[0-9a-f]{32}\.tmp")


def is_temporary(path: Path) -> bool:
    """Returns whether a file has a name of those that are filled and then moved; what is left was killed."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporary(folder: Path) -> None:
    """Removes what killed processes left in a folder; nobody else may be writing there."""
    with contextlib.suppress(OSError):  # it cannot be listed
        for path in filter(is_temporary, folder.iterdir()):
            _remove(path)


def write_text(path: str | os.PathLike, text: str) -> Path:
    """Writes a file of text atomically; InputError where that is impossible."""
    # A path that is not UTF-8 has surrogates, which UTF-8 lacks.
    return write_atomically(path, lambda file: file.write(text.encode(errors="backslashreplace")))


def check_writable(folder: str | os.PathLike) -> Path:
    """Creates the folder where needed and tries a file in it, before a long run ends with nowhere to save."""
    folder = Path(folder)
    probe = folder / f".probe.{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"\n")  # on a full disk, an empty file is no error
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another folder") from error
    finally:
        _remove(probe)
    return folder


def check_file(path: str | os.PathLike) -> Path:
    """Checks the folder of a file that will be written, in whose place no folder, pipe or device may stand."""
    try:
        wanted = Path(path)
        taken = wanted.exists() and not wanted.is_file()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path!r}: not the path of a file ({reason}); choose another name") from error
    if taken:
        kind = "a folder stands where this file should go" if wanted.is_dir() else "not a regular file"
        raise InputError(f"{path}: {kind}; choose another name")
    check_writable(wanted.parent)
    return wanted


# What packed files, of text or of arrays, may unpack to: this many times their own size, or the least that is given.
# Lists of numbers compress 3 to 20 times, and a bomb a thousand times.
_UNPACKED_RATIO = 100


def check_unpacked(path: str | os.PathLike, file: BinaryIO, size: int, least: int) -> None:
    """Refuses a packed file that unpacks to `size` bytes, or to more."""
    limit = unpacked_limit(file, least)
    if size > limit:
        raise FormatError(
            f"{path}: unpacks to more than {limit >> 20} MiB, far beyond its own size; if you trust it, unpack it "
            "yourself and give what is in it"
        )


def unpacked_limit(file: BinaryIO, least: int) -> int:
    """Returns the most bytes that a packed file may unpack to."""
    return max(least, _UNPACKED_RATIO * os.fstat(file.fileno()).st_size)


# What stands in the place of a large file where Git LFS has not fetched it.
_LFS = b"version https://git-lfs"


def open_regular(path: str | os.PathLike) -> io.BufferedReader:
    """Opens a file for reading; InputError where it cannot. Of a pipe or a device, the end may never come."""
    try:
        path = Path(path)
        if path.is_dir():
            raise InputError(f"{path}: a folder; give a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file; save it as one first")
        file = path.open("rb")
        if file.peek(len(_LFS)).startswith(_LFS):
            file.close()
            raise InputError(f"{path}: a Git LFS pointer, not the file itself; fetch that with: git lfs pull")
        return file
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{str(path)!r}: not a path ({error}); check it") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # it is not there, or what said so before was the reason
        path.unlink()


# JSON, from files that anybody may have written.


def parse_json(text: str | bytes) -> Any:
    """Returns what `json.loads` gives; ValueError also where lists stand in lists too deeply to be parsed."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("objects nested too deeply") from None


class Damaged(Exception):
    """A file is there, but is not what was written."""


def write_json(path: Path, content: dict[str, Any], *, indent: int | None = 1, allow_nan: bool = True) -> Path:
    """Writes a file atomically; InputError where that is impossible, ValueError at NaN if not allowed."""
    return write_text(path, json.dumps(content, indent=indent, allow_nan=allow_nan) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads the content of a file of `write_json`, None where there is none; Damaged if it holds something else."""
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
# What a program writes together, arrays and plain values, is in one file: the values are JSON text in its array
# `json`.

# Compressing more than this takes longer than it is worth.
_COMPRESSED_BYTES = 2**27


def read_npz(
    path: str | os.PathLike, required: Collection[str] = (), wanted: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Reads arrays of a file by their names: those that are `wanted`, or all; `required` ones must be there.

    Raises:
      InputError: there is no such file, or it is not a regular one, cut short, damaged or no archive; it has Python
        objects; or an array is missing.
    """
    with _open_npz(path) as archive:
        if missing := [name for name in required if name not in archive.files]:
            raise FormatError(f"{path}: array {missing[0]!r} is missing of {', '.join(required)}; make it again")
        arrays = {name: archive[name] for name in archive.files if wanted is None or name in wanted}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds other files")
        return arrays


def names_in_npz(path: str | os.PathLike) -> list[str]:
    """Returns the names of the arrays, and of other files, in an archive; InputError as of `read_npz`."""
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
        except Exception as error:  # whatever zipfile and NumPy raise on damaged archives, headers and contents
            reason = " ".join(str(error).split())[:200]
            raise FormatError(
                f"{path}: not an .npz archive, or cut short or damaged ({reason}); copy or make it again"
            ) from error


def save_npz(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Writes arrays, compressed if they are not many."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise ValueError(f"{', '.join(objects)}: arrays of Python objects cannot be saved")
    save = np.savez_compressed if sum(array.nbytes for array in arrays.values()) < _COMPRESSED_BYTES else np.savez
    save(file, **arrays)  # without `allow_pickle`, which NumPy before 2.1 would save as one more array


def write_document(path: Path, form: str, arrays: Mapping[str, Any], values: Mapping[str, Any]) -> Path:
    """Writes arrays, and values that JSON has, to an .npz file; `form` names what they are, with its version."""
    if path.suffix != ".npz":
        raise InputError(f"{path}: the name of this file must end in .npz, the only format that holds all of it")
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
    """Checks values against the annotations of a dataclass or NamedTuple, in which axes of one name have one length.

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


# Pieces of work that are done once: what identifies one.
#
# The identity of a piece of work is everything that its numbers depend on, in nested dicts of plain values. A run's
# checkpoints, a sweep's runs, a search for settings and a reproduction's cells each keep it beside what they have
# found, which counts only where the identity is the same.


def digest(content: dict[str, Any]) -> str:
    """Returns the SHA-256 of plain values, in hexadecimal; the order of names does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """Returns what differs between two identities, in words; `theirs` is the one that was found."""
    words = []
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(name), theirs.get(name)
        if isinstance(mine, dict) and isinstance(other, dict):
            words += differences(mine, other, f"{prefix}{name}.")
        elif mine != other:
            short = all(len(json.dumps(value)) < 80 for value in (mine, other))
            words.append(f"{prefix}{name} {other!r} there, {mine!r} here" if short else f"another {prefix}{name}")
    return words


def check_same(what: str, ours: dict[str, Any], theirs: dict[str, Any], advice: str) -> None:
    """Raises an InputError unless two identities agree; `what` says of what `theirs` is, `advice` what to do."""
    if differs := differences(ours, theirs):
        raise InputError(f"{what}: {'; '.join(differs)}; {advice}")
