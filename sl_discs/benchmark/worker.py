"""Calls functions in a separate process with a time limit, so that a hang or crash does not affect the caller.

After a GPU error every later call in the same process fails too, so a call that raises an error ends the process, and
the next call starts a new one. A failed check (AssertionError) counts as a normal result.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

_MOST_CHARACTERS = 2_000


class Outcome(NamedTuple):
    """The outcome of one call.

    Attributes:
      value: the returned value; None if the call failed.
      error: the error message, or None.
      details: the end of the traceback.
      seconds: wall time, without the start of a process.
      usable: whether the process can be called again.
      ended: whether the call was ended at its time limit.
    """

    value: Any
    error: str | None
    details: str
    seconds: float
    usable: bool = True
    ended: bool = False


def call_here(function: Callable, arguments: tuple) -> Outcome:
    """function(*arguments) in this process."""
    begin = time.monotonic()
    try:
        value = function(*arguments)
    except Exception as error:  # any error is reported
        details = traceback.format_exc()[-_MOST_CHARACTERS:]
        words = f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
        return Outcome(None, words, details, time.monotonic() - begin, isinstance(error, AssertionError))
    return Outcome(value, None, "", time.monotonic() - begin)


def _serve(pipe, prepare: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends this process
    prepare()
    pipe.send(None)
    with contextlib.suppress(EOFError):  # the caller is gone
        while True:
            pipe.send(call_here(*pipe.recv()))


class Worker:
    """Calls functions in another process, one after the other; use it in a `with` statement."""

    def __init__(self, prepare: Callable[[], None], start_s: float = 120.0):
        """`prepare` is called first in each new process, which must be ready after `start_s` seconds."""
        self._prepare, self._start_s = prepare, start_s
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def call(self, function: Callable, arguments: tuple, limit_s: float) -> Outcome:
        """function(*arguments), ended after `limit_s` seconds; function, arguments and result must be picklable."""
        try:
            if self._process is None:
                self._start(min(limit_s, self._start_s))
            begin = time.monotonic()
            self._pipe.send((function, arguments))
            outcome = self._answer(limit_s)
        except (EOFError, OSError) as error:
            ended = isinstance(error, TimeoutError)
            outcome = Outcome(None, self._last_words(error), "", limit_s if ended else 0.0, False, ended)
        else:
            outcome = outcome._replace(seconds=time.monotonic() - begin)
        if not outcome.usable:
            self.close()
        return outcome

    def _start(self, limit_s: float) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, self._prepare), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process closes the pipe
        self._answer(limit_s)

    def _answer(self, limit_s: float) -> Any:
        if not self._pipe.poll(limit_s):
            raise TimeoutError(f"it took more than {limit_s:.0f} s and was ended")
        return self._pipe.recv()

    def _last_words(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return str(error)
        self._process.join(5)
        return f"its process died with exit code {self._process.exitcode}"

    def close(self) -> None:
        """Ends the process; the next call starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = self._pipe = None
