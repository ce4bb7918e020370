"""The schedules of stochastic localization compiled into arrays with one entry a step, which one scan consumes.

Nothing about levels, grids or budgets is left when the chains run, so no hyperparameter changes the compiled code.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

from sl_discs.errors import InputError
from sl_discs.localization.alpha import parse_alpha
from sl_discs.localization.budget import level_budgets
from sl_discs.localization.grid import time_grid

INTEGRATORS = ("exponential", "euler")


class LocalizationStep(NamedTuple):
    """What localization does at each of T steps (a leading axis T), or at one of them (scalars).

    Attributes:
      tilt_scale: alpha(t_i)/(sigma^2 t_i); the tilt is this times Y.
      collect: weight of this step's spins in U; the weights of a level sum to 1, 0 where not collected.
      boundary: whether Y moves to the next level after this step.
      drift: factor of U in that move.
      noise: standard deviation of the noise in that move.
    """

    tilt_scale: Float[Array, "*T"]
    collect: Float[Array, "*T"]
    boundary: Bool[Array, "*T"]
    drift: Float[Array, "*T"]
    noise: Float[Array, "*T"]


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
      mc_ratio: part of each level's steps, counted from its end, that estimates the posterior mean.
      r: decay of the budget.
      n_min: smallest budget of a level.
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

    def initial_noise(self) -> float:
        """Standard deviation of Y_0: sigma sqrt(t_0)."""
        return float(self.sigma * np.sqrt(self.eps))

    def compile(self, chain_length: int) -> LocalizationStep:
        """Arrays of float32 and bool over chain_length steps.

        Raises:
          InputError: a hyperparameter out of its range.
        """
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise InputError(f"sampler.sigma is {self.sigma}; expected a number above 0")
        if not 0 < self.mc_ratio <= 1:
            raise InputError(f"sampler.mc_ratio is {self.mc_ratio}; expected a part in (0, 1]")
        if self.integrator not in INTEGRATORS:
            raise InputError(f"sampler.integrator is {self.integrator!r}; known: {', '.join(INTEGRATORS)}")
        alpha = parse_alpha(self.alpha, self.horizon)
        times = time_grid(alpha, self.grid, self.K, self.eps, self.eps_end)
        steps = level_budgets(self.budget, chain_length, self.K, self.n_min, self.r)
        values = alpha.value(times)
        exact = np.diff(values)
        drift = exact if self.integrator == "exponential" else np.diff(times) * alpha.derivative(times[:-1])

        level = np.repeat(np.arange(self.K), steps)
        last = np.cumsum(steps) - 1
        boundary = np.zeros(chain_length, bool)
        boundary[last] = True
        collected = np.maximum(1, np.ceil(self.mc_ratio * steps - 1e-9)).astype(np.int64)
        to_go = last[level] - np.arange(chain_length)
        collect = np.where(to_go < collected[level], 1.0 / collected[level], 0.0)
        tilt_scale = (values[:-1] / (self.sigma**2 * times[:-1]))[level]
        noise = self.sigma * np.sqrt(np.diff(times))
        single = np.float32
        return LocalizationStep(
            tilt_scale.astype(single),
            collect.astype(single),
            boundary,
            np.where(boundary, drift[level], 0).astype(single),
            np.where(boundary, noise[level], 0).astype(single),
        )
