"""Optuna's journal, a file with one line of JSON per operation, that survives workers killed while they write.

A worker that is killed while it writes leaves an incomplete line. Optuna cannot read a file with such a line, even if
others have appended to it since. Here an incomplete line is skipped, and terminated before the next one is appended.
The worker that wrote it is gone, so no later operation depends on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optuna.storages.journal import BaseJournalBackend, JournalFileOpenLock

from sl_discs.errors import InputError

# The beginning of every line that Optuna writes.
_BEGINNING = b'{"op_code":'


class Journal(BaseJournalBackend):
    """A journal that any number of workers, on any number of machines, read and write."""

    def __init__(self, path: Path):
        """Creates the file if there is none; OSError if that is impossible."""
        self._path = path
        self._lock = JournalFileOpenLock(str(path))
        # A lower bound on the position of each record, for those that have been read.
        self._offsets = [0]
        with path.open("ab"):
            pass

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The records from a number on; incomplete ones are skipped and not counted.

        Raises:
          InputError: there is a line that Optuna has not written.
        """
        number = min(log_number_from, len(self._offsets) - 1)
        offset = self._offsets[number]
        with self._path.open("rb") as file:
            file.seek(offset)
            for line in file:
                record = self._record(line)
                if not line.endswith(b"\n"):
                    return  # incomplete, or being written
                offset += len(line)
                if record is None:
                    continue
                number += 1
                if number == len(self._offsets):
                    self._offsets.append(offset)
                if number > log_number_from:
                    yield record

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """The record of a line; None if it is incomplete. A record appended to an incomplete line is kept."""
        last = max(0, line.rfind(_BEGINNING))
        torn, whole = line[:last], line[last:].rstrip(b"\n")
        if not all(_BEGINNING.startswith(part[: len(_BEGINNING)]) for part in (torn, whole)):
            raise InputError(
                f"{self._path}: {line[:40]!r} is not a line of an Optuna journal; give another --storage, or remove "
                "that line"
            )
        try:
            return json.loads(whole)
        except ValueError:
            return None

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Appends either all records or none.

        Raises:
          InputError: the records cannot be written, for instance because the disk is full.
        """
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        self._lock.acquire()
        try:
            with self._path.open("a+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                try:
                    text = self._ending_of_torn_line(file, size) + text
                    while text:
                        text = text[file.write(text) :]
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(size)
                    raise
        except OSError as error:
            raise InputError(
                f"{self._path}: cannot write ({error.strerror or error}); the same command continues once it can"
            ) from error
        finally:
            self._lock.release()

    @staticmethod
    def _ending_of_torn_line(file, size: int) -> bytes:
        if not size:
            return b""
        file.seek(size - 1)
        return b"" if file.read(1) == b"\n" else b"\n"
