"""Whole annealings of growing length that fill a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.base import Best
from sl_discs.engines.compiled import compile_seconds
from sl_discs.problems import Evaluated

# Part of the remaining time that a last round may plan with; rates vary, and an annealing that is cut short ends hot.
_SAFE = 0.9
# A last round is skipped if it is shorter than this part of the longest.
_WORTH = 0.25
# Relative error of the chains' 32-bit values, and of penalties that a repair takes away.
_ABOUT = 1e-3


class Clock:
    """Seconds of wall time since it was created, without those that this thread spent compiling."""

    def __init__(self):
        self._compiled, self._begin = compile_seconds(), time.perf_counter()

    def __call__(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._begin - (compile_seconds() - self._compiled)


def round_lengths(
    first: int, unit: int, most: int, left: Callable[[], float], pace: float | None = None
) -> Iterator[int]:
    """Lengths of rounds, each requested after the previous round: doubling, until one that fills the time left.

    Args:
      first: steps of the first round, which measures the rate.
      unit: lengths are multiples of it.
      most: the most steps of a round.
      left: returns the remaining seconds.
      pace: seconds per step of an earlier round; if given, the first round here already fills the time left.
    """
    if pace is not None:
        first = max(unit, int(min(_SAFE * left() / pace, most)) // unit * unit)
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
      reason: `target`, `bound`, `callback`, `interrupt` or `time`; empty while there is none.
      constant: what the chains' values leave out of the problem's, times the sign of its sense.
    """

    def __init__(
        self,
        evaluate: Callable[[np.ndarray], Evaluated],
        chains: int,
        maximise: bool,
        *,
        target: float | None,
        bound: float | None,
        callback: Callable[[int, float], object] | None,
        interrupt: Callable[[], object] | None,
        is_over: Callable[[], bool],
    ):
        """Nothing has been seen yet.

        Args:
          evaluate: states of the chains, exactly.
          chains: number of those that count.
          maximise: whether the best value is the largest.
          target: as for `sl_discs.solve`.
          bound: a value that no answer is better than; None: there is none, or it is not to end the run.
          callback: as for `sl_discs.solve`.
          interrupt: likewise.
          is_over: whether the time is.
        """
        self.reason = ""
        self._evaluate, self._chains = evaluate, chains
        self._sign, self.constant = 1.0 if maximise else -1.0, 0.0
        self._target, self._bound = target, bound
        self._callback, self._interrupt, self._is_over = callback, interrupt, is_over
        self._best = -self._sign * np.inf
        self._before = self._done = 0
        self._highest = -np.inf

    def next_round(self) -> int:
        """Ends a round; the number of its steps that were run."""
        done, self._done, self._highest = self._done, 0, -np.inf
        self._before += done
        return done

    def reached(self, values: Float64[np.ndarray, "B"]) -> bool:
        """Takes exact values into account; returns whether the run ends."""
        self._best = self._sign * max(self._sign * self._best, float((self._sign * values).max()))
        for reason, value in ("bound", self._bound), ("target", self._target):
            if value is not None and self._sign * (self._best - value) >= 0:
                self.reason = reason
        return bool(self.reason)

    def __call__(self, done: int, best: Best) -> bool:
        """The callback of `Player.play`; values are recomputed exactly where they are used."""
        self._done = done
        values = np.asarray(best.value)[0, : self._chains]
        place = int(np.argmax(values))
        if values[place] > self._highest and self._is_used(float(values[place])):
            self._highest = values[place]
            self.reached(self._evaluate(np.asarray(best.x[0, place])[None]).values)
        if self._callback is not None and self._callback(self._before + done, self._best) and not self.reason:
            self.reason = "callback"
        if not self.reason and self._interrupt is not None and self._interrupt():
            self.reason = "interrupt"
        if not self.reason and self._is_over():
            self.reason = "time"
        return bool(self.reason)

    def _is_used(self, value: float) -> bool:
        """Whether somebody asks for the exact value; for a bound, only if it is about as good."""
        if self._target is not None or self._callback is not None:
            return True
        if self._bound is None:
            return False
        return bool(value + self.constant >= self._sign * self._bound - _ABOUT * max(1.0, abs(self._bound)))
