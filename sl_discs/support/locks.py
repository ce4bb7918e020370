"""The lock of a folder, which allows one run there and refuses a second one."""

import contextlib
import errno
import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sl_discs.support.errors import InputError
from sl_discs.support.files import remove_temporary

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None  # type: ignore[assignment]  # stands for a module


LOCK = ".run.lock"
_LOOK_S = 0.1
# The most of a lock that is read: of a file that is not one, too.
_MOST_READ = 2**20
_HOLDER = re.compile(r"process [0-9]+ on .*")


class FolderInUse(InputError):
    """Another process, `holder` in words, holds a folder."""

    def __init__(self, folder: Path, holder: str):
        super().__init__(
            f"{folder}: another run ({holder}) is writing there; wait for it, or choose another "
            "folder"
        )
        self.holder = holder


@contextlib.contextmanager
def only_run_in(folder: Path, name: str = LOCK, patience_s: float = 0.0) -> Iterator[None]:
    """Locks the folder during the block; the system releases the lock when the process ends,
    however it ends.

    Temporary files that a killed process left there are removed.

    For `patience_s` it waits for another run; then FolderInUse. InputError if the folder cannot be
    written.
    """
    if fcntl is None:
        yield
        return
    path = folder / name
    try:
        file = _open_lock(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise InputError(
            f"{path}: cannot write ({error.strerror}); choose another folder"
        ) from error
    end = time.monotonic() + patience_s
    with file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise FolderInUse(folder, _holder_in(file) or "unknown") from None
                time.sleep(_LOOK_S)
            except OSError:
                # Some network file systems have no locks; runs in different folders should still
                # work there.
                yield
                return
        if (before := _holder_in(file)) and not _HOLDER.fullmatch(before):
            raise InputError(
                f"{path}: not a lock of this program; remove it, or choose another folder"
            )
        file.seek(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        file.flush()
        remove_temporary(folder)
        yield


def holder_of(folder: Path, name: str = LOCK) -> str:
    """Returns who holds the lock of a folder; empty if nobody does. Looking holds the lock for a
    moment.
    """
    if fcntl is None:
        return ""
    try:
        with _open_lock(folder / name, os.O_RDONLY) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _holder_in(file) or "unknown"
    except OSError:  # there is no such file, or there are no locks
        pass
    return ""


def _open_lock(path: Path, flags: int) -> BinaryIO:
    """Opens a lock without changing it; OSError for a link, which may lead anywhere, and for a pipe
    or device.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    file = os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _holder_in(file: BinaryIO) -> str:
    """Returns the first line of a lock; after it may follow the rest of a longer one that it has
    replaced.
    """
    file.seek(0)
    return file.read(_MOST_READ).decode(errors="replace").partition("\n")[0]
