"""Densities on a regular grid in one or two dimensions: their integrals, the location of their mass, and draws."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.special import logsumexp

# Grid spacing for locating the mass, and for drawing in each number of dimensions. The densities are mixtures of
# normal densities with variance 1, so sums over points at distance 1 equal the integrals up to 1e-8, and the uniform
# position of a draw in its cell adds at most 3e-3 to the variance.
COARSE, FINE = 1.0, {1: 0.1, 2: 0.2}
# Largest number of cells in each direction.
_MOST_CELLS = {1: 1 << 16, 2: 1 << 10}


def even_axes(box: Float64[np.ndarray, "r 2"], distance: float) -> list[Float64[np.ndarray, "_P"]]:
    """Midpoints of the cells into which a box is divided, in each direction."""
    found = []
    for low, high in box:
        count = min(_MOST_CELLS[len(box)], max(8, int(np.ceil((high - low) / distance))))
        found.append(low + (high - low) * (np.arange(count) + 0.5) / count)
    return found


def locates(box: Float64[np.ndarray, "r 2"]) -> bool:
    """Whether a grid for locating the mass on this box is not much coarser than its spacing should be."""
    return bool((box[:, 1] - box[:, 0]).max() <= 2 * COARSE * _MOST_CELLS[len(box)])


class DensityTable:
    """G densities on one grid.

    Attributes:
      log_integrals: [G] of the densities.
      pooled: the mean of the normalised densities, as probabilities of cells.
    """

    def __init__(self, axes: list[Float64[np.ndarray, "_P"]], log_densities: Float64[np.ndarray, "G *P"]):
        """Takes densities at the midpoints of equal cells, each up to a constant factor."""
        self._axes = axes
        self._cell = np.array([axis[1] - axis[0] for axis in axes])
        flat = log_densities.reshape(len(log_densities), -1)
        log_sums = logsumexp(flat, axis=1)
        self.log_integrals = log_sums + np.log(self._cell).sum()
        self._shares = np.exp(flat - log_sums[:, None])
        self.pooled = self._shares.mean(axis=0).reshape(log_densities.shape[1:])

    def effective_draws(self) -> float:
        """The number of independent draws that would determine the density as well as its G independent estimates."""
        pooled = self.pooled.ravel()
        apart = (self._shares - pooled) ** 2 / np.where(pooled > 0, pooled, 1.0)
        squares = apart.sum(axis=1).mean()
        return float(len(self._shares) - 1) / squares if squares > 0 else float("inf")

    def hull(self, drop: float) -> Float64[np.ndarray, "r 2"]:
        """The box around all cells whose pooled density is at least exp(-drop) of the largest."""
        inside = self.pooled >= np.exp(-drop) * self.pooled.max()
        found = []
        for number, axis in enumerate(self._axes):
            places = np.flatnonzero(inside.any(axis=tuple(k for k in range(inside.ndim) if k != number)))
            half = self._cell[number] / 2
            found.append([axis[places[0]] - half, axis[places[-1]] + half])
        return np.array(found)

    def peak(self) -> Float64[np.ndarray, "r"]:
        """Where the pooled density is largest."""
        places = np.unravel_index(np.argmax(self.pooled), self.pooled.shape)
        return np.array([axis[place] for axis, place in zip(self._axes, places, strict=True)])

    def sample(self, rng: np.random.Generator, draws: int) -> Float64[np.ndarray, "G draws r"]:
        """Independent draws from each density, uniform within a cell."""
        cells = np.stack([_chosen(rng.random(draws), share) for share in self._shares])
        places = np.stack(np.unravel_index(cells, self.pooled.shape), axis=-1)
        middles = np.stack([axis[places[..., k]] for k, axis in enumerate(self._axes)], axis=-1)
        return middles + (rng.random(middles.shape) - 0.5) * self._cell


def _chosen(uniforms: np.ndarray, shares: np.ndarray) -> np.ndarray:
    cumulative = np.cumsum(shares)
    return np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
