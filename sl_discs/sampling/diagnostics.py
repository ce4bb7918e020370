"""Whether draws can be trusted: effective sample sizes, R-hat, and a verdict in words.

Effective sample size (bulk and tail) and rank-normalised R-hat are those of Vehtari et al. (2021), by arviz-stats.
They are taken of the value f, of the magnetisation (the mean spin), of the overlap between groups that started apart,
and of the variables that look worst by the plain R-hat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, UInt8

from sl_discs.sampling.packed import column, pieces

# Limits of a reliable run; the first two are those of Vehtari et al.
MOST_R_HAT, LEAST_ESS, MOST_R_HAT_OF_VARIABLES = 1.01, 400, 1.05
# Fewer draws of a group say nothing about it.
LEAST_DRAWS = 4
_WORST = 16


class Diagnostic(NamedTuple):
    """Of one observable; R-hat is nan where there is a single group, or too few draws."""

    name: str
    r_hat: float
    ess_bulk: float
    ess_tail: float


class Verdict(NamedTuple):
    """Whether the draws can be trusted, and why not."""

    reliable: bool
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "reliable" if self.reliable else "NOT reliable: " + "; ".join(self.reasons)


def plain_r_hat(values: Float[np.ndarray, "C D"]) -> float:
    """The split R-hat of Gelman and Rubin, quickly: for progress bars and for choosing what to look at."""
    half = values.shape[1] // 2
    if half < 2:
        return float("nan")
    halves = np.concatenate([values[:, :half], values[:, -half:]]).astype(np.float64)
    return float(_r_hat(halves.mean(axis=1), halves.var(axis=1, ddof=1).mean(), half))


class Agreement:
    """The plain R-hat of values as they come in, in words for a progress bar."""

    def __init__(self):
        self._parts: list[np.ndarray] = []
        self._count = self._looked = 0
        self._words = ""

    def add(self, values: Float[np.ndarray, "C D"]) -> str:
        """Takes D more values of each group; looks anew whenever a tenth more have come."""
        self._parts.append(values)
        self._count += values.shape[1]
        if self._count >= 1.1 * self._looked:
            self._looked = self._count
            self._parts = [np.concatenate(self._parts, axis=1)]
            self._words = f"R-hat {plain_r_hat(self._parts[0]):.3f}"
        return self._words


def _r_hat(means: Float64[np.ndarray, "M ..."], within, count: int):
    between = means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.sqrt((count - 1) / count + between / within)
    return np.where(within > 0, found, np.where(between > 0, np.inf, 1.0))


def worst_variables(bits: UInt8[np.ndarray, "C D W"], size: int) -> list[int]:
    """The variables whose halves of groups differ most for their variance, the worst first."""
    groups, draws = bits.shape[:2]
    half = draws // 2
    ones = np.zeros((2, groups, size))
    for number, part in enumerate((bits[:, :half], bits[:, draws - half :])):
        for _, states in pieces(part, size):
            ones[number] += states.sum(axis=1, dtype=np.int64)
    means = ones.reshape(-1, size) / max(half, 1)
    spread = _r_hat(means, (means * (1 - means)).mean(axis=0) * half / max(half - 1, 1), max(half, 1))
    return np.argsort(-spread, kind="stable")[:_WORST].tolist()


def diagnose(name: str, values: Float[np.ndarray, "C D"], *, ordered: bool) -> Diagnostic:
    """Of one observable.

    Args:
      name: of it.
      values: of D draws of each of C groups.
      ordered: whether draws of a group follow each other; if not, effective sample sizes count draws.
    """
    from arviz_stats.base import array_stats

    groups, draws = values.shape
    count = float(groups * draws)
    if draws < LEAST_DRAWS or np.ptp(values) == 0:
        same = draws >= LEAST_DRAWS
        return Diagnostic(name, 1.0 if same else float("nan"), count if same else 0.0, count if same else 0.0)
    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(all="ignore"):
        r_hat = float(array_stats.rhat(values, **axes)) if groups > 1 else float("nan")
        if not ordered:
            return Diagnostic(name, r_hat, count, count)
        bulk = float(array_stats.ess(values, **axes, method="bulk"))
        tail = float(array_stats.ess(values, **axes, method="tail", prob=(0.05, 0.95)))
    # Where almost all values are the same, quantiles are too, and tails say nothing.
    return Diagnostic(name, r_hat, bulk, bulk if np.isnan(tail) else tail)


def judge(diagnostics: list[Diagnostic], strict: int, reasons: list[str], *, exact: bool) -> Verdict:
    """The verdict.

    Args:
      diagnostics: of all observables.
      strict: the first so many are held to `MOST_R_HAT`: scalars of chains. Members of a population depend on each
        other, and variables are many; they are held to `MOST_R_HAT_OF_VARIABLES`.
      reasons: that the method itself has against its draws.
      exact: whether draws are exact by construction, however few they are.
    """
    if exact:
        return Verdict(not reasons, tuple(reasons))
    reasons = list(reasons)
    for number, one in enumerate(diagnostics):
        most = MOST_R_HAT if number < strict else MOST_R_HAT_OF_VARIABLES
        if one.r_hat > most:
            reasons.append(f"R-hat of {one.name} is {one.r_hat:.3f}, above {most}: groups that began apart disagree")
            break
    least = min(diagnostics, key=lambda one: min(one.ess_bulk, one.ess_tail))
    size = min(least.ess_bulk, least.ess_tail)
    if size < LEAST_ESS:
        reasons.append(f"the effective sample size of {least.name} is {size:.0f}, below {LEAST_ESS}: draw more")
    return Verdict(not reasons, tuple(reasons))


def variable(bits: UInt8[np.ndarray, "C D W"], place: int) -> Float64[np.ndarray, "C D"]:
    """One variable of all draws, as numbers."""
    return column(bits, place).astype(np.float64)
