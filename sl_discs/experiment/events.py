"""Events files as TensorBoard reads them, written by tensorboardX without TensorFlow: scalars alone.

tensorboardX's own writer of summaries works in a thread, where a full disk goes unnoticed; its files and messages are
used here directly.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from sl_discs.errors import InputError


def check_tensorboardx() -> None:
    """For commands that are asked for events, before a long run ends without them.

    Raises:
      InputError: tensorboardX is not installed.
    """
    if importlib.util.find_spec("tensorboardX") is None:
        raise InputError("tensorboardX is missing, so no events; install it with: pip install 'sl_discs[run]'")


class EventsFile:
    """A new events file in a folder; what is added is on the disk when the call returns.

    Attributes:
      path: of the file.
    """

    def __init__(self, folder: Path, first_step: int = 0):
        """Begins at a step: readers drop what older files of the folder say of it and of later ones.

        Raises:
          OSError: the folder cannot be written.
        """
        from tensorboardX.proto.event_pb2 import SessionLog
        from tensorboardX.record_writer import RecordWriter

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Readers take a folder's files in the order of their names.
        self.path = folder / f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}"
        self._records = RecordWriter(str(self.path))
        start = {"step": first_step, "session_log": SessionLog(status=SessionLog.START)}
        self._write({"file_version": "brain.Event:2"}, start)

    def add(self, rows: list[tuple[int, Mapping[str, float]]]) -> None:
        """Adds scalars by tag at each of some steps.

        Raises:
          OSError: it cannot be written.
        """
        from tensorboardX.proto.summary_pb2 import Summary

        summaries = (
            (step, Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]))
            for step, scalars in rows
        )
        self._write(*({"step": step, "summary": summary} for step, summary in summaries))

    def _write(self, *events: dict) -> None:
        from tensorboardX.proto.event_pb2 import Event

        now = time.time()
        for fields in events:
            self._records.write(Event(wall_time=now, **fields).SerializeToString())
        self._records.flush()
