"""Events files as TensorBoard reads them, written without TensorFlow: scalars alone.

A file is a sequence of records, each `length, checksum, payload, checksum`, whose payload is a protocol buffer of
type Event. Of that type a few fields are written: wall_time (1), step (2), file_version (3), summary (5) with its
values of tag (1) and simple_value (2), and session_log (7) with its status (1).
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

_VERSION = b"brain.Event:2"
_START = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _crc_table() -> list[int]:
    """Of the Castagnoli polynomial, bits reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def masked_crc(content: bytes) -> int:
    """CRC-32C, rotated and shifted as these files have it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, kind: int, content: bytes) -> bytes:
    length = _varint(len(content)) if kind == _BYTES else b""
    return _varint(number << 3 | kind) + length + content


def _event(wall_time: float, step: int, *fields: bytes) -> bytes:
    head = _field(1, _FIXED64, struct.pack("<d", wall_time)) + _field(2, _VARINT, _varint(step))
    return head + b"".join(fields)


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return b"".join((length, struct.pack("<I", masked_crc(length)), payload, struct.pack("<I", masked_crc(payload))))


class EventsFile:
    """A new events file in a folder; what is added is on its way to the disk when the call returns.

    Attributes:
      path: of the file.
    """

    def __init__(self, folder: Path, first_step: int = 0):
        """Begins at a step: readers drop what older files of the folder say of it and of later ones.

        Raises:
          OSError: the folder cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        # Readers take a folder's files in the order of their names.
        self.path = folder / f"events.out.tfevents.{now:017.6f}.{socket.gethostname()}.{os.getpid()}"
        start = _field(7, _BYTES, _field(1, _VARINT, _varint(_START)))
        self._append(_event(now, 0, _field(3, _BYTES, _VERSION)), _event(now, first_step, start))

    def add(self, rows: list[tuple[int, Mapping[str, float]]]) -> None:
        """Adds scalars by tag at each of some steps.

        Raises:
          OSError: it cannot be written.
        """
        now = time.time()
        self._append(*(_event(now, step, self._summary(scalars)) for step, scalars in rows))

    @staticmethod
    def _summary(scalars: Mapping[str, float]) -> bytes:
        values = (
            _field(1, _BYTES, tag.encode()) + _field(2, _FIXED32, struct.pack("<f", value))
            for tag, value in scalars.items()
        )
        return _field(5, _BYTES, b"".join(_field(1, _BYTES, value) for value in values))

    def _append(self, *payloads: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(_record(payload) for payload in payloads))
