"""Lines of a file split into words by NumPy: words are positions in a block of bytes rather than Python objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int32, Int64, UInt8

from sl_discs.errors import InputError
from sl_discs.instances.formats.source import Source


@dataclasses.dataclass(frozen=True)
class Words:
    """Words in a block of bytes.

    Attributes:
      block: the bytes.
      starts: [W] where each word begins.
      ends: [W] where it ends.
    """

    block: UInt8[np.ndarray, "bytes"]
    starts: Int32[np.ndarray, "W"]
    ends: Int32[np.ndarray, "W"]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which) -> Words:
        """Some of the words."""
        return Words(self.block, self.starts[which], self.ends[which])

    def tolist(self) -> list[bytes]:
        """The words as bytes objects."""
        text = self.block.tobytes() if len(self) > 8 else self.block
        return [bytes(text[start:end]) for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


@dataclasses.dataclass(frozen=True)
class Lines:
    """Some lines of a file.

    Attributes:
      words: [W] words of the block that contains the lines; some may belong to no line.
      first: [L] index of each line's first word.
      counts: [L] number of words of each line.
      numbers: [L] line number of each line in the file, from 1 on.
    """

    words: Words
    first: Int64[np.ndarray, "L"]
    counts: Int64[np.ndarray, "L"]
    numbers: Int64[np.ndarray, "L"]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, which) -> Lines:
        """Some of the lines."""
        return Lines(self.words, self.first[which], self.counts[which], self.numbers[which])

    def line(self, k: int) -> list[bytes]:
        """Words of a line."""
        return self.words[self.first[k] : self.first[k] + self.counts[k]].tolist()

    def column(self, k: int) -> Words:
        """The k-th word of every line, which must have one."""
        return self.words[self.first + k]

    def all_words(self) -> Words:
        """The words of every line, one line after the other."""
        before = np.cumsum(self.counts) - self.counts
        return self.words[np.repeat(self.first - before, self.counts) + np.arange(self.counts.sum())]


def split(block: bytes, first_number: int, comments: bytes = b"", keep_blank: bool = False) -> tuple[Lines, int]:
    """The lines of a block without comments, and the number of lines with comments.

    Args:
      block: whole lines.
      first_number: number of its first line.
      comments: the first bytes of lines to skip.
      keep_blank: whether lines without words are kept.
    """
    codes = np.frombuffer(block, np.uint8)
    # The same blanks as for `bytes.split`: a space, and the codes from a tab to a carriage return.
    inside = ~((codes == ord(" ")) | (codes - np.uint8(9) < 5))
    turns = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    turns = np.concatenate([[0] if inside[0] else [], turns, [len(codes)] if inside[-1] else []]).astype(np.int32)
    words = Words(codes, turns[::2], turns[1::2])
    ends = np.flatnonzero(codes == ord("\n")).astype(np.int32)  # as words' positions
    ends = ends if block.endswith(b"\n") else np.append(ends, np.int32(len(codes)))
    bounds = np.searchsorted(words.starts, ends)
    first = np.concatenate([[0], bounds[:-1]])
    lines = Lines(words, first, bounds - first, np.arange(first_number, first_number + len(ends)))
    kept = lines.counts > 0
    if any(bytes([mark]) in block for mark in comments):
        commented = kept.copy()
        commented[kept] = np.isin(codes[words.starts[first[kept]]], list(comments))
        kept &= ~commented
        return lines[~commented if keep_blank else kept], len(ends)
    return lines if keep_blank or kept.all() else lines[kept], len(ends)


class LineReader:
    """Reads the lines of a file, without comments, in groups."""

    def __init__(self, source: Source, comments: bytes, keep_blank: bool = False):
        """Starts before the first line.

        Args:
          source: file.
          comments: the first bytes of lines to skip.
          keep_blank: whether a line without words counts as a line, as in METIS files.
        """
        self.source, self._comments, self._keep_blank = source, comments, keep_blank
        self._blocks = source.blocks()
        self._lines: Lines | None = None
        self._next_number = 1

    def _fill(self) -> Lines | None:
        """Lines that were read but not taken yet, at least one; None at the end of the file."""
        while not self._lines:
            block = next(self._blocks, None)
            if block is None:
                return None
            self._lines, count = split(block, self._next_number, self._comments, self._keep_blank)
            self._next_number += count
        return self._lines

    def peek(self, what: str) -> tuple[int, list[bytes]]:
        """Number and words of the next line, without taking it.

        Raises:
          InputError: the file ends here.
        """
        lines = self._fill()
        if lines is None:
            raise InputError(
                f"{self.source.path}:{self._next_number}: the file ends where {what} should be; complete it"
            )
        return int(lines.numbers[0]), lines.line(0)

    def one(self, what: str) -> tuple[int, list[bytes]]:
        """Number and words of the next line; errors as `peek`."""
        found = self.peek(what)
        self._lines = self._lines and self._lines[1:]
        return found

    def groups(self, limit: int | None = None) -> Iterator[Lines]:
        """All remaining lines, or the next `limit` of them, in groups."""
        while (limit is None or limit > 0) and (lines := self._fill()):
            found, self._lines = lines[:limit], lines[limit:] if limit is not None else None
            yield found
            limit = None if limit is None else limit - len(found)
