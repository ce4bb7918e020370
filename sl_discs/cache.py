"""The folder for files that only save time: drawn graphs, and the compiled code that numba and JAX keep."""

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sl_discs.errors import InputError
from sl_discs.files import open_regular
from sl_discs.terminal import tell


def cache_folder(folder: str | os.PathLike | None = None) -> Path | None:
    """Returns a folder for kept files, made where it is missing: the given one, else $SL_DISCS_CACHE, else
    ~/.cache/sl_discs.

    Compiled code is run as it is read, so the folder counts only if it is the user's own and not open to everybody.
    Otherwise, or where it cannot be made, a warning says so once, and it is None.
    """
    try:
        chosen = Path(folder or os.environ.get("SL_DISCS_CACHE") or "~/.cache/sl_discs").expanduser()
        chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Later uses of the path must not pass a link that somebody else can turn elsewhere.
        chosen = chosen.resolve(strict=True)
        info = chosen.stat()
    except RuntimeError:
        chosen, reason = Path("~"), "there is no home folder"
    except OSError as error:
        reason = error.strerror
    else:
        if not hasattr(os, "geteuid"):  # on Windows modes say nothing; folders of a profile are private there
            return chosen
        if info.st_uid in (os.geteuid(), 0) and not info.st_mode & stat.S_IWOTH:
            return chosen
        reason = "other users can write there (chmod o-w), or it is theirs"
    warn_once(f"no cache in {chosen}: {reason}; set SL_DISCS_CACHE to a folder that is yours alone")
    return None


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
            f"nothing more is kept in {cache} ({reason}), so later runs do some work again; free some space, or set "
            "SL_DISCS_CACHE to another folder"
        )


def checked(content: bytes) -> bytes:
    """Returns the content of a file that says whether it is damaged: a checksum, and the content."""
    return hashlib.sha256(content).digest() + content


def read_checked(path: Path) -> bytes | None:
    """Returns the content of a file of `checked`; None if there is none, or it is damaged."""
    try:
        with open_regular(path) as file:
            checksum, content = file.read(hashlib.sha256().digest_size), file.read()
    except (InputError, OSError):
        return None
    return content if hashlib.sha256(content).digest() == checksum else None
