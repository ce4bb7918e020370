"""The function f that a problem's model maximises, evaluated at many states in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int8, UInt8
from scipy import sparse

from sl_discs.models.potts import PottsTerms
from sl_discs.models.quadratic import Coefficients
from sl_discs.sampling.layout import Terms
from sl_discs.sampling.packed import pieces


def values_of(terms: Terms) -> Callable[[Int8[np.ndarray, "B N"]], Float64[np.ndarray, "B"]]:
    """f of states as they are: nothing is repaired."""
    return Values(terms) if isinstance(terms, Coefficients) else terms.values


class Values:
    """f(x) = constant + c.x + sum over pairs of J x x; states are not repaired."""

    def __init__(self, terms: Coefficients):
        size = len(terms.linear)
        first, second = terms.edges.T
        # The background counts for every pair, so listed pairs only add the difference from it.
        weights = terms.scale * (terms.weights - terms.background)
        self._upper = sparse.csr_matrix((weights, (first, second)), (size, size))
        self._terms = terms

    def __call__(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """The values at states of zeros and ones."""
        terms, x = self._terms, states.astype(np.float64)
        ones = x.sum(axis=1)
        background = terms.scale * terms.background * ones * (ones - 1) / 2
        pairs = np.einsum("bn,bn->b", x, (self._upper.T @ x.T).T)
        return terms.constant + x @ terms.linear + pairs + background


def magnetisations(terms: Terms, states: Int8[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B"]:
    """The mean spin; of a Potts model (q m - 1)/(q - 1), where m is the largest share of the variables with one value
    and q the largest number of values: 1 if all values are equal, 0 if all are equally frequent.
    """
    if not isinstance(terms, PottsTerms):
        return 2 * states.mean(axis=-1) - 1
    most = max(terms.num_values)
    shares = np.max([(states == value).mean(axis=-1) for value in range(most)], axis=0)
    return (most * shares - 1) / (most - 1)


def observed(
    terms: Terms, bits: UInt8[np.ndarray, "C D W"]
) -> tuple[Float64[np.ndarray, "C D"], Float64[np.ndarray, "C D"]]:
    """The value f and the magnetisation of every draw."""
    function, size = values_of(terms), terms.num_sites
    values, means = [], []
    for _, states in pieces(bits, size):
        values.append(function(states.reshape(-1, size)).reshape(states.shape[:2]))
        means.append(magnetisations(terms, states))
    return np.concatenate(values, axis=1), np.concatenate(means, axis=1)
