"""A file as blocks of whole lines: plain, gzip, bzip2 or xz, told apart by their first bytes, in bounded memory.

A compressed file may unpack to 64 MiB, or to 100 times its own size if that is more: lists of numbers compress 3 to
20 times, while a decompression bomb compresses a thousand times. Nothing is unpacked beyond that limit, and lines
longer than 64 MiB are refused.
"""

from __future__ import annotations

import bz2
import codecs
import functools
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from sl_discs.errors import InputError
from sl_discs.files import open_regular

BLOCK_BYTES = 2**20
LONGEST_LINE = 2**26
_UNPACKED_BYTES, _UNPACKED_RATIO = 2**26, 100
_XZ_MEMORY = 2**28

Progress = Callable[[int], None]


class Source:
    """A file that can be read from its start as often as needed.

    Attributes:
      path: the file.
      name: its name without the suffixes of compression and format.
      magic: its first bytes, as they are on the disk.
      head: its first block of lines, unpacked; empty if it is a zip archive.
    """

    def __init__(self, path: str | os.PathLike, progress: Progress | None = None):
        """Reads the start of the file.

        Args:
          path: file, plain or compressed.
          progress: called with the number of bytes of the file that each later block took.

        Raises:
          InputError: no such file, not a regular file, unreadable, empty, or its start cannot be unpacked.
        """
        self.path, self._progress = Path(path), progress
        with open_regular(self.path) as file:
            self.magic = file.read(6)
        if not self.magic:
            raise InputError(f"{path}: the file is empty; was it cut short while it was copied?")
        packed = self.magic.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"))
        self.name = Path(self.path.stem).stem if packed else self.path.stem
        self._packed = packed
        self.head = b"" if self.is_zip else next(self.blocks(quiet=True), b"")
        if not (self.is_zip or self.head.strip()):
            raise InputError(f"{path}: the file holds nothing but blanks; was it cut short while it was copied?")

    @property
    def is_zip(self) -> bool:
        """The file is a zip archive, as NumPy's `.npz` files are."""
        return self.magic.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    def blocks(self, quiet: bool = False) -> Iterator[bytes]:
        """Blocks of about a MiB that end where a line ends, from the start of the file to its end.

        Args:
          quiet: whether to skip the calls of `progress`.

        Raises:
          InputError: the file cannot be read or unpacked, exceeds the limits on unpacked size or line length, or is
            binary.
        """
        parts: list[bytes] = []
        length, started = 0, False
        ready = b""  # held back until more follows, so that a last line without a newline is not lost
        for chunk in self._chunks(None if quiet else self._progress):
            if not started:
                if encoding := _encoding(chunk):
                    raise InputError(
                        f"{self.path}: text in {encoding}, which is not read; save it as UTF-8, "
                        f"for instance with: iconv -f {encoding} -t UTF-8"
                    )
                chunk, started = chunk.removeprefix(codecs.BOM_UTF8), True
            if b"\0" in chunk:
                raise InputError(f"{self.path}: a binary file; give text in one of the formats, or an .npz archive")
            if ready:
                yield ready
                ready = b""
            cut = chunk.rfind(b"\n") + 1
            if cut:
                ready = b"".join([*parts, chunk[:cut]])
                parts, length = [], 0
            parts.append(chunk[cut:])
            length += len(chunk) - cut
            if length > LONGEST_LINE:
                raise InputError(f"{self.path}: a line of over {LONGEST_LINE >> 20} MiB; is it one of the formats?")
        if last := b"".join([ready, *parts]):
            yield last

    def _chunks(self, progress: Progress | None) -> Iterator[bytes]:
        """Unpacked bytes in pieces, counted against the limit that the file's size sets."""
        with open_regular(self.path) as file:
            limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * os.fstat(file.fileno()).st_size)
            unpacked = taken = 0
            try:
                for chunk in _unpack(file, self.magic):
                    unpacked += len(chunk)
                    if self._packed and unpacked > limit:
                        raise InputError(
                            f"{self.path}: unpacks to more than {limit >> 20} MiB, far beyond its own size; "
                            "if you trust it, unpack it yourself and give the plain file"
                        )
                    yield chunk
                    if progress:
                        progress(file.tell() - taken)
                        taken = file.tell()
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(
                    f"{self.path}: damaged or cut short ({' '.join(str(error).split())}); copy it again"
                ) from error


def _encoding(start: bytes) -> str:
    """Name of an encoding other than UTF-8, recognised by its byte order mark or by zero bytes between characters."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    for name, place in ("UTF-16LE", 1), ("UTF-16BE", 0):
        if len(start) > 3 and not any(start[place:64:2]) and all(start[1 - place : 64 : 2]):
            return name
    return ""


def _unpack(file: BinaryIO, magic: bytes) -> Iterator[bytes]:
    if magic.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=file) as stream:
            yield from iter(functools.partial(stream.read, BLOCK_BYTES), b"")
    elif magic.startswith(b"BZh"):
        yield from _decode(file, bz2.BZ2Decompressor)
    elif magic.startswith(b"\xfd7zXZ\x00"):
        # The header of an xz file sets the memory that unpacking takes, so that is limited as well.
        yield from _decode(file, functools.partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))
    else:
        yield from iter(functools.partial(file.read, BLOCK_BYTES), b"")


def _decode(file: BinaryIO, new_decoder: Callable) -> Iterator[bytes]:
    """Unpacks one or more streams that follow each other, never more than a block at a time."""
    packed = file.read(BLOCK_BYTES)
    while packed:
        decoder = new_decoder()
        while not decoder.eof:
            if decoder.needs_input and not packed and not (packed := file.read(BLOCK_BYTES)):
                raise EOFError("the compressed data end too early")
            chunk = decoder.decompress(packed, BLOCK_BYTES)
            packed = b""
            if chunk:
                yield chunk
        packed = (decoder.unused_data or file.read(BLOCK_BYTES)).lstrip(b"\0")
