"""What all methods of `sample` share: requests, budget, packed draws, and estimates with errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int8, Num, UInt8

from sl_discs.models.terms import Terms


class Request(NamedTuple):
    """What a method is asked for, from the arguments of `sample`.

    Attributes:
      draws_each: the number of draws of a group; None: as many as there is time for.
      groups: the number of independent chains or ladders.
      sampler: the name of the base sampler.
      fields: those of its config.
      engine: the name of the engine, or `auto`.
      seed: of all random numbers.
    """

    draws_each: int | None
    groups: int
    sampler: str
    fields: Mapping[str, Any]
    engine: str
    seed: int


# Draws as bits: eight variables a byte.

# Bytes of the pieces in which draws are unpacked; what is computed of them takes a few doubles for each, in cache.
_PIECE = 2**20


def num_bytes(size: int) -> int:
    """Returns W of a draw of `size` variables."""
    return -(-size // 8)


def packed(states: Int8[np.ndarray, "*B N"] | Bool[np.ndarray, "*B N"]) -> UInt8[np.ndarray, "*B W"]:
    """Returns states as bytes."""
    return np.packbits(states, axis=-1)


def unpacked(bits: UInt8[np.ndarray, "*B W"], size: int, first: int = 0, last: int | None = None):
    """Returns the states [..., n], or those of the variables from `first`, a multiple of 8, to before `last`."""
    last = size if last is None else last
    here = slice(first // 8, -(-last // 8))
    return np.unpackbits(np.asarray(bits[..., here]), axis=-1, count=last - first).view(np.int8)


def pieces(bits: UInt8[np.ndarray, "C D W"], size: int):
    """Slices of the draws of all groups, and their states [C, d, N], a piece of bounded size after the other."""
    step = max(1, _PIECE // max(1, bits.shape[0] * size))
    for start in range(0, bits.shape[1], step):
        here = slice(start, start + step)
        yield here, unpacked(np.asarray(bits[:, here]), size)


def column(bits: UInt8[np.ndarray, "C D W"], size: int, place: int) -> Int8[np.ndarray, "C D"]:
    """Returns one variable of all draws."""
    first = place // 8 * 8
    return unpacked(bits, size, first, min(first + 8, size))[:, :, place - first]


def overlaps(bits: UInt8[np.ndarray, "C D W"], size: int) -> Float[np.ndarray, "C D"]:
    """Returns the overlap s.s'/N of each draw with that of the same number in the next group; of a single group, with
    the draw half the group away.
    """
    groups, draws, width = bits.shape
    step = max(1, _PIECE // max(1, groups * width))
    found = np.empty((groups, draws))
    for start in range(0, draws, step):
        here = np.arange(start, min(start + step, draws))
        own = bits[:, here]
        other = np.roll(own, -1, axis=0) if groups > 1 else bits[:, (here - draws // 2) % draws]
        found[:, here] = 1 - 2 * np.bitwise_count(own ^ other).sum(axis=-1, dtype=np.int64) / size
    return found


# The outcome of a method, and the common part of all methods that run chains.


class Known(NamedTuple):
    """Exact probabilities of N variables, and the mean of f.

    Attributes:
      marginals: [N, 2] P(x_i = k).
      pairs: [M, 2] pairs of variables: all after enumeration, those with a coupling after tree decomposition.
      joint: [M, 2, 2] P(x_a = k, x_b = l) of each pair.
      mean_value: of f.
    """

    marginals: Float64[np.ndarray, "N 2"]
    pairs: Int[np.ndarray, "M 2"]
    joint: Float64[np.ndarray, "M 2 2"]
    mean_value: Float64[np.ndarray, ""]

    @classmethod
    def of(cls, moments: Float64[np.ndarray, "N 2 N 2"], mean_value: float) -> Known:
        """Builds it from P(x_i = k, x_j = l) of all pairs, with P(x_i = k) where i is j and k is l."""
        first, second = np.triu_indices(len(moments), 1)
        marginals, pairs = np.einsum("ikik->ik", moments).copy(), np.stack([first, second], axis=1)
        return cls(marginals, pairs, moments[first, :, second], np.array(mean_value))


class Averages(NamedTuple):
    """Averages over the time since the previous draw, which a draw by itself leaves out.

    Attributes:
      value: [C, D] of the value.
      magnetisation: [C, D] of the magnetisation.
    """

    value: Float64[np.ndarray, "C D"]
    magnetisation: Float64[np.ndarray, "C D"]


class Drawn(NamedTuple):
    """Draws of C independent groups, D of each, packed, with fields of `Samples` of the same names.

    `how` and `reasons` are details of the run and the method's own reasons against its draws, and log Z comes with
    its standard error. Draws that are `exact` are so however few they are; `most_effective` is the number of
    independent draws that all of them are worth at most, whatever their autocorrelation; `remedy` says what helps
    where more draws do not. `recorded` are the draws' values in the records of the chains, of which `averages` and
    `log_z` are made: without the constant, and in single precision.
    """

    bits: UInt8[np.ndarray, "C D W"]
    dependence: str
    how: dict[str, Any]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log_z: tuple[float, float] | None = None
    ladder: Ladder | None = None
    interrupted: bool = False
    exact: bool = False
    known: Known | None = None
    averages: Averages | None = None
    recorded: Float[np.ndarray, "C D"] | None = None
    most_effective: float = math.inf
    remedy: str = ""


class Ladder(NamedTuple):
    """A ladder of R temperatures, the hottest first.

    Attributes:
      inverse: [R] 1/temperature.
      acceptance: [R - 1] of swaps between neighbours.
      round_trips: [C] from the hottest to the coldest and back, of each group.
      mean_values: [R] mean of f at each rung.
    """

    inverse: Float64[np.ndarray, "R"]
    acceptance: Float64[np.ndarray, "Q"]
    round_trips: np.ndarray
    mean_values: Float64[np.ndarray, "R"]


class Budget:
    """The time limit of a method in seconds from now, None for no limit, and its callbacks.

    A true result of `interrupt` ends the run; `say` is called with the number of new draws.
    """

    def __init__(
        self,
        seconds: float | None = None,
        interrupt: Callable[[], object] | None = None,
        say: Callable[[int], None] = lambda count: None,
    ):
        self._end = math.inf if seconds is None else time.perf_counter() + seconds
        self._interrupt, self.say = interrupt, say
        self.interrupted = False

    @property
    def timed(self) -> bool:
        """Returns whether there is a time limit."""
        return self._end < math.inf

    def left(self) -> float:
        """Returns the remaining seconds."""
        return self._end - time.perf_counter()

    def after(self, part: float) -> Callable[[], bool]:
        """Returns whether this part of the time that is left now has passed, without asking for an interruption."""
        left = (1 - part) * self.left()
        return lambda: self.left() < left

    def is_over(self) -> bool:
        """Returns whether to stop now."""
        self.interrupted = self.interrupted or bool(self._interrupt and self._interrupt())
        return self.interrupted or self.left() <= 0

    def check_interrupt(self) -> None:
        """Raises KeyboardInterrupt if the run was told to stop before there are draws to return."""
        self.is_over()
        if self.interrupted:
            raise KeyboardInterrupt


# Observables that all draws have.
VALUE, MAGNETISATION, OVERLAP = "value", "magnetisation", "overlap"


def magnetisations(states: Int8[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B"]:
    """Returns the mean spin of each state."""
    return 2 * states.mean(axis=-1) - 1


def observed(
    terms: Terms, bits: UInt8[np.ndarray, "C D W"]
) -> tuple[Float64[np.ndarray, "C D"], Float64[np.ndarray, "C D"]]:
    """Returns the value f and the magnetisation of every draw."""
    function, size = terms.evaluator(), terms.num_sites
    values, means = [], []
    for _, states in pieces(bits, size):
        values.append(function(states.reshape(-1, size)).reshape(states.shape[:2]))
        means.append(magnetisations(states))
    return np.concatenate(values, axis=1), np.concatenate(means, axis=1)


def variable_name(label: Hashable) -> str:
    """Returns the name of a variable in reports."""
    return f"variable {label!r}"


# Means of dependent draws with Monte Carlo standard errors, by batch means.

# How the draws of a group may depend on each other, see `Batches`.
DEPENDENCES = ("serial", "none", "group")
# Batches of a chain, and the least number of draws per batch, dependent and effective ones.
_BATCHES, _LEAST_EFFECTIVE = 10, 4
# Values of draws that differ relatively by no more than this agree, and no error of their mean is smaller.
_ROUNDING = 1e-12


class Estimate(NamedTuple):
    """A mean and its Monte Carlo standard error: infinite of a single batch, NaN where all draws agree, as nothing
    bounds the values that were not drawn, and 0 where the mean is exact.
    """

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.6g}" + (f" +- {self.error:.2g}" if self.error else " (exact)")


# Means and their errors, of one shape.
Estimates = tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]


class Batches:
    """Divides draws [C, D] of C groups into batches with nearly independent means (Glynn and Whitt 1991).

    Dependence is `serial` if a group is a chain, `none` if all draws are independent, and `group` if the draws of a
    group share an estimate. All draws are worth `effective` independent ones: batches of chains are long enough for
    several of them; where they are fewer than draws that are independent otherwise, errors grow accordingly.
    """

    def __init__(self, num_groups: int, num_draws: int, dependence: str, effective: float = math.inf):
        # Groups are independent, however few draws each of them is worth.
        self._effective = float(np.clip(effective, num_groups, num_groups * num_draws))
        batches = min(_BATCHES, num_draws // _BATCHES, int(self._effective / num_groups) // _LEAST_EFFECTIVE)
        count = {"serial": max(1, batches), "none": num_draws, "group": 1}[dependence]
        self._by_group = dependence == "group"
        self._inflation = np.sqrt(num_groups * num_draws / self._effective) if dependence == "none" else 1.0
        self._starts = np.arange(count) * num_draws // count
        self._lengths = np.diff(np.append(self._starts, num_draws)) / num_draws
        self._weights = np.tile(self._lengths, num_groups) / num_groups

    def estimate(self, values: Float[np.ndarray, "C D *shape"]) -> Estimates:
        """Returns means over all draws and their errors, as in `Estimate`."""
        mean, error = self._by_batches(values)
        low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
        rounding = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return mean, np.where(high - low <= rounding, np.nan, np.maximum(error, rounding))

    def _by_batches(self, values: Float[np.ndarray, "C D *shape"]) -> Estimates:
        sums = np.add.reduceat(values, self._starts, axis=1, dtype=np.float64)
        counts = (self._lengths * values.shape[1]).reshape(-1, *[1] * (values.ndim - 2))
        means = (sums / counts).reshape(-1, *values.shape[2:])
        mean = np.tensordot(self._weights, means, 1)
        number = len(means)
        if number == 1:
            return mean, np.full(np.shape(mean), np.inf)
        squares = np.tensordot(self._weights**2, (means - mean) ** 2, 1)
        return mean, self._inflation * np.sqrt(number / (number - 1) * squares)

    def share(self, events: Num[np.ndarray, "C D *shape"]) -> Estimates:
        """Returns the probability of events, as `estimate`.

        If all batches agree, their error would be 0. The error is therefore at least that of n independent draws
        whose probability is the posterior mean under a uniform prior, (n p + 1)/(n + 2): of an event that is in none
        of the draws, about 1/n. n is the effective number of draws. Where the draws of a group share an estimate,
        groups vary by more than that: there only events that are in none of the draws, or in all, have such an error.
        """
        mean, error = self._by_batches(events)
        smoothed = ((0.0 if self._by_group else self._effective * mean) + 1) / (self._effective + 2)
        return mean, np.maximum(error, np.sqrt(smoothed * (1 - smoothed) / self._effective))
