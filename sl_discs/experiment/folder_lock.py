"""One run a folder: a second one is refused, not interleaved."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from sl_discs.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None  # type: ignore[assignment]  # stands for a module

_NAME = ".run.lock"
_LOOK_S = 0.1


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


def wait_until_free(folder: Path, patience_s: float) -> None:
    """Waits while a run holds the folder, for a while: whoever starts one there afterwards may still be refused.

    For those alone who may start a run there: it holds the folder itself at each look.
    """
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            with only_run_in(folder):
                return
        except InputError:
            time.sleep(_LOOK_S)
