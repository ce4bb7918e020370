"""Claims: at most one of any number of workers, on machines that share a folder, holds a run.

A claim is a file ATTEMPTS/<n>.json, made by exclusive creation; the highest n counts. A worker that finds this claim
ended (its holder wrote so) or stale (its holder is dead, or was silent for too long) may try to create n + 1. No file
is ever removed or recreated, so of several workers that find claim n stale only one creates n + 1, and a worker that
checked long ago fails. A live holder that was taken for dead sees n + 1 and stops.

The heartbeat of a holder is the modification time of its file. This time, and the present time that it is compared
with, are those of the file server: clocks of machines may differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from sl_discs.errors import InputError
from sl_discs.files import Damaged, read_json, write_json
from sl_discs.sweeps.processes import is_running, this_machine

# Seconds between two heartbeats, and the shortest allowed wait for one.
BEAT_S = 5.0
LEAST_STALE_S = 4 * BEAT_S


@dataclasses.dataclass(frozen=True)
class Seen:
    """The current claim, as it was found.

    Attributes:
      number: of the attempt.
      host: name of the holder's machine; `?` while the holder is just writing it.
      pid: its process there.
      since: when it was made, in seconds since 1970, by the holder's clock.
      outcome: how it ended; None before.
      changed_ns: time of the last sign of life, by the file server's clock, in nanoseconds since 1970.
      machine: the holder's `this_machine`.
    """

    number: int
    host: str
    pid: int
    since: float
    outcome: str | None
    changed_ns: int
    machine: str


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


def latest(folder: Path) -> Seen | None:
    """The current claim in a folder of claims; None if there is none."""
    try:
        numbers = [int(path.stem) for path in folder.iterdir() if path.suffix == ".json" and path.stem.isdecimal()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not numbers:
        return None
    path = _path(folder, max(numbers))
    changed = path.stat().st_mtime_ns
    try:
        content = read_json(path) or {}
    except Damaged:
        content = {}  # created, but not yet written
    return Seen(
        max(numbers),
        content.get("host", "?"),
        content.get("pid", 0),
        content.get("since", changed / 1e9),
        content.get("outcome"),
        changed,
        content.get("machine", ""),
    )


def _now_ns(folder: Path) -> int:
    """The time of the clock that stamps the files of a folder, or of this machine if it may not write there."""
    probe = folder / f".now.{uuid.uuid4().hex}"
    try:
        probe.touch()
        try:
            return probe.stat().st_mtime_ns
        finally:
            probe.unlink()
    except OSError:
        return time.time_ns()


def silence_s(folder: Path, seen: Seen) -> float:
    """Seconds since the last sign of life."""
    return max(0, _now_ns(folder) - seen.changed_ns) / 1e9


def is_held(folder: Path, seen: Seen | None, stale_after: float) -> bool:
    """Whether there is a claim that has not ended and whose holder seems to be alive."""
    if seen is None or seen.outcome is not None:
        return False
    if seen.machine == this_machine() and not is_running(seen.pid):
        return False
    return silence_s(folder, seen) < stale_after


class Claim:
    """A claim that this process holds."""

    def __init__(self, folder: Path, number: int, content: dict):
        self._folder, self.number, self._content = folder, number, content

    def beat(self) -> bool:
        """Sends a heartbeat; False if another worker has taken the run."""
        with contextlib.suppress(OSError):  # a file server may be unreachable for a while
            os.utime(_path(self._folder, self.number))
            return not _path(self._folder, self.number + 1).exists()
        return True

    def end(self, outcome: str) -> None:
        """Writes how the attempt ended, which frees the run."""
        content = self._content | {"outcome": outcome, "seconds": round(time.time() - self._content["since"], 3)}
        write_json(_path(self._folder, self.number), content, indent=None)


def take(folder: Path, stale_after: float) -> Claim | None:
    """A claim on a run, or None if another worker holds it.

    Args:
      folder: of the run's claims; created if necessary.
      stale_after: seconds without a sign of life after which a claim no longer counts.

    Raises:
      InputError: the folder cannot be written.
    """
    seen = latest(folder)
    return None if is_held(folder, seen, stale_after) else take_after(folder, seen)


def take_after(folder: Path, seen: Seen | None) -> Claim | None:
    """The claim that follows one that no longer counts, or None if another worker was faster; raises as `take`."""
    number = 1 if seen is None else seen.number + 1
    content = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time(), "machine": this_machine()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _path(folder, number).open("x") as file:
            file.write(json.dumps(content) + "\n")
    except FileExistsError:
        return None
    except OSError as error:
        raise InputError(f"{folder}: cannot claim a run ({error.strerror}); choose another --save_root") from None
    return Claim(folder, number, content)


class HeartBeat:
    """Sends heartbeats of a claim, from a thread, while the block runs.

    Attributes:
      lost: whether another worker has taken the run.
    """

    def __init__(self, claim: Claim, every_s: float, lost: Callable[[], object]):
        """`lost` is called, in the thread, once another worker has taken the run."""
        self.lost = False
        self._claim, self._every_s, self._tell = claim, every_s, lost
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while not self._ended.wait(self._every_s):
            if not self._claim.beat():
                self.lost = True
                self._tell()
                return

    def __enter__(self) -> HeartBeat:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()
