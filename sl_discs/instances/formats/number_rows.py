"""Lines of numbers as arrays.

Every format that lists numbers reads its lines through `LineReader` and gathers them in `Columns`, which remembers
the line number of each row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.formats.lines import Lines
from sl_discs.instances.formats.number_words import real_numbers, whole_numbers, why_not_real
from sl_discs.instances.formats.source import Source
from sl_discs.instances.graph import check_size


class Columns:
    """Rows of numbers, one per line and all with the same layout, as one array per column.

    A layout is a string with one letter per column: `i` for a whole number from 0 on (int64), `f` for a finite number
    (float64), `t` for a name (int64, its position among the distinct names), `-` for a word that is skipped. The
    number of words in the first row selects the layout.
    """

    def __init__(self, source: Source, layouts: Sequence[str], what: str, names: dict[bytes, int] | None = None):
        """Starts without rows.

        Args:
          source: file, for messages.
          layouts: allowed ones, of different lengths.
          what: what a row should look like, for messages.
          names: filled with the names in the `t` columns and their positions.
        """
        self._names = {} if names is None else names
        self._path, self._layouts, self._what = source.path, {len(layout): layout for layout in layouts}, what
        self.layout: str | None = None
        self._parts: list[list[np.ndarray]] = []
        self._numbers: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._numbers))

    def extend(self, groups: Iterable[Lines]) -> Columns:
        """Adds groups of lines.

        Raises:
          InputError: a line with a different number of words, or a word that is not a number as the layout demands.
        """
        for lines in groups:
            self.add(lines)
        return self

    def add(self, lines: Lines) -> None:
        """Adds lines; see `extend`."""
        if not len(lines):
            return
        if self.layout is None:
            self.layout = self._layouts.get(int(lines.counts[0]))
        layout = self.layout or ""
        width = len(layout)
        if (lines.counts != width).any():
            row = int(np.argmax(lines.counts != width))
            raise InputError(
                f"{self._path}:{lines.numbers[row]}: {show(b' '.join(lines.line(row)))} where every line should be "
                f"{self._what}; correct the line"
            )
        texts = {k: lines.column(k).tolist() for k, kind in enumerate(layout) if kind == "t"}
        for name in itertools.chain.from_iterable(zip(*texts.values(), strict=True)):
            self._names.setdefault(name, len(self._names))
        self._parts.append(
            [
                np.fromiter(map(self._names.__getitem__, texts[k]), np.int64, len(lines))
                if kind == "t"
                else self._convert(lines, k, kind)
                for k, kind in enumerate(layout)
                if kind != "-"
            ]
        )
        self._numbers.append(lines.numbers)

    def arrays(self) -> list[np.ndarray]:
        """The columns in the order of the layout (of the shortest layout if there are no rows)."""
        if self._parts:
            parts = list(zip(*self._parts, strict=True))
            self._parts = [[np.concatenate(part) for part in parts]]
            return self._parts[0]
        layout = self._layouts[min(self._layouts)]
        return [np.zeros(0, np.float64 if kind == "f" else np.int64) for kind in layout if kind != "-"]

    def line(self, row: int) -> int:
        """Number of the line that a row came from."""
        return int(np.concatenate(self._numbers)[row])

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

    def _convert(self, lines: Lines, k: int, kind: str) -> np.ndarray:
        words = lines.column(k)
        values, wrong = (whole_numbers if kind == "i" else real_numbers)(words)
        if wrong.any():
            row = int(np.argmax(wrong))
            (word,) = words[row : row + 1].tolist()
            why = "not a whole number from 0 on" if kind == "i" else why_not_real(word)
            raise InputError(f"{self._path}:{lines.numbers[row]}: {show(word)} is {why}; correct the line")
        return values


def header_counts(
    source: Source, number: int, words: Sequence[bytes], widths: Sequence[int], usage: str
) -> list[int]:
    """The whole numbers in a header, the first of which is a number of nodes.

    Raises:
      InputError: the number of words is not one of `widths`, a word is not a whole number, or there are no nodes or
        more than `check_size` allows.
    """
    if len(words) not in widths or not all(word.isdigit() and len(word) < 19 for word in words):
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a header; write {usage}")
    counts = [int(word) for word in words]
    if not counts[0]:
        raise InputError(f"{source.path}:{number}: 0 nodes; a file has at least 1")
    check_size(f"{source.path}:{number}", counts[0])
    return counts


def check_count(source: Source, number: int, promised: int, found: int, what: str) -> None:
    """Compares the number that a header promises with the number found.

    Raises:
      InputError: they differ.
    """
    if promised != found:
        raise InputError(
            f"{source.path}:{number}: the header promises {promised} {what}, but there are {found}; "
            "is the file cut short?"
        )


def show(text: bytes) -> str:
    """Part of a file in a form that is safe to print in a message."""
    text = text if len(text) <= 40 else text[:40] + b"..."
    return repr(text.decode("utf-8", "replace"))
