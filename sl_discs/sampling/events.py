"""The events whose probabilities are the marginals: that a variable has a value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int8


class Events(NamedTuple):
    """Those that determine all marginals: a variable of two values is 1, any other has each of its values.

    Attributes:
      values: the K values that count.
      counted: [N, K] which of them count for each variable.
    """

    values: range
    counted: Bool[np.ndarray, "N K"]

    @classmethod
    def of(cls, counts: Int[np.ndarray, "N"]) -> Events:
        """The events of variables with so many values each."""
        most = int(counts.max())
        values = range(1, 2) if most == 2 else range(most)
        value, count = np.array(values), counts[:, None]
        return cls(values, (value < count) & ((count > 2) | (value == 1)))

    @property
    def number(self) -> int:
        """How many events there are."""
        return int(np.count_nonzero(self.counted))

    def occur(self, states: Int8[np.ndarray, "B N"]) -> Bool[np.ndarray, "B E"]:
        """Which of them occur in each state, value by value."""
        of_values = [(states == value)[:, self.counted[:, k]] for k, value in enumerate(self.values)]
        return np.concatenate(of_values, axis=1)


def event_name(label: Hashable, value: int, *, several: bool) -> str:
    """The name of an event in reports; of a variable of two values, its own."""
    return f"variable {label!r} = {value}" if several else f"variable {label!r}"
