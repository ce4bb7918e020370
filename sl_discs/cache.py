"""The folder for files that only save time: drawn graphs, and the compiled code that numba and JAX keep."""

import functools
import os
import stat
from pathlib import Path

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
