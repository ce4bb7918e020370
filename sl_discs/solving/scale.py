"""Temperatures for a model that nobody has tuned, from the gains of its flips.

A few random states are quenched: of the sites whose flip gains, half flip at a time, until hardly any is left. There
flips lose, by amounts that a chain meets where good answers are. Losses below a thousandth of the mean are left out:
they are free at any temperature. Annealing starts at half the lower quartile of the others, where small losses are
still often accepted, and larger ones are left to the descent. It ends where the smallest that matter, their 1 %
quantile, are nearly frozen: at temperature loss / log N a sweep over all N sites accepts about one.

To begin where losses are free and to end where small ones are frozen is White's rule ("Concepts of scale in
simulated annealing", 1984); D-Wave's `SimulatedAnnealingSampler` reads both off the coefficients. Losses at quenched
states, instead, keep a penalty, a hub, or the tiniest of many coefficients from deciding. White begins at the spread
of the values; for as long as people wait, most of that time is lost: in half a second each on eight graphs, half the
lower quartile found independent sets larger by 3.75 (ER-0.05) and 1.1 (SATLIB-like) than the mean loss did, and cuts
smaller by 1.75 of 3,159 (BA-1024).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int8
from scipy import sparse

from sl_discs.models.coefficients import Coefficients

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
    mean = float(losses.mean())
    if mean == 0:
        # Quenched into states that no flip changes; what the coefficients can do is the only scale left.
        mean = float(max(np.abs(terms.linear).max(), abs(terms.scale) * terms.largest_coupling())) or 1.0
        return mean, mean / _sweep(num_sites)
    smallest, small = np.quantile(losses[losses > _NEGLIGIBLE * mean], (_QUANTILE, 0.25))
    final = float(smallest) / _sweep(num_sites)
    return max(float(small) / 2, final), final


def _sweep(num_sites: int) -> float:
    """log N, and at least 4, so that small models end cold, too."""
    return max(4.0, float(np.log(num_sites)))


def _above_background(terms: Coefficients) -> sparse.csr_matrix:
    """[N, N] K on the listed pairs u < v, less the background."""
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
