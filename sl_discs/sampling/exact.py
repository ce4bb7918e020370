"""Exact independent draws from exp(f/temperature), and the exact log Z and marginals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8

from sl_discs.checks import real, whole
from sl_discs.errors import InputError
from sl_discs.models.enumeration import enumerate_density, enumerate_law
from sl_discs.models.functions import Density
from sl_discs.models.quadratic import Coefficients
from sl_discs.sampling.tree import tree_decomposition

# Above this, tree decomposition is tried first.
_ENUMERATED = 20


class ExactDraws(NamedTuple):
    """Draws, and exact values of what other methods estimate.

    Attributes:
      states: [draws, N] independent draws.
      log_z: log sum_x exp(f(x)/temperature), the constant of f included.
      marginals: [N] P(x_i = 1).
      pair_marginals: [P] P(x_i = x_j = 1) of the requested pairs.
      mean_value: of f.
      width: of the tree decomposition; None after enumeration.
    """

    states: Int8[np.ndarray, "draws N"]
    log_z: float
    marginals: Float64[np.ndarray, "N"]
    pair_marginals: Float64[np.ndarray, "P"]
    mean_value: float
    width: int | None


def exact(
    terms: Coefficients | Density,
    temperature: float,
    draws: int,
    seed: int,
    pairs: Int[np.ndarray, "P 2"] | None = None,
) -> ExactDraws:
    """Draws by enumeration of up to 20 variables, and by tree decomposition of more.

    Args:
      terms: f, as `Problem.terms()`.
      temperature: above 0.
      draws: their number, at least 1.
      seed: 0 .. 2^32 - 1; the same seed gives the same draws.
      pairs: of different variables, for `pair_marginals`; None: none.

    Raises:
      InputError: an argument is wrong, the treewidth is too large, or dwave-samplers, which more than 20 variables
        need, is not installed.
    """
    temperature = real("temperature", temperature, above=0)
    draws, seed = whole("draws", draws, 1), whole("seed", seed, bits=32)
    pairs = _checked_pairs(pairs, terms.num_sites)
    if isinstance(terms, Density):
        law = enumerate_density(terms, temperature)
    elif terms.num_sites > _ENUMERATED:
        return ExactDraws(*tree_decomposition(terms, temperature, draws, seed, pairs))
    else:
        law = enumerate_law(terms, temperature)
    states = law.sample(np.random.default_rng(seed), draws)
    return ExactDraws(states, law.log_z, law.marginals.copy(), law.moments[*pairs.T], law.mean_value, None)


def _checked_pairs(pairs: np.ndarray | None, size: int) -> Int[np.ndarray, "P 2"]:
    found = np.asarray([] if pairs is None else pairs)
    found = found.reshape(-1, 2).astype(np.int32) if found.size == 0 else found
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InputError(f"pairs have shape {found.shape} and dtype {found.dtype}; expected integers [P, 2]")
    wrong = ((found < 0) | (found >= size)).any(axis=1) | (found[:, 0] == found[:, 1])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"pair {row} is {tuple(found[row].tolist())}; expected two different variables of 0..{size - 1}"
        )
    return found
