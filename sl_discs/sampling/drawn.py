"""The outcome of a method, and the common part of all methods that run chains."""

from __future__ import annotations

import contextlib
import math
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, UInt8

from sl_discs.atomic import allocate
from sl_discs.errors import InputError
from sl_discs.sampling.packed import num_bytes, packed

Say = Callable[[int, str], None]


class Drawn(NamedTuple):
    """Draws of C independent groups, D of each.

    Attributes:
      bits: [C, D, W] the draws, packed.
      dependence: of the draws of a group, as in `estimates.Batches`.
      how: details of the run by name, for reports.
      reasons: the method's own reasons against its draws.
      notes: further remarks on the draws.
      log_weights: [C] of the groups, up to a constant; None: equal weights.
      log_z: log Z and its standard error; None where the method does not give it.
      ladder: of temperatures, if the method has one.
      interrupted: whether the run was stopped before its end.
      exact: whether the draws are exact, however few they are.
      families: effective number of independent draws, of populations.
      most_effective: independent draws that all draws together are worth at most, whatever their autocorrelation.
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
    most_effective: float = math.inf


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
    """The time limit of a method, and its callbacks.

    Args:
      seconds: remaining from now; None: no limit.
      interrupt: a true result ends the run; None: nothing does.
      say: called with a number of new draws, and text on all draws so far.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], object] | None, say: Say):
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._interrupt, self._say = interrupt, say
        self.interrupted = False

    def say(self, count: int, words: str = "") -> None:
        """Reports new draws."""
        self._say(count, words)

    @property
    def timed(self) -> bool:
        """Whether there is a time limit."""
        return self._end is not None

    def left(self) -> float:
        """The remaining seconds."""
        return float("inf") if self._end is None else self._end - time.perf_counter()

    def after(self, part: float) -> Callable[[], bool]:
        """Whether this part of the time that is left now has passed, without asking for an interruption."""
        left = (1 - part) * self.left()
        return lambda: self.left() < left

    def is_over(self) -> bool:
        """Whether to stop now."""
        self.interrupted = self.interrupted or bool(self._interrupt and self._interrupt())
        return self.interrupted or self.left() <= 0

    def check_interrupt(self) -> None:
        """Raises KeyboardInterrupt if the run was told to stop before there are draws to return."""
        self.is_over()
        if self.interrupted:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def keeping(self, store: Store) -> Iterator[None]:
        """While draws are made, Ctrl-C ends the run and the draws in the store are kept."""
        try:
            yield
        except KeyboardInterrupt:
            if not len(store):
                raise
            self.interrupted = True


class Store:
    """Collects draws; under a time limit their number is not known in advance.

    Args:
      groups: C.
      size: N.
      most: the largest number of values of a variable.
      wanted: D; None: not known in advance.
      path: of a .npy file for the draws, if they do not fit into memory; needs `wanted`.

    Raises:
      InputError: the file cannot be written, or the disk has no space for all draws.
    """

    def __init__(self, groups: int, size: int, most: int, wanted: int | None, path: str | None = None):
        self._most, width = most, num_bytes(size, most)
        self._parts: list[np.ndarray] = []
        self._file = None
        if path is not None and wanted is not None:
            self._file = _mapped(Path(path), (groups, wanted, width))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, states) -> None:
        """Adds the states [L, C, N] of L records."""
        bits = packed(np.swapaxes(states, 0, 1), self._most)
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


def _mapped(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """A new .npy file of bytes, mapped into memory.

    Its space is allocated first: where a disk is full, writing to a mapped file would end the process.
    """
    temporary, size = path.with_name(f".{uuid.uuid4().hex}.tmp"), math.prod(shape)
    try:
        with temporary.open("xb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            allocate(file, file.tell() + size)
        os.replace(temporary, path)  # noqa: PTH105
        return np.lib.format.open_memmap(path, mode="r+")
    except OSError as error:
        raise InputError(
            f"store is {str(path)!r}, where {size / 2**20:,.0f} MiB cannot be written ({error.strerror}); free some "
            "space or choose another folder",
            "store",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
