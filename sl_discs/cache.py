"""The folder for files that only save time: drawn graphs, and the compiled code that numba and JAX keep.

Compiled code is run as it is read, and a graph is taken for one of its distribution. The folder therefore counts only
if nobody else could have written to it; a kept graph has the digest of its name and content at its end, and one that
cannot be read or written is drawn again, with a warning.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sl_discs.errors import InputError
from sl_discs.files import write_atomically
from sl_discs.terminal import tell

_DIGEST_SIZE = hashlib.sha256().digest_size


class Cache:
    """A folder of kept files, made where it is missing.

    Attributes:
      folder: where they are, without symbolic links; None where there is not a folder to be trusted.
    """

    def __init__(self, folder: str | os.PathLike | None = None):
        """Takes the folder given, else $SL_DISCS_CACHE, else ~/.cache/sl_discs; warns where it cannot be used."""
        self.folder: Path | None = None
        try:
            chosen = Path(folder or os.environ.get("SL_DISCS_CACHE") or "~/.cache/sl_discs").expanduser()
            chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Later uses of the path must not pass a link that somebody else can turn elsewhere.
            chosen = chosen.resolve(strict=True)
            reason = _why_not_trusted(chosen)
        except RuntimeError:
            chosen, reason = Path("~"), "there is no home folder"
        except OSError as error:
            reason = error.strerror
        if reason is None:
            self.folder = chosen
        else:
            _warn(f"no cache in {chosen}: {reason}; set SL_DISCS_CACHE to a folder that is yours alone")

    def load(self, name: str) -> bytes | None:
        """What was saved under a name; None where nothing was, or a warning says why it does not count."""
        if self.folder is None:
            return None
        path = self.folder / name
        try:
            with path.open("rb") as file:
                reason = _why_not_private(path, os.fstat(file.fileno()))
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = f"it cannot be read ({error.strerror})"
        if reason is None:
            kept, digest = content[:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
            if digest == _digest(name, kept):
                return kept
            reason = "its content does not match its digest"
        _warn(f"{path} is not used: {reason}; it is made again")
        return None

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Keeps what `write` writes under a name; a warning says where that is impossible."""
        if self.folder is None:
            return
        buffer = io.BytesIO()
        write(buffer)
        content = buffer.getvalue() + _digest(name, buffer.getvalue())
        try:
            write_atomically(self.folder / name, lambda file: file.write(content))
        except InputError as error:
            cause = error.__cause__
            reason = cause.strerror if isinstance(cause, OSError) else cause
            _warn(
                f"nothing more is cached in {self.folder}: {reason}; free some space there, or set "
                "SL_DISCS_CACHE to another folder"
            )


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _why_not_trusted(folder: Path) -> str | None:
    """Why others may have written into a folder, or may put another in its place; None if they cannot.

    Args:
      folder: an absolute path without symbolic links.
    """
    for place in (folder, *folder.parents):
        info = place.stat()
        # Of a sticky folder, such as /tmp, everyone can move only what is theirs.
        if place != folder and info.st_mode & stat.S_ISVTX and info.st_uid in _trusted_users():
            continue
        reason = _why_not_private(place, info)
        if reason is not None:
            return reason
    return None


def _why_not_private(path: Path, info: os.stat_result) -> str | None:
    """Why a file or folder may be another user's work; None if only this user and the superuser can write to it."""
    if not hasattr(os, "geteuid"):  # on Windows modes say nothing; folders of a profile are private there
        return None
    if info.st_uid not in _trusted_users():
        return f"{path} belongs to another user"
    if info.st_mode & stat.S_IWOTH or (info.st_mode & stat.S_IWGRP and not _is_own_group(info.st_gid)):
        return f"other users can write to {path} (chmod go-w)"
    return None


def _trusted_users() -> set[int]:
    # Whoever owns the root folder can do anything; inside some containers the superuser has another number.
    return {os.geteuid(), 0, Path("/").stat().st_uid}


@functools.cache
def _is_own_group(group: int) -> bool:
    """Whether it is the group of this user alone that many systems give to each, with a name like the user's."""
    import grp
    import pwd

    try:
        return grp.getgrgid(group).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


@functools.cache
def _warn(line: str) -> None:
    """Says a line once."""
    tell(f"warning: {line}")
