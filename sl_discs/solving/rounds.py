"""Whole annealings of growing length that fill a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.contract import Best
from sl_discs.problems import Problem

# Part of the remaining time that a last round may plan with; rates vary, and an annealing that is cut short ends hot.
_SAFE = 0.9
# A last round is skipped if it is shorter than this part of the longest.
_WORTH = 0.25


class Clock:
    """Seconds of wall time since it was created, without those that this thread spent compiling."""

    def __init__(self):
        self._compiled, self._begin = compile_seconds(), time.perf_counter()

    def __call__(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._begin - (compile_seconds() - self._compiled)


def round_lengths(first: int, unit: int, most: int, left: Callable[[], float]) -> Iterator[int]:
    """Lengths of rounds, each requested after the previous round: doubling, until one that fills the time left.

    Args:
      first: steps of the first round, which measures the rate.
      unit: lengths are multiples of it.
      most: the most steps of a round.
      left: returns the remaining seconds.
    """
    length = longest = first
    while True:
        before = left()
        yield length
        after = left()
        fits = _SAFE * after * length / max(before - after, 1e-9)
        if fits < max(unit, _WORTH * longest):
            return
        # No further round would fit after a doubled one: this round takes all the remaining time.
        length = fits if fits < 6 * length else 2 * length
        length = max(unit, int(min(length, most)) // unit * unit)
        longest = max(longest, length)


class Watcher:
    """Checks the chains after each call to the engine, and decides when the run ends.

    Attributes:
      reason: `target`, `callback`, `interrupt` or `time`; empty while there is none.
    """

    def __init__(
        self,
        problem: Problem,
        chains: int,
        target: float | None,
        callback: Callable[[int, float], object] | None,
        interrupt: Callable[[], object] | None,
        is_over: Callable[[], bool],
    ):
        self.reason = ""
        self._problem, self._chains, self._target = problem, chains, target
        self._callback, self._interrupt, self._is_over = callback, interrupt, is_over
        self._sign = 1.0 if problem.maximise else -1.0
        self._best = -self._sign * np.inf
        self._before = self._done = 0
        self._highest = -np.inf

    def next_round(self) -> int:
        """Ends a round; the number of its steps that were run."""
        done, self._done, self._highest = self._done, 0, -np.inf
        self._before += done
        return done

    def reached(self, states: np.ndarray) -> bool:
        """Takes states [B, N] into account; returns whether the target is reached."""
        values = self._problem.evaluate(states).values
        self._best = self._sign * max(self._sign * self._best, float((self._sign * values).max()))
        if self._target is not None and self._sign * (self._best - self._target) >= 0:
            self.reason = "target"
        return bool(self.reason)

    def __call__(self, done: int, best: Best) -> bool:
        """The callback of `Player.play`; values are recomputed exactly where they are used."""
        self._done = done
        if self._target is not None or self._callback is not None:
            values = np.asarray(best.value)[0, : self._chains]
            place = int(np.argmax(values))
            if values[place] > self._highest:
                self._highest = values[place]
                self.reached(np.asarray(best.x[0, place])[None, : self._problem.num_variables])
            if self._callback is not None and self._callback(self._before + done, self._best) and not self.reason:
                self.reason = "callback"
        if not self.reason and self._interrupt is not None and self._interrupt():
            self.reason = "interrupt"
        if not self.reason and self._is_over():
            self.reason = "time"
        return bool(self.reason)
