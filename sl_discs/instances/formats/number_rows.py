"""Lines of numbers as arrays: blocks of lines are split and converted whole, and looked at singly only for a message.

Every format that lists numbers reads through `LineReader`, which hands out lines with their numbers, and gathers them
in `Columns`, which knows the line that each row came from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.formats.source import Source

Words = list[bytes]

# A header alone allocates nothing: this many nodes may be isolated, and more only if the file has a byte for each.
FREE_NODES = 10**7
MOST_NODES = 2**31 - 1


class LineReader:
    """The lines of a file, split into words, without its comments."""

    def __init__(self, source: Source, comments: bytes, keep_blank: bool = False):
        """Starts before the first line.

        Args:
          source: file.
          comments: the first bytes of lines to skip.
          keep_blank: a line without words counts as one, as in METIS files.
        """
        self.source, self._comments, self._keep_blank = source, comments, keep_blank
        self._blocks = source.blocks()
        self._rows: list[Words] = []
        self._numbers: Sequence[int] = ()
        self._next_line = 1

    def take(self, limit: int | None = None) -> tuple[Sequence[int], list[Words]]:
        """Numbers and words of some next lines, at most `limit`; none at the end of the file."""
        while not self._rows:
            block = next(self._blocks, None)
            if block is None:
                return (), []
            self._split(block)
        numbers, rows = self._numbers[:limit], self._rows[:limit]
        # Small heads are cut off many times, so what is left is only moved if something is left.
        self._numbers, self._rows = (self._numbers[limit:], self._rows[limit:]) if limit is not None else ((), [])
        return numbers, rows

    def one(self, what: str) -> tuple[int, Words]:
        """Number and words of the next line.

        Raises:
          InputError: the file ends here.
        """
        numbers, rows = self.take(1)
        if not rows:
            raise InputError(
                f"{self.source.path}:{self._next_line}: the file ends where {what} should be; complete it"
            )
        return numbers[0], rows[0]

    def groups(self, limit: int | None = None) -> Iterator[tuple[Sequence[int], list[Words]]]:
        """All next lines, or the next `limit`, in groups."""
        while limit is None or limit > 0:
            numbers, rows = self.take(limit)
            if not rows:
                return
            yield numbers, rows
            limit = None if limit is None else limit - len(rows)

    def _split(self, block: bytes) -> None:
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        rows = [line.split() for line in lines]
        numbers: Sequence[int] = range(self._next_line, self._next_line + len(rows))
        self._next_line += len(rows)
        if (not self._keep_blank and not all(rows)) or any(bytes([mark]) in block for mark in self._comments):
            kept = [k for k, row in enumerate(rows) if (row[0][0] not in self._comments if row else self._keep_blank)]
            numbers, rows = np.array(numbers, np.int64)[kept].tolist(), [rows[k] for k in kept]
        self._numbers, self._rows = numbers, rows


class Columns:
    """Rows of numbers, one a line and all of the same layout, as one array a column.

    A layout is a string with a letter a column: `i` for a whole number from 0 on (int64), `f` for a finite number
    (float64), `t` for a name (int64, the position among the distinct names), `-` for a word that is passed over. The
    first row chooses among the layouts by its number of words.
    """

    def __init__(self, source: Source, layouts: Sequence[str], what: str, names: dict[bytes, int] | None = None):
        """Has no rows yet.

        Args:
          source: file, for messages.
          layouts: allowed ones, of different lengths.
          what: what a row should look like, for messages.
          names: is given the names that `t` columns hold, each with its position.
        """
        self._names = names
        self._path, self._layouts, self._what = source.path, {len(layout): layout for layout in layouts}, what
        self.layout: str | None = None
        self._parts: list[list[np.ndarray]] = []
        self._numbers: list[Sequence[int]] = []

    def __len__(self) -> int:
        return sum(map(len, self._numbers))

    def extend(self, groups: Iterator[tuple[Sequence[int], list[Words]]]) -> Columns:
        """Adds groups of lines.

        Raises:
          InputError: a line with another number of words, or a word that is no such number.
        """
        for numbers, rows in groups:
            self.add(numbers, rows)
        return self

    def add(self, numbers: Sequence[int], rows: list[Words]) -> None:
        """Adds lines; see `extend`."""
        if not rows:
            return
        if self.layout is None:
            self.layout = self._layouts.get(len(rows[0]))
        width = len(self.layout) if self.layout else 0
        if set(map(len, rows)) != {width}:
            row = next(k for k, words in enumerate(rows) if len(words) != width)
            raise InputError(
                f"{self._path}:{numbers[row]}: {show(b' '.join(rows[row]))} where every line should be {self._what}; "
                "correct the line"
            )
        columns = [
            (kind, words) for kind, words in zip(self.layout, zip(*rows, strict=True), strict=True) if kind != "-"
        ]
        for word in itertools.chain.from_iterable(
            zip(*(words for kind, words in columns if kind == "t"), strict=True)
        ):
            self._names.setdefault(word, len(self._names))
        self._parts.append([self._convert(numbers, kind, words) for kind, words in columns])
        self._numbers.append(numbers)

    def arrays(self) -> list[np.ndarray]:
        """The columns, in the order of the layout (of the shortest one without rows)."""
        if self._parts:
            parts = list(zip(*self._parts, strict=True))
            self._parts = [[np.concatenate(part) for part in parts]]
            return self._parts[0]
        layout = self._layouts[min(self._layouts)]
        return [np.zeros(0, np.float64 if kind == "f" else np.int64) for kind in layout if kind != "-"]

    def line(self, row: int) -> int:
        """Number of the line that a row came from."""
        for numbers in self._numbers:
            if row < len(numbers):
                return numbers[row]
            row -= len(numbers)
        raise IndexError(row)

    def refuse(self, bad: np.ndarray, message: str) -> None:
        """Raises for the first row marked in `bad`, if there is one; `{0}`, `{1}` stand for its columns."""
        if bad.any():
            self.refuse_row(int(np.argmax(bad)), message)

    def refuse_row(self, row: int, message: str) -> NoReturn:
        """Raises for a row."""
        values = [column[row].item() for column in self.arrays()]
        raise InputError(f"{self._path}:{self.line(row)}: {message.format(*values)}")

    def check_indices(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The first two columns as indices from 0 on.

        Raises:
          InputError: one is outside first .. last.
        """
        u, v = self.arrays()[:2]
        for column, index in enumerate((u, v)):
            self.refuse(
                (index < first) | (index > last),
                f"node {{{column}}}, but nodes are {first} to {last}; correct the line or the header",
            )
        return u - first, v - first

    def _convert(self, numbers: Sequence[int], kind: str, words: Sequence[bytes]) -> np.ndarray:
        if kind == "t":
            return np.fromiter(map(self._names.__getitem__, words), np.int64, len(words))
        try:
            return _CONVERTERS[kind](words)
        except (ValueError, OverflowError):
            for number, word in zip(numbers, words, strict=True):
                try:
                    _CONVERTERS[kind]([word])
                except (ValueError, OverflowError):
                    what = "a whole number from 0 on" if kind == "i" else "a finite number"
                    raise InputError(f"{self._path}:{number}: {show(word)} is not {what}; correct the line") from None
            raise


