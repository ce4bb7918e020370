"""Lines and progress for a terminal or a log, whatever the text holds and whether or not anybody reads it.

Names and labels come from files that anybody may have written: what a terminal would obey, such as escape sequences,
and what its encoding lacks is written as Python's `repr` writes it.
"""

import contextlib
import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TextIO


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


# Progress of a run: a bar on a terminal, or one line per minute in a log, for instance in chain-steps.
#
# The first line of a long run comes early, and every line estimates the remaining time, from the time without
# compilation.

# Seconds between two lines of a log, and until the first line of a run that will take longer than that.
_EVERY_S, _EARLY_S = 60.0, 5.0


class Advance(Protocol):
    """Reports the progress of a run."""

    def __call__(self, name: str, done: int, words: str = "") -> None:
        """Reports that `done` more units of a sampler are done; `words` describe all units so far."""


_CLOCKS: list[Callable[[], float]] = []


def count_apart(clock: Callable[[], float]) -> None:
    """Leaves the seconds of a clock, which counts those of compilation, out of the rates of progress."""
    _CLOCKS.append(clock)


def _compiled() -> float:
    return sum(clock() for clock in _CLOCKS)


class _Bar:
    """A bar of tqdm, which says that code is compiled until the first units are done."""

    def __init__(self, title: str, total: int | None, unit: str, done: int):
        from tqdm import tqdm

        self._bar = tqdm(total=total, desc=title, unit=unit, unit_scale=True, file=sys.stderr, initial=done)
        self.close = self._bar.close
        self._compiled = _compiled()

    def update(self, done: int, words: str) -> None:
        before, self._compiled = self._compiled, _compiled()
        self._bar.start_t += self._compiled - before
        self._bar.last_print_t += self._compiled - before
        shown = "compiling" if done == self._bar.n == 0 else words
        if shown != (self._bar.postfix or ""):
            self._bar.set_postfix_str(shown)
        self._bar.update(done)


class _Log:
    """Lines for a log file; short runs write none."""

    def __init__(self, title: str, total: int | None, unit: str, done: int):
        self._title, self._total, self._unit = title, total, unit
        self._done, self._last = done, time.monotonic()
        self._compiled = _compiled()
        self._shown, self._wait = done, _EARLY_S

    def update(self, done: int, words: str) -> None:
        self._done += done
        now = time.monotonic()
        if self._done == 0 or now - self._last < self._wait:
            return
        left = math.inf
        if self._total and self._done > self._shown:
            working = now - self._last - (_compiled() - self._compiled)
            left = (self._total - self._done) * max(working, 0.0) / (self._done - self._shown)
        if self._wait == _EARLY_S and not _EVERY_S <= left < math.inf:
            self._wait = _EVERY_S
            return
        self._last, self._shown, self._wait, self._compiled = now, self._done, _EVERY_S, _compiled()
        part = f" of {self._total:,} ({self._done / self._total:.0%})" if self._total else ""
        rest = f", about {_format_seconds(left)} left" if 0 < left < math.inf else ""
        tell(f"{self._title}: {self._done:,}{part}{self._unit}{rest}{words and f', {words}'}")

    def close(self) -> None:
        pass  # the summary follows


def _format_seconds(seconds: float) -> str:
    for size, unit in (86_400, "days"), (3_600, "hours"), (60, "minutes"):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


@contextlib.contextmanager
def progress_bar(
    total: int | None, unit: str = " chain-steps", label: str = "", *, shown: bool = True
) -> Iterator[Advance]:
    """A function that shows one progress bar per sampler on the error stream, or lines if that is not a terminal.

    Args:
      total: number of units of each sampler; None: unknown.
      unit: name of the units.
      label: text after the sampler's name, such as that of a part of the run.
      shown: whether to show anything.
    """
    if not shown:
        yield lambda name, done, words="": None
        return
    kind = _Bar if on_terminal() and importlib.util.find_spec("tqdm") else _Log
    bars: dict[str, _Bar | _Log] = {}

    def advance(name: str, done: int, words: str = "") -> None:
        if name not in bars:  # what is done by then, as before a resume, tells nothing of the rate
            title = printable(f"{name}, {label}" if label else name)
            bars[name], done = kind(title, total, unit, done), 0
        bars[name].update(done, words)

    try:
        yield advance
    finally:
        for one in bars.values():
            one.close()
