"""The few outlying directions of a model's coupling, densities along them, and where none are in
the way.

A model at a temperature is p(s) ~ exp(1/2 s'Js + b's) on spins. If the largest eigenvalues of J are
well separated from the others, a local sampler cannot cross between the modes along their
eigenvectors. Without them it mixes fast if the remaining eigenvalues lie in an interval of length
below 1 (Koehler, Lee and Risteski 2022).

`mixes_fast` knows two certificates for all of a model: that condition on its whole spectrum, of
which one outlier may be negative where no coupling exceeds 1, and Dobrushin's: let R_ij be the
largest change in total variation of the law of variable i given all others when variable j changes.
If the spectral radius of R is below 1, single-site chains forget their start in O(N log N) steps.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from numpy.polynomial import chebyshev
from scipy import sparse
from scipy.sparse import linalg
from scipy.special import logsumexp

from sl_discs.models.functions import Terms
from sl_discs.models.terms import Coefficients, SpinForm, to_spin

# Up to this many variables, all eigenvalues are computed.
_ALL_EIGENVALUES = 400
# Iterations of ARPACK: it converges slowly if no eigenvalue stands out, and then nothing is lost by
# giving up.
_MOST_ITERATIONS = 300
# With a rest narrower than this a local sampler mixes fast.
NARROW = 1.0
MOST_DIRECTIONS = 2
# Rounds of the power iteration for the spectral radius of influences.
_INFLUENCE_ROUNDS = 30


class Directions(NamedTuple):
    """r directions U with strengths D, which are the distances of their eigenvalues from the mean
    of the others.

    Without them, the directions are in the middle of the others' interval and take no part in the
    remaining coupling.
    """

    loadings: Float64[np.ndarray, "N r"]  # U D^(1/2)
    width: float  # of the interval of the eigenvalues of the rest J - U D U'
    eigenvalues: Float64[np.ndarray, "r+1"]  # the largest ones of J


def outer_eigenvalues(
    spin: SpinForm, count: int, num_least: int = 1, is_over: Callable[[], bool] = lambda: False
) -> tuple[Float64[np.ndarray, "k"], Float64[np.ndarray, "N k"], float] | None:
    """Returns the `count` < N largest eigenvalues of J, their eigenvectors, and the eigenvalue that
    is the `num_least`-th from below; None if they are too close together to be found, or the time
    is over.
    """
    size = spin.num_spins
    if size <= _ALL_EIGENVALUES:
        values, vectors = np.linalg.eigh(spin.matrix())
        return values[::-1][:count], vectors[:, ::-1][:, :count], float(values[num_least - 1])

    def times(vectors: np.ndarray) -> np.ndarray:
        if is_over():
            raise TimeoutError
        return spin.times(vectors)

    operator = linalg.LinearOperator((size, size), matvec=times, matmat=times, dtype=np.float64)
    # The same start each time, so that draws are reproducible.
    start = np.random.default_rng(0).normal(size=size)
    options = {"v0": start, "maxiter": _MOST_ITERATIONS}
    try:
        values, vectors = linalg.eigsh(operator, k=count, which="LA", **options)
        least = linalg.eigsh(
            operator, k=num_least, which="SA", tol=1e-3, return_eigenvectors=False, **options
        )
    except (linalg.ArpackNoConvergence, TimeoutError):
        return None
    return values[::-1], vectors[:, ::-1], float(least.max())


def mixes_fast(
    terms: Terms, temperature: float, is_over: Callable[[], bool] = lambda: False
) -> bool:
    """Returns whether a local sampler is known to mix fast, by one of the certificates above."""
    if not isinstance(terms, Coefficients):
        return False
    spin = to_spin(terms, temperature)
    if _radius(*_influences(spin)) < 1:
        return True
    size = spin.num_spins
    # A negative outlier nearly fixes a sum of spins; single flips, which change it, cost up to
    # twice a coupling.
    if (
        max(abs(spin.background), np.abs(spin.couplings + spin.background).max(initial=0.0))
        > NARROW
    ):
        return False
    outer = outer_eigenvalues(spin, 1, 2, is_over) if size > 2 else None
    return outer is not None and float(outer[0][0]) - outer[2] < NARROW


def _influences(spin: SpinForm) -> tuple[sparse.csr_matrix, Float64[np.ndarray, "N"]]:
    """Returns R of a model of spins, as listed pairs in addition to a constant of each row on all
    pairs.

    A spin follows tanh of its field h; the change of a neighbour moves h by J to both sides, which
    counts most where
    |h| is least.
    """
    size = spin.num_spins
    couplings = spin.rows
    background = abs(spin.background)
    listed = np.abs(couplings.data + spin.background)
    rows = np.repeat(np.arange(size), np.diff(couplings.indptr))
    reach = np.bincount(rows, listed - background, size) + background * (size - 1)

    def influence(coupling: np.ndarray | float, row: np.ndarray | slice) -> np.ndarray:
        field = np.maximum(np.abs(spin.fields[row]) - (reach[row] - coupling), 0.0)
        return (np.tanh(field + coupling) - np.tanh(field - coupling)) / 2

    on_all = influence(background, slice(None))
    pairs = influence(listed, rows) - on_all[rows]
    return sparse.csr_matrix((pairs, couplings.indices, couplings.indptr), (size, size)), on_all


def _radius(pairs: sparse.csr_matrix, on_all: Float64[np.ndarray, "N"]) -> float:
    """Returns a bound of the spectral radius of R, which has no number below 0: max_i (R w)_i / w_i
    for any w > 0.
    """
    weights = np.ones(len(on_all))
    radius = np.inf
    for _ in range(_INFLUENCE_ROUNDS):
        image = pairs @ weights + on_all * (weights.sum() - weights)
        radius = min(radius, float((image / weights).max()))
        if radius < 1:
            break
        weights = weights + image
        weights /= weights.max()
    return radius


def find_directions(
    spin: SpinForm, is_over: Callable[[], bool] = lambda: False
) -> Directions | None:
    """Finds the directions with the largest eigenvalues; None if these are so close that they are
    not found.

    Their number is the smallest one, at most 2, that leaves a rest narrower than 1, or otherwise
    the one above the wider gap.
    """
    size = spin.num_spins
    most = min(MOST_DIRECTIONS + 1, size - 1)
    if most < 2 or (outer := outer_eigenvalues(spin, most, is_over=is_over)) is None:
        return None
    values, vectors, least = outer
    widths = values[1:] - least
    narrow = np.flatnonzero(widths < NARROW)
    count = 1 + int(narrow[0] if len(narrow) else np.argmax(-np.diff(values)))
    # J has no diagonal, so the eigenvalues sum to 0.
    strengths = values[:count] + values[:count].sum() / (size - count)
    return Directions(
        vectors[:, :count] * np.sqrt(strengths), float(widths[count - 1]), values[: count + 1]
    )


# Densities on a regular grid in one or two dimensions: their integrals, the location of their mass,
# and draws.

# Grid spacing for locating the mass, and for drawing in each number of dimensions. The densities
# are mixtures of normal densities with variance 1, so sums over points at distance 1 equal the
# integrals up to 1e-8, and the uniform position of a draw in its cell adds at most 3e-3 to the
# variance.
COARSE = 1.0
FINE = {1: 0.1, 2: 0.2}
# Largest number of cells in each direction.
MOST_CELLS = {1: 1 << 16, 2: 1 << 10}


def even_axes(box: Float64[np.ndarray, "r 2"], distance: float) -> list[Float64[np.ndarray, "_P"]]:
    """Midpoints of the cells into which a box is divided, in each direction."""
    axes_found = []
    for low, high in box:
        count = min(MOST_CELLS[len(box)], max(8, int(np.ceil((high - low) / distance))))
        axes_found.append(low + (high - low) * (np.arange(count) + 0.5) / count)
    return axes_found


class DensityTable:
    """G densities on one grid, from their values at the midpoints of equal cells, each up to a
    constant factor.

    `log_integrals` are theirs, and `pooled` is the mean of the normalised densities, as
    probabilities of cells.
    """

    def __init__(
        self, axes: list[Float64[np.ndarray, "_P"]], log_densities: Float64[np.ndarray, "G *P"]
    ):
        self._axes = axes
        self._cell = np.array([axis[1] - axis[0] for axis in axes])
        flat = log_densities.reshape(len(log_densities), -1)
        log_sums = logsumexp(flat, axis=1)
        self.log_integrals = log_sums + np.log(self._cell).sum()
        self._shares = np.exp(flat - log_sums[:, None])
        self.pooled = self._shares.mean(axis=0).reshape(log_densities.shape[1:])

    def effective_draws(self) -> float:
        """Returns the number of independent draws that would determine the density as well as its G
        independent estimates.
        """
        pooled = self.pooled.ravel()
        squared = (self._shares - pooled) ** 2 / np.where(pooled > 0, pooled, 1.0)
        squares = squared.sum(axis=1).mean()
        return float(len(self._shares) - 1) / squares if squares > 0 else float("inf")

    def hull(self, drop: float) -> Float64[np.ndarray, "r 2"]:
        """Returns the box around all cells whose pooled density is at least exp(-drop) of the
        largest.
        """
        inside = np.argwhere(self.pooled >= np.exp(-drop) * self.pooled.max())
        low = self._middles(inside.min(axis=0))
        high = self._middles(inside.max(axis=0))
        return np.stack([low - self._cell / 2, high + self._cell / 2], axis=1)

    def peak(self) -> Float64[np.ndarray, "r"]:
        """Returns the middle of the cell with the largest pooled density."""
        return self._middles(np.array(np.unravel_index(np.argmax(self.pooled), self.pooled.shape)))

    def _middles(self, cells: Int[np.ndarray, "*B r"]) -> Float64[np.ndarray, "*B r"]:
        return np.stack([axis[cells[..., k]] for k, axis in enumerate(self._axes)], axis=-1)

    def sample(self, rng: np.random.Generator, draws: int) -> Float64[np.ndarray, "G draws r"]:
        """Returns independent draws from each density, uniform within a cell."""
        sums = np.cumsum(self._shares, axis=1)
        cells = np.stack(
            [
                np.searchsorted(cumulated, rng.random(draws) * cumulated[-1], side="right")
                for cumulated in sums
            ]
        )
        middles = self._middles(np.stack(np.unravel_index(cells, self.pooled.shape), axis=-1))
        return middles + (rng.random(middles.shape) - 0.5) * self._cell


# A function on a box, from noisy gradients at its nodes: least squares by Chebyshev polynomials.

# Degree relative to the number of nodes in a direction: fewer coefficients than gradients, so that
# a misfit shows.
_DEGREE = 2 / 3
# Errors of a gradient below this are ignored: over the distance between two nodes they change phi
# by less.
_EXACT_ENOUGH = 0.002


class GradientFit:
    """Fits functions phi up to an additive constant, which gradients leave undetermined.

    Gradients are needed at the `nodes` [Q, r], `count` Chebyshev nodes in each direction of the
    box.
    """

    def __init__(self, box: Float64[np.ndarray, "r 2"], count: int):
        self._box = box
        self._degree = int(np.ceil(_DEGREE * count))
        axis = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        axes = [low + (high - low) * (axis + 1) / 2 for low, high in box]
        self.nodes = np.array(list(itertools.product(*axes)))
        # Derivatives of all products of polynomials but the constant one, in one direction after
        # the other.
        designs = []
        for along in range(len(box)):
            factors = [self._polynomials(k, axis, slopes=k == along) for k, axis in enumerate(axes)]
            designs.append(functools.reduce(np.kron, factors)[:, 1:])
        self._matrix = np.concatenate(designs)
        self._inverse = np.linalg.pinv(self._matrix)

    def _polynomials(self, direction: int, points: np.ndarray, slopes: bool = False) -> np.ndarray:
        """Returns all polynomials in one direction at points, or their derivatives."""
        low, high = self._box[direction]
        scaled = (2 * points - low - high) / (high - low)
        if not slopes:
            return chebyshev.chebvander(scaled, self._degree)
        derived = chebyshev.chebder(np.eye(self._degree + 1)) * 2 / (high - low)
        return chebyshev.chebvander(scaled, self._degree - 1) @ derived

    def __call__(
        self, gradients: Float64[np.ndarray, "G Q r"], axes: list[Float64[np.ndarray, "_P"]]
    ) -> Float64[np.ndarray, "G *P"]:
        """Returns the functions whose gradients fit best, on the tensor product of axes."""
        coefficients = _stacked(gradients) @ self._inverse.T
        values = np.pad(coefficients, [(0, 0), (1, 0)]).reshape(-1, *[self._degree + 1] * len(axes))
        for k, axis in enumerate(axes):
            # The axis that is summed over goes, and that of the points comes last.
            values = np.tensordot(values, self._polynomials(k, axis), (1, 1))
        return values

    def misfit(self, gradients: Float64[np.ndarray, "G Q r"]) -> float:
        """Returns how far the mean gradients are from what can be fitted: chi-squared for its
        degrees of freedom.

        About 1 where polynomials of this degree are enough.
        """
        columns = _stacked(gradients)
        mean = columns.mean(axis=0)
        error = columns.std(axis=0, ddof=1) / np.sqrt(len(columns))
        error = np.maximum(error, _EXACT_ENOUGH)
        deviation = (mean - self._matrix @ (self._inverse @ mean)) / error
        return float(deviation @ deviation) / (self._matrix.shape[0] - self._matrix.shape[1])


def _stacked(gradients: Float64[np.ndarray, "G Q r"]) -> Float64[np.ndarray, "G rQ"]:
    return np.swapaxes(gradients, 1, 2).reshape(len(gradients), -1)
