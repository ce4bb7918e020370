"""Statistics of the report: results of cells, their distance from the paper, and differences within pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import special

from sl_discs.experiment.output import Spread
from sl_discs.experiment.published import PublishedRow

_CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and its 95 % interval by Student's t, which is None for a single value."""

    mean: float
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, "n"]) -> Interval:
        """The interval of at least one value."""
        spread = Spread.of(values)
        if spread.se is None:
            return cls(spread.mean, None, None, spread.n)
        half = float(special.stdtrit(spread.n - 1, (1 + _CONFIDENCE) / 2)) * spread.se
        return cls(spread.mean, spread.mean - half, spread.mean + half, spread.n)


def z_score(ours: Spread | None, published: PublishedRow | None, published_n: int) -> float | None:
    """(ours - published) over the root of the sum of squared standard errors; the paper's is std/sqrt(published_n).

    None if one of them, or our error, is missing, or if two different numbers both have an error of zero.
    """
    if ours is None or published is None or ours.se is None:
        return None
    difference = ours.mean - published.mean
    error = math.hypot(ours.se, published.std / math.sqrt(published_n))
    if error == 0:
        return 0.0 if difference == 0 else None
    return difference / error


def percent(
    values: Float64[np.ndarray, "G"], references: Float64[np.ndarray, "G"]
) -> Float64[np.ndarray, "G"] | None:
    """100 values / references; None unless every graph has a reference other than zero."""
    if not np.all(np.isfinite(references) & (references != 0)):
        return None
    return 100 * values / references
