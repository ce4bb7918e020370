"""What this machine holds, and the refusal of what it cannot hold before any of it is made."""

import contextlib
import os
from pathlib import Path

from sl_discs.support.errors import InputError

GIB = 2**30

# Of what there is, the rest being for compiled programs, the host's own arrays and fragments.
USABLE = 0.8
# Nodes, variables and steps are numbered with 32 bits.
MOST_NUMBERED = 2**31 - 1
# Where a cluster's batch system says what it allows this process.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def usable_memory() -> int | None:
    """Returns the bytes that arrays may take on this machine or in its job; None where nobody
    knows.

    All memory is counted, not what is free at the moment: what fits must not depend on what else
    runs.
    """
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    for path in _LIMITS:
        with contextlib.suppress(OSError):
            text = Path(path).read_text(encoding="ascii").strip()
            there = min(there, int(text)) if text.isdecimal() else there
    return int(there * USABLE)


def check_number(what: str, count: int, advice: str) -> None:
    """Raises an InputError for more of something than can be numbered; `what` names it, `advice`
    says what to do.
    """
    if count > MOST_NUMBERED:
        raise InputError(f"{what}; at most 2^31 - 1 are supported, {advice}")


def check_memory(what: str, need: int, advice: str) -> None:
    """Raises an InputError for arrays of `need` bytes that this machine cannot hold; `advice` says
    what to do.
    """
    there = usable_memory()
    if there is not None and need > there:
        raise InputError(
            f"{what} would take about {format_bytes(need)} of memory, and there are "
            f"{format_bytes(there)}; {advice}"
        )


def format_bytes(size: int) -> str:
    """Returns a number of bytes as text, in MiB or GiB."""
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:.2f} MiB"
