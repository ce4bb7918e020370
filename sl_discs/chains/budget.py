"""What a run may spend: its time, until the user interrupts it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sl_discs.engines.compiled import compile_seconds


class Budget:
    """The time limit of a run in seconds of wall time from now on, None for no limit, and its
    callbacks.

    The seconds that this thread spends compiling do not count.

    Attributes:
      advance: reports progress, called with the number of new units of work.
      interrupted: whether the user has interrupted the run.
    """

    def __init__(
        self,
        limit: float | None = None,
        interrupt: Callable[[], object] | None = None,
        advance: Callable[[int], None] = lambda count: None,
    ):
        self._limit = math.inf if limit is None else limit
        self._interrupt = interrupt
        self.advance = advance
        self.interrupted = False
        self._compiled = compile_seconds()
        self._begin = time.perf_counter()

    def __call__(self) -> float:
        """Returns the seconds that were spent."""
        return time.perf_counter() - self._begin - self.compiling()

    def compiling(self) -> float:
        """Returns the seconds of compilation, which do not count."""
        return compile_seconds() - self._compiled

    def left(self) -> float:
        """Returns the seconds that are left."""
        return self._limit - self()

    def after(self, part: float) -> Callable[[], bool]:
        """Returns whether this part of the time that is left now has passed, without asking for an
        interruption.
        """
        least = (1 - part) * self.left()
        return lambda: self.left() < least

    def is_interrupted(self) -> bool:
        """Asks whether to end the run at once; a true answer stands."""
        if self._interrupt is not None and not self.interrupted:
            self.interrupted = bool(self._interrupt())
        return self.interrupted

    def is_over(self) -> bool:
        """Tells whether the time is over, or the run interrupted."""
        return self.is_interrupted() or self.left() <= 0

    def check_interrupt(self) -> None:
        """Raises KeyboardInterrupt if the run is interrupted before there is anything to return."""
        if self.is_interrupted():
            raise KeyboardInterrupt
