"""One run a folder: a second one is refused, not interleaved."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from sl_discs.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None

_NAME = ".run.lock"


@contextlib.contextmanager
def only_run_in(folder: Path) -> Iterator[None]:
    """Holds the folder while it lasts; the system lets go of it when the process ends, however it ends.

    Raises:
      InputError: another run holds it.
    """
    if fcntl is None:
        yield
        return
    path = folder / _NAME
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write ({error.strerror}); choose another folder") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise InputError(
                f"{folder}: another run ({file.read().strip() or 'unknown'}) is writing there; wait for it, or "
                "choose another folder"
            ) from None
        except OSError:
            # Some network file systems have no locks. Runs of different folders are not to suffer from it.
            yield
            return
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
