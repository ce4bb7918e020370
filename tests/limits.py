"""A limit for every test, so that none waits for ever: on a process, a thread, a lock or a file."""

import contextlib
import signal
import threading

import pytest

# Seconds of a test, and of one that is marked as slow; both are far more than any takes.
LIMIT_S, SLOW_LIMIT_S = 600, 4 * 3600


@contextlib.contextmanager
def ended_after(seconds):
    """Fails the test in the block once it has taken that many seconds, whatever it waits for in
    Python.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def end(*_):
        pytest.fail(f"it did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
