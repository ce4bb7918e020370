"""Files that are either complete or absent, and folders known to be writable before the work starts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sl_discs.errors import InputError


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> Path:
    """Lets `write` fill a temporary file beside `path` and moves it there; failing, leaves `path` as it was.

    Raises:
      InputError: the system refuses to write there.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
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
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: a folder stands where this file should go; choose another name")
    check_writable(path.parent)
    return path


def _remove(path: Path) -> None:
    # Asking first: on a read-only disk, removing a file that is not there is an error too.
    if path.exists():
        path.unlink()
