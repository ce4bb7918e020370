"""The best state of a chain, kept without copying the state whenever it improves.

While the best state is recent, it is represented by the current state and a list of the flips since then. It is
copied when there are as many of these flips as sites, and at the end, which costs O(1) per flip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.aligned import aligned_zeros
from sl_discs.engines.cpu.jit import called, in_long_vectors, inlined

# Entries of `state`.
_RECENT, _LENGTH = 0, 1


class Record(NamedTuple):
    """The best state and the flips since then.

    Attributes:
      value: [1] the highest value.
      spins: [N] the state with that value, unless it is recent.
      journal: [N] the flips since then.
      state: [2] whether the best state is recent, and the number of these flips.
    """

    value: np.ndarray
    spins: np.ndarray
    journal: np.ndarray
    state: np.ndarray


def make_record(size):
    """Allocates a record."""
    return Record(np.zeros(1), aligned_zeros(size, np.float32), aligned_zeros(size, np.uint32), np.zeros(2, np.int64))


@inlined
def note(record, value, spins, flipped, flips):
    """Accounts for a new state, reached from the last one by the given flips."""
    if value > record.value[0]:
        record.value[0] = value
        record.state[_RECENT] = 1
        record.state[_LENGTH] = 0
    elif record.state[_RECENT]:
        if record.state[_LENGTH] + flips > record.journal.shape[0]:
            for k in range(flips):
                spins[flipped[k]] = -spins[flipped[k]]
            write_out(record, spins)
            for k in range(flips):
                spins[flipped[k]] = -spins[flipped[k]]
            return
        for k in range(flips):
            record.journal[record.state[_LENGTH]] = flipped[k]
            record.state[_LENGTH] += 1


@called
def write_out(record, spins):
    """Copies the best state into `record.spins`; `spins` is the current state."""
    in_long_vectors()
    if record.state[_RECENT]:
        for i in range(spins.shape[0]):
            record.spins[i] = spins[i]
        for k in range(record.state[_LENGTH]):
            site = record.journal[k]
            record.spins[site] = -record.spins[site]
        record.state[_RECENT] = 0
