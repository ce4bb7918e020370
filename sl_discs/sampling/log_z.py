"""log Z from the values of f at the temperatures of a ladder: Bennett's acceptance ratio between neighbours.

With equally many draws at two inverse temperatures b < b', log Z(b')/Z(b) is the C at which the sum over the draws
at b of sigmoid((b' - b) f - C) equals the sum over those at b' of sigmoid(C - (b' - b) f), the estimate of least
variance (Bennett 1976). The neighbours' ratios add up from infinite temperature, where Z is the number of states, to
the temperature that is asked for.
"""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float, Float64
from scipy import optimize
from scipy.special import expit

# About how many blocks are left out in turn.
_BLOCKS = 20


def log_ratio(step: float, lower: Float[np.ndarray, "*D"], upper: Float[np.ndarray, "*D"]) -> float:
    """log Z(b')/Z(b).

    Args:
      step: b' - b.
      lower: f of draws at b.
      upper: f of as many draws at b'.
    """
    below, above = step * np.ravel(lower).astype(np.float64), step * np.ravel(upper).astype(np.float64)
    least, most = min(below.min(), above.min()), max(below.max(), above.max())
    return optimize.brentq(lambda c: expit(below - c).sum() - expit(c - above).sum(), least, most)


def log_z_of_ladder(
    log_states: float, inverse: Float64[np.ndarray, "R"], values: Float[np.ndarray, "L D R"]
) -> tuple[float, float]:
    """log Z at the last temperature, and its standard error by leaving out one block of draws at a time.

    Args:
      log_states: logarithm of the number of states.
      inverse: [R] inverse temperatures, from 0.
      values: [L, D, R] of f at each of them, of D draws of L independent ladders.
    """
    blocks = max(1, min(_BLOCKS // values.shape[0], values.shape[1] // 2))
    bounds = np.arange(blocks + 1) * values.shape[1] // blocks
    parts = [values[row, a:b] for row in range(len(values)) for a, b in itertools.pairwise(bounds)]

    def from_hot(chosen: list[np.ndarray]) -> float:
        joined = np.concatenate(chosen)
        steps = np.diff(inverse)
        return sum(log_ratio(step, joined[:, k], joined[:, k + 1]) for k, step in enumerate(steps))

    log_z = log_states + from_hot(parts)
    if len(parts) == 1:
        return float(log_z), float("inf")
    without = np.array([from_hot(parts[:k] + parts[k + 1 :]) for k in range(len(parts))])
    return float(log_z), float(np.sqrt((len(parts) - 1) * without.var()))
