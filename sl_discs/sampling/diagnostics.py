"""Whether draws can be trusted: effective sample sizes, R-hat, and a verdict in words.

Effective sample size (bulk and tail) and rank-normalised R-hat are those of Vehtari et al. (2021). They are computed
for the value f, the magnetisation (the mean spin), the overlap between groups with different starts, and the
variables with the worst plain R-hat.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Num, UInt8
from scipy.special import chdtri, ndtri

from sl_discs.sampling.draws import pieces

# Limits of a reliable run (Vehtari et al. 2021). Few draws pass an R-hat of 1.01 by chance, so the limit is never
# below what independent draws of the same effective size pass with this probability.
MOST_R_HAT, LEAST_ESS, FALSE_ALARM = 1.01, 400, 1e-3
# The smallest number of draws of a group for which diagnostics are meaningful.
LEAST_DRAWS = 4
_WORST = 16
# The tails beyond these quantiles have an effective sample size of their own.
_TAILS = 0.05, 0.95
# If this many times as many draws would be needed, another method is recommended.
_HOPELESS = 100


class Diagnostic(NamedTuple):
    """Diagnostics of one observable; R-hat is nan if there is a single group, or too few draws, or they are exact.

    `limit` is the largest R-hat that counts as agreement, see `r_hat_limit`; nan where R-hat is not judged.
    """

    name: str
    r_hat: float
    ess_bulk: float
    ess_tail: float
    limit: float = math.nan


class Verdict(NamedTuple):
    """Whether the draws can be trusted, and why not; `times` as many would have enough effective ones."""

    reliable: bool
    reasons: tuple[str, ...]
    times: int = 1

    def __str__(self) -> str:
        return "reliable" if self.reliable else "NOT reliable: " + "; ".join(self.reasons)


def _r_hat(means: Float64[np.ndarray, "M ..."], within, count: int):
    between = means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.sqrt((count - 1) / count + between / within)
    return np.where(within > 0, found, np.where(between > 0, np.inf, 1.0))


def worst_variables(bits: UInt8[np.ndarray, "C D W"], size: int) -> list[int]:
    """Returns the places of the variables for which halves of groups differ most relative to their variance, the
    worst first.
    """
    groups, draws = bits.shape[:2]
    half = draws // 2
    ones = np.zeros((2, groups, size))
    for number, part in enumerate((bits[:, :half], bits[:, draws - half :])):
        for _, states in pieces(part, size):
            ones[number] += states.sum(axis=1, dtype=np.int64)
    means = ones.reshape(-1, size) / max(half, 1)
    spread = _r_hat(means, (means * (1 - means)).mean(axis=0) * half / max(half - 1, 1), max(half, 1))
    return np.argsort(-spread, kind="stable")[:_WORST].tolist()


def diagnose(
    name: str, values: Float[np.ndarray, "C D"], effective: float | None = None, most: float = math.inf
) -> Diagnostic:
    """Diagnoses one observable.

    Args:
      name: of the observable.
      values: of D draws of each of C groups.
      effective: the number of independent draws that they are worth, if known; None: draws of a group form a chain,
        and their autocorrelation determines it. Either is at most `most`.
    """
    values = values.astype(np.float64)
    groups, draws = values.shape
    if draws < LEAST_DRAWS:
        known = 0.0 if effective is None else min(effective, most)
        return Diagnostic(name, float("nan"), known, known)
    if np.ptp(values) == 0:
        count = min(float(groups * draws if effective is None else effective), most)
        return Diagnostic(name, 1.0, count, count)
    with np.errstate(all="ignore"):
        scores = _z_scores(_halves(values))
        r_hat = float("nan")
        if groups > 1:
            folded = _z_scores(np.abs(_halves(values) - np.median(values)))
            r_hat = max(_r_hat_of(scores), _r_hat_of(folded))
        if effective is not None:
            return Diagnostic(name, r_hat, min(effective, most), min(effective, most))
        bulk = _effective(scores)
        tail = min(_effective(_halves(values <= np.quantile(values, q)).astype(float)) for q in _TAILS)
    # If almost all values are equal, so are the quantiles, and tails carry no information.
    return Diagnostic(name, r_hat, min(bulk, most), min(bulk if np.isnan(tail) else tail, most))


def _halves(values: Num[np.ndarray, "C D"]) -> Num[np.ndarray, "M H"]:
    """Returns both halves of each group, without the middle draw of an odd number."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _z_scores(values: Float64[np.ndarray, "M H"]) -> Float64[np.ndarray, "M H"]:
    """Returns normal quantiles of the ranks, equal values having their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ndtri((ranks - 3 / 8) / (values.size + 1 / 4))[place].reshape(values.shape)


def _r_hat_of(values: Float64[np.ndarray, "M H"]) -> float:
    return float(_r_hat(values.mean(axis=1), values.var(axis=1, ddof=1).mean(), values.shape[1]))


def _effective(values: Float64[np.ndarray, "M H"]) -> float:
    """Returns how many independent draws the mean of M chains of H draws is worth; NaN if all values agree.

    Sums of the autocorrelations of two neighbouring lags are taken while they are positive, and made decreasing
    (Geyer 1992).
    """
    chains, draws = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 ** (2 * draws - 1).bit_length(), axis=1)) ** 2
    covariances = np.fft.irfft(power, axis=1)[:, :draws].mean(axis=0) / draws
    within = covariances[0] * draws / (draws - 1)
    total = covariances[0] + (values.mean(axis=1).var(ddof=1) if chains > 1 else 0.0)
    if not total > 0:
        return float("nan")
    correlations = 1 - (within - covariances) / total
    correlations[0] = 1
    even, odd = correlations[: draws // 2 * 2].reshape(-1, 2).T
    positive = even + odd > 0
    number = len(positive) if positive.all() else int(np.argmin(positive))
    pairs = np.minimum.accumulate((even + odd)[:number])
    after = max(0.0, float(even[number])) if number < len(even) else 0.0
    return chains * draws / max(2 * float(pairs.sum()) - 1 + after, 1 / np.log10(chains * draws))


def r_hat_limit(num_groups: int, effective: float, tests: int = 1) -> float:
    """Returns the largest acceptable R-hat, see `MOST_R_HAT`.

    R-hat compares 2 C halves of groups: its square exceeds 1 by (F - 1)/n, where n is the effective number of draws
    of a half and F, the variance of the halves' means over its expectation, is chi-squared/(2 C - 1) under
    convergence. `effective` counts the draws of all C groups, of which fewer than `LEAST_ESS` are never enough, and
    `tests` the R-hats of which this is the largest.
    """
    freedom = 2 * num_groups - 1
    spread = chdtri(freedom, FALSE_ALARM / tests) / freedom
    by_chance = np.sqrt(1 + (spread - 1) * 2 * num_groups / max(effective, LEAST_ESS))
    return float(max(MOST_R_HAT, by_chance))


def judge(
    scalars: list[Diagnostic],
    variables: list[Diagnostic],
    reasons: list[str],
    remedy: str = "",
) -> Verdict:
    """Returns the verdict from diagnostics of the value, magnetisation and overlap, and of the worst events.

    `reasons` are the method's own ones against its draws, and `remedy` what helps where more of them do not.
    """
    reasons = list(reasons)
    for found in scalars, variables:
        for one in found:
            if one.r_hat > one.limit:
                said = f"R-hat of {one.name} is {min(one.r_hat, 99):.3f}, above {one.limit:.3f}"
                reasons.append(f"{said}: groups with different starts disagree")
                break
    least = min(scalars + variables, key=lambda one: min(one.ess_bulk, one.ess_tail))
    size, times = min(least.ess_bulk, least.ess_tail), 1
    if size < LEAST_ESS:
        times = 1 if remedy else math.ceil(1.2 * LEAST_ESS / max(size, 1))
        more = f"draw about {times} times as many" if times < _HOPELESS else "draw many more, or use another method"
        said = f"the effective sample size of {least.name} is {size:.0f}, below {LEAST_ESS}"
        reasons.append(f"{said}: {remedy or more}")
    return Verdict(not reasons, tuple(reasons), times)
