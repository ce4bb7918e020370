"""Event files of scalars for TensorBoard, written with tensorboardX and without TensorFlow.

tensorboardX's summary writer works in a thread, where a full disk goes unnoticed, so its file and message classes are
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
    """For commands that will write events: fails early, rather than at the end of a long run.

    Raises:
      InputError: tensorboardX is not installed.
    """
    if importlib.util.find_spec("tensorboardX") is None:
        raise InputError(
            "tensorboardX is missing, so no events; install it with: pip install -e '.[run]' in the clone"
        )


class EventsFile:
    """A new event file in a folder; additions are on disk when a call returns.

    Attributes:
      path: path of the file.
    """

    def __init__(self, folder: Path, first_step: int = 0):
        """Begins at a step; readers drop this step and later ones from older files of the folder.

        Raises:
          OSError: the folder cannot be written.
        """
        from tensorboardX.proto.event_pb2 import SessionLog
        from tensorboardX.record_writer import RecordWriter

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Readers sort a folder's files by name.
        self.path = folder / f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}"
        self._records = RecordWriter(str(self.path))
        start = {"step": first_step, "session_log": SessionLog(status=SessionLog.START)}
        self._write({"file_version": "brain.Event:2"}, start)

    def add(self, rows: list[tuple[int, Mapping[str, float]]]) -> None:
        """Adds scalars, by tag, for some steps.

        Raises:
          OSError: the file cannot be written.
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
