"""Signals that announce the end of a job: a cluster's preemption notice, or a job's time limit."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

# EX_TEMPFAIL of sysexits.h: the same command, run again, goes on.
RESUME_ME = 75

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))


class Interrupted(Exception):
    """The run was told to stop and has saved where it was: in a folder, or another place that has a name."""

    def __init__(self, place: Path | str, reason: str = "interrupted"):
        super().__init__(f"{reason}; the same command, run again, goes on from {place}")


class Notice:
    """Whether the run was told to stop.

    Attributes:
      given: it was.
      reason: why, in words.
    """

    def __init__(self):
        self.given = False
        self.reason = "interrupted"


@contextlib.contextmanager
def notice_of_end() -> Iterator[Notice]:
    """While it lasts, SIGTERM and SIGUSR1 only set the notice; a second one of them acts as it did before."""
    notice = Notice()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def receive(number, frame):
        del frame
        notice.given = True
        signal.signal(number, before[number])

    for number in _SIGNALS:
        signal.signal(number, receive)
    try:
        yield notice
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