def header_counts(
    source: Source, number: int, words: Sequence[bytes], widths: Sequence[int], usage: str
) -> list[int]:
    """The whole numbers of a header whose first is a number of nodes.

    Raises:
      InputError: their number is not one of `widths`, a word is not a whole number, or there are more nodes than any
        file may have (2^31 - 1).
    """
    if len(words) not in widths or not all(word.isdigit() and len(word) < 19 for word in words):
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a header; write {usage}")
    counts = [int(word) for word in words]
    if not 1 <= counts[0] <= MOST_NODES:
        raise InputError(f"{source.path}:{number}: {counts[0]} nodes; a file may have 1 to {MOST_NODES}")
    return counts


def check_supported(source: Source, number: int, num_nodes: int) -> None:
    """Refuses, after the file was read, a header with more nodes than the file can be about.

    Raises:
      InputError: more than ten million nodes and more than the file has bytes.
    """
    if num_nodes > max(FREE_NODES, source.text_bytes):
        raise InputError(
            f"{source.path}:{number}: {num_nodes} nodes in a file of {source.text_bytes} bytes; more than "
            f"{FREE_NODES} need at least a byte each, so correct the header"
        )


def check_count(source: Source, number: int, promised: int, found: int, what: str) -> None:
    """Compares a header with what followed it.

    Raises:
      InputError: they differ.
    """
    if promised != found:
        raise InputError(
            f"{source.path}:{number}: the header promises {promised} {what}, but there are {found}; "
            "is the file cut short?"
        )


def show(text: bytes) -> str:
    """Part of a file as it may stand in a message."""
    text = text if len(text) <= 40 else text[:40] + b"..."
    return repr(text.decode("utf-8", "replace"))


def whole_numbers(words: Sequence[bytes]) -> np.ndarray:
    """Words of digits as int64; ValueError or OverflowError if one is something else or too long."""
    if words and not b"".join(words).isdigit():
        raise ValueError
    return np.fromiter(map(int, words), np.int64, len(words))


def _finite_numbers(words: Sequence[bytes]) -> np.ndarray:
    # float() alone would take nan, inf and 1_000.
    if b"".join(words).translate(None, b"0123456789+-.eE"):
        raise ValueError
    numbers = np.fromiter(map(float, words), np.float64, len(words))
    if not np.isfinite(numbers).all():
        raise ValueError
    return numbers


_CONVERTERS = {"i": whole_numbers, "f": _finite_numbers}


def flatten(rows: list[Words]) -> list[bytes]:
    """The words of all rows in a row."""
    return list(itertools.chain.from_iterable(rows))
