"""Means of dependent draws with Monte Carlo standard errors, by batch means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Num

# How the draws of a group may depend on each other, see `Batches`.
DEPENDENCES = ("serial", "none", "group")
# Batches of a chain, and the least number of draws per batch, dependent and effective ones.
_BATCHES, _LEAST_EFFECTIVE = 10, 4
# Values of draws that differ relatively by no more than this agree.
_ROUNDING = 1e-12


class Estimate(NamedTuple):
    """A mean and its Monte Carlo standard error: infinite of a single batch, and NaN where all draws agree, as
    nothing bounds the values that were not drawn.
    """

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.6g} +- {self.error:.2g}"


# Means and their errors, of one shape.
Estimates = tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]


class Batches:
    """Divides draws [C, D] of C groups into batches with nearly independent means (Glynn and Whitt 1991).

    Args:
      num_groups: C.
      num_draws: D, per group.
      dependence: `serial`: a group is a chain; `none`: all draws are independent; `group`: the draws of a group
        depend on each other, as in a population.
      log_weights: [C] of the groups, up to a constant; None: equal weights.
      effective: the number of independent draws that all draws are worth. Batches of chains are long enough for
        several of them; where they are fewer than draws that are independent otherwise, errors grow accordingly.
    """

    def __init__(
        self,
        num_groups: int,
        num_draws: int,
        dependence: str,
        log_weights: Float[np.ndarray, "C"] | None,
        effective: float = math.inf,
    ):
        # Groups are independent, however few draws each of them is worth.
        self._effective = float(np.clip(effective, num_groups, num_groups * num_draws))
        batches = min(_BATCHES, num_draws // _BATCHES, int(self._effective / num_groups) // _LEAST_EFFECTIVE)
        count = {"serial": max(1, batches), "none": num_draws, "group": 1}[dependence]
        self._inflation = np.sqrt(num_groups * num_draws / self._effective) if dependence == "none" else 1.0
        self._starts = np.arange(count) * num_draws // count
        self._lengths = np.diff(np.append(self._starts, num_draws)) / num_draws
        weights = np.ones(num_groups)
        if log_weights is not None:
            weights = np.exp(log_weights - np.max(log_weights))
        self._groups = weights / weights.sum()
        self._weights = (self._groups[:, None] * self._lengths).ravel()

    def estimate(self, values: Float[np.ndarray, "C D *shape"]) -> Estimates:
        """Means over all draws and their errors, as in `Estimate`."""
        mean, error = self._by_batches(values)
        low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
        agree = high - low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return mean, np.where(agree, np.nan, error)

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
        """The probability of events, as `estimate`.

        If all batches agree, their error would be 0. The error is therefore at least that of n independent draws
        whose probability is the posterior mean under a uniform prior, (n p + 1)/(n + 2): of an event that is in none
        of the draws, about 1/n. n is the effective number of draws.
        """
        mean, error = self._by_batches(events)
        effective = min(self._effective, 1 / np.sum(self._groups**2) * events.shape[1])
        smoothed = (effective * mean + 1) / (effective + 2)
        return mean, np.maximum(error, np.sqrt(smoothed * (1 - smoothed) / effective))
