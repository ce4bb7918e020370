"""Targets with exact moments, also as files, and the score of anybody's draws from them.

    from exact_moments import check_draws, exact_moments  # with studies/ on Python's path
    exact = exact_moments(sl_discs.ising(h, J), temperature=1.5)
    exact.save("target.npz")
    print(check_draws("target.npz", states))  # [S, N], of any sampler

A file holds the model, so that other programs can draw from it, and what they should find: P(x_i =
1), P(x_i = x_j = 1), the mean value and log Z. It is an .npz archive of plain arrays under the
names of `ExactMoments`, with the numbers as JSON text in its array `json`.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int8
from scipy import stats

from sl_discs.problems.problem import Problem
from sl_discs.sampling.exact import exact
from sl_discs.sampling.samples import Samples
from sl_discs.support.checks import real
from sl_discs.support.documents import check_fields, read_document, write_document
from sl_discs.support.errors import InputError

_FORMAT = "sl_discs moments 1"
_ARRAYS = "linear", "edges", "couplings", "marginals", "pairs", "pair_marginals"
# Exact probabilities are sums of rounded doubles.
_ROUNDING = 1e-9
# Products of two columns of all draws that are held at a time.
_MOST_PRODUCTS = 2**24
FALSE_ALARM = 1e-4


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ExactMoments:
    """p(x) ~ exp(f(x)/temperature) for f(x) = constant + linear . x + sum couplings_k x_a x_b with
    x in {0, 1}^N, and exact moments of it.

    Attributes:
      name: of the problem.
      temperature: above 0.
      constant: of f.
      linear: [N] coefficients of f.
      edges: [M, 2] pairs a, b of its couplings.
      couplings: [M] of them.
      log_z: log sum_x exp(f(x)/temperature), the constant included.
      mean_value: of f.
      marginals: [N] P(x_i = 1).
      pairs: [P, 2] pairs i, j whose joint probability is known.
      pair_marginals: [P] P(x_i = x_j = 1).
    """

    name: str
    temperature: float
    constant: float
    linear: Float64[np.ndarray, "N"]
    edges: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    log_z: float
    mean_value: float
    marginals: Float64[np.ndarray, "N"]
    pairs: Int[np.ndarray, "P 2"]
    pair_marginals: Float64[np.ndarray, "P"]

    def values(self, states: Int8[np.ndarray, "S N"]) -> Float64[np.ndarray, "S"]:
        """f of states of zeros and ones."""
        found = self.constant + states @ self.linear
        for part in _parts(len(states), self.edges):
            first, second = self.edges[part].T
            found += (states[:, first] & states[:, second]) @ self.couplings[part]
        return found

    def save(self, path: str | os.PathLike) -> Path:
        """Writes an .npz file; InputError if its name has another ending, or it cannot be
        written.
        """
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {name: fields.pop(name) for name in _ARRAYS}
        return write_document(Path(path), _FORMAT, arrays, fields)

    @classmethod
    def load(cls, path: str | os.PathLike) -> ExactMoments:
        """Reads a file of `save`, without unpickling.

        Raises:
          InputError: there is no such file, it is another kind of file, or its fields contradict
            each other.
        """
        try:
            arrays, values = read_document(Path(path), _FORMAT)
            fields = {**values, **arrays}
            check_fields(cls, fields)
            _check_ranges(fields)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{path}: not a file that ExactMoments.save wrote ({error})"
            ) from error
        return cls(**fields)

    def __repr__(self) -> str:
        return (
            f"ExactMoments({self.name!r} at temperature {self.temperature:g}: {len(self.linear):,} "
            "variables, "
            f"{len(self.pairs):,} pairs, value {self.mean_value:.6g}, log Z {self.log_z:.6g})"
        )


def _check_ranges(fields: dict[str, Any]) -> None:
    """Checks what types and shapes of arrays do not say; ValueError if a number is out of range."""
    size = len(fields["linear"])
    for name in ("edges", "pairs"):
        if fields[name].size and not (fields[name].min() >= 0 and fields[name].max() < size):
            raise ValueError(f"{name} has a variable that is not among the {size}")
    for name in ("marginals", "pair_marginals"):
        if not np.all((fields[name] >= -_ROUNDING) & (fields[name] <= 1 + _ROUNDING)):
            raise ValueError(f"{name} has what is no probability")
    if not (
        fields["temperature"] > 0 and np.isfinite([fields["log_z"], fields["mean_value"]]).all()
    ):
        raise ValueError("temperature, log_z or mean_value is out of range")


def exact_moments(problem: Problem, temperature: float) -> ExactMoments:
    """Moments of up to 20 variables by enumeration, of all pairs; of more variables by elimination,
    of coupled pairs. Variables are in the order of the problem's labels.

    Raises:
      InputError: no quadratic problem, or one of too large a treewidth; or a bad temperature.
    """
    if not isinstance(problem, Problem):
        raise InputError("exact moments are for quadratic problems, such as sl_discs.ising")
    terms = problem.terms()
    temperature = float(real("temperature", temperature, above=0))
    found, listed = exact(terms, temperature), terms.listed()
    known = found.known
    return ExactMoments(
        name=problem.name, temperature=temperature, constant=float(listed.constant),
        linear=np.asarray(listed.linear, np.float64), edges=np.asarray(listed.edges, np.int64),
        couplings=np.asarray(listed.scale * listed.weights, np.float64), log_z=found.log_z,
        mean_value=float(known.mean_value), marginals=known.marginals[:, 1], pairs=known.pairs,
        pair_marginals=known.joint[:, 1, 1],
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DrawsCheck:
    """How far draws are from exact moments, in standard errors of so many independent draws.

    Attributes:
      name: of the target.
      draws: their number S.
      ess: the number of independent draws that they are taken to be worth.
      marginals: [N] deviations of P(x_i = 1).
      pair_marginals: [P] deviations of P(x_i = x_j = 1).
      mean_value: deviation of the mean of f, whose standard error is estimated from the draws.
      p_value: the probability that one or more of these means deviates that far by chance, by
        Bonferroni's bound over exact binomial tests of the probabilities and a t-test of the mean
        value.
    """

    name: str
    draws: int
    ess: float
    marginals: Float64[np.ndarray, "N"]
    pair_marginals: Float64[np.ndarray, "P"]
    mean_value: float
    p_value: float

    @property
    def max_z(self) -> float:
        """The largest of all deviations."""
        return float(np.max(np.abs([*self.marginals, *self.pair_marginals, self.mean_value])))

    @property
    def agree(self) -> bool:
        """Whether the p-value is at least 1e-4; of so many correct sets of draws one does
        not pass.
        """
        return self.p_value >= FALSE_ALARM

    def __repr__(self) -> str:
        def most(found: np.ndarray) -> str:
            return (
                f"{np.abs(found).max():.1f} (rms {np.sqrt(np.mean(found**2)):.2f})"
                if len(found)
                else "none"
            )

        words = "agree" if self.agree else "do NOT agree"
        return (
            f"DrawsCheck({self.draws:,} draws, worth {self.ess:,.0f}, {words} with {self.name!r}: "
            "largest deviations "
            f"in standard errors: marginals {most(self.marginals)}, pairs "
            f"{most(self.pair_marginals)}, value "
            f"{abs(self.mean_value):.1f}; p = {self.p_value:.2g})"
        )


def check_draws(
    target: ExactMoments | str | os.PathLike,
    draws: Samples | np.ndarray,
    *,
    ess: float | None = None,
) -> DrawsCheck:
    """Compares draws, of any sampler, with exact moments.

    Args:
      target: of `exact_moments`, or a file of its `save`.
      draws: [S, N] states of 0 and 1 or of -1 and 1, with variables in the target's order; or
        `Samples`.
      ess: the number of independent draws that these are worth, 2 to S; None: S, or what `Samples`
        say. A chain's draws are worth fewer than their number, and all errors are too small without
        it.

    Raises:
      InputError: states of another shape or with other values, an impossible `ess`, or a file that
        is none.
    """
    exact = target if isinstance(target, ExactMoments) else ExactMoments.load(target)
    if isinstance(draws, Samples):
        ess = max(2.0, min(one.ess_bulk for one in draws.diagnostics)) if ess is None else ess
        draws = draws.states
    states = _zeros_and_ones(draws, len(exact.linear))
    count = len(states)
    ess = float(count if ess is None else real("ess", ess, least=2))
    if ess > count:
        raise InputError(f"ess is {ess:g}, but there are {count:,} draws; they are worth no more")

    found = [states.mean(axis=0)]
    for part in _parts(count, exact.pairs):
        first, second = exact.pairs[part].T
        found.append((states[:, first] & states[:, second]).mean(axis=0))
    shares, truths = (
        np.concatenate(found),
        np.concatenate([exact.marginals, exact.pair_marginals]).clip(0, 1),
    )
    deviations = _ratio(shares - truths, np.sqrt(truths * (1 - truths) / ess))

    values = exact.values(states)
    mean = float(values.mean())
    error = np.sqrt(((values - mean) ** 2).mean() / (ess - 1))
    value = float(_ratio(np.array(mean - exact.mean_value), error, abs(exact.mean_value)))
    p_values = np.append(_binomial(shares, truths, round(ess)), 2 * stats.t.sf(abs(value), ess - 1))
    size = len(exact.marginals)
    return DrawsCheck(
        exact.name,
        count,
        ess,
        deviations[:size],
        deviations[size:],
        value,
        float(min(1.0, p_values.min() * len(p_values))),
    )


def _zeros_and_ones(draws: Any, size: int) -> Int8[np.ndarray, "S N"]:
    states = np.asarray(draws)
    if states.ndim != 2 or states.shape[1] != size or len(states) < 2:
        raise InputError(
            f"draws have shape {list(states.shape)}; expected [S, {size}] with S at least 2"
        )
    if np.isin(states, (0, 1)).all():
        return states.astype(np.int8)
    if np.isin(states, (-1, 1)).all():
        return (states > 0).astype(np.int8)
    raise InputError("draws have other values than 0 and 1, or -1 and 1")


def _parts(count: int, pairs: np.ndarray):
    """Slices of pairs whose products over so many draws fit into memory."""
    step = max(1, _MOST_PRODUCTS // count)
    return [slice(start, start + step) for start in range(0, len(pairs), step)]


def _ratio(differences: np.ndarray, errors: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Differences in standard errors; 0 of what agrees up to rounding, also where the error
    is 0.
    """
    same = np.abs(differences) <= _ROUNDING * max(1.0, scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(same, 0.0, differences / errors)


def _binomial(shares: np.ndarray, truths: np.ndarray, count: int) -> np.ndarray:
    """Two-sided p-values of shares of so many independent draws, which are not normal where events
    are rare.
    """
    ones = shares * count
    above = stats.binom.sf(np.floor(ones + 1e-6) - 1, count, truths)
    below = stats.binom.cdf(np.ceil(ones - 1e-6), count, truths)
    return np.minimum(1.0, 2 * np.minimum(above, below))
