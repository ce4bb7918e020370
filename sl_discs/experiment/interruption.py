"""Signals that announce the end of a job: a cluster's preemption notice, or a job's time limit."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

# EX_TEMPFAIL in sysexits.h, an exit code that means: the same command, run again, continues.
RESUME_ME = 75

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))


class Interrupted(Exception):
    """The run was told to stop and has saved its state in a folder or another named place."""

    def __init__(self, place: Path | str):
        super().__init__(f"interrupted; the same command, run again, continues from {place}")


class Notice:
    """Records whether the run was told to stop.

    Attributes:
      given: whether it was told to stop.
      signal: the signal's number; 0 if there was none.
    """

    def __init__(self):
        self.given = False
        self.signal = 0


@contextlib.contextmanager
def notice_of_end(*more: int, said: str = "") -> Iterator[Notice]:
    """During the block, a first SIGTERM or SIGUSR1 only sets the notice; a second one acts as before the block.

    Args:
      *more: further signals, such as SIGINT.
      said: a message for the error stream when the first signal comes.
    """
    notice = Notice()
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, *more)}
    # Signals that are ignored, such as SIGINT in background jobs, stay ignored.
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def receive(number, frame):
        del frame
        notice.given, notice.signal = True, number
        signal.signal(number, before[number])
        with contextlib.suppress(OSError):
            os.write(2, said.encode())  # not sys.stderr, which may be in the middle of a write

    for number in before:
        signal.signal(number, receive)
    try:
        yield notice
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
