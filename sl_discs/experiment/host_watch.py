"""Signs of life among the hosts of a run, and what a host does when another one stops, fails or dies."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time

from sl_discs.experiment.board import Board
from sl_discs.experiment.interruption import RESUME_ME, Notice

# What a sign says first.
GOING, STOPPING, BAD_INPUT, FAILED, LEFT = "going", "stopping", "bad input", "failed", "left"

# Seconds between two signs, at most; a fifth of the timeout where that is less.
_SIGN_EVERY_S = 1.0
# From learning that the run is to stop to the end of the process, saved or not: a call takes seconds, compiling more.
_GRACE_S = 60.0
# For the calls of the last sign.
_FAREWELL_CALLS_S = 5.0


class Watch:
    """A thread that gives this host's signs and reads the others'.

    Attributes:
      reason: why the run has to stop, in words; empty while it need not.
      code: the exit code then.
    """

    def __init__(self, index: int, count: int, board: Board, timeout_s: float, coordinator: str):
        self.index, self.count, self.board, self.timeout_s = index, count, board, timeout_s
        self.reason, self.code = "", RESUME_ME
        self._coordinator = coordinator
        self._notice = Notice()
        self._over = threading.Event()
        self._lost = threading.Lock()
        self._signs = 0
        self._can_speak = True
        self._gone = set()
        # Text of each host's last sign, and when it was first seen.
        self._seen = {host: ("", time.monotonic()) for host in range(count) if host != index}
        self._thread = threading.Thread(target=self._run, name="host watch", daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        _hold_aborts(self._coordinator, self._coordinator_is_gone)
        self._thread.start()

    def attend(self, notice: Notice) -> None:
        """The notice that is given when the run has to stop, and that says whether this host was told to."""
        self._notice = notice
        if self.reason:
            self._give()

    def _give(self) -> None:
        self._notice.reason = self.reason
        self._notice.given = True

    def _sign(self, state: str, message: str = "") -> None:
        self._signs += 1
        self.board.put(f"sign/{self.index}", f"{state}\n{self._signs}\n{message}".encode())

    def _lose(self, reason: str, code: int = RESUME_ME) -> None:
        """The first reason counts."""
        if not self._lost.acquire(blocking=False):
            return
        self.reason, self.code = reason, code
        self._give()
        timer = threading.Timer(_GRACE_S, self._end)
        timer.daemon = True
        timer.start()

    def _end(self) -> None:
        sys.stderr.write(f"{self.reason}; the same command, run again, goes on from the last checkpoint\n")
        sys.stderr.flush()
        os._exit(self.code)

    def _coordinator_is_gone(self) -> None:
        # A call into a client whose thread is held might not return.
        self._can_speak = False
        self._lose(f"host 0 of {self.count} is gone, and with it the coordinator {self._coordinator}")

    def _run(self) -> None:
        while not self._over.wait(min(_SIGN_EVERY_S, self.timeout_s / 5)):
            try:
                self._sign(STOPPING if self._notice.given and not self.reason else GOING)
                self.look(time.monotonic())
            except RuntimeError:
                self._coordinator_is_gone()
            if self.reason:
                return

    def look(self, now: float) -> None:
        """Reads the others' signs at a time in seconds."""
        signs = self.board.under("sign")
        for host, (last, since) in self._seen.items():
            text = signs.get(str(host), b"").decode()
            if text != last:
                self._seen[host] = text, now
                since = now
            state, _, rest = text.partition("\n")
            message = rest.partition("\n")[2]
            who = f"host {host} of {self.count}"
            if state == STOPPING:
                self._lose(f"{who} was told to stop")
            elif state == BAD_INPUT:
                self._lose(f"error: {who}: {message}", 2)
            elif state == FAILED:
                self._lose(f"{who} failed ({message})")
            elif state != LEFT and now - since > self.timeout_s:
                self._gone.add(host)
                self._lose(f"{who} is gone: no sign of life for {self.timeout_s:g} s")

    def finish(self, state: str, message: str, wait_s: float) -> None:
        """The last sign of this host; then waits for those of the others, for so many seconds at most."""
        self._over.set()
        if not self._can_speak:
            return
        # The coordinator may go while this speaks to it, and the call then hang.
        farewell = threading.Thread(target=self._say_farewell, args=(state, message, wait_s), daemon=True)
        farewell.start()
        farewell.join(wait_s + _FAREWELL_CALLS_S)

    def _say_farewell(self, state: str, message: str, wait_s: float) -> None:
        self._thread.join()
        deadline = time.monotonic() + wait_s
        try:
            self._sign(state, message)
            while time.monotonic() < deadline and not self._all_have_ended():
                time.sleep(_SIGN_EVERY_S / 10)
        except RuntimeError:
            return

    def _all_have_ended(self) -> bool:
        signs = self.board.under("sign")
        others = self._seen.keys() - self._gone
        return all(signs.get(str(host), GOING.encode()).decode().partition("\n")[0] != GOING for host in others)


_kept_alive = []


def _hold_aborts(coordinator: str, tell) -> None:
    """Lets the run save itself when the coordinator dies.

    JAX's client then aborts the process from a thread of its own, at once, and takes no other instruction (the
    callback that its binding offers for this ends in a C++ exception). The abort is a signal, raised in that thread:
    it is held there for good, while the main thread goes on to its checkpoint. An abort of any other cause, known by
    a coordinator that still answers or by a thread of Python's, goes its way.
    """
    try:
        system = ctypes.CDLL(None)
        system.signal.restype, system.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    except (OSError, AttributeError, TypeError):  # not a Unix system: the abort stays
        return
    name, _, port = coordinator.rpartition(":")
    previous = None

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def receive(number):
        foreign = threading.get_ident() not in {thread.ident for thread in threading.enumerate()}
        if foreign and not _answers(name.strip("[]"), int(port)):
            tell()
            while True:
                time.sleep(3600)
        system.signal(number, previous)
        signal.raise_signal(number)

    _kept_alive.append(receive)
    previous = system.signal(signal.SIGABRT, ctypes.cast(receive, ctypes.c_void_p))


def _answers(name: str, port: int) -> bool:
    try:
        socket.create_connection((name, port), timeout=2).close()
    except OSError:
        return False
    return True
