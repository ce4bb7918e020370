"""What a method leaves behind, and the common part of all methods that run chains."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, UInt8

from sl_discs.sampling.packed import packed

Say = Callable[[int, str], None]


class Drawn(NamedTuple):
    """Draws of C independent groups, D of each.

    Attributes:
      bits: [C, D, W] the draws, packed.
      dependence: of the draws of a group, as in `estimates.Batches`.
      how: what was run, by name, for reports.
      reasons: that the method has against its own draws.
      notes: what else should be said of them.
      log_weights: [C] of the groups, up to a constant; None: equal ones.
      log_z: log Z and its standard error; None where the method does not give it.
      ladder: of a method that has one.
      interrupted: whether it was told to stop before its end.
      exact: whether the draws are exact, however few they are.
      families: effective number of independent draws, of populations.
    """

    bits: UInt8[np.ndarray, "C D W"]
    dependence: str
    how: dict[str, Any]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log_weights: Float64[np.ndarray, "C"] | None = None
    log_z: tuple[float, float] | None = None
    ladder: Ladder | None = None
    interrupted: bool = False
    exact: bool = False
    families: float | None = None


class Ladder(NamedTuple):
    """A ladder of R temperatures, the hottest first.

    Attributes:
      inverse: [R] 1/temperature.
      acceptance: [R - 1] of swaps between neighbours.
      round_trips: [C] from the hottest to the coldest and back, of each group.
      mean_values: [R] mean of f at each rung.
    """

    inverse: Float64[np.ndarray, "R"]
    acceptance: Float64[np.ndarray, "Q"]
    round_trips: np.ndarray
    mean_values: Float64[np.ndarray, "R"]


class Budget:
    """How long a method may go on, and whom it tells.

    Args:
      seconds: left from now; None: as long as it takes.
      interrupt: something true ends the run; None: nothing does.
      say: called with a number of draws that were made, and words on all so far.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], object] | None, say: Say):
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._interrupt, self._say = interrupt, say
        self.interrupted = False

    def say(self, count: int, words: str = "") -> None:
        """Tells of draws that were made."""
        self._say(count, words)

    @property
    def timed(self) -> bool:
        """Whether there is a time limit."""
        return self._end is not None

    def left(self) -> float:
        """Seconds that are left."""
        return float("inf") if self._end is None else self._end - time.perf_counter()

    def is_over(self) -> bool:
        """Whether to stop now."""
        self.interrupted = self.interrupted or bool(self._interrupt and self._interrupt())
        return self.interrupted or self.left() <= 0

    def check_interrupt(self) -> None:
        """Before there are draws: KeyboardInterrupt if it was told to stop, for there is nothing to return."""
        self.is_over()
        if self.interrupted:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def keeping(self, store: Store) -> Iterator[None]:
        """While draws are made: Ctrl-C ends them, and what the store has is kept."""
        try:
            yield
        except KeyboardInterrupt:
            if not len(store):
                raise
            self.interrupted = True


class Store:
    """Draws as they come in; at a time limit nobody knows how many there will be.

    Args:
      groups: C.
      size: N.
      wanted: D; None: until the time is over.
      path: of a .npy file that takes them, for more than memory holds; needs `wanted`.
    """

    def __init__(self, groups: int, size: int, wanted: int | None, path: str | None = None):
        width = -(-size // 8)
        self._parts: list[np.ndarray] = []
        self._file = None
        if path is not None and wanted is not None:
            self._file = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(groups, wanted, width))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, states) -> None:
        """States [L, C, N] of L moments."""
        bits = packed(np.swapaxes(states, 0, 1))
        if self._file is None:
            self._parts.append(bits)
        else:
            self._file[:, self._count : self._count + bits.shape[1]] = bits
        self._count += bits.shape[1]

    def bits(self) -> UInt8[np.ndarray, "C D W"]:
        """All draws so far."""
        if self._file is None:
            return np.concatenate(self._parts, axis=1)
        self._file.flush()
        return self._file[:, : self._count]
