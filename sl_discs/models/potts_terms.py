"""Potts models as lists of terms, on the host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32
from scipy import sparse

from sl_discs.instances.potts import PottsForm


class PottsTerms(NamedTuple):
    """In the place of `Coefficients`, for variables of several values.

    Attributes:
      num_values: [N] q_i, the number of values of each variable.
      pairs: [M, 2] with u < v, each once.
      couplings: [M] K, for pairs of equal values.
      scale: of the couplings.
      fields: [N, q] h; entries for values that do not exist have no effect.
      constant: 0; a Potts form has none.
    """

    num_values: tuple[int, ...]
    pairs: Int32[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    scale: float
    fields: Float64[np.ndarray, "N q"]
    constant: float = 0.0

    @property
    def num_sites(self) -> int:
        """N."""
        return len(self.num_values)

    @property
    def exists(self) -> Bool[np.ndarray, "N q"]:
        """Which values each variable has."""
        return np.arange(max(self.num_values)) < np.array(self.num_values)[:, None]

    def max_degree(self) -> int:
        """The largest number of couplings of a site."""
        return int(np.bincount(self.pairs.ravel(), minlength=1).max())

    def largest(self) -> float:
        """The largest absolute value of a coefficient."""
        return float(max(np.abs(self.fields).max(), abs(self.scale) * np.abs(self.couplings).max(initial=0)))

    def magnitude(self) -> float:
        """The sum of all absolute terms."""
        return float(np.abs(self.fields).sum() + abs(self.scale) * np.abs(self.couplings).sum())

    def values(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """f at many states."""
        size = self.num_sites
        upper = sparse.csr_matrix((self.scale * self.couplings, tuple(self.pairs.T)), (size, size))
        found = self.fields[np.arange(size), states].sum(axis=1)
        for value in range(max(self.num_values)):
            has = (states == value).astype(np.float64)
            found += np.einsum("bn,bn->b", has, (upper.T @ has.T).T)
        return found


def potts_terms(form: PottsForm) -> PottsTerms:
    """The terms of a form as a function to maximise, negated if the form is minimised."""
    sign = 1.0 if form.maximise else -1.0
    return PottsTerms(form.values, form.pairs, form.couplings, sign, sign * form.fields)
