"""Text files by lines: unpacked within limits, lines without comments, and rows of numbers as
arrays.

Files may be plain or compressed by gzip, bzip2 or xz, told apart by their first bytes. A compressed
file may unpack to 4 MiB, or to 100 times its own size if that is more. Lines are read one after the
other, in linear time.
"""

from __future__ import annotations

import array
import bz2
import dataclasses
import decimal
import gzip
import io
import itertools
import lzma
import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.instances.graph import (
    Graph,
    check_isolated,
    check_size,
    edge_codes,
    first_rows,
    have_repeats,
)
from sl_discs.support.errors import FormatError
from sl_discs.support.files import check_unpacked, open_regular, unpacked_limit

_UNPACKED_BYTES = 2**22
_UNPACKERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
# No layout of lines or headers has more words.
_MOST_WORDS = 6


@dataclasses.dataclass(frozen=True)
class Remark:
    """What a reader did with a part of a file that its user may not expect, and mostly: what it
    left out.

    Attributes:
      what: it did, in words, such as `edges are listed again and count once`.
      count: how many.
      first: the place of the first, such as `line 3`.
      of: to whom it matters: to `any` problem, to those in which weights of `edges` or of `nodes`
        count, or, if it is empty, to none, but to whoever writes another file.
      lost: whether answers that are proved for what was read may be none for the whole file.
    """

    what: str
    count: int
    first: str
    of: str = "any"
    lost: bool = True

    def __str__(self) -> str:
        return f"{self.count} {self.what} (the first: {self.first})"


