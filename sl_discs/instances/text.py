"""Text files by lines: unpacked within limits, lines without comments, and rows of numbers as arrays.

Files may be plain or compressed by gzip, bzip2 or xz, told apart by their first bytes. A compressed file may unpack
to 64 MiB, or to 100 times its own size if that is more: lists of numbers compress 3 to 20 times, while a bomb
compresses a thousand times. Nothing is unpacked beyond that limit, and lines longer than 64 MiB are refused.
"""

from __future__ import annotations

import bz2
import codecs
import decimal
import functools
import gzip
import itertools
import lzma
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from sl_discs.errors import FormatError
from sl_discs.files import open_regular, write_atomically
from sl_discs.instances.graph import check_size

_BLOCK_BYTES = 2**20
_LONGEST_LINE = 2**26
_UNPACKED_BYTES, _UNPACKED_RATIO = 2**26, 100

_UNPACKERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": functools.partial(lzma.LZMAFile, format=lzma.FORMAT_XZ),
}

Progress = Callable[[int], None]
# Lines and their numbers in the file, from 1 on.
Block = tuple[list[bytes], Sequence[int]]


class Source:
    """A file that can be read from its start as often as needed.

    Attributes:
      path: the file.
      problem: that it shall pose, which decides what some files mean; None: any.
      name, suffix: its name without suffixes, and the suffix in lower case, both without that of a compression.
      named: whether the user has named its format.
      is_zip: whether it is a zip archive, as NumPy's `.npz` files are.
      head: its first block of lines, unpacked; empty if it is a zip archive.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        problem: str | None = None,
        progress: Progress | None = None,
        named: bool = False,
    ):
        """Reads the start of the file; `progress` is called with the bytes that each later block took of it."""
        self.path, self.problem, self._progress, self.named = Path(path), problem, progress, named
        with open_regular(self.path) as file:
            magic = file.read(6)
        if not magic:
            raise FormatError(f"{path}: the file is empty; was it cut short while it was copied?")
        self._unpack = next((unpack for start, unpack in _UNPACKERS.items() if magic.startswith(start)), None)
        plain = Path(self.path.stem) if self._unpack else self.path
        self.name, self.suffix = plain.stem, plain.suffix.lower()
        self.is_zip = magic.startswith((b"PK\x03\x04", b"PK\x05\x06"))
        self.head = b"" if self.is_zip else next(self.blocks(quiet=True), b"")
        if not (self.is_zip or self.head.strip()):
            raise FormatError(f"{path}: the file holds nothing but blanks; was it cut short while it was copied?")
        start = self.head[:256].lstrip().lower()
        if start.startswith((b"<!doctype html", b"<html")):
            raise FormatError(f"{path}: a web page, perhaps of an error; download the file again")

    def blocks(self, quiet: bool = False) -> Iterator[bytes]:
        """Blocks of about a MiB that end where a line ends, from the start of the file to its end.

        Unless `quiet`, `progress` is called.
        """
        parts: list[bytes] = []
        length, started = 0, False
        ready = b""  # held back until more follows, so that a last line without a newline goes with it
        for chunk in self._chunks(None if quiet else self._progress):
            if not started:
                if encoding := _encoding(chunk):
                    raise FormatError(
                        f"{self.path}: text in {encoding}, which is not read; save it as UTF-8, "
                        f"for instance with: iconv -f {encoding} -t UTF-8"
                    )
                chunk, started = chunk.removeprefix(codecs.BOM_UTF8), True
            if b"\0" in chunk:
                raise FormatError(f"{self.path}: a binary file; give text in one of the formats, or an .npz archive")
            if ready:
                yield ready
                ready = b""
            if cut := chunk.rfind(b"\n") + 1:
                ready = b"".join([*parts, chunk[:cut]])
                parts, length = [], 0
            parts.append(chunk[cut:])
            length += len(chunk) - cut
            if length > _LONGEST_LINE:
                raise FormatError(f"{self.path}: a line of over {_LONGEST_LINE >> 20} MiB; is it one of the formats?")
        if last := b"".join([ready, *parts]):
            yield last

    def _chunks(self, progress: Progress | None) -> Iterator[bytes]:
        """Unpacked bytes in pieces, counted against the limit that the file's size sets."""
        with open_regular(self.path) as file:
            limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * os.fstat(file.fileno()).st_size)
            unpacked = taken = 0
            try:
                stream = self._unpack(file) if self._unpack else file
                while chunk := stream.read(_BLOCK_BYTES):
                    unpacked += len(chunk)
                    if self._unpack and unpacked > limit:
                        raise FormatError(
                            f"{self.path}: unpacks to more than {limit >> 20} MiB, far beyond its own size; "
                            "if you trust it, unpack it yourself and give the plain file"
                        )
                    yield chunk
                    if progress:
                        progress(file.tell() - taken)
                        taken = file.tell()
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise FormatError(
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


class Lines:
    """Reads the lines of a file in blocks, without those that begin as comments do.

    Lines without words count if `keep_blank`, as in METIS files; if `quiet`, the source's `progress` is not called.
    """

    def __init__(self, source: Source, comments: Sequence[bytes] = (), keep_blank: bool = False, quiet: bool = False):
        self.source, self._comments, self._keep_blank = source, tuple(comments), keep_blank
        self._blocks = source.blocks(quiet)
        self._ready: Block = [], ()
        self._next_number = 1

    def _fill(self) -> Block:
        """Lines that were read but not taken yet; none only at the end of the file."""
        while not self._ready[0] and (block := next(self._blocks, None)) is not None:
            lines = block.removesuffix(b"\n").split(b"\n")
            numbers: Sequence[int] = range(self._next_number, self._next_number + len(lines))
            self._next_number += len(lines)
            commented = any(mark in block for mark in self._comments)
            if commented or not (self._keep_blank or all(map(bytes.strip, lines))):
                kept = [k for k, line in enumerate(lines) if self._counts(line.strip())]
                lines, numbers = [lines[k] for k in kept], [numbers[k] for k in kept]
            self._ready = lines, numbers
        return self._ready

    def _counts(self, line: bytes) -> bool:
        return not line.startswith(self._comments) if line else self._keep_blank

    def peek(self, what: str) -> tuple[int, list[bytes]]:
        """Number and words of the next line, without taking it; InputError if the file ends here."""
        lines, numbers = self._fill()
        if not lines:
            raise FormatError(
                f"{self.source.path}:{self._next_number}: the file ends where {what} should be; complete it"
            )
        return numbers[0], lines[0].split()

    def one(self, what: str) -> tuple[int, list[bytes]]:
        """Number and words of the next line; errors as `peek`."""
        found = self.peek(what)
        lines, numbers = self._ready
        self._ready = lines[1:], numbers[1:]
        return found

    def blocks(self, limit: int | None = None) -> Iterator[Block]:
        """All remaining lines, or the next `limit` of them, in blocks."""
        while (limit is None or limit > 0) and (ready := self._fill())[0]:
            lines, numbers = ready
            taken = len(lines) if limit is None else min(limit, len(lines))
            self._ready = lines[taken:], numbers[taken:]
            yield lines[:taken], numbers[:taken]
            limit = None if limit is None else limit - taken


_REAL = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Rows:
    """Numbers of lines with the same layout, as one array per column.

    Attributes:
      layout: one letter per column: `i` for a whole number from 0 on (int64), `f` for a finite number (float64), `-`
        for a word that is skipped.
      columns: the columns, without those skipped.
    """

    def __init__(self, path: Path, layout: str, columns: list[np.ndarray], numbers: list[Sequence[int]]):
        self._path, self.layout, self.columns, self._numbers = path, layout, columns, numbers

    def __len__(self) -> int:
        return sum(map(len, self._numbers))

    def refuse(self, bad: np.ndarray, message: str) -> None:
        """Raises for the first row marked in `bad`, if there is one; `{0}`, `{1}` stand for its columns."""
        if bad.any():
            row = int(np.argmax(bad))
            self.refuse_row(row, message.format(*(column[row].item() for column in self.columns)))

    def refuse_row(self, row: int, message: str) -> NoReturn:
        """Raises with the line of a row."""
        number = next(itertools.islice(itertools.chain.from_iterable(self._numbers), row, None))
        raise FormatError(f"{self._path}:{number}: {message}")

    def indices(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The first two columns as indices from 0 on; InputError if one is outside first .. last."""
        u, v = self.columns[:2]
        for column, index in enumerate((u, v)):
            self.refuse(
                (index < first) | (index > last),
                f"node {{{column}}}, but nodes are {first} to {last}; correct the line or the header",
            )
        return u - first, v - first


def read_rows(path: Path, blocks: Iterable[Block], layouts: Sequence[str], what: str) -> Rows:
    """Rows of numbers, one per line; the number of words in the first line selects one of the layouts (see `Rows`).

    Whole numbers must be exact in double precision. Messages name the path, the line and `what` it should look like.
    """
    layout, parts, numbers = "", [], []
    for lines, where in blocks:
        layout = layout or next((one for one in layouts if len(one) == len(lines[0].split())), layouts[0])
        parts.append(_columns(path, lines, where, layout, what))
        numbers.append(where)
    layout = layout or layouts[0]
    parts = parts or [[np.zeros(0, np.float64 if kind == "f" else np.int64) for kind in layout if kind != "-"]]
    return Rows(path, layout, [np.concatenate(column) for column in zip(*parts, strict=True)], numbers)


def _columns(path: Path, lines: list[bytes], numbers: Sequence[int], layout: str, what: str) -> list[np.ndarray]:
    # Reading whole numbers takes NumPy a third of the time; among these, there is no -0.
    for real in (np.int64, np.float64) if "f" in layout else (np.float64,):
        types = {"i": np.int64, "f": real, "-": "S1"}
        try:
            with warnings.catch_warnings():
                # NumPy before 2.3 reads whole numbers through floating point, and says so.
                warnings.simplefilter("error", DeprecationWarning)
                table = np.loadtxt(
                    lines, [(str(k), types[kind]) for k, kind in enumerate(layout)], comments=None, ndmin=1
                )
        except (ValueError, DeprecationWarning):
            continue
        found = [(k, kind, table[str(k)]) for k, kind in enumerate(layout) if kind != "-"]
        if real == np.float64 or all(column.all() for _, kind, column in found if kind == "f"):
            break
    else:
        _explain(path, lines, numbers, layout, what)
    if len(table) != len(lines):
        _explain(path, lines, numbers, layout, what)
    columns = []
    for k, kind, column in found:
        column = column.astype(np.float64 if kind == "f" else np.int64)
        if (column.min() < 0) if kind == "i" else not np.isfinite(column).all():
            _explain(path, lines, numbers, layout, what)
        if kind == "f":
            # Whole numbers without an exponent are meant exactly; NumPy rounds them silently.
            for row in np.flatnonzero(np.abs(column) >= 2**53).tolist():
                word = lines[row].split()[k]
                if b"e" not in word.lower() and decimal.Decimal(word.decode()) != decimal.Decimal(column[row]):
                    raise FormatError(
                        f"{path}:{numbers[row]}: {show(word)} is beyond 2^53 and not exact in double precision; "
                        "correct the line"
                    )
        columns.append(column)
    return columns


def _explain(path: Path, lines: list[bytes], numbers: Sequence[int], layout: str, what: str) -> NoReturn:
    """Raises for the first line that is not in the layout."""
    for line, number in zip(lines, numbers, strict=True):
        words = line.split()
        if len(words) != len(layout):
            raise FormatError(
                f"{path}:{number}: {show(b' '.join(words))} where every line should be {what}; correct the line"
            )
        for word, kind in zip(words, layout, strict=True):
            if kind == "i" and not is_whole(word):
                raise FormatError(f"{path}:{number}: {show(word)} is not a whole number from 0 on; correct the line")
            if kind == "f" and not is_real(word):
                raise FormatError(f"{path}:{number}: {show(word)} is not a finite number; correct the line")
    raise FormatError(f"{path}:{numbers[0]}: from here on, a line is not {what}; use spaces and line feeds only")


def is_whole(word: bytes) -> bool:
    """Whether a word is a whole number from 0 on that fits into 64 bits."""
    return word.isdigit() and len(word.lstrip(b"0")) < 20 and int(word) < 2**63


def is_real(word: bytes) -> bool:
    """Whether a word is a finite number; `float` alone would also take 1_000."""
    return bool(_REAL.fullmatch(word)) and bool(np.isfinite(float(word)))


def header_counts(path: Path, number: int, words: Sequence[bytes], widths: Sequence[int], usage: str) -> list[int]:
    """The whole numbers in a header, one of `widths` in number; the first one is a number of nodes."""
    if len(words) not in widths or not all(map(is_whole, words)):
        raise FormatError(f"{path}:{number}: {show(b' '.join(words))} is not a header; write {usage}")
    counts = [int(word) for word in words]
    if not counts[0]:
        raise FormatError(f"{path}:{number}: 0 nodes; a file has at least 1")
    check_size(f"{path}:{number}", counts[0])
    return counts


def check_count(path: Path, number: int, promised: int, found: int, what: str) -> None:
    """Compares the number that the header in line `number` promises with the number found."""
    if promised != found:
        raise FormatError(
            f"{path}:{number}: the header promises {promised} {what}, but there are {found}; is the file cut short?"
        )


def show(text: bytes) -> str:
    """Part of a file in a form that is safe to print in a message."""
    text = text if len(text) <= 40 else text[:40] + b"..."
    return repr(text.decode("utf-8", "replace"))


def write_lines(path: str | os.PathLike, header: str, pieces: Iterator[str]) -> None:
    """Writes ASCII text atomically."""

    def write(file: BinaryIO) -> None:
        file.write(header.encode("ascii"))
        file.writelines(piece.encode("ascii") for piece in pieces)

    write_atomically(path, write)
