"""The folder for files that only save time: drawn graphs, and the compiled code that numba and JAX
keep.
"""

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sl_discs.support.errors import InputError
from sl_discs.support.files import open_regular
from sl_discs.support.terminal import tell


def cache_folder(
    folder: str | os.PathLike | None = None, part: str = "", setting: str = "SL_DISCS_CACHE"
) -> Path | None:
    """Returns a folder for kept files, made where it is missing.

    Compiled code is run as it is read, so the folder counts only if nobody but the user can write
    there or into the cache that holds it. Otherwise, or where it cannot be made, a warning says so
    once.

    Args:
      folder: the cache; None or empty: $SL_DISCS_CACHE, else ~/.cache/sl_discs.
      part: name of a folder in it, which is returned; empty: the cache itself.
      setting: what names `folder`, for the warning.
    """
    try:
        chosen = Path(
            folder or os.environ.get("SL_DISCS_CACHE") or "~/.cache/sl_discs"
        ).expanduser()
        for name in dict.fromkeys(["", part]):
            chosen = chosen / name
            chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Later uses of the path must not pass a link that somebody else can turn elsewhere.
            chosen = chosen.resolve(strict=True)
            if not _is_private(chosen):
                raise PermissionError(
                    0, "other users can write there (chmod go-w), or it is theirs"
                )
    except RuntimeError:
        chosen = Path("~")
        reason = "there is no home folder"
    except OSError as error:
        reason = error.strerror
    else:
        return chosen
    setting = setting if folder else "SL_DISCS_CACHE"
    warn_once(f"no cache in {chosen}: {reason}; set {setting} to a folder that is yours alone")
    return None


def _is_private(folder: Path) -> bool:
    # On Windows modes say nothing; folders of a profile are private there.
    if not hasattr(os, "geteuid"):
        return True
    info = folder.stat()
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def warn_once(line: str) -> None:
    """Writes a warning on the error stream, the first time that it is given."""
    tell(f"warning: {line}")


@contextlib.contextmanager
def or_no_cache(cache: Path) -> Iterator[None]:
    """Writes a file of the cache in the block; where that is impossible, a warning says so once."""
    try:
        yield
    except InputError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        warn_once(
            f"nothing more is kept in {cache} ({reason}), so later runs do some work again; free "
            "some space there"
        )


def checked(content: bytes) -> bytes:
    """Returns the content of a file that says whether it is damaged: a checksum, and the
    content.
    """
    return hashlib.sha256(content).digest() + content


def read_checked(path: Path) -> bytes | None:
    """Returns the content of a file of `checked`; None if there is none, or it is damaged."""
    try:
        with open_regular(path) as file:
            checksum = file.read(hashlib.sha256().digest_size)
            content = file.read()
    except (InputError, OSError):
        return None
    return content if hashlib.sha256(content).digest() == checksum else None
