"""A ladder of temperatures for tempering: the placement of its rungs, and its round trips (Syed et al. 2022).

Swaps between neighbours are rejected with rates r_k. Their cumulative sum, the barrier, is a function of the inverse
temperature that hardly depends on the ladder, and the best ladder of R rungs has equal increments of it.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

# A rate of 0 would leave no distance between two rungs.
_LEAST_RATE = 1e-3
_MOST_RUNGS = 128
# Rates above this on average say little of the barrier but that there are too few rungs.
_SATURATED = 0.7


def first_ladder(inverse_temperature: float, rungs: int) -> Float64[np.ndarray, "R"]:
    """Inverse temperatures from 0 to the target, denser at high temperatures."""
    return inverse_temperature * np.linspace(0, 1, rungs) ** 2


def rejection_rates(
    inverse: Float64[np.ndarray, "R"], values: Float[np.ndarray, "L D R"]
) -> Float64[np.ndarray, "Q"]:
    """[R - 1] mean probability that a swap of neighbours is rejected.

    Args:
      inverse: inverse temperatures.
      values: of f at each rung, for D records of L ladders.
    """
    gains = np.diff(inverse) * np.diff(values.astype(np.float64), axis=2)
    return 1 - np.exp(-np.maximum(gains, 0)).mean(axis=(0, 1))


def adapted_ladder(
    inverse: Float64[np.ndarray, "R"], rates: Float64[np.ndarray, "Q"], rungs: int
) -> Float64[np.ndarray, "S"]:
    """So many inverse temperatures with equal increments of the barrier."""
    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rates, _LEAST_RATE))])
    found = np.interp(np.linspace(0, barrier[-1], rungs), barrier, inverse)
    found[[0, -1]] = inverse[[0, -1]]
    return found


def best_number_of_rungs(rates: Float64[np.ndarray, "Q"]) -> int:
    """About twice the barrier, where half of the swaps succeed and round trips are most frequent for the work.

    If there are far too few rungs to estimate the barrier, it doubles their number.
    """
    saturated = rates.mean() > _SATURATED
    wanted = 2 * (len(rates) + 1) if saturated else math.ceil(2 * rates.sum()) + 1
    return int(np.clip(wanted, 3, _MOST_RUNGS))


def sweeps_a_round_trip(rates: Float64[np.ndarray, "Q"]) -> int:
    """Sweeps per round trip of a ladder, all its walkers together, where chains forget their state between swaps:
    2 + 2 sum of r/(1 - r) over the swaps (Syed et al. 2022). Where they do not, round trips take longer.
    """
    return math.ceil(2 + 2 * (rates / np.maximum(1 - rates, _LEAST_RATE)).sum())


def round_trips(exchanged: Bool[np.ndarray, "D L R"]) -> Int[np.ndarray, "L"]:
    """The number of round trips of states from the hottest rung to the coldest one and back, in each ladder.

    Args:
      exchanged: whether rung k exchanged with k + 1 at each of D records; rung 0 is the coldest.
    """
    moments, ladders, rungs = exchanged.shape
    walker = np.tile(np.arange(rungs), (ladders, 1))
    # The end that a walker visited last: 0 none, 1 the hottest, 2 the coldest after the hottest.
    phase = np.zeros((ladders, rungs), np.int8)
    trips = np.zeros(ladders, np.int64)
    rows = np.arange(ladders)
    for moment in range(moments):
        swaps = exchanged[moment]
        row, low = np.nonzero(swaps)
        walker[row, low], walker[row, low + 1] = walker[row, low + 1], walker[row, low]
        cold, hot = walker[:, 0], walker[:, -1]
        phase[rows, cold] = np.where(phase[rows, cold] == 1, 2, phase[rows, cold])
        trips += phase[rows, hot] == 2
        phase[rows, hot] = 1
    return trips
