"""Functions of variables with several values, with a number for each pair of equal ones and for each value."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32

from sl_discs.exact_sum import exact_sum


@dataclasses.dataclass(frozen=True, eq=False)
class PottsForm:
    """sum_k J_k [x_u = x_v] over the pairs (u, v), plus sum_i h_i(x_i), with x_i in 0 .. q_i - 1.

    Attributes:
      name: used in messages.
      values: q_i of each variable, at least 2.
      pairs: [M, 2] with u < v, each once.
      couplings: [M] J.
      fields: [N, q] h with the largest q; 0 where a value does not exist.
      maximise: whether the best value is the largest.
    """

    name: str
    values: tuple[int, ...]
    pairs: Int32[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    fields: Float64[np.ndarray, "N q"]
    maximise: bool

    @property
    def num_variables(self) -> int:
        """Number of variables N."""
        return len(self.values)

    def equal(self, state: Int8[np.ndarray, "N"]) -> Bool[np.ndarray, "M"]:
        """The pairs whose variables have the same value."""
        return state[self.pairs[:, 0]] == state[self.pairs[:, 1]]

    def value(self, state: Int8[np.ndarray, "N"]) -> float:
        """The sum, rounded once."""
        of_values = self.fields[np.arange(len(state)), state]
        return exact_sum(np.concatenate([self.couplings[self.equal(state)], of_values]))
