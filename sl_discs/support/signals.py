"""Signals that end a run: a notice of them, and what is restored afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
from collections.abc import Iterator

# Signals that announce the end of a job: a cluster's preemption notice, or a job's time limit.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))


@dataclasses.dataclass
class Notice:
    """Whether the run was told to stop, and the number of the signal that told it; 0 if there was
    none.
    """

    given: bool = False
    signal: int = 0


@contextlib.contextmanager
def notice_of_end(*more: int, said: str = "", raises: bool = False) -> Iterator[Notice]:
    """During the block, a first SIGTERM or SIGUSR1 only sets the notice; a second one acts as
    before.

    Args:
      *more: further signals, such as SIGINT.
      said: a message for the error stream when the first signal comes.
      raises: whether a second signal whose action is to end the process raises SystemExit in its
        place, so that a program that this one has started can be ended, too.
    """
    notice = Notice()
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, *more)}
    # Signals that are ignored, such as SIGINT in background jobs, stay ignored.
    before = {
        number: handler for number, handler in before.items() if handler is not signal.SIG_IGN
    }

    def leave(number, frame):
        del frame
        raise SystemExit(128 + number)

    def receive(number, frame):
        del frame
        notice.given = True
        notice.signal = number
        signal.signal(
            number, leave if raises and before[number] is signal.SIG_DFL else before[number]
        )
        with contextlib.suppress(OSError):
            os.write(2, said.encode())  # not sys.stderr, which may be in the middle of a write

    for number in before:
        signal.signal(number, receive)
    try:
        yield notice
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
