"""The identity of a process and its machine, and whether it still runs."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path


def this_machine() -> str:
    """A name that two processes share only if their process numbers are comparable.

    Two machines, or containers on one machine, may have the same host name.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 (no path, but a name)
    return " ".join(parts)


def is_running(pid: int) -> bool:
    """Whether this machine has such a process; one that ended but was not waited for does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        # The name of the program, in brackets, may contain any character.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in "ZX"
