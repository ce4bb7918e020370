"""Pearson's chi-squared test of counts, with cells that are large enough for it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

# The smallest expected count of a cell.
_SMALLEST = 5


def _merged(observed: Int[np.ndarray, "S"], expected: Float[np.ndarray, "S"]):
    """Counts with the smallest cells merged into one, so that every cell expects at least `_SMALLEST`."""
    order = np.argsort(expected)
    total = np.cumsum(expected[order])
    # The merged cell takes as many cells as it needs to be large enough itself.
    rare = min(int(np.searchsorted(total, _SMALLEST)) + 1, len(order)) if expected.min() < _SMALLEST else 1
    cells = np.split(order, np.arange(rare, len(order)))
    return np.array([(observed[cell].sum(), expected[cell].sum()) for cell in cells]).T


def chi_squared(observed: Int[np.ndarray, "*R S"], expected: Float[np.ndarray, "*R S"]) -> tuple[float, float]:
    """Of independent rows of counts, each of which sums to what is expected.

    Args:
      observed: counts.
      expected: their expectations.

    Returns:
      the statistic, and its p-value.
    """
    size = np.shape(expected)[-1]
    statistic, freedom = 0.0, 0
    for row, law in zip(np.reshape(observed, (-1, size)), np.reshape(expected, (-1, size)), strict=True):
        counts, expectations = _merged(row, law)
        statistic += ((counts - expectations) ** 2 / expectations).sum()
        freedom += len(counts) - 1
    return float(statistic), float(stats.chi2.sf(statistic, max(freedom, 1)))
