"""Whether draws can be trusted: effective sample sizes, R-hat, and a verdict in words.

Effective sample size (bulk and tail) and rank-normalised R-hat are those of Vehtari et al. (2021).
They are computed for the value f, the magnetisation (the mean spin), the overlap between groups
with different starts, and the variables with the worst plain R-hat. arviz-stats 0.8, with which
tests compare them, takes 2.4 to 2.8 times the CPU time for 1,000 variables of 8 or 16 groups, and
0.8 s to be imported.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Num, UInt8
from scipy.special import chdtri, ndtri

from sl_discs.sampling.drawn import Drawn, column, pieces, variable_name

# Limits of a reliable run (Vehtari et al. 2021). Few draws pass an R-hat of 1.01 by chance, so the
# limit is never below what independent draws of the same effective size pass with this probability;
# see also `least_ess`.
MOST_R_HAT, LEAST_ESS, FALSE_ALARM = 1.01, 400, 1e-3
# The smallest number of draws of a group for which diagnostics are meaningful.
LEAST_DRAWS = 4
# With fewer, errors that only compare groups are too small by chance: 1.96 errors of two cover in
# 70 % of runs.
_LEAST_GROUPS = 8
_WORST = 16
# The tails beyond these quantiles have an effective sample size of their own.
_TAILS = 0.05, 0.95


class Diagnostic(NamedTuple):
    """Diagnostics of one observable; R-hat is nan of too few draws, or of exact ones, and at most
    99.

    `limit` is the largest R-hat that counts as agreement, see `r_hat_limit`, and `least` the least
    effective sample size that is enough, see `least_ess`; nan where they are not judged.
    """

    name: str
    r_hat: float
    ess_bulk: float
    ess_tail: float
    limit: float = math.nan
    least: float = math.nan

    @property
    def ess(self) -> float:
        """Returns the smaller effective sample size."""
        return min(self.ess_bulk, self.ess_tail)


class Verdict(NamedTuple):
    """Whether the draws can be trusted, and why not; `times` as many would have enough effective
    ones.
    """

    reliable: bool
    reasons: tuple[str, ...]
    times: int = 1

    def __str__(self) -> str:
        return "reliable" if self.reliable else "NOT reliable: " + "; ".join(self.reasons)


def _r_hat(means: Float64[np.ndarray, "M ..."], within, count: int):
    between = means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.sqrt((count - 1) / count + between / within)
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))


def worst_variables(bits: UInt8[np.ndarray, "C D W"], size: int) -> list[int]:
    """Returns the places of the variables for which halves of groups differ most relative to their
    variance, the worst first.
    """
    halves = _halves(bits)
    count = max(halves.shape[1], 1)
    sums = np.zeros((len(halves), size))
    for _, states in pieces(halves, size):
        sums += states.sum(axis=1, dtype=np.int64)
    means = sums / count
    within = (means * (1 - means)).mean(axis=0) * count / max(count - 1, 1)
    spread = _r_hat(means, within, count)
    return np.argsort(-spread, kind="stable")[:_WORST].tolist()


def diagnose(
    name: str,
    values: Num[np.ndarray, "C D"],
    effective: float | None = None,
    most: float = math.inf,
) -> Diagnostic:
    """Diagnoses one observable.

    Args:
      name: of the observable.
      values: of D draws of each of C groups.
      effective: the number of independent draws that they are worth, if known; None: draws of a
        group form a chain, and their autocorrelation determines it. Either is at most `most`.
    """
    values = values.astype(np.float64)
    groups, draws = values.shape
    r_hat = math.nan
    sizes = [0.0, 0.0]
    if draws >= LEAST_DRAWS and np.ptp(values) == 0:
        r_hat = 1.0
        sizes = 2 * [groups * draws]
    elif draws >= LEAST_DRAWS:
        with np.errstate(all="ignore"):
            halves = _halves(values)
            scores = _z_scores(halves)
            folded = _z_scores(np.abs(halves - np.median(values)))
            # That of chains that stand still would be infinite, but for rounding.
            r_hat = min(
                99.0,
                max(
                    float(_r_hat(some.mean(axis=1), some.var(axis=1, ddof=1).mean(), draws // 2))
                    for some in (scores, folded)
                ),
            )
            if effective is None:
                bulk = effective_size(scores)
                tail = min(
                    effective_size(_halves(values <= limit).astype(float))
                    for limit in np.quantile(values, _TAILS)
                )
                # If almost all values are equal, so are the quantiles, and tails carry no
                # information.
                sizes = [bulk, bulk if np.isnan(tail) else tail]
    if effective is not None:
        sizes = [effective, effective]
    return Diagnostic(name, r_hat, *(float(min(size, most)) for size in sizes))


def _halves(values: Num[np.ndarray, "C D *shape"]) -> Num[np.ndarray, "M H *shape"]:
    """Returns both halves of each group, without the middle draw of an odd number."""
    draws = values.shape[1]
    half = draws // 2
    return np.concatenate([values[:, :half], values[:, draws - half :]])


def _z_scores(values: Float64[np.ndarray, "M H"]) -> Float64[np.ndarray, "M H"]:
    """Returns normal quantiles of the ranks, equal values having their mean rank."""
    _, rank, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ndtri((ranks - 3 / 8) / (values.size + 1 / 4))[rank].reshape(values.shape)


def effective_size(values: Float64[np.ndarray, "M H"]) -> float:
    """Returns how many independent draws the mean of M chains of H draws is worth; NaN if all
    values agree.

    Sums of the autocorrelations of two neighbouring lags are taken while they are positive, and
    made decreasing (Geyer 1992).
    """
    chains, draws = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 ** (2 * draws - 1).bit_length(), axis=1)) ** 2
    covariances = np.fft.irfft(power, axis=1)[:, :draws].mean(axis=0) / draws
    within = covariances[0] * draws / (draws - 1)
    total = covariances[0] + values.mean(axis=1).var(ddof=1)
    if not total > 0:
        return float("nan")
    correlations = 1 - (within - covariances) / total
    correlations[0] = 1
    even, odd = correlations[: draws // 2 * 2].reshape(-1, 2).T
    positive = even + odd > 0
    last = len(positive) if positive.all() else int(np.argmin(positive))
    pairs = np.minimum.accumulate((even + odd)[:last])
    after = max(0.0, float(even[last])) if last < len(even) else 0.0
    return chains * draws / max(2 * float(pairs.sum()) - 1 + after, 1 / np.log10(chains * draws))


def r_hat_limit(num_groups: int, effective: float, tests: int = 1) -> float:
    """Returns the largest acceptable R-hat, see `MOST_R_HAT`.

    R-hat compares 2 C halves of groups: its square exceeds 1 by (F - 1)/n, where n is the effective
    number of draws of a half and F, the variance of the halves' means over its expectation, is
    chi-squared/(2 C - 1) under convergence. `effective` counts the draws of all C groups, of which
    fewer than `LEAST_ESS` are never enough, and `tests` the R-hats of which this is the largest.
    """
    spread = spread_by_chance(2 * num_groups, FALSE_ALARM / tests)
    by_chance = math.sqrt(1 + (spread - 1) * 2 * num_groups / max(effective, LEAST_ESS))
    return max(MOST_R_HAT, by_chance)


def least_ess(num_groups: int, tests: int) -> float:
    """Returns the least acceptable of `tests` effective sample sizes that are estimated from the
    draws.

    Estimates scatter, and the least of many is too low: by chance the means of some halves of
    groups are far apart, which counts as autocorrelation. The exponent was fitted: where all
    variables are worth `LEAST_ESS` draws of 8 groups, one in twenty of the least estimates of 30,
    300 and 1,000 variables is below 267, 181 and 155, and the limits are 245, 207 and 193.
    """
    return LEAST_ESS / max(1.0, spread_by_chance(2 * num_groups, 0.5 / tests)) ** 0.75


def spread_by_chance(count: int, chance: float = FALSE_ALARM) -> float:
    """Returns what the variance of `count` means exceeds with a chance, over its expectation."""
    return float(chdtri(count - 1, chance) / (count - 1))


def above(value: float, limit: float, digits: int) -> str:
    """Returns both numbers in words, the first at most as 99, with as many digits as tell them
    apart, and at least these.
    """
    value = min(value, 99)
    for more in range(digits, 12):
        if f"{value:.{more}f}" != f"{limit:.{more}f}":
            break
    return f"{value:.{more}f}, above {limit:.{more}f}"


def disagreement(diagnostic: Diagnostic) -> str:
    """Returns in words what an R-hat above its limit shows."""
    r_hat = above(diagnostic.r_hat, diagnostic.limit, 3)
    return f"R-hat of {diagnostic.name} is {r_hat}: groups with different starts disagree"


def judge(
    drawn: Drawn, observables: Mapping[str, np.ndarray], labels: Sequence[Hashable]
) -> tuple[tuple[Diagnostic, ...], Verdict]:
    """Diagnoses observables [C, D] of draws, those of the method and the variables that differ
    most, and returns the verdict.
    """
    observables = {**observables, **drawn.observables}
    groups, draws = drawn.bits.shape[:2]
    size = len(labels)
    effective = float(groups * draws) if drawn.dependence == "none" else None
    reasons = list(drawn.reasons)
    if drawn.dependence == "group" and groups < _LEAST_GROUPS:
        reasons.append(f"errors are those of {groups} groups, below {_LEAST_GROUPS}: give more")

    parity = np.bitwise_count(drawn.bits).sum(axis=-1) % 2
    if (
        drawn.dependence == "serial"
        and draws >= LEAST_DRAWS
        and not np.ptp(parity, axis=1).any()
        and np.ptp(parity)
    ):
        reasons.append(
            "each chain keeps the parity of its number of ones, as where all flips are accepted, "
            "which the sampler gibbs avoids, or none is"
        )

    # What is known, from round trips as well, is not estimated.
    is_known = effective is not None or drawn.most_effective < LEAST_ESS

    def diagnosed(name: str, values: np.ndarray, tests: int, sizes: int) -> Diagnostic:
        diagnostic = diagnose(name, values, effective, drawn.most_effective)
        if drawn.exact:  # there are no chains that could disagree
            return diagnostic._replace(r_hat=math.nan)
        return diagnostic._replace(
            limit=r_hat_limit(groups, diagnostic.ess_bulk, tests),
            least=LEAST_ESS if is_known else least_ess(groups, sizes),
        )

    tests = len(observables)
    # Bulk and tail are two estimates.
    scalars = [diagnosed(name, values, tests, 2 * tests) for name, values in observables.items()]
    variables = [
        diagnosed(variable_name(labels[variable]), column(drawn.bits, size, variable), size, size)
        for variable in worst_variables(drawn.bits, size)
    ]
    for some in scalars, variables:
        reasons += [
            disagreement(diagnostic) for diagnostic in some if diagnostic.r_hat > diagnostic.limit
        ][:1]
    times = 1
    every = (*scalars, *variables)
    share, name, ess, least = min(
        (one.ess / one.least, one.name, one.ess, one.least) for one in every
    )
    if share < 1:
        times = 1 if drawn.remedy else math.ceil(1.2 / max(share, 1 / least))
        more = f"draw about {times} times as many, or use another method"
        reason = f"the effective sample size of {name} is {ess:.0f}, below {least:.0f}"
        reasons.append(f"{reason}: {drawn.remedy or more}")
    return every, Verdict(not reasons, tuple(reasons), times)
