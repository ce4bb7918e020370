"""Bytes and operations of a Markov step on each engine, and a lower bound on the time that the machine needs for
them.

The counts are those of the algorithm as implemented, for N padded sites, R drawn sites per step and mean degree D,
with 8-bit couplings and 16-bit fields Kx:

- `cpu`, few changed weights (R (D + 1) <= N/24): per changed weight the logit, 2^t and the sums above it; per flip
  the neighbours' fields.
- `cpu`, otherwise: every weight once (the proposal's), R rows or lists, and a copy of the field.
- `reference`: every weight twice, and the two states that are chosen between, in passes over all chains of a core.

Bandwidth is measured with arrays as large as an engine's working set: one chain on `cpu`, all chains of a core on the
reference.

A step with long chains of dependent instructions (draws, updates of sums one weight at a time) cannot reach these
limits, which only account for vector units and caches.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numba
import numpy as np

from sl_discs.engines.cpu.walk import FEW

# Operations of one weight: logit 4, bounds 2, 2^t 13, mask 1, sums 2.
_OPERATIONS_A_WEIGHT = 22
# Of a weight that is written alone: the same, and three sums with their peaks, one after the other.
_OPERATIONS_A_CHANGE = 22 + 4 * 4
# Bytes of one weight: field, spin, base and mask are read, the weight is written and read for the sums.
_FIELD = 2
_BYTES_A_WEIGHT = _FIELD + 5 * 4
# A changed weight: the same, its place, its old value, and three sums with their peaks read and written.
_BYTES_A_CHANGE = _BYTES_A_WEIGHT + 3 * 4 + 3 * 3 * 8
# One neighbour of a flipped site: its number, its coupling, its field read and written.
_BYTES_A_NEIGHBOUR = 4 + 1 + 2 * _FIELD
# A draw: about half of 8 + 16 + 16 entries are looked at.
_OPERATIONS_A_DRAW, _BYTES_A_DRAW = 4 * 20 + 80, 8 * 20
# The reference engine forms two sets of weights with library exponentials, and selects between two states.
_XLA_OPERATIONS_A_SITE, _XLA_BYTES_A_SITE = 2 * 30 + 10, 2 * (_FIELD + 3 * 4) + 3 * (1 + _FIELD) + 3 * 4
# What a site keeps: `cpu` as for a weight; the reference x, y, the best
# state, both fields, gains, logits and weights.
_CPU_SPACE_A_SITE, _XLA_SPACE_A_SITE = _BYTES_A_WEIGHT, 3 + 2 * _FIELD + 3 * 4


class Work(NamedTuple):
    """Of one Markov step of one chain."""

    operations: float
    num_bytes: float


class Machine(NamedTuple):
    """The measured peak performance of one core.

    Attributes:
      operations_per_s: float32 additions and multiplications in vector registers.
      bytes_per_s: copied within as many bytes as an engine goes through, reads and writes counted.
    """

    operations_per_s: float
    bytes_per_s: float


def work(engine: str, num_sites: int, drawn: float, degree: float, dense: bool) -> Work:
    """Counts for one step; see the module.

    Args:
      engine: `cpu` or `reference`.
      num_sites: N, padded.
      drawn: R, mean number of sites that a step proposes to flip.
      degree: D.
      dense: whether couplings are rows.
    """
    neighbours = num_sites if dense else degree
    row_bytes = (1 + 2 * _FIELD) * num_sites if dense else _BYTES_A_NEIGHBOUR * degree
    draws = Work(drawn * _OPERATIONS_A_DRAW, drawn * _BYTES_A_DRAW)
    if engine == "reference":
        return Work(
            draws.operations + num_sites * _XLA_OPERATIONS_A_SITE + drawn * neighbours,
            draws.num_bytes + num_sites * _XLA_BYTES_A_SITE + drawn * row_bytes,
        )
    changed = drawn * (degree + 1)
    if not dense and FEW * changed <= num_sites:
        return Work(
            draws.operations + changed * _OPERATIONS_A_CHANGE + drawn * neighbours,
            draws.num_bytes + changed * _BYTES_A_CHANGE + drawn * row_bytes,
        )
    return Work(
        draws.operations + num_sites * _OPERATIONS_A_WEIGHT + drawn * neighbours,
        draws.num_bytes + num_sites * (_BYTES_A_WEIGHT + 2 * _FIELD) + drawn * row_bytes,
    )


def least_seconds(done: Work, machine: Machine) -> float:
    """The larger of the times for operations and for bytes, on one core."""
    return max(done.operations / machine.operations_per_s, done.num_bytes / machine.bytes_per_s)


def space(engine: str, num_sites: int, chains: int) -> int:
    """The size of an engine's working set, in bytes, for this number of chains per core."""
    return num_sites * (_CPU_SPACE_A_SITE if engine == "cpu" else _XLA_SPACE_A_SITE * chains)


@numba.njit(fastmath={"contract", "reassoc", "nsz"})
def _multiply_add(x, turns):
    """16 independent chains of vectors, so that latencies overlap."""
    total = np.zeros(256, np.float32)
    for _ in range(turns):
        for i in range(256):
            v = total[i]
            for _ in range(16):
                v = v * x[i] + np.float32(1e-3)
            total[i] = v
    return total.sum()


@numba.njit
def _copy(x, y, turns):
    for turn in range(turns):
        for i in range(x.shape[0]):
            y[i] = x[i]
        x[turn % x.shape[0]] = y[(turn + 1) % x.shape[0]]


def _best_seconds(function, *arguments, repeats: int = 5) -> float:
    function(*arguments)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    return min(times)


def measure_operations() -> float:
    """Operations a second of one core, the best of five repetitions."""
    turns = 20_000
    return turns * 256 * 16 * 2 / _best_seconds(_multiply_add, np.full(256, 0.5, np.float32), turns)


def measure_bandwidth(num_bytes: int) -> float:
    """Bytes a second that one core copies between two arrays of so many bytes together, the best of five times."""
    line = 16  # numbers of a cache line: vectors that lie across two take up to three times as long
    size = line * max(1, num_bytes // (8 * line))
    turns = max(1, 100_000_000 // size)
    room = np.zeros(2 * size + line, np.float32)
    first = -(room.ctypes.data // room.itemsize) % line
    arrays = room[first : first + 2 * size].reshape(2, size)
    return 8 * size * turns / _best_seconds(_copy, *arrays, turns)
