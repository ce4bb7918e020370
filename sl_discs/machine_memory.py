"""How much memory this process may use, and the refusal of work that would need more."""

from __future__ import annotations

import os
from pathlib import Path

from sl_discs.errors import InputError

GIB = 2**30

# Of what there is, the rest being for compiled programs, the host's own arrays and fragments.
USABLE = 0.8


def usable_memory() -> int | None:
    """Bytes that this process may take: four fifths of the machine's, or of its job's limit; None: nobody knows.

    All memory is counted, not what is free at the moment: a run that is resumed must meet the same limit.
    """
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return int(min(there, _limit_of_cgroup() or there) * USABLE)


def check_memory(need: int, what: str, remedy: str) -> None:
    """Raises InputError where `what` would take more bytes than there are; the line ends with the remedy."""
    there = usable_memory()
    if there is not None and need > there:
        raise InputError(
            f"{what} would take about {in_words(need)} of memory, and there are {in_words(there)}; {remedy}"
        )


def in_words(size: int) -> str:
    """A number of bytes for a reader."""
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:.2f} MiB"


def _limit_of_cgroup() -> int | None:
    """What a cluster's batch system allows this process, where it says so."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() else None
    return None
