"""The schedules of stochastic localization: alpha(t), the time grid, the budget of steps, and all
of it by level.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from sl_discs.models.batching import AnyArray
from sl_discs.support.checks import one_of
from sl_discs.support.errors import InputError

# Denoising schedules alpha(t) of the observation process Y_t = alpha(t) X + sigma B_t.
#
# In the paper (Wang et al., ICML 2025), GEOM(a, b)(t) = t^(a/2) (1 - t)^(-b/2) denotes alpha
# itself. In SLIPS (Grenioux et al. 2024), Geom denotes the factor g of alpha(t) = sqrt(t) g(t), so
# the paper's GEOM(2, 1) is SLIPS's Geom(1, 1). The names here are those of the paper.


@dataclasses.dataclass(frozen=True)
class Classic:
    """alpha(t) = t on [0, horizon]: the original process of Eldan, El Alaoui and Montanari."""

    horizon: float = 1.0

    def __post_init__(self):
        if not (np.isfinite(self.horizon) and self.horizon > 0):
            raise InputError(
                f"sampler_config.horizon is {self.horizon}; the classic schedule needs a finite "
                "one above 0"
            )

    def value(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """Returns alpha(t)."""
        return np.asarray(t, np.float64)

    def derivative(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """Returns alpha'(t)."""
        return np.ones_like(np.asarray(t, np.float64))


