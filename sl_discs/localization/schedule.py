"""The schedules of stochastic localization as arrays with an entry for each level: hyperparameters are data."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32

from sl_discs.arrays import AnyArray
from sl_discs.errors import InputError
from sl_discs.localization.alpha import parse_alpha
from sl_discs.localization.budget import level_budgets
from sl_discs.localization.grid import time_grid

INTEGRATORS = ("exponential", "euler")

# From this signal-to-noise ratio on, sign(Y) equals X except for one spin in 30,000: Phi(-4) = 3.2e-5.
LOCALIZED = 16.0


class Levels(NamedTuple):
    """The schedule of K levels.

    Attributes:
      tilt_scale: alpha(t_i)/(sigma^2 t_i), the factor of Y in the tilt.
      last: number of the level's last step, counted from 0.
      collected: number of steps, up to the last one, that estimate the posterior mean U; at least 1.
      drift: factor of U in the move to the next level.
      noise: standard deviation of the noise in that move.
    """

    tilt_scale: Float32[AnyArray, "K"]
    last: Int32[AnyArray, "K"]
    collected: Int32[AnyArray, "K"]
    drift: Float32[AnyArray, "K"]
    noise: Float32[AnyArray, "K"]

    def at(self, step: int) -> int:
        """The level of a step, both counted from 0; after the end, the last level."""
        return min(int(np.searchsorted(self.last, step)), len(self.last) - 1)


@dataclasses.dataclass(frozen=True)
class Localization:
    """Hyperparameters of Algorithm 1, with the paper's names.

    Attributes:
      alpha: `classic` or `geom(a,b)`.
      grid: `uniform` or `log_snr`.
      budget: `exp_decay` or `identical`.
      integrator: `exponential` (alpha(t_{i+1}) - alpha(t_i)) or `euler` ((t_{i+1} - t_i) alpha'(t_i)).
      K: number of levels.
      sigma: noise level of the observation.
      eps: first time t_0.
      eps_end: distance of t_K from the horizon.
      horizon: end of time for `classic`.
      mc_ratio: fraction of each level's steps, at its end, that estimates the posterior mean.
      r: decay of the budget.
      n_min: smallest budget of a level.
      tilt: whether the target is tilted by the observation; without it every step is that of the base sampler,
        including its random numbers, which is the null control of localization.
    """

    alpha: str = "geom(2,1)"
    grid: str = "uniform"
    budget: str = "exp_decay"
    integrator: str = "exponential"
    K: int = 256
    sigma: float = 10.0
    eps: float = 1e-2
    eps_end: float = 1e-2
    horizon: float = 1.0
    mc_ratio: float = 0.5
    r: float = 0.1
    n_min: int = 4
    tilt: bool = True

    def initial_noise(self) -> float:
        """Standard deviation of Y_0: sigma sqrt(t_0)."""
        return float(self.sigma * np.sqrt(self.eps))

    def last_signal_to_noise(self) -> float:
        """alpha(t_K)^2 / (sigma^2 t_K), the squared signal in each Y_K divided by the variance of its noise."""
        alpha = parse_alpha(self.alpha, self.horizon)
        end = alpha.horizon - self.eps_end
        return float(alpha.value(np.asarray(end))) ** 2 / (self.sigma**2 * end)

    def first_signal_to_noise(self) -> float:
        """alpha(t_0)^2 / (sigma^2 t_0): the squared signal that Y_0 should have and its noise leaves out."""
        first = np.asarray(self.eps)
        return float(parse_alpha(self.alpha, self.horizon).value(first)) ** 2 / (self.sigma**2 * self.eps)

    @property
    def localizes(self) -> bool:
        """Whether sign(Y) is X at the end of the run; with geom(2,1), if sigma^2 eps_end is at most about 1/16."""
        return self.tilt and self.last_signal_to_noise() >= LOCALIZED

    def levels(self, chain_length: int) -> Levels:
        """The levels of a chain of chain_length steps.

        Raises:
          InputError: a hyperparameter is out of range.
        """
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise InputError(f"sampler_config.sigma is {self.sigma}; expected a number above 0")
        if not 0 < self.mc_ratio <= 1:
            raise InputError(f"sampler_config.mc_ratio is {self.mc_ratio}; expected a fraction in (0, 1]")
        if self.integrator not in INTEGRATORS:
            raise InputError(f"sampler_config.integrator is {self.integrator!r}; known: {', '.join(INTEGRATORS)}")
        # First, because it refuses more levels than there are steps, whose times alone might not fit into memory.
        steps = level_budgets(self.budget, chain_length, self.K, self.n_min, self.r)
        alpha = parse_alpha(self.alpha, self.horizon)
        times = time_grid(alpha, self.grid, self.K, self.eps, self.eps_end)
        values = alpha.value(times)
        exact = np.diff(values)
        drift = exact if self.integrator == "exponential" else np.diff(times) * alpha.derivative(times[:-1])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            levels = Levels(
                tilt_scale=(self.tilt * values[:-1] / (np.float64(self.sigma) ** 2 * times[:-1])).astype(np.float32),
                last=(np.cumsum(steps) - 1).astype(np.int32),
                collected=np.maximum(1, np.ceil(self.mc_ratio * steps - 1e-9)).astype(np.int32),
                drift=drift.astype(np.float32),
                noise=(self.sigma * np.sqrt(np.diff(times))).astype(np.float32),
            )
        if not all(np.isfinite(leaf).all() for leaf in levels):
            raise InputError(
                f"sampler_config.sigma is {self.sigma}, which with alpha = {self.alpha}, eps = {self.eps} and "
                f"eps_end = {self.eps_end} leads to numbers beyond single precision; choose a less extreme one"
            )
        return levels

    def times(self, chain_length: int) -> Float64[np.ndarray, "T"]:
        """The time t of the level of each step; InputError as in `levels`."""
        last = self.levels(chain_length).last
        grid = time_grid(parse_alpha(self.alpha, self.horizon), self.grid, self.K, self.eps, self.eps_end)
        return grid[np.searchsorted(last, np.arange(chain_length))]
