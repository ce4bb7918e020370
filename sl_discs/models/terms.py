"""What a problem maximises, as a list of its terms on the host; problems are made and checked without JAX."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32
from scipy import sparse

from sl_discs.instances.form import PottsForm, QuadraticForm

# Of what sums are exact: multiples of 2^-10 below 2^33.
_BITS, _LARGEST_SUM = 10, 2.0**33


class Coefficients(NamedTuple):
    """A quadratic model as a list of its terms, on the host.

    Attributes:
      linear: [N] c.
      edges: [M, 2] pairs with u < v, each once.
      weights: [M] K on those pairs.
      scale: J = scale K.
      background: K on all other pairs.
      constant: the constant part of the problem's value; samplers do not need it.
    """

    linear: Float64[np.ndarray, "N"]
    edges: Int32[np.ndarray, "M 2"]
    weights: Float64[np.ndarray, "M"]
    scale: float
    background: float = 0.0
    constant: float = 0.0

    @property
    def num_sites(self) -> int:
        """N."""
        return len(self.linear)

    def max_degree(self) -> int:
        """The largest number of terms of a site; with a background, at most all other sites."""
        if self.background:
            return len(self.linear) - 1
        return int(np.bincount(self.edges.ravel(), minlength=1).max()) if len(self.edges) else 0

    def largest_coupling(self) -> float:
        """The largest absolute value of K, including a background."""
        return float(np.abs(self.weights).max(initial=abs(self.background)))

    def magnitude(self) -> float:
        """The sum of all absolute terms."""
        couplings = abs(self.scale) * (np.abs(self.weights).sum() + abs(self.background) * self.num_sites**2 / 2)
        return float(np.abs(self.linear).sum() + couplings + abs(self.constant))

    def listed(self) -> Coefficients:
        """The same terms, all of them listed, which takes O(N^2) memory with a background."""
        if not self.background:
            return self
        others = np.triu(np.ones((len(self.linear), len(self.linear)), bool), 1)
        others[self.edges[:, 0], self.edges[:, 1]] = False
        pairs = np.argwhere(others).astype(np.int32)
        kept = self.weights != 0
        edges = np.concatenate([self.edges[kept], pairs])
        weights = np.concatenate([self.weights[kept], np.full(len(pairs), self.background)])
        return self._replace(edges=edges, weights=weights, background=0.0)


def are_whole(values: Float64[np.ndarray, "..."]) -> bool:
    """Whether these are whole numbers whose sums are below 2^33."""
    return bool((values == np.rint(values)).all() and np.abs(values).sum() < _LARGEST_SUM)


def has_whole_values(form: QuadraticForm) -> bool:
    """Whether every value of a form is surely a whole number, below 2^33.

    That is so where its coefficients as a function of zeros and ones are whole, which two halves may add up to. They
    are computed without rounding from multiples of 2^-10.
    """
    given = np.concatenate([form.linear, form.couplings, form.offsets])
    finest = given * 2**_BITS
    if not (np.array_equal(finest, np.rint(finest)) and np.abs(given).sum() < _LARGEST_SUM):
        return False
    terms = form_coefficients(form)
    found = [*terms.linear.tolist(), *(terms.scale * terms.weights).tolist(), terms.background, terms.constant]
    return all(number.is_integer() for number in found)


def form_coefficients(form: QuadraticForm) -> Coefficients:
    """The terms of a form as a function of x in {0,1}^N to maximise, negated if the form is minimised.

    Spins are 2x - 1. Repeated pairs are summed, and those of a variable with itself are linear. If all variables are
    coupled, most pairs equally, as by a penalty on their number, that coupling is the background.
    """
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs.T
    own = first == second
    linear, constant = form.linear.copy(), math.fsum(form.offsets)
    couplings = form.couplings
    if form.spins:
        # s_a s_b = 4 x_a x_b - 2 x_a - 2 x_b + 1 and s_a s_a = 1.
        constant += couplings.sum() - linear.sum()
        linear *= 2
        for ends in (first, second):
            np.add.at(linear, ends[~own], -2 * couplings[~own])
        couplings = 4 * couplings
    else:
        np.add.at(linear, first[own], couplings[own])
    size = form.num_variables
    ends = np.minimum(first, second)[~own], np.maximum(first, second)[~own]
    upper = sparse.csr_matrix((couplings[~own], ends), (size, size))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(upper.indptr))
    edges, weights, background = np.stack([rows, upper.indices], axis=1), upper.data, 0.0
    if len(weights) > 1 and len(weights) == size * (size - 1) // 2:
        # A weight that more than half of them have is their median.
        most_common = np.partition(weights, len(weights) // 2)[len(weights) // 2]
        others = weights != most_common
        if 2 * np.count_nonzero(others) < len(weights):
            edges, weights, background = edges[others], weights[others], float(most_common)
    return Coefficients(sign * linear, edges, weights, sign, background, sign * constant)


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
