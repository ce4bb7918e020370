"""A function on a box, from noisy gradients at its nodes: least squares by Chebyshev polynomials."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Float64
from numpy.polynomial import chebyshev

# Degree relative to the number of nodes in a direction: fewer coefficients than gradients, so that a misfit shows.
_DEGREE = 2 / 3
# Errors of a gradient below this are ignored: over the distance between two nodes they change phi by less.
_EXACT_ENOUGH = 0.002


class GradientFit:
    """Fits functions phi up to an additive constant, which gradients leave undetermined.

    Attributes:
      nodes: [Q, r] points at which gradients are needed, Chebyshev nodes in each direction.
      freedom: number of gradients minus number of coefficients.
    """

    def __init__(self, box: Float64[np.ndarray, "r 2"], count: int):
        """Sets up the fit on a box.

        Args:
          box: lower and upper end in each direction.
          count: nodes in each direction.
        """
        self._box, self._degree = box, int(np.ceil(_DEGREE * count))
        axis = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        axes = [low + (high - low) * (axis + 1) / 2 for low, high in box]
        self.nodes = np.array(list(itertools.product(*axes)))
        designs = [self._design(self.nodes, slope) for slope in range(len(box))]
        self._matrix = np.concatenate(designs)
        self._inverse = np.linalg.pinv(self._matrix)
        self.freedom = self._matrix.shape[0] - self._matrix.shape[1]

    def _polynomials(self, points: np.ndarray, direction: int, derivative: bool) -> np.ndarray:
        low, high = self._box[direction]
        scaled = (2 * points - low - high) / (high - low)
        if not derivative:
            return chebyshev.chebvander(scaled, self._degree)
        slopes = chebyshev.chebder(np.eye(self._degree + 1)) * 2 / (high - low)
        return chebyshev.chebvander(scaled, self._degree - 1) @ slopes

    def _design(self, points: Float64[np.ndarray, "Q r"], slope: int) -> Float64[np.ndarray, "Q K"]:
        """Derivatives of all products of polynomials except the constant one."""
        factors = [self._polynomials(points[:, k], k, k == slope) for k in range(points.shape[1])]
        product = factors[0]
        for factor in factors[1:]:
            product = (product[:, :, None] * factor[:, None, :]).reshape(len(points), -1)
        return product[:, 1:]

    def __call__(self, gradients: Float64[np.ndarray, "G Q r"]) -> Float64[np.ndarray, "G K"]:
        """The coefficients of the functions whose gradients fit best."""
        return _stacked(gradients) @ self._inverse.T

    def misfit(self, gradients: Float64[np.ndarray, "G Q r"]) -> float:
        """How far the mean gradients are from what can be fitted: chi-squared for its degrees of freedom.

        About 1 where polynomials of this degree are enough.
        """
        columns = _stacked(gradients)
        mean, error = columns.mean(axis=0), columns.std(axis=0, ddof=1) / np.sqrt(len(columns))
        error = np.maximum(error, _EXACT_ENOUGH)
        apart = (mean - self._matrix @ (self._inverse @ mean)) / error
        return float(apart @ apart) / self.freedom

    def values(
        self, coefficients: Float64[np.ndarray, "G K"], axes: list[Float64[np.ndarray, "_P"]]
    ) -> Float64[np.ndarray, "G *P"]:
        """The functions on the tensor product of axes."""
        degrees = [self._degree + 1] * len(axes)
        found = np.concatenate([np.zeros((len(coefficients), 1)), coefficients], axis=1).reshape(-1, *degrees)
        for number, axis in enumerate(axes):
            # The axis that is summed over goes, and that of the points comes last.
            found = np.tensordot(found, self._polynomials(axis, number, False), (1, 1))
        return found


def _stacked(gradients: Float64[np.ndarray, "G Q r"]) -> Float64[np.ndarray, "G rQ"]:
    return np.swapaxes(gradients, 1, 2).reshape(len(gradients), -1)