class SourceFile:
    """The content of a file.

    Attributes:
      path: the file.
      problem: that it shall pose, which decides what some files mean; None: any.
      named: whether the user has named its format.
      weight: the attribute of edges or nodes that is their weight, where the user has named one.
      remarks: of its reader.
      name, suffix: its name without suffixes, and the suffix in lower case, both without that of a
        compression.
      is_zip: whether it is a zip archive, as NumPy's `.npz` files are.
      text: its text, unpacked; empty if it is a zip archive.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        problem: str | None = None,
        named: bool = False,
        weight: str | None = None,
    ):
        """Reads the file; FormatError where it is empty, damaged or unpacks to more than
        the limit.
        """
        self.path = Path(path)
        self.problem = problem
        self.named = named
        self.weight = weight
        self.remarks: list[Remark] = []
        with open_regular(self.path) as file:
            start = file.peek(6)
            unpack = next(
                (unpack for mark, unpack in _UNPACKERS.items() if start.startswith(mark)), None
            )
            self.is_zip = start.startswith((b"PK\x03\x04", b"PK\x05\x06"))
            self.text = (
                b"" if self.is_zip else self._unpacked(file, unpack) if unpack else file.read()
            )
        self.text = self.text.removeprefix(b"\xef\xbb\xbf")
        plain = Path(self.path.stem) if unpack else self.path
        self.name = plain.stem
        self.suffix = plain.suffix.lower()
        if not (self.is_zip or self.text.strip()):
            raise FormatError(
                f"{path}: the file is empty, or all blank; was it cut short while it was copied?"
            )

    def _unpacked(self, file: io.BufferedReader, unpack: Any) -> bytes:
        try:
            with unpack(file) as stream:
                text = stream.read(unpacked_limit(file, _UNPACKED_BYTES) + 1)
        except Exception as error:  # whatever the decompressors raise
            raise FormatError(
                f"{self.path}: damaged or cut short ({' '.join(str(error).split())}); copy it again"
            ) from error
        check_unpacked(self.path, file, len(text), _UNPACKED_BYTES)
        return text

    def remark(
        self,
        what: str,
        places: Sequence[Any],
        *,
        at: str = "line {}",
        of: str = "any",
        lost: bool = True,
    ) -> None:
        """Adds a remark on what is at some places, if there are any; `at` makes words of a
        place.
        """
        if len(places):
            self.remarks.append(Remark(what, len(places), at.format(places[0]), of, lost))

    def lines(self, *skipped: bytes, blank: bool = False) -> Lines:
        """Returns the lines that begin with none of these."""
        return Lines(self, self.text, skipped, blank)


_NUMBER = re.compile(rb"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


@dataclasses.dataclass(frozen=True)
class Lines:
    """Some lines of a file, without blanks around them; iteration yields the number of each, from 1
    on, and itself.

    Attributes:
      source: the file.
      text: its text.
      skipped: beginnings of lines to leave out, such as comments.
      blank: whether lines without words count, as in METIS files.
      after: number of the line, such as a header, after which the first one comes.
    """

    source: SourceFile
    text: bytes
    skipped: tuple[bytes, ...] = ()
    blank: bool = False
    after: int = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(io.BytesIO(self.text), 1):
            line = line.strip()
            if number > self.after and (line or self.blank) and not line.startswith(self.skipped):
                yield number, line

    def error(self, number: int, message: str) -> FormatError:
        """Returns the error for what is wrong in a line."""
        return FormatError(f"{self.source.path}:{number}: {message}")

    def first(self, what: str) -> tuple[list[bytes], Lines]:
        """Returns the words of the first line that has any, and the lines after it; FormatError
        without one.

        Of a long line, the last word is all that is left of it.
        """
        for number, line in self:
            if line:
                return line.split(None, _MOST_WORDS), dataclasses.replace(self, after=number)
        raise FormatError(f"{self.source.path}: the file ends where {what} should be; complete it")

    def header(self, pattern: bytes, usage: str) -> tuple[re.Match[bytes], Lines]:
        """Returns the match of the first line, its words parted by single blanks, and the lines
        after it.

        The group `nodes` of the pattern is a number of nodes, at least 1. FormatError, with the
        usage, for another line.
        """
        cells, lines = self.first(f"the header {usage}")
        match = re.fullmatch(pattern, line := b" ".join(cells))
        if match is None:
            raise self.error(lines.after, f"{show(line)} is not a header; write {usage}")
        num_nodes = int(match["nodes"])
        where = f"{self.source.path}:{lines.after}"
        check_size(where, num_nodes)
        check_isolated(
            where,
            num_nodes,
            len(self.text),
            "correct the header, or leave nodes without a term out",
        )
        return match, lines

    def check_count(self, promised: int, counted: int, what: str) -> None:
        """Compares the number that the header in the line before these promises with the number
        found.
        """
        if promised != counted:
            raise self.error(
                self.after,
                f"the header promises {promised} {what}, but there are {counted}; is the file cut "
                "short?",
            )

    def rows(self, layouts: Sequence[str], what: str) -> Rows:
        """Reads rows of numbers, one a line, in the layout that has as many words as the first
        line.

        Args:
          layouts: one letter per column: `i` for a whole number from 0 on (int64), `f` for a finite
            number (float64), which must be exact if it is whole and has no exponent; any other
            letter stands for itself.
          what: a line should be, for messages.
        """
        width = next((len(line.split(None, _MOST_WORDS)) for _, line in self), 0)
        layout = next((candidate for candidate in layouts if len(candidate) == width), layouts[0])
        numbers = array.array("q")

        def counted() -> Iterator[bytes]:
            for number, line in self:
                numbers.append(number)
                yield line

        types = [
            (str(k), {"i": np.int64, "f": np.float64}.get(kind, "S2"))
            for k, kind in enumerate(layout)
        ]
        table = np.zeros(0, types)
        if width:
            try:
                with warnings.catch_warnings():
                    # NumPy before 2.3 reads whole numbers through floating point, and says so.
                    warnings.simplefilter("error", DeprecationWarning)
                    table = np.loadtxt(counted(), types, comments=None, ndmin=1)
            except (ValueError, DeprecationWarning):
                raise self._explained(layout, what) from None
        columns = []
        good = len(table) == len(numbers)  # what NumPy takes for blanks may be none
        for (name, _), kind in zip(types, layout, strict=True):
            column = np.ascontiguousarray(table[name])
            known = (
                column >= 0
                if kind == "i"
                else np.isfinite(column)
                if kind == "f"
                else column == kind.encode()
            )
            good = good and bool(known.all())
            columns += [column] if kind in "if" else []
        if not good:
            raise self._explained(layout, what)
        if layout[-1] == "f":
            self._check_exact(np.abs(columns[-1]) >= 2**53)
        return Rows(self.source, columns, numbers)

    def _check_exact(self, large: np.ndarray) -> None:
        """Refuses a large number at the end of a line that was rounded, unless it has an
        exponent.
        """
        if large.any():
            for number, line in itertools.compress(self, large):
                try:
                    exact_number(line.split()[-1])
                except ValueError as error:
                    raise self.error(number, f"{error}; correct the line") from None

    def _explained(self, layout: str, what: str) -> FormatError:
        """Returns the error for the first line that is not in the layout."""
        checks = [{"i": is_whole, "f": is_real}.get(kind, kind.encode().__eq__) for kind in layout]
        for number, line in self:
            cells = line.split(None, _MOST_WORDS)
            if len(cells) != len(layout) or not all(
                check(word) for check, word in zip(checks, cells, strict=True)
            ):
                return self.error(
                    number, f"{show(line)} where every line should be {what}; correct the line"
                )
        return FormatError(
            f"{self.source.path}: a line is not {what}; use spaces and line feeds only"
        )


@dataclasses.dataclass(frozen=True)
class Rows:
    """Numbers of lines, or what a library has read, with the same layout.

    Attributes:
      source: the file.
      columns: an array for each column of numbers.
      numbers: of the lines; None where there are no lines.
    """

    source: SourceFile
    columns: list[np.ndarray]
    numbers: Sequence[int] | None = None

    @property
    def weights(self) -> np.ndarray | None:
        """The third column, if there is one."""
        return self.columns[2] if len(self.columns) > 2 else None

    def remark(self, marked: np.ndarray, what: str, of: str = "any") -> None:
        """Adds a remark on the rows that are marked."""
        marked_rows = self.only(marked)
        if marked_rows.numbers is not None:
            self.source.remark(what, marked_rows.numbers, of=of)
        else:
            self.source.remark(
                what, np.stack(marked_rows.columns[:2], axis=1).tolist(), at="edge {}", of=of
            )

    def only(self, kept: np.ndarray) -> Rows:
        """Returns the rows that are marked."""
        numbers = None if self.numbers is None else list(itertools.compress(self.numbers, kept))
        return Rows(self.source, [column[kept] for column in self.columns], numbers)

    def refuse(self, bad: np.ndarray, message: str) -> None:
        """Raises for the first row marked in `bad`, if there is one; `{0}`, `{1}` stand for its
        columns.
        """
        if bad.any():
            row = int(np.argmax(bad))
            line = "" if self.numbers is None else f":{self.numbers[row]}"
            cells = message.format(*(column[row] for column in self.columns))
            raise FormatError(f"{self.source.path}{line}: {cells}")

    def refuse_repeats(self, codes: np.ndarray, message: str) -> None:
        """Raises for the first row whose code an earlier one has."""
        self.refuse(first_rows(codes) != np.arange(len(codes)), message)

    def indices(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first two columns as indices from 0 on; FormatError if one is outside first
        .. last.
        """
        u, v = self.columns[:2]
        outside = (np.minimum(u, v) < first) | (np.maximum(u, v) > last)
        self.refuse(
            outside,
            f"{{0}} and {{1}}, but nodes are {first} to {last}; correct the line or the header",
        )
        return u - first, v - first

    def graph(self, num_nodes: int, ends: Sequence[np.ndarray]) -> Graph:
        """Returns the graph with an edge for each row, whose ends are two arrays of nodes from 0
        on.

        An edge may be repeated, in either direction and with the same weight; it counts once, which
        is remarked unless all edges are listed from both ends.
        """
        u, v = ends
        weights = self.weights
        self.refuse(
            u == v, "an edge from node {0} to itself; remove it, or read a model in its own format"
        )
        first = first_rows(edge_codes(u, v, num_nodes))
        again = first != np.arange(len(first))
        if weights is not None:
            differs = weights != weights[first]
            self.refuse(
                differs,
                "edge {0} {1} was given before with another weight than {2}; keep one of them",
            )
        if again.any():
            if 2 * np.count_nonzero(again) != len(u) or have_repeats(u * np.int64(num_nodes) + v):
                self.remark(again, "edges are listed again and count once", "edges")
            u = u[~again]
            v = v[~again]
            weights = None if weights is None else weights[~again]
        return Graph.from_arrays(self.source.name, num_nodes, np.stack([u, v], axis=1), weights)


def is_whole(word: bytes) -> bool:
    """Returns whether a word is a whole number from 0 on that fits into 64 bits, without many
    leading zeros.
    """
    return word.isdigit() and len(word) < 20 and int(word) < 2**63


def is_real(word: bytes) -> bool:
    """Returns whether a word is a finite number; `float` alone would also take 1_000."""
    return _NUMBER.fullmatch(word) is not None and math.isfinite(float(word))


def exact_number(word: bytes) -> float:
    """Returns a number, which from 2^53 on must be exact in double precision or have an exponent;
    else ValueError.
    """
    if not is_real(word):
        raise ValueError(f"{show(word)} is not a finite number")
    value = float(word)
    if (
        abs(value) >= 2**53
        and b"e" not in word.lower()
        and decimal.Decimal(word.decode()) != decimal.Decimal(value)
    ):
        raise ValueError(f"{show(word)} is beyond 2^53 and not exact in double precision")
    return value


def show(text: bytes) -> str:
    """Returns part of a file in a form that is safe to print in a message."""
    text = text if len(text) <= 40 else text[:40] + b"..."
    return repr(text.decode("utf-8", "replace"))
