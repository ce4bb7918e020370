"""Known truths of spins that fall into a few classes of equal ones: Hopfield models and block models.

With M_a the sum of the spins of class a, f is a function of the M_a alone, so that sums over states are sums over
the tuples of magnetisations, of which there are far fewer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int
from scipy import linalg

from sl_discs.checks import real_array, whole
from sl_discs.errors import InputError
from sl_discs.testing.truth import Truth, dense_spin_problem, log_binomial, summed, weight_of_mode

# Tuples of magnetisations; the tables of so many take half a gigabyte.
_MOST_TUPLES = 2**23


def hopfield(
    num_variables: int, weights: Sequence[float], temperature: float, *, field: float = 0.0, seed: int = 0
) -> Truth:
    """Hopfield's model of orthogonal patterns, f(s) = sum_m weights_m/(2N) (xi_m . s)^2 + field xi_1 . s.

    The patterns are rows of a Hadamard matrix of 1, 2, 4 or 8 columns, which are repeated over the sites, with signs
    drawn for each site. So the weights are the eigenvalues of the coupling. The mode weight is P(xi_1 . s > 0). The
    diagonal of the coupling is left out, as spins make it a constant.

    Args:
      num_variables: N, a multiple of the number of columns, which is the smallest power of 2 with a row each.
      weights: 1 to 8 of them; a weight is the critical temperature of its pattern.
      temperature: above 0.
      field: favours the first pattern over its negative.
      seed: of the signs.

    Raises:
      InputError: a wrong argument, or there are too many tuples of magnetisations to sum over.
    """
    weights = real_array("weights", weights)
    if weights.ndim != 1 or not 1 <= len(weights) <= 8:
        raise InputError(f"weights have shape {weights.shape}; expected 1 to 8 numbers")
    columns = 1 << (len(weights) - 1).bit_length()
    if whole("num_variables", num_variables, 1) % columns:
        raise InputError(f"num_variables is {num_variables}; {len(weights)} patterns need a multiple of {columns}")
    patterns = linalg.hadamard(columns)[: len(weights)]
    sizes = np.full(columns, num_variables // columns)
    coupling = (patterns.T * weights) @ patterns
    return _of_classes("hopfield", sizes, coupling, field * patterns[0], patterns[0], temperature, seed)


def communities(
    sizes: Sequence[int], inside: float, between: float, temperature: float, *, field: float = 0.0, seed: int = 0
) -> Truth:
    """A block model, f(s) = 1/N sum_{i<j} A_{ij} s_i s_j + field sum of the first community's spins.

    A is `inside` for two sites of one community and `between` otherwise. All spins have signs drawn for each site.
    The mode weight is that of the first community's magnetisation.

    Args:
      sizes: of the communities.
      inside: coupling within communities.
      between: coupling of sites in different ones.
      temperature: above 0.
      field: on the first community.
      seed: of the signs.

    Raises:
      InputError: a wrong argument, or there are too many tuples of magnetisations to sum over.
    """
    found = np.array([whole("sizes", size, 1) for size in sizes])
    coupling = np.full((len(found), len(found)), float(between))
    np.fill_diagonal(coupling, inside)
    first = np.eye(1, len(found))[0]
    return _of_classes("communities", found, coupling, field * first, first, temperature, seed)


def _of_classes(
    name: str, sizes: Int[np.ndarray, "C"], coupling: Float64[np.ndarray, "C C"], fields, direction, temperature, seed
) -> Truth:
    """f = 1/N sum_{i<j} coupling s_i s_j + fields . s for the classes of i and j, with a sign drawn for each site."""
    tuples = math.prod(int(size) + 1 for size in sizes)
    if tuples > _MOST_TUPLES:
        raise InputError(
            f"{name}: classes of {sizes.tolist()} spins have {tuples:,} tuples of magnetisations; at most "
            f"{_MOST_TUPLES:,} are summed"
        )
    total = int(sizes.sum())
    ones = np.meshgrid(*(np.arange(size + 1) for size in sizes), indexing="ij", sparse=True)
    spins = [2.0 * k - size for k, size in zip(ones, sizes, strict=True)]
    values = -(sizes @ np.diagonal(coupling)) / (2 * total)
    for a, M in enumerate(spins):
        values = values + M * (fields[a] + coupling[a, a] / (2 * total) * M)
        values = values + M * sum((coupling[a, b] / total * spins[b] for b in range(a)), 0.0)
    log_counts = functools.reduce(np.add, map(log_binomial, sizes, ones))
    log_z, law, mean = summed(log_counts, values, temperature)
    agreeing = sum(
        k if sign > 0 else size - k for k, size, sign in zip(ones, sizes, direction, strict=True) if sign
    )  # fmt: skip
    counts = np.bincount(np.broadcast_to(agreeing, law.shape).ravel(), law.ravel())
    means = [float((law * k).sum()) / size for k, size in zip(ones, sizes, strict=True)]

    signs = np.random.default_rng(seed).choice((-1, 1), total)
    of_site = np.repeat(np.arange(len(sizes)), sizes)
    problem = dense_spin_problem(
        name, fields[of_site] * signs, coupling[np.ix_(of_site, of_site)] / total * np.outer(signs, signs)
    )
    up = np.array(means)[of_site]
    marginals = np.where(signs > 0, up, 1 - up)
    planted = (np.asarray(direction)[of_site] * signs).astype(np.int8)
    return Truth(problem, temperature, log_z, mean, marginals, weight_of_mode(counts), counts, planted)