@dataclasses.dataclass(frozen=True)
class Geometric:
    """alpha(t) = t^(a/2) (1 - t)^(-b/2) on [0, 1)."""

    a: float = 2.0
    b: float = 1.0

    def __post_init__(self):
        if not (1 <= self.a < np.inf and 0 <= self.b < np.inf) or (self.a == 1 and self.b == 0):
            raise InputError(
                f"sampler_config.alpha is geom({self.a:g},{self.b:g}); expected a >= 1 and b >= "
                "0, not both at the bound, so that alpha^2/t grows"
            )

    @property
    def horizon(self) -> float:
        """Returns 1: alpha grows without bound towards it when b > 0."""
        return 1.0

    def value(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """Returns alpha(t)."""
        t = np.asarray(t, np.float64)
        return np.asarray(t ** (self.a / 2) * (1 - t) ** (-self.b / 2))

    def derivative(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """Returns alpha'(t) = alpha(t) (a/(2t) + b/(2(1 - t)))."""
        t = np.asarray(t, np.float64)
        return np.asarray(self.value(t) * (self.a / (2 * t) + self.b / (2 * (1 - t))))


Alpha = Classic | Geometric


def parse_alpha(text: str, horizon: float = 1.0) -> Alpha:
    """Returns the schedule of a name, `classic` or `geom(a,b)` in any case.

    Args:
      text: the name, such as `geom(2,1)`.
      horizon: end of time for `classic`; geom always ends at 1.

    Raises:
      InputError: the name is unknown, or a number is out of range.
    """
    name = text.replace(" ", "").lower()
    if name == "classic":
        return Classic(horizon)
    if name.startswith("geom(") and name.endswith(")"):
        try:
            a, b = (float(part) for part in name[len("geom(") : -1].split(","))
        except ValueError:
            pass
        else:
            if horizon != 1:
                raise InputError(
                    f"sampler_config.horizon is {horizon}, but {text} ends at 1; leave it at 1, "
                    "or choose alpha=classic"
                )
            return Geometric(a, b)
    raise InputError(
        f"sampler_config.alpha is {text!r}; known: classic, geom(a,b) such as geom(2,1)"
    )


# Time grids t_0 < ... < t_K of the observation process.

GRIDS = ("uniform", "log_snr")


def log_snr(alpha: Alpha, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
    """Returns log(alpha(t)^2 / t); the noise level sigma only adds a constant."""
    return np.asarray(2 * np.log(alpha.value(t)) - np.log(t))


def time_grid(
    alpha: Alpha, grid: str, levels: int, eps: float, eps_end: float
) -> Float64[np.ndarray, "{levels}+1"]:
    """Returns K + 1 increasing times from eps to horizon - eps_end.

    Args:
      alpha: the schedule, which sets the horizon (1 for geom).
      grid: `uniform` in t, or `log_snr`, even in log(alpha^2 / (sigma^2 t)).
      levels: K, at least 1.
      eps: first time, above 0.
      eps_end: distance of the last time from the horizon.

    Raises:
      InputError: the grid is unknown, or the times leave no interval.
    """
    one_of("sampler_config.grid", grid, GRIDS)
    if not eps > 0:
        raise InputError(f"sampler_config.eps is {eps}; expected a time above 0")
    # alpha of geom(a, b) with b > 0 is infinite at its horizon.
    if not eps_end >= 0 or (eps_end == 0 and getattr(alpha, "b", 0) > 0):
        raise InputError(
            f"sampler_config.eps_end is {eps_end}; expected a distance above 0 from the horizon"
        )
    end = alpha.horizon - eps_end
    if eps + eps_end >= alpha.horizon:
        raise InputError(
            f"sampler_config.eps + sampler_config.eps_end = {eps + eps_end:g} leaves no time "
            f"below the horizon {alpha.horizon:g}; lower one of them"
        )
    if grid == "uniform":
        return np.linspace(eps, end, levels + 1)
    return _invert_log_snr(alpha, eps, end, levels)


def _invert_log_snr(
    alpha: Alpha, start: float, end: float, levels: int
) -> Float64[np.ndarray, "{levels}+1"]:
    """Returns times evenly spaced in log_snr, by bisection; log_snr increases for every valid
    schedule.
    """
    wanted = np.linspace(
        log_snr(alpha, np.asarray(start)), log_snr(alpha, np.asarray(end)), levels + 1
    )
    low = np.full(levels + 1, start)
    high = np.full(levels + 1, end)
    for _ in range(100):
        middle = (low + high) / 2
        below = log_snr(alpha, middle) < wanted
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    times = (low + high) / 2
    times[0] = start
    times[-1] = end
    return times


# The number of MCMC steps of each level of stochastic localization, which sum exactly to the chain
# length.

BUDGETS = ("exp_decay", "identical")


def level_budgets(
    budget: str, chain_length: int, levels: int, n_min: int, decay_rate: float
) -> Int64[np.ndarray, "K"]:
    """Returns the steps n_0..n_{K-1} with sum chain_length and each at least n_min (`identical`: at
    least 1).

    `exp_decay` is n_min + c r^(i/K), floored, where c uses up the whole chain; the steps lost to
    flooring go to the levels with the largest remainders, earlier levels first. `identical` is
    chain_length/K, rounded in the same way.

    Args:
      budget: `exp_decay` or `identical`.
      chain_length: total number of MCMC steps.
      levels: K.
      n_min: smallest budget of a level for `exp_decay`.
      decay_rate: r, in (0, 1].

    Raises:
      InputError: an unknown budget, K < 1, or more minimum steps than the chain has.
    """
    one_of("sampler_config.budget", budget, BUDGETS)
    if levels < 1:
        raise InputError(f"sampler_config.K is {levels}; expected at least 1")
    least = n_min if budget == "exp_decay" else 1
    if least < 1:
        raise InputError(f"sampler_config.n_min is {n_min}; expected at least 1 step per level")
    if not 0 < decay_rate <= 1:
        raise InputError(f"sampler_config.r is {decay_rate}; expected a decay in (0, 1]")
    if levels * least > chain_length:
        raise InputError(
            f"sampler_config.K * sampler_config.n_min = {levels} * {least} = {levels * least} "
            f"steps exceed chain_length = {chain_length}; lower K or n_min, or run longer"
        )
    if budget == "identical":
        shares = np.full(levels, chain_length / levels)
    else:
        decay = decay_rate ** (np.arange(levels) / levels)
        shares = n_min + (chain_length - levels * n_min) * decay / decay.sum()
    steps = np.maximum(np.floor(shares).astype(np.int64), least)
    left = chain_length - int(steps.sum())
    order = np.argsort(-(shares - steps), kind="stable")
    steps[order[:left]] += 1
    return steps


INTEGRATORS = ("exponential", "euler")
# Where the temperature's schedule begins: once, or anew in each level.
ANNEALS = ("run", "level")

# From this signal-to-noise ratio on, sign(Y) equals X except for one spin in 30,000: Phi(-4) =
# 3.2e-5.
MIN_FINAL_SNR = 16.0


class Levels(NamedTuple):
    """The schedule of K levels.

    Attributes:
      tilt_scale: alpha(t_i)/(sigma^2 t_i), the factor of Y in the tilt.
      last: number of the level's last step, counted from 0.
      collected: number of steps, up to the last one, that estimate the posterior mean U; at least
        1.
      drift: factor of U in the move to the next level.
      noise: standard deviation of the noise in that move.
      first_noise: standard deviation of Y_0, sigma sqrt(t_0): alpha(t_0) X is unknown, and small
        compared with it.
    """

    tilt_scale: Float32[AnyArray, "K"]
    last: Int32[AnyArray, "K"]
    collected: Int32[AnyArray, "K"]
    drift: Float32[AnyArray, "K"]
    noise: Float32[AnyArray, "K"]
    first_noise: Float32[AnyArray, ""]

    def at(self, step: int) -> int:
        """Returns the level of a step, both counted from 0; after the end, the last level."""
        return min(int(np.searchsorted(self.last, step)), len(self.last) - 1)


@dataclasses.dataclass(frozen=True)
class Localization:
    """Hyperparameters of Algorithm 1, with the paper's names.

    Example:
        >>> Localization(sigma=10).localizes, Localization(sigma=2).localizes
        (False, True)

    Attributes:
      alpha: `classic` or `geom(a,b)`.
      grid: `uniform` or `log_snr`.
      budget: `exp_decay` or `identical`.
      integrator: `exponential` (alpha(t_{i+1}) - alpha(t_i)) or `euler` ((t_{i+1} - t_i)
        alpha'(t_i)).
      K: number of levels.
      sigma: noise level of the observation.
      eps: first time t_0.
      eps_end: distance of t_K from the horizon.
      horizon: end of time for `classic`.
      mc_ratio: fraction of each level's steps, at its end, that estimates the posterior mean.
      r: decay of the budget.
      n_min: smallest budget of a level.
      tilt: whether the target is tilted by the observation; without it every step is that of the
        base sampler, including its random numbers, which is the null control of localization.
      anneal: `run`, one annealing over all steps, as in DISCS; or `level`, the whole annealing anew
        in each level, from its first temperature to its last. With a constant temperature both are
        the same.
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
    anneal: str = "run"

    def _signal_to_noise(self, alpha: Alpha, t: float) -> float:
        return float(alpha.value(np.asarray(t))) ** 2 / (self.sigma**2 * t)

    def last_signal_to_noise(self) -> float:
        """Returns alpha(t_K)^2 / (sigma^2 t_K), the squared signal in each Y_K over the variance of
        its noise.
        """
        alpha = parse_alpha(self.alpha, self.horizon)
        return self._signal_to_noise(alpha, alpha.horizon - self.eps_end)

    def first_signal_to_noise(self) -> float:
        """Returns alpha(t_0)^2 / (sigma^2 t_0): the squared signal that Y_0 should have and its
        noise leaves out.
        """
        return self._signal_to_noise(parse_alpha(self.alpha, self.horizon), self.eps)

    @property
    def localizes(self) -> bool:
        """Returns whether sign(Y) is X at the end; with geom(2,1), if sigma^2 eps_end is at most
        about 1/16.
        """
        return self.tilt and self.last_signal_to_noise() >= MIN_FINAL_SNR

    def levels(self, chain_length: int) -> Levels:
        """Returns the levels of a chain of chain_length steps.

        Raises:
          InputError: a hyperparameter is out of range.
        """
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise InputError(f"sampler_config.sigma is {self.sigma}; expected a number above 0")
        if not 0 < self.mc_ratio <= 1:
            raise InputError(
                f"sampler_config.mc_ratio is {self.mc_ratio}; expected a fraction in (0, 1]"
            )
        one_of("sampler_config.integrator", self.integrator, INTEGRATORS)
        one_of("sampler_config.anneal", self.anneal, ANNEALS)
        # First, because it refuses more levels than there are steps, whose times alone might not
        # fit into memory.
        steps = level_budgets(self.budget, chain_length, self.K, self.n_min, self.r)
        alpha = parse_alpha(self.alpha, self.horizon)
        times = time_grid(alpha, self.grid, self.K, self.eps, self.eps_end)
        values = alpha.value(times)
        exact = np.diff(values)
        drift = (
            exact
            if self.integrator == "exponential"
            else np.diff(times) * alpha.derivative(times[:-1])
        )
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            levels = Levels(
                tilt_scale=(
                    self.tilt * values[:-1] / (np.float64(self.sigma) ** 2 * times[:-1])
                ).astype(np.float32),
                last=(np.cumsum(steps) - 1).astype(np.int32),
                collected=np.maximum(1, np.ceil(self.mc_ratio * steps - 1e-9)).astype(np.int32),
                drift=drift.astype(np.float32),
                noise=(self.sigma * np.sqrt(np.diff(times))).astype(np.float32),
                first_noise=np.array(self.sigma * np.sqrt(self.eps), np.float32),
            )
        if not all(np.isfinite(leaf).all() for leaf in levels):
            raise InputError(
                f"sampler_config.sigma is {self.sigma}, which with alpha = {self.alpha}, eps = "
                f"{self.eps} and eps_end = {self.eps_end} leads to numbers beyond single "
                "precision; choose a less extreme one"
            )
        return levels

    def times(self, chain_length: int) -> Float64[np.ndarray, "T"]:
        """Returns the time t of the level of each step; InputError as in `levels`."""
        last = self.levels(chain_length).last
        grid = time_grid(
            parse_alpha(self.alpha, self.horizon), self.grid, self.K, self.eps, self.eps_end
        )
        return grid[np.searchsorted(last, np.arange(chain_length))]
