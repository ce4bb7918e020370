"""Known quantities of a distribution, and sums over classes of states from which they are computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8
from scipy import special

from sl_discs.checks import real
from sl_discs.instances.form import QuadraticForm
from sl_discs.problems.problem import Problem


class Truth(NamedTuple):
    """A problem at a temperature, and known quantities of its distribution.

    Attributes:
      problem: f is its value; all of them are maximised.
      temperature: of the law.
      log_z: log sum_x exp(f(x)/temperature).
      mean_value: of f.
      marginals: [N] P(x_i = 1), where x_i = 1 is spin 1.
      mode_weight: P(direction . s > 0), or the probability of the mode that the function's documentation names; None
        if there is none.
      counts: [D + 1] P(k of the D spins in `direction` agree with it); None if unknown.
      direction: [N] -1, 1, and 0 for variables that are left out; None: all ones.
    """

    problem: Problem
    temperature: float
    log_z: float
    mean_value: float
    marginals: Float64[np.ndarray, "N"]
    mode_weight: float | None = None
    counts: Float64[np.ndarray, "D+1"] | None = None
    direction: Int8[np.ndarray, "N"] | None = None


def spin_problem(name: str, fields: np.ndarray, pairs: Int[np.ndarray, "M 2"], couplings: np.ndarray) -> Problem:
    """f(s) = sum couplings_k s_a s_b + fields . s, to be maximised."""
    form = QuadraticForm.from_arrays(name, fields, pairs, couplings, spins=True, maximise=True)
    return Problem("ising", name, range(len(fields)), form)


def dense_spin_problem(name: str, fields: np.ndarray, couplings: Float64[np.ndarray, "N N"]) -> Problem:
    """f(s) = 1/2 s'Js + fields . s, where the diagonal of J is ignored."""
    upper = np.triu(couplings, 1)
    pairs = np.argwhere(upper)
    return spin_problem(name, fields, pairs, upper[*pairs.T])


def log_binomial(n, k) -> np.ndarray:
    """Log of n over k."""
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def summed(log_counts: np.ndarray, values: np.ndarray, temperature: float) -> tuple[float, np.ndarray, float]:
    """Log Z, probabilities and the mean value of classes of states, from the size and the value of each class."""
    exponents = log_counts + values / real("temperature", temperature, above=0)
    log_z = float(special.logsumexp(exponents))
    law = np.exp(exponents - log_z)
    return log_z, law, float((law * values).sum())


def weight_of_mode(counts: Float64[np.ndarray, "D+1"]) -> float:
    """P(more spins agree with the direction than not)."""
    return float(counts[len(counts) // 2 + len(counts) % 2 :].sum())
