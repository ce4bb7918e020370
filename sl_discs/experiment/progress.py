"""How far a run is: a bar on a terminal, a line a minute in a log; in chain-steps of the sampler at work, say."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol

# Seconds between two lines of a log.
_EVERY_S = 60.0


class _Shown(Protocol):
    def update(self, done: int) -> object: ...

    def close(self) -> object: ...


class _Bar:
    """tqdm's bar, which says that nothing has been played yet: the first call compiles."""

    def __init__(self, title: str, total: int | None, unit: str):
        from tqdm import tqdm

        self._bar = tqdm(total=total, desc=title, unit=unit, unit_scale=True, file=sys.stderr)
        self._waits = False

    def update(self, done: int) -> None:
        """`done` more units."""
        if (done == 0) != self._waits and self._bar.n == 0:
            self._waits = done == 0
            self._bar.set_postfix_str("compiling" if self._waits else "")
        self._bar.update(done)

    def close(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()


class _Log:
    """Lines for a file that people look into; short runs write none."""

    def __init__(self, title: str, total: int | None, unit: str):
        self._title, self._total, self._unit = title, total, unit
        self._done, self._last = 0, time.monotonic()

    def update(self, done: int) -> None:
        """`done` more units."""
        self._done += done
        if time.monotonic() - self._last >= _EVERY_S:
            self._last = time.monotonic()
            part = f" of {self._total:,} ({self._done / self._total:.0%})" if self._total else ""
            sys.stderr.write(f"{self._title}: {self._done:,}{part}{self._unit}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Nothing: the summary follows."""


def _has_bars() -> bool:
    if not sys.stderr.isatty():
        return False
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return False
    return True


@contextlib.contextmanager
def progress_bar(
    total: int | None, unit: str = " chain-steps", label: str = ""
) -> Iterator[Callable[[str, int], None]]:
    """A function of (sampler, units done) that shows a bar a sampler on the error stream; lines without a terminal.

    Args:
      total: units of each; None: not known.
      unit: their name.
      label: follows the sampler's name, such as that of the host among several.
    """
    kind = _Bar if _has_bars() else _Log
    shown: dict[str, _Shown] = {}

    def advance(name: str, done: int) -> None:
        if name not in shown:
            shown[name] = kind(f"{name}, {label}" if label else name, total, unit)
        shown[name].update(done)

    try:
        yield advance
    finally:
        for one in shown.values():
            one.close()
