"""A lock that allows one run per folder and refuses a second one."""

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
    """Locks the folder during the block; the system releases the lock when the process ends, however it ends.

    Raises:
      InputError: another run holds the lock, or the folder cannot be written.
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
            # Some network file systems have no locks; runs in different folders should still work there.
            yield
            return
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def wait_until_free(folder: Path, patience_s: float) -> None:
    """Waits, for a limited time, until no run holds the folder; a run started afterwards may still be refused.

    Only for processes that may start a run there, since each check holds the lock itself for a moment.
    """
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            with only_run_in(folder):
                return
        except InputError:
            time.sleep(_LOOK_S)
