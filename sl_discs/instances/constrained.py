"""A quadratic form of zeros and ones together with linear constraints on its variables, as arrays."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Int, Int64
from scipy import sparse

from sl_discs.instances.form import QuadraticForm


@dataclasses.dataclass(frozen=True, eq=False)
class ConstrainedForm:
    """The form is optimised over the x with low <= matrix x <= high.

    Attributes:
      form: of zeros and ones.
      matrix: [C, N] whole numbers, a sparse row for each constraint.
      low: [C] the smallest value allowed; without a lower bound, the smallest that the row can have.
      high: [C] the largest value allowed, likewise. Some x meets each constraint, though perhaps none meets all.
      names: [C] of the constraints, in words.
    """

    form: QuadraticForm
    matrix: sparse.csr_array
    low: Int64[np.ndarray, "C"]
    high: Int64[np.ndarray, "C"]
    names: tuple[str, ...]

    @property
    def num_variables(self) -> int:
        """Number of variables N."""
        return self.form.num_variables

    def met(self, states: Int[np.ndarray, "B N"]) -> Bool[np.ndarray, "B C"]:
        """Which constraints hold at each state of zeros and ones, in whole numbers."""
        sides = (self.matrix @ states.T.astype(np.int64)).T
        return (self.low <= sides) & (sides <= self.high)
