"""Files that are either complete or absent, and checks of files and folders before the work starts."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sl_discs.errors import InputError

_BLOCK = 2**20


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> Path:
    """Lets `write` fill a temporary file beside `path` and moves it there; failing, leaves `path` as it was.

    Raises:
      InputError: the system refuses to write there.
    """
    path = Path(path)
    # The name of the file itself may have the length that the system allows.
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        raise InputError(
            f"{path}: cannot write ({error.strerror or error}); free some space or choose another folder"
        ) from error
    finally:
        _remove(temporary)
    return path


def check_writable(folder: str | os.PathLike) -> Path:
    """Creates the folder where needed and tries a file in it, before a long run ends with nowhere to save.

    Raises:
      InputError: a file stands in its place, or the system refuses to write there.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{folder}: a file stands where this folder should go; choose another") from error
    except OSError as error:
        raise InputError(f"{folder}: cannot create it ({error.strerror}); choose another folder") from error
    probe = folder / f".probe.{uuid.uuid4().hex}.tmp"
    try:
        probe.write_bytes(b"")
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({error.strerror}); choose another folder") from error
    finally:
        _remove(probe)
    return folder


def check_file(path: str | os.PathLike) -> Path:
    """The same for a file that will be written.

    Raises:
      InputError: a folder stands in its place, or the system refuses to write there.
    """
    try:
        wanted = Path(path)
        mode = wanted.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: a folder stands where this file should go; choose another name")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: not a regular file; choose another name")
    except InputError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise InputError(f"{path}: cannot write there ({error.strerror}); choose another name") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{path!r}: not the path of a file ({error}); choose another name") from error
    check_writable(wanted.parent)
    return wanted


def open_regular(path: str | os.PathLike) -> BinaryIO:
    """Opens a file for reading; of a pipe or a device, the end may never come.

    Raises:
      InputError: there is no such file, it is not a regular one, or it cannot be read.
    """
    try:
        path = Path(path)
        if path.is_dir():
            raise InputError(f"{path}: a folder; give a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file; save it as one first")
        return path.open("rb")
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{str(path)!r}: not a path ({error}); check it") from error


def allocate(file: BinaryIO, size: int) -> None:
    """Takes the space of a file's bytes up to `size`, which are 0 where nothing was written.

    Raises:
      OSError: there is not enough.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(file.seek(0, os.SEEK_END), size, _BLOCK):
        file.write(bytes(min(_BLOCK, size - start)))


def _remove(path: Path) -> None:
    # Asking first: on a read-only disk, removing a file that is not there is an error too.
    if path.exists():
        path.unlink()
