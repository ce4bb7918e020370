"""Default temperatures for annealing a model, from the gains of its flips.

A few random states are quenched: half of the sites whose flips gain are flipped at a time, until hardly any are left.
All flips then lose, by amounts that are typical of good states. Losses below a thousandth of the mean are ignored,
because they are accepted at any temperature. Annealing starts at half the lower quartile of the other losses, where
small losses are still often accepted, and ends where the smallest relevant ones, their 1 % quantile, are nearly
frozen: at temperature loss / log N about one of them is accepted in a sweep over all N sites.

To begin where losses are accepted and to end where small ones are frozen is White's rule ("Concepts of scale in
simulated annealing", 1984); D-Wave's `SimulatedAnnealingSampler` derives both temperatures from the coefficients.
Losses at quenched states are used instead so that a penalty, a hub, or the smallest of many coefficients does not
decide. White begins at the spread of the values, which wastes most of a short run: with half a second for each of
eight graphs, half the lower quartile gave independent sets larger by 3.75 (ER-0.05) and 1.1 (SATLIB-like) than the
mean loss did, and cuts smaller by 1.75 of 3,159 (BA-1024).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int8
from scipy import sparse

from sl_discs.models.quadratic import Coefficients

_ROUNDS = 50
_MANY_SITES = 1_000
_MOST_STATES = 16
_NEGLIGIBLE = 1e-3
_QUANTILE = 0.01


def temperature_range(terms: Coefficients) -> tuple[float, float]:
    """The temperatures at which annealing begins and ends, in the units of the terms; (1, 1) where all are 0."""
    rng = np.random.default_rng(0)
    num_sites = len(terms.linear)
    states = min(_MOST_STATES, -(-_MANY_SITES // num_sites))
    above = _above_background(terms)
    losses = np.concatenate([np.abs(_gains(terms, above, _quenched(terms, above, rng))) for _ in range(states)])
    # Where no flip changes the quenched states, the coefficients are the only scale left.
    largest = max(float(np.abs(terms.linear).max()), abs(terms.scale) * terms.largest_coupling())
    return range_of(losses, largest, num_sites)


def range_of(losses: Float64[np.ndarray, "L"], largest: float, num_sites: int) -> tuple[float, float]:
    """The temperatures for these losses at quenched states of so many sites.

    Args:
      losses: absolute changes of the value; if all are 0, the largest coefficient counts.
      largest: the largest coefficient.
      num_sites: N.
    """
    mean = float(losses.mean())
    if mean == 0:
        mean = largest or 1.0
        return mean, mean / _sweep(num_sites)
    smallest, small = np.quantile(losses[losses > _NEGLIGIBLE * mean], (_QUANTILE, 0.25))
    final = float(smallest) / _sweep(num_sites)
    return max(float(small) / 2, final), final


def _sweep(num_sites: int) -> float:
    """log N, and at least 4, so that small models also end cold."""
    return max(4.0, float(np.log(num_sites)))


def _above_background(terms: Coefficients) -> sparse.csr_matrix:
    """[N, N] K on the listed pairs u < v, minus the background."""
    size = len(terms.linear)
    return sparse.csr_matrix((terms.weights - terms.background, tuple(terms.edges.T)), (size, size))


def _gains(terms: Coefficients, above: sparse.csr_matrix, x: Int8[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
    state = x.astype(np.float64)
    coupled = above @ state + above.T @ state + terms.background * (state.sum() - state)
    return (1 - 2 * x) * (terms.linear + terms.scale * coupled)


def _quenched(terms: Coefficients, above: sparse.csr_matrix, rng: np.random.Generator) -> Int8[np.ndarray, "N"]:
    """A state that hardly any single flip improves."""
    x = rng.integers(0, 2, len(terms.linear), np.int8)
    for _ in range(_ROUNDS):
        willing = _gains(terms, above, x) > 0
        if not willing.any():
            break
        x ^= willing & (rng.random(len(x)) < 0.5)
    return x
