"""The error of a posterior mean that Markov chains estimate in n steps: exact, measured, and bounded by Chernoff.

For a stationary reversible chain and a function with values in [-1, 1], Leon and Perron (Ann. Appl. Probab. 14,
2004) have P(U_n - m >= e) <= exp(-(1 - l)/(1 + l) n e^2/2), where l = max(lambda_2, 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from scipy import linalg, special

from sl_discs.studies.gaps import flip_gains, spins, transitions


def glauber_errors(
    density: Float64[np.ndarray, "S"], steps: Sequence[int], chains: int, seed: int
) -> Float64[np.ndarray, "n C N"]:
    """U_n - E[s] of chains that start in the law, each step at a uniformly drawn site.

    Args:
      density: log-density of the law.
      steps: the numbers n, increasing.
      chains: C.
      seed: of everything.
    """
    law, table = np.exp(special.log_softmax(density)), spins(len(density).bit_length() - 1)
    chances, size = special.expit(flip_gains(density)), table.shape[1]
    rng = np.random.default_rng((seed, 0))
    states = rng.choice(len(law), size=chains, p=law)
    total, found = np.zeros((chains, size)), []
    for step in range(1, steps[-1] + 1):
        rng = np.random.default_rng((seed, step))
        sites = rng.integers(size, size=chains)
        states = np.where(rng.random(chains) < chances[states, sites], states ^ (1 << sites), states)
        total += table[states]
        if step in steps:
            found.append(total / step - law @ table)
    return np.array(found)


def exact_rms(density: Float64[np.ndarray, "S"], steps: Int[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """The root mean square of U_n - E[s] over sites for a stationary Glauber chain, from its spectrum."""
    matrix, law = transitions("glauber", density), np.exp(special.log_softmax(density))
    values, vectors = linalg.eigh(np.sqrt(matrix * matrix.T))
    values, vectors = values[:-1], vectors[:, :-1]  # without the eigenvalue 1
    weights = ((vectors.T @ (law[:, None] ** 0.5 * spins(len(law).bit_length() - 1))) ** 2).mean(axis=1)
    n = np.asarray(steps, np.float64)[:, None]
    variance = (1 + values) / (1 - values) / n - 2 * values * (1 - values**n) / (n * (1 - values)) ** 2
    return np.sqrt(variance @ weights)


def chernoff(gap: float, steps: Int[np.ndarray, "n"], error: float, sites: int) -> Float64[np.ndarray, "n"]:
    """The bound of the probability that any of the sites' means is off by `error` or more; at most 1."""
    rate = gap / (2 - gap) if gap < 1 else 1.0
    return np.minimum(1.0, 2 * sites * np.exp(-rate * np.asarray(steps) * error**2 / 2))


def mean_errors(
    density: Float64[np.ndarray, "S"], gap: float, steps: Sequence[int], chains: int, error: float, seed: int
) -> dict[str, Any]:
    """All three at each n, and how often a site's mean is off by `error`."""
    sites = len(density).bit_length() - 1
    errors = glauber_errors(density, steps, chains, seed)
    return {
        "steps": list(steps),
        "rms": np.sqrt((errors**2).mean(axis=(1, 2))).tolist(),
        "exact_rms": exact_rms(density, np.array(steps)).tolist(),
        "missed": (np.abs(errors).max(axis=2) >= error).mean(axis=1).tolist(),
        "chernoff": chernoff(gap, np.array(steps), error, sites).tolist(),
    }
