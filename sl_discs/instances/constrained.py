"""A quadratic form in binary variables together with linear constraints on them, as arrays."""

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
      form: the objective, in variables 0 and 1.
      matrix: [C, N] whole numbers, one sparse row per constraint.
      low: [C] the smallest allowed value; without a lower bound, the smallest value that the row can take.
      high: [C] the largest allowed value, likewise. Each constraint can be met, though perhaps not all at once.
      names: [C] the constraints in words.
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
        """Which constraints hold at each state of zeros and ones, computed in integers."""
        sides = (self.matrix @ states.T.astype(np.int64)).T
        return (self.low <= sides) & (sides <= self.high)
