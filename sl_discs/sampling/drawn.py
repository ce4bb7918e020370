"""What all methods of `sample` share: requests, packed draws, and estimates with errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int8, Num, UInt8

from sl_discs.localization.method import Method
from sl_discs.models.functions import Terms


class Request(NamedTuple):
    """What a method is asked for, from the arguments of `sample`."""

    terms: Terms  # of f
    temperature: float  # of the target exp(f/temperature)
    draws_each: int | None  # number of draws of a group; None: as many as there is time for
    groups: int  # number of independent chains or ladders
    method: Method  # the sampler, localized for that method of `sample`
    engine: str  # its name, or `auto`
    seed: int  # of all random numbers
    temperatures: tuple[float, ...] = ()  # of a curve, of which `temperature` is the lowest


# Draws as bits, eight variables a byte. What is computed of such a piece takes a few doubles a
# byte, in cache.
_PIECE = 2**20


def packed(
    states: Int8[np.ndarray, "*B N"] | Bool[np.ndarray, "*B N"],
) -> UInt8[np.ndarray, "*B W"]:
    """Returns states as bytes."""
    return np.packbits(states, axis=-1)


def unpacked(bits: UInt8[np.ndarray, "*B W"], size: int, first: int = 0, last: int | None = None):
    """Returns the states [..., n], or those of the variables from `first`, a multiple of 8, to
    before `last`.
    """
    last = size if last is None else last
    here = slice(first // 8, -(-last // 8))
    return np.unpackbits(bits[..., here], axis=-1, count=last - first).view(np.int8)


def pieces(bits: UInt8[np.ndarray, "C D W"], size: int):
    """Slices of the draws of all groups, and their states [C, d, N], a piece of bounded size after
    the other.
    """
    step = max(1, _PIECE // (bits.shape[0] * size))
    for start in range(0, bits.shape[1], step):
        here = slice(start, start + step)
        yield here, unpacked(bits[:, here], size)


def column(bits: UInt8[np.ndarray, "C D W"], size: int, variable: int) -> Int8[np.ndarray, "C D"]:
    """Returns one variable of all draws."""
    first = variable // 8 * 8
    return unpacked(bits, size, first, min(first + 8, size))[:, :, variable - first]


def overlaps(bits: UInt8[np.ndarray, "C D W"], size: int) -> Float[np.ndarray, "C D"]:
    """Returns the overlap s.s'/N of each draw with that of the same number in the next group."""
    # The first group is next to the last one.
    differences = [
        np.bitwise_count(bits[group] ^ bits[group + 1 - len(bits)]).sum(axis=1, dtype=np.int64)
        for group in range(len(bits))
    ]
    return 1 - 2 * np.array(differences) / size


# The outcome of a method.


class Known(NamedTuple):
    """Exact probabilities of N variables, and the mean of f.

    The M pairs of variables are all after enumeration, and those with a coupling after tree
    decomposition.
    """

    marginals: Float64[np.ndarray, "N 2"]  # P(x_i = k)
    pairs: Int[np.ndarray, "M 2"]
    joint: Float64[np.ndarray, "M 2 2"]  # P(x_a = k, x_b = l) of each pair
    mean_value: Float64[np.ndarray, ""]  # of f

    def mean(self, observable: str) -> float:
        """Returns the mean of f, of the magnetisation or of the overlap of independent draws."""
        if observable == VALUE:
            return float(self.mean_value)
        of_spins = (
            2 * (self.marginals**2).sum(axis=1)
            if observable == OVERLAP
            else 2 * self.marginals[:, 1]
        )
        # A mean of zero is exact, too.
        return round(float((of_spins - 1).mean()), 15) + 0.0


class Curve(NamedTuple):
    """Means and their errors, in two columns, at several temperatures.

    The heat capacity is the variance of f over the squared temperature, the entropy log Z -
    f/temperature in nats.
    """

    temperature: Float64[np.ndarray, "T"]
    value: Float64[np.ndarray, "T 2"]  # of f
    heat_capacity: Float64[np.ndarray, "T 2"]
    log_z: Float64[np.ndarray, "T 2"]
    entropy: Float64[np.ndarray, "T 2"]


class Averages(NamedTuple):
    """Averages over the time since the previous draw, which a draw by itself leaves out."""

    value: Float64[np.ndarray, "C D"]
    magnetisation: Float64[np.ndarray, "C D"]


class Drawn(NamedTuple):
    """Draws of C independent groups, D of each, packed, with fields of `Samples` of the
    same names.
    """

    bits: UInt8[np.ndarray, "C D W"]
    dependence: str
    how: dict[str, Any]
    reasons: tuple[str, ...] = ()  # the method's own ones against its draws
    notes: tuple[str, ...] = ()
    log_z: Estimate | None = None
    ladder: Ladder | None = None
    exact: bool = False  # whether they are so however few they are
    known: Known | None = None
    averages: Averages | None = None
    # The draws' values in the records of the chains, of which `averages` and `log_z` are made:
    # without the constant, and in single precision.
    recorded: Float[np.ndarray, "C D"] | None = None
    # The number of independent draws that all of them are worth at most, whatever their
    # autocorrelation.
    most_effective: float = math.inf
    curve: Curve | None = None
    # What is diagnosed as well, by name.
    observables: Mapping[str, Float64[np.ndarray, "C D"]] = MappingProxyType({})
    remedy: str = ""  # what helps where more draws do not


class Ladder(NamedTuple):
    """A ladder of R temperatures, the hottest first."""

    inverse: Float64[np.ndarray, "R"]  # 1/temperature
    acceptance: Float64[np.ndarray, "Q"]  # of the R - 1 swaps between neighbours
    round_trips: np.ndarray  # [C] from the hottest to the coldest and back, of each group
    mean_values: Float64[np.ndarray, "R"]  # mean of f at each rung


