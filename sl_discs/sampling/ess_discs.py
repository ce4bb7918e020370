"""The effective sample size that DISCS reports for Ising and similar models, for comparison with its figures.

DISCS maps each state to its Hamming distance from a random state and computes the effective sample size of that
trace. This measures how fast the chain moves along one random direction, not whether it has converged;
`sl_discs.sampling` has its own diagnostics for that.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int8

from sl_discs.errors import InputError


class DiscsEss(NamedTuple):
    """Means over chains, under the names of DISCS's `results.csv`.

    Attributes:
      ess: `ESS`, of the chain's second part.
      deviation: standard deviation of `ess` over chains (divisor B); DISCS saves it, scaled alike, with each of the
        four.
      per_step: `ESS_M-H`.
      per_second: `ESS_T`.
      per_evaluation: `ESS_EE`, per evaluation of the log-likelihood or its gradient; gwg, dmala and dlmc count 4 a
        step.
    """

    ess: float
    deviation: float
    per_step: float
    per_second: float
    per_evaluation: float


def distances(states: Int8[np.ndarray, "T B N"], reference: Int8[np.ndarray, "N"]) -> Int[np.ndarray, "T B"]:
    """Hamming distances from one state, which DISCS draws uniformly from {0, 1}^N once a run."""
    return np.count_nonzero(np.asarray(states) != reference, axis=-1)


def discs_ess(
    trace: Float[np.ndarray, "T B"], seconds: float, evaluations: float, *, ess_ratio: float = 0.5
) -> DiscsEss:
    """The four figures of DISCS's `ess_eval`.

    The fraction `ess_ratio` of a chain's steps is discarded as burn-in. As in DISCS, the numbers of steps and of
    evaluations are also multiplied by `ess_ratio`, which is the fraction that remains only if it is 0.5. A chain
    whose trace never changes counts as one sample.

    Args:
      trace: one number for each of T steps of B chains, from the first step on.
      seconds: seconds that the steps after burn-in took.
      evaluations: evaluations of the log-likelihood by one chain in all T steps; 0 if they are not counted.
      ess_ratio: above 0 and below 1.

    Raises:
      InputError: fewer than 2 steps are left.
    """
    length = len(trace)
    kept = np.asarray(trace, np.float32)[int(length * ess_ratio) :]
    if len(kept) < 2:
        raise InputError(f"a trace of {length} steps has {len(kept)} after burn-in; expected at least 2")
    # A constant trace is 0/0.
    sizes = np.nan_to_num(np.asarray(effective_sample_size(jnp.asarray(kept)), np.float64), nan=1.0)
    ess = float(sizes.mean())
    per_evaluation = ess / (evaluations * ess_ratio) if evaluations else float("nan")
    return DiscsEss(ess, float(sizes.std()), ess / (length * ess_ratio), ess / seconds, per_evaluation)


def effective_sample_size(chain: Float[Array, "T B"]) -> Float[Array, "B"]:
    """T / (1 + 2 sum_k (1 - k/T) rho_k), the sum ending before the first negative autocorrelation.

    The definition of TensorFlow Probability's function with its defaults: rho_k divides by the T - k products that
    it averages.

    Args:
      chain: T successive values of each of B chains.
    """
    length = chain.shape[0]
    centered = chain - jnp.mean(chain, axis=0)
    spectrum = jnp.fft.rfft(centered, n=2 * length, axis=0)
    products = jnp.fft.irfft(jnp.abs(spectrum) ** 2, n=2 * length, axis=0)[:length]
    lags = jnp.arange(length, dtype=chain.dtype)[:, None]
    correlation = products / (length - lags)
    correlation = correlation / correlation[0]
    positive = jnp.cumsum(correlation < 0, axis=0) == 0
    weighted = jnp.where(positive, (1 - lags / length) * correlation, 0.0)
    return length / (2 * jnp.sum(weighted, axis=0) - 1)
