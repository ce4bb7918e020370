"""Exact spectral gaps of Markov kernels under a tilted posterior, and the paper's lower bounds for them.

The posterior is q(s) ~ exp(-beta/2 <s, Ws> + <s, h>) on spins, where h includes the target's own field. The paper
(Wang et al., ICML 2025) bounds the gap from below if its Condition 1 holds,

    |h| >= 2 beta max_i sum_k |W_ik|,

where |h| is interpreted as min_i |h_i|. Then, if all |h_i| are equal, the absolute value of each local field
h_i - beta (Ws)_i is between |h|/2 and 3|h|/2, whatever the other spins are. The exponents of the bounds come from
this range.

A reversible kernel P with stationary distribution pi is similar to the symmetric matrix sqrt(P(x, y) P(y, x)), which
can be computed without pi. On a quadratic model, DULA with a fixed step size is also reversible, not with respect to
q but to

    pi(x) ~ q(x) prod_i (1 + w_i(x)),  w_i(x) = exp(d_i(x)/2 - 1/(2 step_size)),

so its eigenvalues are real, and its gap determines how fast it converges to pi.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import linalg

from sl_discs.models.spin import SpinForm
from sl_discs.testing import oracle
from sl_discs.testing.enumeration import all_states

# `gwg` and `langevin` are two readings of the paper's single-site gradient-informed Metropolis-Hastings.
KERNELS = ("glauber", "metropolis", "gwg", "langevin", "dula")
# The package's default step size of DMALA: a flip that changes nothing has odds exp(-2.5).
STEP_SIZE = 0.2


class Gap(NamedTuple):
    """Gaps of one step.

    Attributes:
      one_sided: 1 - lambda_2, the constant of the Poincare inequality.
      absolute: 1 - max(lambda_2, |lambda_min|), the rate of convergence of a chain that is not lazy.
    """

    one_sided: float
    absolute: float


def spins(num_sites: int) -> Float64[np.ndarray, "S N"]:
    """All states as -1 and 1; state k has bit i of k at site i."""
    return 2.0 * all_states(num_sites) - 1


def log_density(form: SpinForm, tilt: Float64[np.ndarray, "N"] | float = 0.0) -> Float64[np.ndarray, "S"]:
    """-beta/2 <s, Ws> + <s, b + tilt> at every state."""
    states = spins(len(form.b))
    return -form.beta / 2 * np.einsum("si,ij,sj->s", states, form.W, states) + states @ (form.b + tilt)


def flip_gains(density: Float64[np.ndarray, "S"]) -> Float64[np.ndarray, "S N"]:
    """The change of the log-density by each flip."""
    states, sites = np.arange(len(density)), len(density).bit_length() - 1
    return np.stack([density[states ^ (1 << site)] - density for site in range(sites)], axis=1)


def transitions(
    name: str, density: Float64[np.ndarray, "S"], step_size: float = STEP_SIZE
) -> Float64[np.ndarray, "S S"]:
    """The matrix of one step.

    Args:
      name: `glauber` and `metropolis` draw a site uniformly; `gwg` draws one from the balanced softmax of the flip
        gains, followed by a Metropolis-Hastings test; `langevin` draws one uniformly and proposes to flip it with
        probability sigmoid(d/2), followed by such a test; `dula` flips all sites independently without a test.
      density: log-density, see `log_density`.
      step_size: of `dula`.
    """
    sites = range(len(density).bit_length() - 1)
    if name == "glauber":
        return oracle.single_site(density, sites, oracle.barker_test).transitions
    if name == "metropolis":
        return oracle.single_site(density, sites, oracle.metropolis_test).transitions
    if name == "gwg":
        return oracle.gwg(density, np.ones(len(sites), bool), 1).transitions
    if name == "langevin":
        # sigmoid(d/2) min(1, exp(d) sigmoid(-d/2)/sigmoid(d/2)), where the ratio in the test is exp(d/2).
        return oracle.single_site(density, sites, lambda ratio: min(1.0, ratio**0.5) / (1 + ratio**-0.5)).transitions
    return dula(density, step_size)


def dula(density: Float64[np.ndarray, "S"], step_size: float) -> Float64[np.ndarray, "S S"]:
    """The oracle's matrix of DMALA with a fixed step and without a test, as sums over sites of all pairs at once."""
    logits = flip_gains(density) / 2 - 1 / (2 * step_size)
    flips, stays = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    states = np.arange(len(density))
    differs = all_states(logits.shape[1])[states[:, None] ^ states]  # [S, S, N]
    return np.exp(np.einsum("xyi,xi->xy", differs, flips - stays) + stays.sum(axis=1)[:, None])


def dula_law(density: Float64[np.ndarray, "S"], step_size: float) -> Float64[np.ndarray, "S"]:
    """The distribution that DULA leaves invariant on a quadratic model, see the module."""
    exponents = density + np.logaddexp(0, flip_gains(density) / 2 - 1 / (2 * step_size)).sum(axis=1)
    return np.exp(exponents - np.logaddexp.reduce(exponents))


def spectrum(matrix: Float64[np.ndarray, "S S"]) -> Float64[np.ndarray, "S"]:
    """Eigenvalues of a reversible kernel, in increasing order; the last one is 1."""
    return linalg.eigvalsh(np.sqrt(matrix * matrix.T))


def gap_of(matrix: Float64[np.ndarray, "S S"]) -> Gap:
    """The gaps of a reversible kernel."""
    values = spectrum(matrix)
    return Gap(float(1 - values[-2]), float(1 - max(values[-2], -values[0])))


def bound(name: str, field: float, num_sites: int) -> float:
    """The paper's lower bound of a kernel's gap.

    Args:
      name: name of the kernel.
      field: |h|.
      num_sites: N, on which the bound of `dula` depends.
    """
    if name == "glauber":
        return float(1 - field / (2 * np.cosh(0.75 * field)))
    if name == "metropolis":
        return float(1 - 2 * field * np.exp(-field))
    loss = field / (2 * np.cosh(field / 4)) ** 2
    return float(1 - (4 * num_sites if name == "dula" else 1) * loss)


def smallest_field(form: SpinForm, tilt: Float64[np.ndarray, "N"] | float = 0.0) -> float:
    """|h| = min_i |b_i + tilt_i|."""
    return float(np.abs(form.b + tilt).min())


def needed_field(form: SpinForm) -> float:
    """2 beta max_i sum_k |W_ik|, the smallest |h| for which Condition 1 holds."""
    return float(2 * form.beta * np.abs(form.W).sum(axis=1).max())
