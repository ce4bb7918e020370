"""Problems whose law exp(f/temperature) is known exactly, beyond what can be enumerated, to test samplers on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8
from scipy import special

from sl_discs.errors import InputError, real, whole
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.problems.problem import Problem

# d/db F(b) = Im F(b + ih) / h for an analytic F, without the cancellation of a difference.
_STEP = 1e-30


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


def log_binomial(n, k) -> np.ndarray:
    """Log of n over k."""
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def summed(log_counts: np.ndarray, values: np.ndarray, temperature: float) -> tuple[float, np.ndarray, float]:
    """Log Z, probabilities and the mean value of classes of states, from the size and the value of each class."""
    exponents = log_counts + values / real("temperature", temperature, above=0)
    log_z = float(special.logsumexp(exponents))
    law = np.exp(exponents - log_z)
    return log_z, law, float((law * values).sum())


def curie_weiss(num_variables: int, temperature: float, *, coupling: float = 1.0, field: float = 0.0) -> Truth:
    """The Curie-Weiss model, f(s) = coupling/N sum_{i<j} s_i s_j + field sum_i s_i, summed over the magnetisation.

    Below the temperature `coupling` it has two modes; the mode weight is P(sum_i s_i > 0). See Friedli and Velenik,
    Statistical Mechanics of Lattice Systems (2017), chapter 2.

    Args:
      num_variables: N.
      temperature: above 0.
      coupling: at least 0; 1 puts the critical temperature at 1.
      field: favours one of the modes; at N = 1,000 and below the critical temperature even 1e-3 decides.
    """
    size = whole("num_variables", num_variables, 1)
    ones = np.arange(size + 1)
    spins = 2.0 * ones - size
    values = coupling / (2 * size) * (spins**2 - size) + field * spins
    log_z, law, mean = summed(log_binomial(size, ones), values, temperature)
    pairs = np.argwhere(np.triu(np.ones((size, size), bool), 1))
    problem = spin_problem("curie-weiss", np.full(size, field), pairs, np.full(len(pairs), coupling / size))
    marginals = np.full(size, law @ ones / size)
    return Truth(problem, temperature, log_z, mean, marginals, float(law[spins > 0].sum()), law)


def complete_bipartite(left: int, right: int, temperature: float, *, penalty: float = 1.0001) -> Truth:
    """Independent sets of a complete bipartite graph: f = a + b - penalty a b for a nodes left and b right.

    At low temperature there are two modes, each side alone, and chains that flip single nodes pass between them only
    through the empty set. The mode weight is P(a > b). The sum is over a and b.

    Args:
      left: number of nodes 0 .. left - 1.
      right: number of the nodes after them.
      temperature: above 0.
      penalty: of a conflict, at least 1.
    """
    a, b = np.arange(left + 1)[:, None], np.arange(right + 1)
    log_counts = log_binomial(left, a) + log_binomial(right, b)
    log_z, law, mean = summed(log_counts, a + b - penalty * a * b, temperature)
    edges = np.argwhere(np.ones((left, right), bool)) + np.array([0, left])
    graph = Graph.from_arrays("complete-bipartite", left + right, edges)
    problem = Problem("mis", graph.name, range(left + right), graph, penalty)
    marginals = np.repeat([(law * a).sum() / left, (law * b).sum() / right], [left, right])
    counts = np.bincount((a + b).ravel(), law.ravel())
    return Truth(problem, temperature, log_z, mean, marginals, float(law[a > b].sum()), counts)


def ising_torus(side: int, temperature: float) -> Truth:
    """The Ising model f(s) = sum over neighbours of s_i s_j on a periodic side x side square lattice.

    log Z is from Kaufman (Phys. Rev. 76, 1232, 1949) in the notation of Ferdinand and Fisher (Phys. Rev. 185, 832,
    1969); the mean of f is its derivative with respect to 1/temperature. `CRITICAL` is the critical temperature of
    the infinite lattice.

    Args:
      side: at least 3.
      temperature: at least 0.01, below which there are no states but the two ground states.
    """
    side = whole("side", side, 3)
    log_z = _kaufman(side, complex(1 / real("temperature", temperature, least=0.01), _STEP))
    site = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)])
    problem = spin_problem("ising-torus", np.zeros(side * side), pairs, np.ones(len(pairs)))
    return Truth(problem, temperature, log_z.real, log_z.imag / _STEP, np.full(side * side, 0.5))


CRITICAL = 2 / math.log(1 + math.sqrt(2))


def random_field_grid(side: int, temperature: float, *, field: float = 1.0, seed: int = 0) -> Truth:
    """The Ising model with couplings 1 on a side x side grid with open boundary, in a Gaussian field.

    Its transfer matrix between columns of 2^side states is applied site by site.

    Args:
      side: 1 .. 12.
      temperature: above 0.
      field: standard deviation of each site's.
      seed: of the fields.
    """
    if whole("side", side, 1) > 12:
        raise InputError(f"side is {side}; a transfer matrix is made for grids of side up to 12")
    fields = field * np.random.default_rng(seed).normal(size=(side, side))
    log_z, marginals = _transferred(fields, complex(1 / real("temperature", temperature, above=0), _STEP))
    site = np.arange(side * side).reshape(side, side)
    ends = [(site[:, :-1], site[:, 1:]), (site[:-1], site[1:])]
    pairs = np.concatenate([np.stack([u.ravel(), v.ravel()], axis=1) for u, v in ends])
    problem = spin_problem("random-field-grid", fields.ravel(), pairs, np.ones(len(pairs)))
    return Truth(problem, temperature, log_z.real, log_z.imag / _STEP, marginals.ravel())


def _kaufman(side: int, beta: complex) -> complex:
    """Log Z of the square lattice on a torus, as an analytic function.

    Kaufman's four products are over 2 cosh and 2 sinh of side/2 gamma_k for even and for odd k. Each product of sinh
    is written as the product of cosh times one of tanh, whose sign is that of gamma_0.
    """
    cosh_gamma = np.cosh(2 * beta) / np.tanh(2 * beta) - np.cos(np.pi * np.arange(2 * side) / side)
    gamma = np.arccosh(cosh_gamma)
    gamma[0] = 2 * beta + np.log(np.tanh(beta))
    half = (side / 2 * gamma).reshape(side, 2).T  # even and odd
    # cosh is even; the real part is made positive, so that nothing overflows.
    turned = np.where(half.real < 0, -half, half)
    logs = (turned + np.log1p(np.exp(-2 * turned))).sum(axis=1)
    shift = logs.real.max()
    total = (np.exp(logs - shift) * (1 + np.tanh(half).prod(axis=1))).sum()
    return -math.log(2) + side**2 / 2 * np.log(2 * np.sinh(2 * beta)) + shift + np.log(total)


def _transferred(fields: Float64[np.ndarray, "L L"], beta: complex) -> tuple[complex, Float64[np.ndarray, "L L"]]:
    """Log Z as an analytic function, and P(s = 1) of each site, of columns passed forward and backward."""
    side = len(fields)
    spins = 2.0 * (np.arange(2**side) >> np.arange(side)[:, None] & 1) - 1  # [L, 2^L]
    inside = (spins[1:] * spins[:-1]).sum(axis=0)
    columns = beta * (inside + fields.T @ spins)  # [L, 2^L]
    bond = np.exp(beta * np.array([[1, -1], [-1, 1]]))

    def passed(log_weights: np.ndarray) -> np.ndarray:
        """The log of the transfer matrix of the bonds between two columns, times a vector."""
        shift = log_weights.real.max()
        vector = np.exp(log_weights - shift)
        for i in range(side):
            vector = np.einsum("ab,xby->xay", bond, vector.reshape(-1, 2, 2**i))
        with np.errstate(divide="ignore"):  # weights too small for a double are 0
            return np.log(vector.ravel()) + shift

    forward, backward = [columns[0]], [np.zeros(2**side, complex)]
    for k in range(1, side):
        forward.append(columns[k] + passed(forward[-1]))
        backward.append(passed(columns[-k] + backward[-1]))
    last = forward[-1]
    log_z = last.real.max() + np.log(np.exp(last - last.real.max()).sum())
    laws = np.exp(np.array(forward) + np.array(backward[::-1]) - log_z).real  # [L, 2^L], of each column
    return complex(log_z), (laws @ (spins > 0).T).T
