"""All states of small problems: the law exp(f/temperature), of up to 22 variables of two values or 2^20 states of
others, and the largest values of f.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8
from scipy import special

from sl_discs.errors import InputError
from sl_discs.models.terms import Coefficients, Terms

# 2^22 states take about 130 MB, and a third of a second.
MOST_VARIABLES = 22
# Of states of other functions, and of those that are evaluated at once.
MOST_STATES, _BLOCK = 2**20, 2**14
# States whose values are the largest up to rounding are listed up to this number.
_MOST_LARGEST = 2**12


class EnumeratedLaw(NamedTuple):
    """All probabilities, with moments derived from them.

    Attributes:
      log_z: log sum_x exp(f(x)/temperature), the constant of f included.
      probabilities: [2^N]; state k has bit i of k at variable i.
      moments: [N, N] P(x_i = x_j = 1), with the marginals P(x_i = 1) on the diagonal.
      mean_value: of f.
      sd_value: standard deviation of f.
    """

    log_z: float
    probabilities: Float64[np.ndarray, "S"]
    moments: Float64[np.ndarray, "N N"]
    mean_value: float
    sd_value: float

    @property
    def marginals(self) -> Float64[np.ndarray, "N"]:
        """P(x_i = 1)."""
        return np.diagonal(self.moments)

    def sample(self, rng: np.random.Generator, draws: int) -> Int8[np.ndarray, "draws N"]:
        """Independent exact draws."""
        return (_drawn(self.probabilities, rng, draws)[:, None] >> np.arange(len(self.moments)) & 1).astype(np.int8)


def enumerate_law(terms: Coefficients, temperature: float) -> EnumeratedLaw:
    """The law of a quadratic model.

    The variables are split into two halves, low and high: f(x) = f_low + f_high + x_low' J x_high is a table
    [2^high, 2^low] that one matrix product fills.

    Args:
      terms: f, with N <= 22.
      temperature: above 0.

    Raises:
      InputError: more than 22 variables.
    """
    size = len(terms.linear)
    if size > MOST_VARIABLES:
        raise InputError(
            f"{size} variables have 2^{size} states; enumeration is for up to {MOST_VARIABLES}, so use tree "
            "decomposition or method='tempering'"
        )
    low, high, table = _table(terms)  # of values, and then weights
    values = table.ravel().copy()
    largest = table.max()
    table -= largest
    table /= temperature
    np.exp(table, out=table)
    total = table.sum()
    table /= total
    across = low.T @ table.T @ high
    moments = np.block(
        [
            [low.T * table.sum(axis=0) @ low, across],
            [across.T, high.T * table.sum(axis=1) @ high],
        ]
    )
    probabilities = table.ravel()
    mean = probabilities @ values
    values -= mean
    scale = np.abs(values).max() or 1.0  # squares of large values would overflow
    values /= scale
    values *= values
    log_z, sd = largest / temperature + np.log(total), scale * (probabilities @ values) ** 0.5
    return EnumeratedLaw(float(log_z), probabilities, moments, float(mean), float(sd))


class EnumeratedValues(NamedTuple):
    """All probabilities, of variables with any numbers of values.

    Attributes:
      log_z: log sum_x exp(f(x)/temperature).
      probabilities: [S]; the first variable varies fastest.
      num_values: [N] q_i.
      mean_value: of f.
    """

    log_z: float
    probabilities: Float64[np.ndarray, "S"]
    num_values: tuple[int, ...]
    mean_value: float

    def moments(self) -> Float64[np.ndarray, "N K N K"]:
        """P(x_i = k, x_j = l) of the values below the largest number of them, with P(x_i = k) where i is j."""
        values = np.arange(max(self.num_values), dtype=np.int8)
        size = len(self.num_values) * len(values)
        total = np.zeros((size, size))
        for block in _blocks(len(self.probabilities)):
            states = _numbered(block, self.num_values)
            has = (states[:, :, None] == values).reshape(len(block), size).astype(np.float64)
            total += has.T @ (self.probabilities[block, None] * has)
        return total.reshape(2 * (len(self.num_values), len(values)))

    def sample(self, rng: np.random.Generator, draws: int) -> Int8[np.ndarray, "draws N"]:
        """Independent exact draws."""
        return _numbered(_drawn(self.probabilities, rng, draws), self.num_values)


def enumerate_values(terms: Terms, temperature: float) -> EnumeratedValues:
    """The law of any function; InputError for more than 2^20 states."""
    number = math.prod(terms.num_values)
    if number > MOST_STATES:
        raise InputError(
            f"method 'exact' enumerates up to {MOST_STATES:,} states where there are no couplings of zeros and ones, "
            f"and these {terms.num_sites} variables have more; use method='tempering'",
            "method",
        )
    values = _all_values(terms)
    scaled = values / temperature
    law = special.softmax(scaled)
    mean = float(law @ np.where(law > 0, values, 0.0))  # without 0 * -inf
    return EnumeratedValues(float(special.logsumexp(scaled)), law, terms.num_values, mean)


class Largest(NamedTuple):
    """Where a function is largest.

    Attributes:
      states: [K, N] those with the largest value, up to rounding.
      value: the largest value, rounded.
      error: no computed value is farther from the exact one.
      complete: whether no other state may have the largest value; otherwise there are too many to be listed.
    """

    states: Int8[np.ndarray, "K N"]
    value: float
    error: float
    complete: bool


def largest_states(
    terms: Terms,
    magnitude: float,
    allowed: Callable[[Int8[np.ndarray, "B N"]], Bool[np.ndarray, "B"]] | None = None,
) -> Largest | None:
    """The states of up to 2^20 at which a function is largest.

    Args:
      terms: of the function.
      magnitude: sum of its absolute terms, as they were given.
      allowed: which states count; None: all.

    Returns:
      them; None where no state is allowed.
    """
    num_values, values = terms.num_values, _all_values(terms)
    if allowed is not None:
        for block in _blocks(len(values)):
            values[block[~allowed(_numbered(block, num_values))]] = -np.inf
    # A bound on the errors of sums in any order, of the terms and of what they were summed from.
    error = 4 * (terms.num_summands + 2) * float(np.finfo(np.float64).eps) * magnitude
    largest = float(values.max())
    if largest == -np.inf:
        return None
    places = np.flatnonzero(values >= largest - 2 * error)
    complete = len(places) <= _MOST_LARGEST
    return Largest(_numbered(places[:_MOST_LARGEST], num_values), largest, error, complete)


def _table(
    terms: Coefficients,
) -> tuple[Float64[np.ndarray, "L l"], Float64[np.ndarray, "H h"], Float64[np.ndarray, "H L"]]:
    """The states of the first half of variables and of the others, and f of both."""
    size = len(terms.linear)
    listed = terms.listed()
    couplings = np.zeros((size, size))
    couplings[listed.edges[:, 0], listed.edges[:, 1]] = listed.scale * listed.weights
    half = size // 2
    low, high = _states(half), _states(size - half)
    table = (high @ couplings[:half, half:].T) @ low.T
    table += _values(low, terms.linear[:half], couplings[:half, :half])
    table += _values(high, terms.linear[half:], couplings[half:, half:])[:, None] + terms.constant
    return low, high, table


def _all_values(terms: Terms) -> Float64[np.ndarray, "S"]:
    """f at all states; the first variable varies fastest."""
    if terms.quadratic is not None:
        return _table(terms.quadratic)[2].ravel()
    values = terms.evaluator()
    return np.concatenate(
        [values(_numbered(block, terms.num_values)) for block in _blocks(math.prod(terms.num_values))]
    )


def _blocks(number: int) -> Iterator[Int[np.ndarray, "B"]]:
    return (np.arange(start, min(start + _BLOCK, number)) for start in range(0, number, _BLOCK))


def _numbered(numbers: Int[np.ndarray, "B"], num_values: tuple[int, ...]) -> Int8[np.ndarray, "B N"]:
    """The states of these numbers."""
    return np.stack(np.unravel_index(numbers, num_values, order="F"), axis=1).astype(np.int8)


def _drawn(probabilities: Float64[np.ndarray, "S"], rng: np.random.Generator, draws: int) -> Int[np.ndarray, "draws"]:
    """Numbers of independent states, by the inverse of the cumulative distribution."""
    cumulative = np.cumsum(probabilities)
    # Below the total, so a state of probability 0 is never drawn.
    return np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")


def _states(size: int) -> Float64[np.ndarray, "S size"]:
    return (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)


def _values(states: np.ndarray, linear: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return states @ linear + np.einsum("si,si->s", states @ upper, states)
