"""The law exp(f/temperature) by listing every state: up to 22 variables of two values, or 2^20 states of others."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8
from scipy import special

from sl_discs.errors import InputError
from sl_discs.models.coefficients import Coefficients
from sl_discs.models.density import Density
from sl_discs.models.potts_terms import PottsTerms

# 2^22 states take about 130 MB, and a third of a second.
MOST_VARIABLES = 22
# Of a function that has to be evaluated at each state.
MOST_OF_DENSITY = 20
# Of states of variables with several values, and of those that are evaluated at once.
MOST_STATES, _BLOCK = 2**20, 2**14


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
    listed = terms.listed()
    couplings = np.zeros((size, size))
    couplings[listed.edges[:, 0], listed.edges[:, 1]] = listed.scale * listed.weights
    half = size // 2
    low, high = _states(half), _states(size - half)
    table = (high @ couplings[:half, half:].T) @ low.T  # values, and then weights
    table += _values(low, terms.linear[:half], couplings[:half, :half])
    table += _values(high, terms.linear[half:], couplings[half:, half:])[:, None] + terms.constant
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
    values *= values
    log_z, sd = largest / temperature + np.log(total), (probabilities @ values) ** 0.5
    return EnumeratedLaw(float(log_z), probabilities, moments, float(mean), float(sd))


class EnumeratedValues(NamedTuple):
    """All probabilities of a Potts model.

    Attributes:
      log_z: log sum_x exp(f(x)/temperature).
      probabilities: [S]; the first variable varies fastest.
      num_values: [N] q_i.
    """

    log_z: float
    probabilities: Float64[np.ndarray, "S"]
    num_values: tuple[int, ...]

    def sample(self, rng: np.random.Generator, draws: int) -> Int8[np.ndarray, "draws N"]:
        """Independent exact draws."""
        return _numbered(_drawn(self.probabilities, rng, draws), self.num_values)


def enumerate_values(terms: PottsTerms, temperature: float) -> EnumeratedValues:
    """The law of a Potts model; InputError for more than 2^20 states."""
    number = math.prod(terms.num_values)
    if number > MOST_STATES:
        raise InputError(
            f"method 'exact' enumerates up to {MOST_STATES:,} states of variables with several values, and these "
            f"{terms.num_sites} variables have more; use method='tempering'",
            "method",
        )
    blocks = (np.arange(start, min(start + _BLOCK, number)) for start in range(0, number, _BLOCK))
    scaled = np.concatenate([terms.values(_numbered(block, terms.num_values)) for block in blocks]) / temperature
    return EnumeratedValues(float(special.logsumexp(scaled)), special.softmax(scaled), terms.num_values)


def _numbered(numbers: Int[np.ndarray, "B"], num_values: tuple[int, ...]) -> Int8[np.ndarray, "B N"]:
    """The states of these numbers."""
    return np.stack(np.unravel_index(numbers, num_values, order="F"), axis=1).astype(np.int8)


def _drawn(probabilities: Float64[np.ndarray, "S"], rng: np.random.Generator, draws: int) -> Int[np.ndarray, "draws"]:
    """Numbers of independent states, by the inverse of the cumulative distribution."""
    cumulative = np.cumsum(probabilities)
    # Below the total, so a state of probability 0 is never drawn.
    return np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")


def enumerate_density(density: Density, temperature: float) -> EnumeratedLaw:
    """The law of a log-density; InputError for more than 20 variables."""
    size = density.num_sites
    if size > MOST_OF_DENSITY:
        raise InputError(
            f"method 'exact' enumerates a log-density of up to {MOST_OF_DENSITY} variables, and this one has {size}; "
            "use method='tempering'",
            "method",
        )
    states = _states(size)
    values = density.values(states.astype(np.int8))
    probabilities = special.softmax(values / temperature)
    mean = float(probabilities @ values)
    sd = float((probabilities @ (values - mean) ** 2) ** 0.5)
    moments = states.T @ (probabilities[:, None] * states)
    return EnumeratedLaw(float(special.logsumexp(values / temperature)), probabilities, moments, mean, sd)


def _states(size: int) -> Float64[np.ndarray, "S size"]:
    return (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)


def _values(states: np.ndarray, linear: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return states @ linear + np.einsum("si,si->s", states @ upper, states)
