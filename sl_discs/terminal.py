"""Lines for a terminal or a log, whatever the text holds and whether or not anybody reads it.

Names and labels come from files that anybody may have written: what a terminal would obey, such as escape sequences,
and what its encoding lacks is written as Python's `repr` writes it.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO


def printable(text: str) -> str:
    """Returns a text as one line in which characters that are not printable are escaped: `\\x1b`, `\\n`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows of one table as lines: the first column to the left, the others to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells))
    return lines


def open_closed_streams() -> None:
    """Opens the null device for standard streams that are closed, as a daemon's are.

    Otherwise the first file that is opened would take their place, and output would go there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def on_terminal() -> bool:
    """Returns whether the error stream is a terminal, on which a progress bar can stand."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def say(lines: str) -> None:
    """Prints lines on standard output and flushes it.

    Once nobody reads it any more, as after `| head`, or its disk is full, nothing is printed, and the command still
    saves its files.
    """
    try:
        _write(sys.stdout, lines)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            tell(f"warning: the output cannot be written ({error.strerror}); the command continues")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(lines: str) -> None:
    """Writes lines on the error stream, in place of a progress bar if there is one; nothing where it is closed."""
    if sys.stderr is not None and not sys.stderr.closed:
        with contextlib.suppress(OSError):  # nobody reads it
            sys.stderr.write("\r\033[K" if on_terminal() else "")
            _write(sys.stderr, lines)


def _write(stream: TextIO, lines: str) -> None:
    encoding = stream.encoding or "utf-8"
    text = "\n".join(map(printable, lines.split("\n"))) + "\n"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
