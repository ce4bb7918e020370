"""Statistics of paired differences: intervals, Holm's correction, random-effects means, and
detection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.special import stdtr, stdtrit

from sl_discs.experiment.record import Spread

LEVEL = 0.95


class Interval(NamedTuple):
    """A mean with its standard error and half the width of its 95 % interval; None where one value
    gives neither.
    """

    mean: float
    se: float | None
    half: float | None
    n: int

    def bounds(self) -> list[float] | None:
        """Both ends."""
        return None if self.half is None else [self.mean - self.half, self.mean + self.half]

    def p_value(self, value: float) -> float:
        """Of Student's two-sided test that the mean is `value`; 1 where all differences are equal
        to it.
        """
        if not self.se:
            return 1.0 if self.mean == value or self.se is None else 0.0
        return float(2 * stdtr(self.n - 1, -abs(self.mean - value) / self.se))


def interval(values: Float64[np.ndarray, "n"]) -> Interval:
    """Student's interval of the mean of independent values, at least one."""
    spread = Spread.of(values)
    return Interval(
        spread.mean, spread.se, None if spread.se is None else spread.half_width, spread.n
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values that control the family-wise error (Holm, Scand. J. Statist. 6, 1979), in
    the given order.
    """
    order, adjusted, highest = np.argsort(p_values, kind="stable"), [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def expected_best(values: Sequence[float], n: int) -> float:
    """The mean, over all choices of n of the values, of the largest that is chosen; n is at most
    their number.
    """
    weights = [
        math.comb(smaller, n - 1) / math.comb(len(values), n) for smaller in range(len(values))
    ]
    return float(np.dot(np.sort(values), weights))


class Pooled(NamedTuple):
    """A random-effects mean, the ends of its 95 % interval, and the variance between the effects,
    tau2.
    """

    mean: float
    low: float
    high: float
    tau2: float
    k: int


def random_effects(means: Sequence[float], errors: Sequence[float]) -> Pooled:
    """The mean of k >= 2 effects that were measured with these standard errors, all above zero.

    The variance between effects is that of DerSimonian and Laird (Controlled Clinical Trials 7,
    1986); the interval is Student's with k - 1 degrees of freedom (Knapp and Hartung, Statistics in
    Medicine 22, 2003), whose scaling of the standard error is not allowed below 1.
    """
    y, variance = np.asarray(means, np.float64), np.square(np.asarray(errors, np.float64))
    k, w = len(y), 1 / variance
    q = float(np.sum(w * (y - np.sum(w * y) / np.sum(w)) ** 2))
    tau2 = max(0.0, (q - (k - 1)) / float(np.sum(w) - np.sum(w**2) / np.sum(w)))
    w = 1 / (variance + tau2)
    mean = float(np.sum(w * y) / np.sum(w))
    scale = max(1.0, float(np.sum(w * (y - mean) ** 2)) / (k - 1))
    half = float(stdtrit(k - 1, 0.5 + LEVEL / 2)) * math.sqrt(scale / float(np.sum(w)))
    return Pooled(mean, mean - half, mean + half, tau2, k)


def detection(
    values: Float64[np.ndarray, "n"], size: int, *, samples: int = 2_000, seed: int = 0
) -> float:
    """Fraction of samples of `size` values, drawn with replacement, whose 95 % interval lies above
    zero.
    """
    drawn = np.random.default_rng(seed).choice(values, (samples, size))
    se = drawn.std(axis=1, ddof=1) / math.sqrt(size)
    return float(np.mean(drawn.mean(axis=1) > float(stdtrit(size - 1, 0.5 + LEVEL / 2)) * se))
