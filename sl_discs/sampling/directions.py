"""The few outlying directions of a model's coupling, for low-rank localization, and where none are in the way.

A model at a temperature is p(s) ~ exp(1/2 s'Js + b's) on spins. If the largest eigenvalues of J are well separated
from the others, a local sampler cannot cross between the modes along their eigenvectors. Without them it mixes fast
if the remaining eigenvalues lie in an interval of length below 1 (Koehler, Lee and Risteski 2022).

`mixes_fast` knows two certificates for all of a model: that condition on its whole spectrum, of which one outlier may
be negative, and Dobrushin's: let R_ij be the largest change in total variation of the law of variable i given all
others when variable j changes. If the spectral radius of R is below 1, single-site chains forget their start in
O(N log N) steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import sparse
from scipy.sparse import linalg

from sl_discs.models.potts import PottsTerms
from sl_discs.models.quadratic import Coefficients

# Up to this many variables, all eigenvalues are computed.
_ALL_EIGENVALUES = 400
# Iterations of ARPACK: it converges slowly if no eigenvalue stands out, and then nothing is lost by giving up.
_MOST_ITERATIONS = 300
# With a rest narrower than this a local sampler mixes fast.
NARROW = 1.0
MOST_DIRECTIONS = 2
# Rounds of the power iteration for the spectral radius of influences.
_INFLUENCE_ROUNDS = 30


class _OutOfTimeError(Exception):
    """In the middle of an iteration for eigenvalues."""


class SpinTerms(NamedTuple):
    """log p(s) = 1/2 s'Js + field's + constant, where J is `couplings` plus `background` on all pairs.

    Attributes:
      couplings: [N, N] symmetric, zero on the diagonal.
      background: added to every pair of different spins.
      field: [N] b.
      constant: so that the sum of p is Z.
    """

    couplings: sparse.csr_matrix
    background: float
    field: Float64[np.ndarray, "N"]
    constant: float

    def times(self, vectors: Float64[np.ndarray, "N *k"]) -> Float64[np.ndarray, "N *k"]:
        """J times vectors."""
        return self.couplings @ vectors + self.background * (vectors.sum(axis=0) - vectors)

    def matrix(self) -> Float64[np.ndarray, "N N"]:
        """J."""
        found = self.couplings.toarray() + self.background
        np.fill_diagonal(found, 0.0)
        return found


def spin_terms(terms: Coefficients, temperature: float) -> SpinTerms:
    """f/temperature in spins s = 2x - 1."""
    size = len(terms.linear)
    weights = terms.scale * (terms.weights - terms.background) / (4 * temperature)
    upper = sparse.csr_matrix((weights, (terms.edges[:, 0], terms.edges[:, 1])), (size, size))
    couplings = (upper + upper.T).tocsr()
    background = terms.scale * terms.background / (4 * temperature)
    linear = terms.linear / (2 * temperature)
    row_sums = np.asarray(couplings.sum(axis=1)).ravel() + background * (size - 1)
    constant = terms.constant / temperature + linear.sum() + row_sums.sum() / 2
    return SpinTerms(couplings, float(background), linear + row_sums, float(constant))


class Directions(NamedTuple):
    """r directions, and the rest J - U D U'.

    Attributes:
      vectors: [N, r] U, orthonormal.
      strengths: [r] D, the distance of each eigenvalue from the mean of the others. This moves the direction to the
        middle of their interval, where it takes no part in the remaining coupling.
      width: of the interval of the other eigenvalues.
      eigenvalues: [r + 1] the largest ones of J, as far as they are known.
    """

    vectors: Float64[np.ndarray, "N r"]
    strengths: Float64[np.ndarray, "r"]
    width: float
    eigenvalues: Float64[np.ndarray, "r+1"]

    @property
    def loadings(self) -> Float64[np.ndarray, "N r"]:
        """U D^(1/2)."""
        return self.vectors * np.sqrt(self.strengths)


class Outer(NamedTuple):
    """Eigenvalues at the ends of the spectrum of J.

    Attributes:
      largest: [k] the largest ones, falling.
      vectors: [N, k] their eigenvectors.
      least: the smallest one.
    """

    largest: Float64[np.ndarray, "k"]
    vectors: Float64[np.ndarray, "N k"]
    least: float


def _never() -> bool:
    return False


def outer_eigenvalues(
    spin: SpinTerms, count: int, num_least: int = 1, is_over: Callable[[], bool] = _never
) -> Outer | None:
    """The `count` < N largest eigenvalues, and the one that is the `num_least`-th from below; None if they are too
    close together to be found, or the time is over.
    """
    size = len(spin.field)
    if size <= _ALL_EIGENVALUES:
        values, vectors = np.linalg.eigh(spin.matrix())
        return Outer(values[::-1][:count], vectors[:, ::-1][:, :count], float(values[num_least - 1]))

    def times(vectors: np.ndarray) -> np.ndarray:
        if is_over():
            raise _OutOfTimeError
        return spin.times(vectors)

    operator = linalg.LinearOperator((size, size), matvec=times, matmat=times, dtype=np.float64)
    # The same start each time, so that draws are reproducible.
    start = np.random.default_rng(0).normal(size=size)
    given = {"v0": start, "maxiter": _MOST_ITERATIONS}
    try:
        values, vectors = linalg.eigsh(operator, k=count, which="LA", **given)
        least = linalg.eigsh(operator, k=num_least, which="SA", tol=1e-3, return_eigenvectors=False, **given)
    except (linalg.ArpackNoConvergence, _OutOfTimeError):
        return None
    return Outer(values[::-1], vectors[:, ::-1], float(least.max()))


def mixes_fast(terms: Coefficients | PottsTerms, temperature: float, is_over: Callable[[], bool] = _never) -> bool:
    """Whether a local sampler is known to mix fast, by one of the certificates above."""
    if isinstance(terms, PottsTerms):
        # The change of a neighbour adds K to one exponent and takes K from another.
        bounds = np.tanh(np.abs(terms.scale * terms.couplings) / (2 * temperature))
        upper = sparse.csr_matrix((bounds, tuple(terms.pairs.T)), (terms.num_sites, terms.num_sites))
        return _radius((upper + upper.T).tocsr(), np.zeros(terms.num_sites)) < 1
    spin = spin_terms(terms, temperature)
    if _radius(*_influences(spin)) < 1:
        return True
    size = len(spin.field)
    outer = outer_eigenvalues(spin, 1, 2, is_over) if size > 2 else None
    return outer is not None and float(outer.largest[0]) - outer.least < NARROW


def _influences(spin: SpinTerms) -> tuple[sparse.csr_matrix, Float64[np.ndarray, "N"]]:
    """R of a model of spins, as listed pairs in addition to a constant of each row on all pairs.

    A spin follows tanh of its field h; the change of a neighbour moves h by J to both sides, which counts most where
    |h| is least.
    """
    size, couplings, background = len(spin.field), spin.couplings, abs(spin.background)
    listed = np.abs(couplings.data + spin.background)
    rows = np.repeat(np.arange(size), np.diff(couplings.indptr))
    reach = np.bincount(rows, listed - background, size) + background * (size - 1)

    def influence(coupling: np.ndarray | float, row: np.ndarray | slice) -> np.ndarray:
        field = np.maximum(np.abs(spin.field[row]) - (reach[row] - coupling), 0.0)
        return (np.tanh(field + coupling) - np.tanh(field - coupling)) / 2

    on_all = influence(background, slice(None))
    pairs = influence(listed, rows) - on_all[rows]
    return sparse.csr_matrix((pairs, couplings.indices, couplings.indptr), (size, size)), on_all


def _radius(pairs: sparse.csr_matrix, on_all: Float64[np.ndarray, "N"]) -> float:
    """The spectral radius of a matrix R of numbers at least 0, from above: max_i (R w)_i / w_i for any w > 0."""
    weights, found = np.ones(len(on_all)), np.inf
    for _ in range(_INFLUENCE_ROUNDS):
        image = pairs @ weights + on_all * (weights.sum() - weights)
        found = min(found, float((image / weights).max()))
        if found < 1:
            break
        weights = weights + image
        weights /= weights.max()
    return found


def find_directions(
    spin: SpinTerms, number: int | None = None, is_over: Callable[[], bool] = _never
) -> Directions | None:
    """The directions with the largest eigenvalues.

    Args:
      spin: the model.
      number: of directions; None: the smallest number, at most 2, that leaves a rest narrower than 1, or otherwise
        the number above the wider gap.
      is_over: whether to give up.

    Returns:
      None if the eigenvalues are so close that they are not found.
    """
    size = len(spin.field)
    most = min((number or MOST_DIRECTIONS) + 1, size - 1)
    if most < 2 or (outer := outer_eigenvalues(spin, most, is_over=is_over)) is None:
        return None
    values, vectors, least = outer
    widths = values[1:] - least
    if number is None:
        narrow = np.flatnonzero(widths < NARROW)
        number = 1 + int(narrow[0] if len(narrow) else np.argmax(-np.diff(values)))
    if number >= most:
        return None
    # J has no diagonal, so the eigenvalues sum to 0.
    strengths = values[:number] + values[:number].sum() / (size - number)
    return Directions(vectors[:, :number], strengths, float(widths[number - 1]), values[: number + 1])
