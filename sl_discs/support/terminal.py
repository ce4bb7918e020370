"""Lines and progress for a terminal or a log, whatever the text holds and whether or not anybody
reads it.

Names and labels come from files that anybody may have written: what a terminal would obey, such as
escape sequences, and what its encoding lacks is written as Python's `repr` writes it.
"""

import contextlib
import io
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TextIO

from tqdm import tqdm


def printable(text: str) -> str:
    """Returns a text as one line in which characters that are not printable are escaped: `\\x1b`,
    `\\n`.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows of one table as lines: the first column to the left, the others to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [
            f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)
        ]
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

    Once nobody reads it any more, as after `| head`, or its disk is full, nothing is printed, and
    the command still saves its files.
    """
    try:
        _write(sys.stdout, lines)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            tell(f"warning: the output cannot be written ({error.strerror}); the command continues")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(lines: str) -> None:
    """Writes lines on the error stream, in place of a progress bar if there is one; nothing where
    it is closed.
    """
    if sys.stderr is not None and not sys.stderr.closed:
        with contextlib.suppress(OSError):  # nobody reads it
            sys.stderr.write("\r\033[K" if on_terminal() else "")
            _write(sys.stderr, lines)


def _write(stream: TextIO, lines: str) -> None:
    encoding = stream.encoding or "utf-8"
    text = "\n".join(map(printable, lines.split("\n"))) + "\n"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


# Progress of a run: a bar on a terminal, or one line per minute in a log, for instance in
# chain-steps.
#
# Every line estimates the remaining time from the latest rates, so that compilation, which comes
# first, is soon forgotten.

# Seconds between two lines of a log.
_EVERY_S = 60.0


class Advance(Protocol):
    """Reports the progress of a run."""

    def __call__(self, name: str, done: int, description: str = "") -> None:
        """Reports that `done` more units of a sampler are done; `description` describe all units
        so far.
        """


class _Bar:
    """A bar of tqdm, or its lines in a log; it says that code is compiled until the first units are
    done.
    """

    def __init__(self, title: str, total: int | None, unit: str, done: int):
        self._in_log = not on_terminal()
        style: dict[str, Any] = {"file": sys.stderr}
        if self._in_log:
            line = "{desc}: {n_fmt} of {total_fmt}{unit}, {remaining} left{postfix}"
            style = {
                "bar_format": line,
                "mininterval": _EVERY_S,
                "maxinterval": math.inf,
                "file": io.StringIO(),
            }
            style["delay"] = _EVERY_S
        self._bar = tqdm(
            total=total, desc=title, unit=unit, unit_scale=True, initial=done, miniters=1, **style
        )
        if self._in_log:
            self._bar.sp = tell  # what tqdm prints its lines with

    def update(self, done: int, description: str) -> None:
        self._bar.set_postfix_str(
            "compiling" if done == self._bar.n == 0 else description, refresh=not self._in_log
        )
        self._bar.update(done)

    def close(self) -> None:
        self._bar.disable = self._in_log  # the summary follows
        self._bar.close()


@contextlib.contextmanager
def progress_bar(
    total: int | None, unit: str = " chain-steps", label: str = "", *, shown: bool = True
) -> Iterator[Advance]:
    """A function that shows one progress bar per sampler on the error stream, or lines if that is
    not a terminal.

    Args:
      total: number of units of each sampler; None: unknown.
      unit: name of the units.
      label: text after the sampler's name, such as that of a part of the run.
      shown: whether to show anything.
    """
    if not shown:
        yield lambda name, done, description="": None
        return
    bars: dict[str, _Bar] = {}

    def advance(name: str, done: int, description: str = "") -> None:
        if name not in bars:  # what is done by then, as before a resume, tells nothing of the rate
            title = printable(f"{name}, {label}" if label else name)
            bars[name] = _Bar(title, total, unit, done)
            done = 0
        bars[name].update(done, description)

    try:
        yield advance
    finally:
        for bar in bars.values():
            bar.close()
