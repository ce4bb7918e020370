"""Files that are complete or absent, JSON and `.npz` with checks, and the identity of finished
work.
"""

import contextlib
import io
import os
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from sl_discs.support.errors import FormatError, InputError


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> Path:
    """Lets `write` fill a temporary file beside `path` and moves it there; InputError if the system
    refuses.
    """
    path = Path(path)
    write_together({path: write})
    return path


def write_together(files: Mapping[Path, Callable[[BinaryIO], object]]) -> None:
    """Writes files that belong together: if the last one is there, all of them are complete.

    All are filled beside their paths before any is moved there, so a full disk leaves those that
    were there before. Of several, the last one is removed before others are replaced.

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
            f"{path}: cannot write ({error.strerror or error}); free some space or choose another "
            "folder"
        ) from error
    finally:
        for path_beside in temporary.values():
            _remove(path_beside)


_TEMPORARY = re.compile(r"\.(probe\.)?[0-9a-f]{32}\.tmp")


def is_temporary(path: Path) -> bool:
    """Returns whether a file has a name of those that are filled and then moved; what is left was
    killed.
    """
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
    """Creates the folder where needed and tries a file in it, before a long run ends with nowhere
    to save.
    """
    folder = Path(folder)
    probe = folder / f".probe.{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"\n")  # on a full disk, an empty file is no error
    except OSError as error:
        raise InputError(
            f"{folder}: cannot write there ({error.strerror}); choose another folder"
        ) from error
    finally:
        _remove(probe)
    return folder


def check_file(path: str | os.PathLike) -> Path:
    """Checks the folder of a file that will be written, in whose place no folder, pipe or device
    may stand.
    """
    try:
        wanted = Path(path)
        taken = wanted.exists() and not wanted.is_file()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path!r}: not the path of a file ({reason}); choose another name"
        ) from error
    if taken:
        kind = (
            "a folder stands where this file should go" if wanted.is_dir() else "not a regular file"
        )
        raise InputError(f"{path}: {kind}; choose another name")
    check_writable(wanted.parent)
    return wanted


# What packed files, of text or of arrays, may unpack to: this many times their own size, or the
# least that is given. Lists of numbers compress 3 to 20 times, and a bomb a thousand times.
_UNPACKED_RATIO = 100


def check_unpacked(path: str | os.PathLike, file: BinaryIO, size: int, least: int) -> None:
    """Refuses a packed file that unpacks to `size` bytes, or to more."""
    limit = unpacked_limit(file, least)
    if size > limit:
        raise FormatError(
            f"{path}: unpacks to more than {limit >> 20} MiB, far beyond its own size; if you "
            "trust it, unpack it yourself and give what is in it"
        )


def unpacked_limit(file: BinaryIO, least: int) -> int:
    """Returns the most bytes that a packed file may unpack to."""
    return max(least, _UNPACKED_RATIO * os.fstat(file.fileno()).st_size)


# What stands in the place of a large file where Git LFS has not fetched it.
_LFS = b"version https://git-lfs"


def open_regular(path: str | os.PathLike) -> io.BufferedReader:
    """Opens a file for reading; InputError where it cannot. Of a pipe or a device, the end may
    never come.
    """
    try:
        path = Path(path)
        if path.is_dir():
            raise InputError(f"{path}: a folder; give a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file; save it as one first")
        file = path.open("rb")
        if file.peek(len(_LFS)).startswith(_LFS):
            file.close()
            raise InputError(
                f"{path}: a Git LFS pointer, not the file itself; fetch that with: git lfs pull"
            )
        return file
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); check its permissions"
        ) from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{str(path)!r}: not a path ({error}); check it") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # it is not there, or what said so before was the reason
        path.unlink()
