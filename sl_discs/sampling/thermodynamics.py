"""Values, heat capacities, log Z and entropies at several temperatures, from one run.

Enumeration and elimination give them at each temperature. A ladder of tempering holds all
temperatures from infinite to the lowest: its records at all rungs are reweighted to each
temperature in between (Shirts and Chodera 2008, "Statistically optimal analysis of samples from
multiple equilibrium states"), with the rungs' log Z by Bennett's acceptance ratio.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64
from scipy.special import logsumexp

from sl_discs.sampling.drawn import ROUNDING, Curve


def curve_of(
    temperatures: Sequence[float], points: Float64[np.ndarray, "T 4"], errors: np.ndarray
) -> Curve:
    """Returns the curve with these columns: value, heat capacity, log Z and entropy."""
    return Curve(
        np.array(temperatures, np.float64), *np.stack([points, errors], axis=2).swapaxes(0, 1)
    )


def ladder_curve(
    temperatures: Sequence[float],
    inverse: Float64[np.ndarray, "R"],
    parts: Sequence[Float[np.ndarray, "D R"]],
    log_ratios: tuple[Float64[np.ndarray, "Q"], Float64[np.ndarray, "K Q"]],
    log_states: tuple[float, float],
) -> Curve:
    """Returns the curve from records of f at each rung, with errors by leaving out one part of them
    at a time.

    Args:
      temperatures: at least the lowest of the rungs.
      inverse: 1/temperature of the rungs, the first of which is 0.
      parts: nearly independent parts of the records.
      log_ratios: of Z at each rung over Z at the one before it, from all records and without each
        part.
      log_states: the logarithm of the number of states, and its error.
    """

    def points(
        records: Float[np.ndarray, "D R"], ratios: Float64[np.ndarray, "Q"]
    ) -> Float64[np.ndarray, "T 4"]:
        rungs = np.cumsum([0.0, *ratios])
        values = records.ravel().astype(np.float64)
        mixture = logsumexp(inverse * values[:, None] - rungs, axis=1) + np.log(len(records))
        return np.array([_reweighted(values, mixture, temperature) for temperature in temperatures])

    of_all, of_others = log_ratios
    without_part = (np.concatenate([*parts[:k], *parts[k + 1 :]]) for k in range(len(parts)))
    without = np.array(list(map(points, without_part, of_others)))
    errors = np.sqrt((len(parts) - 1) * without.var(axis=0))
    joined = np.concatenate(parts)
    curve = points(joined, of_all)
    curve[:, 2:] += log_states[0]
    errors[:, 2:] = np.hypot(errors[:, 2:], log_states[1])
    errors = np.hypot(errors, ROUNDING * curve)
    if joined.min() == joined.max():  # nothing bounds the values of other states
        errors = np.full_like(errors, np.nan)
    return curve_of(temperatures, curve, errors)


def _reweighted(
    values: Float64[np.ndarray, "S"], mixture: Float64[np.ndarray, "S"], temperature: float
) -> tuple[float, float, float, float]:
    """Returns the columns of the curve at a temperature, from values of f at all rungs with density
    exp(mixture).
    """
    logs = values / temperature - mixture
    log_z = float(logsumexp(logs))
    weights = np.exp(logs - log_z)
    mean = float(weights @ values)
    variance = float(weights @ (values - mean) ** 2)
    return mean, variance / temperature**2, log_z, log_z - mean / temperature