# Observables that all draws have.
VALUE, MAGNETISATION, OVERLAP = "value", "magnetisation", "overlap"


def value_at(temperature: float) -> str:
    """Returns the name of the value at another temperature of a curve."""
    return f"{VALUE} at {temperature:g}"


def magnetisations(states: Int8[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B"]:
    """Returns the mean spin of each state."""
    return 2 * states.mean(axis=-1) - 1


def observed(
    terms: Terms, bits: UInt8[np.ndarray, "C D W"]
) -> dict[str, Float64[np.ndarray, "C D"]]:
    """Returns the observables of every draw by name, f being the value."""
    size = terms.num_sites
    values, spins = np.empty((2, *bits.shape[:2]))
    for here, states in pieces(bits, size):
        values[:, here] = terms.values(states.reshape(-1, size)).reshape(states.shape[:2])
        spins[:, here] = magnetisations(states)
    return {VALUE: values, MAGNETISATION: spins, OVERLAP: overlaps(bits, size)}


def variable_name(label: Hashable) -> str:
    """Returns the name of a variable in reports."""
    return f"variable {label!r}"


# Means of dependent draws with Monte Carlo standard errors, by batch means.

# Batches of a chain, and the least number of draws per batch, dependent and effective ones.
_BATCHES, _LEAST_EFFECTIVE = 10, 4
# Values of draws that differ relatively by no more than this agree, and no error of their mean is
# smaller.
ROUNDING = 1e-12
# Values in the records of chains, in single precision, are off by up to so much of the sum of all
# terms: about 2^-22.
ROUNDED = 2.0**-19
# An error estimated from fewer visits of what varies is itself uncertain, by a fifth and more.
LEAST_VISITS = 20


class Estimate(NamedTuple):
    """A mean and its Monte Carlo standard error: infinite where groups disagree, NaN where all
    draws agree, as nothing bounds the values that were not drawn, and 0 where the mean is exact.
    """

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.6g}" + (f" +- {self.error:.2g}" if self.error else " (exact)")


def visits(values: Float[np.ndarray, "*B"], rounding: float = 0.0) -> float:
    """Returns how many values their variance rests on: (sum d^2)^2/sum d^4, d being the deviations
    from the mean.

    k values that differ from many equal ones count as k, normal values as a third of their number,
    and none count if all of them are equal up to `rounding`.
    """
    if np.ptp(values) <= max(rounding, ROUNDING * np.abs(values).max()):
        return 0.0
    squares = (values - values.mean(dtype=np.float64)) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


class Batches:
    """Divides draws [C, D] of C groups into batches with nearly independent means (Glynn and Whitt
    1991).

    Dependence is `serial` if a group is a chain, `none` if all draws are independent, and `group`
    if the draws of a group share an estimate. All draws are worth `effective` independent ones:
    batches of chains are long enough for several of them; where they are fewer than draws that are
    independent otherwise, errors grow accordingly.

    Attributes:
      effective: from the number of groups to that of draws.
    """

    def __init__(
        self, num_groups: int, num_draws: int, dependence: str, effective: float = math.inf
    ):
        # Groups are independent, however few draws each of them is worth.
        self.effective = float(np.clip(effective, num_groups, num_groups * num_draws))
        batches = min(
            _BATCHES, num_draws // _BATCHES, int(self.effective / num_groups) // _LEAST_EFFECTIVE
        )
        count = {"serial": max(1, batches), "none": num_draws, "group": 1}[dependence]
        self._by_group = dependence == "group"
        self._inflation = (
            np.sqrt(num_groups * num_draws / self.effective) if dependence == "none" else 1.0
        )
        self._starts = np.arange(count) * num_draws // count
        self._lengths = np.diff(np.append(self._starts, num_draws)) / num_draws
        self._weights = np.tile(self._lengths, num_groups) / num_groups

    def estimate(self, values: Num[np.ndarray, "C D"], span: float = math.nan) -> Estimate:
        """Returns the mean over all draws and its error: where all of them agree, that of a change
        by `span` in one of the effective draws.
        """
        mean, error = self._by_batches(values)
        low = float(values.min())
        high = float(values.max())
        rounding = ROUNDING * max(abs(low), abs(high))
        agree = high - low <= rounding
        return Estimate(
            float(mean), span / self.effective if agree else max(float(error), rounding)
        )

    def _by_batches(self, values: Num[np.ndarray, "C D *shape"]) -> tuple[np.ndarray, np.ndarray]:
        sums = np.add.reduceat(values, self._starts, axis=1, dtype=np.float64)
        counts = (self._lengths * values.shape[1]).reshape(-1, *[1] * (values.ndim - 2))
        means = (sums / counts).reshape(-1, *values.shape[2:])
        mean = np.tensordot(self._weights, means, 1)
        count = len(means)
        squares = np.tensordot(self._weights**2, (means - mean) ** 2, 1)
        return mean, self._inflation * np.sqrt(count / (count - 1) * squares)

    def shares(
        self, events: Num[np.ndarray, "C D *shape"]
    ) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]:
        """Returns the probabilities of events, and their errors.

        If all batches agree, their error would be 0. The error is therefore at least that of n
        independent draws whose probability is the posterior mean under a uniform prior, (n p +
        1)/(n + 2): of an event that is in none of the draws, about 1/n. n is the effective number
        of draws. Where the draws of a group share an estimate, groups vary by more than that: there
        only events that are in none of the draws, or in all, have such an error.
        """
        mean, error = self._by_batches(events)
        smoothed = ((0.0 if self._by_group else self.effective * mean) + 1) / (self.effective + 2)
        return mean, np.maximum(error, np.sqrt(smoothed * (1 - smoothed) / self.effective))
