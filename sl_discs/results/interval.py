"""Confidence intervals of means."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy import stats


def half_width(values: Float64[np.ndarray, "N"]) -> float:
    """Half of the 95 % interval of the mean of N > 1 independent values, by Student's t."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
