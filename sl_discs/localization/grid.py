"""Time grids t_0 < ... < t_K of the observation process."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from sl_discs.errors import InputError
from sl_discs.localization.alpha import Alpha

GRIDS = ("uniform", "log_snr")


def log_snr(alpha: Alpha, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
    """log(alpha(t)^2 / t); the noise level sigma only adds a constant."""
    return np.asarray(2 * np.log(alpha.value(t)) - np.log(t))


def time_grid(alpha: Alpha, grid: str, levels: int, eps: float, eps_end: float) -> Float64[np.ndarray, "{levels}+1"]:
    """K + 1 increasing times from eps to horizon - eps_end.

    Args:
      alpha: the schedule, which sets the horizon (1 for geom).
      grid: `uniform` in t, or `log_snr`, even in log(alpha^2 / (sigma^2 t)).
      levels: K, at least 1.
      eps: first time, above 0.
      eps_end: distance of the last time from the horizon.

    Raises:
      InputError: the grid is unknown, or the times leave no interval.
    """
    if grid not in GRIDS:
        raise InputError(f"sampler_config.grid is {grid!r}; known: {', '.join(GRIDS)}")
    if not eps > 0:
        raise InputError(f"sampler_config.eps is {eps}; expected a time above 0")
    # alpha of geom(a, b) with b > 0 is infinite at its horizon.
    if not eps_end >= 0 or (eps_end == 0 and getattr(alpha, "b", 0) > 0):
        raise InputError(f"sampler_config.eps_end is {eps_end}; expected a distance above 0 from the horizon")
    end = alpha.horizon - eps_end
    if eps + eps_end >= alpha.horizon:
        raise InputError(
            f"sampler_config.eps + sampler_config.eps_end = {eps + eps_end:g} leaves no time below the horizon "
            f"{alpha.horizon:g}; lower one of them"
        )
    if grid == "uniform":
        return np.linspace(eps, end, levels + 1)
    return _invert_log_snr(alpha, eps, end, levels)


def _invert_log_snr(alpha: Alpha, start: float, end: float, levels: int) -> Float64[np.ndarray, "{levels}+1"]:
    """Times evenly spaced in log_snr, by bisection; log_snr increases for every valid schedule."""
    wanted = np.linspace(log_snr(alpha, np.asarray(start)), log_snr(alpha, np.asarray(end)), levels + 1)
    low, high = np.full(levels + 1, start), np.full(levels + 1, end)
    for _ in range(100):
        middle = (low + high) / 2
        below = log_snr(alpha, middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    times = (low + high) / 2
    times[0], times[-1] = start, end
    return times
