"""The few outlying directions of a model's coupling, for low-rank localization, and where none are in the way.

A model at a temperature is p(s) ~ exp(1/2 s'Js + b's) on spins. If the largest eigenvalues of J are well separated
from the others, a local sampler cannot cross between the modes along their eigenvectors. Without them it mixes fast
if the remaining eigenvalues lie in an interval of length below 1 (Koehler, Lee and Risteski 2022).

`mixes_fast` knows two certificates for all of a model: that condition on its whole spectrum, of which one outlier may
be negative where no coupling exceeds 1, and Dobrushin's: let R_ij be the largest change in total variation of the law
of variable i given all others when variable j changes. If the spectral radius of R is below 1, single-site chains
forget their start in O(N log N) steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int8
from scipy import sparse
from scipy.sparse import linalg
from scipy.special import expit

from sl_discs.errors import InputError
from sl_discs.models.terms import Coefficients, Terms
from sl_discs.sampling.chain import RecordedChains, chains_of
from sl_discs.sampling.draws import Request

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


class ScaledSpins(NamedTuple):
    """log p(s) = 1/2 s'Js + field's + constant, where J is `couplings` plus `background` on all pairs of two spins.

    The couplings [N, N] are symmetric and zero on the diagonal, and the constant is such that the sum of p is Z.
    """

    couplings: sparse.csr_matrix
    background: float
    field: Float64[np.ndarray, "N"]
    constant: float

    def times(self, vectors: Float64[np.ndarray, "N *k"]) -> Float64[np.ndarray, "N *k"]:
        """Returns J times vectors."""
        return self.couplings @ vectors + self.background * (vectors.sum(axis=0) - vectors)

    def matrix(self) -> Float64[np.ndarray, "N N"]:
        """Returns J."""
        found = self.couplings.toarray() + self.background
        np.fill_diagonal(found, 0.0)
        return found


def spin_terms(terms: Coefficients, temperature: float) -> ScaledSpins:
    """Returns f/temperature in spins s = 2x - 1."""
    size = len(terms.linear)
    weights = terms.scale * (terms.weights - terms.background) / (4 * temperature)
    upper = sparse.csr_matrix((weights, (terms.edges[:, 0], terms.edges[:, 1])), (size, size))
    couplings = (upper + upper.T).tocsr()
    background = terms.scale * terms.background / (4 * temperature)
    linear = terms.linear / (2 * temperature)
    row_sums = np.asarray(couplings.sum(axis=1)).ravel() + background * (size - 1)
    constant = terms.constant / temperature + linear.sum() + row_sums.sum() / 2
    return ScaledSpins(couplings, float(background), linear + row_sums, float(constant))


class Directions(NamedTuple):
    """r directions U with strengths D, and the width of the interval of the eigenvalues of the rest J - U D U'.

    A strength is the distance of an eigenvalue from the mean of the others. This moves the direction to the middle of
    their interval, where it takes no part in the remaining coupling. `eigenvalues` are the largest ones of J.
    """

    vectors: Float64[np.ndarray, "N r"]
    strengths: Float64[np.ndarray, "r"]
    width: float
    eigenvalues: Float64[np.ndarray, "r+1"]

    @property
    def loadings(self) -> Float64[np.ndarray, "N r"]:
        """Returns U D^(1/2)."""
        return self.vectors * np.sqrt(self.strengths)


class Outer(NamedTuple):
    """Eigenvalues at the ends of the spectrum of J: the k largest ones, their eigenvectors, and the least."""

    largest: Float64[np.ndarray, "k"]
    vectors: Float64[np.ndarray, "N k"]
    least: float


def outer_eigenvalues(
    spin: ScaledSpins, count: int, num_least: int = 1, is_over: Callable[[], bool] = lambda: False
) -> Outer | None:
    """Returns the `count` < N largest eigenvalues, and the one that is the `num_least`-th from below; None if they
    are too close together to be found, or the time is over.
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


def mixes_fast(terms: Terms, temperature: float, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Returns whether a local sampler is known to mix fast, by one of the certificates above."""
    if terms.quadratic is None:
        return False
    spin = spin_terms(terms.quadratic, temperature)
    if _radius(*_influences(spin)) < 1:
        return True
    size = len(spin.field)
    # A negative outlier nearly fixes a sum of spins; single flips, which change it, cost up to twice a coupling.
    if max(abs(spin.background), np.abs(spin.couplings.data + spin.background).max(initial=0.0)) > NARROW:
        return False
    outer = outer_eigenvalues(spin, 1, 2, is_over) if size > 2 else None
    return outer is not None and float(outer.largest[0]) - outer.least < NARROW


def _influences(spin: ScaledSpins) -> tuple[sparse.csr_matrix, Float64[np.ndarray, "N"]]:
    """Returns R of a model of spins, as listed pairs in addition to a constant of each row on all pairs.

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
    """Returns a bound of the spectral radius of R, which has no number below 0: max_i (R w)_i / w_i for any w > 0."""
    weights, found = np.ones(len(on_all)), np.inf
    for _ in range(_INFLUENCE_ROUNDS):
        image = pairs @ weights + on_all * (weights.sum() - weights)
        found = min(found, float((image / weights).max()))
        if found < 1:
            break
        weights = weights + image
        weights /= weights.max()
    return found


def find_directions(spin: ScaledSpins, is_over: Callable[[], bool] = lambda: False) -> Directions | None:
    """Finds the directions with the largest eigenvalues; None if these are so close that they are not found.

    Their number is the smallest one, at most 2, that leaves a rest narrower than 1, or otherwise the one above the
    wider gap.
    """
    size = len(spin.field)
    most = min(MOST_DIRECTIONS + 1, size - 1)
    if most < 2 or (outer := outer_eigenvalues(spin, most, is_over=is_over)) is None:
        return None
    values, vectors, least = outer
    widths = values[1:] - least
    narrow = np.flatnonzero(widths < NARROW)
    number = 1 + int(narrow[0] if len(narrow) else np.argmax(-np.diff(values)))
    # J has no diagonal, so the eigenvalues sum to 0.
    strengths = values[:number] + values[:number].sum() / (size - number)
    return Directions(vectors[:, :number], strengths, float(widths[number - 1]), values[: number + 1])


# The model given an observation of its outlying directions: s|z ~ exp(1/2 s'J0 s + (b + U D^(1/2) z)'s).
#
# `FreeRest` is for J0 = 0, where spins are independent and everything has a closed form; `CoupledRest` runs chains.

# The largest number of variables: J0 is a dense matrix, whose rows would take gigabytes.
MOST_COUPLED = 4096
# Couplings whose sum over all pairs is below this change no probability measurably.
_NOTHING = 1e-7
# Sweeps between two records, each of which costs about as much as a sweep.
SWEEPS = 2
# Number of fractions of J0 at which its share of log Z0 is computed, and records at each: for warm-up and for use.
_PARTS, _WARM_UP, _MOMENTS = 6, 32, 128
# Rounds of the mean-field equations.
_ROUNDS = 50
# Numbers of a piece of work.
_PIECE = 2**24


def is_free(spin: ScaledSpins, directions: Directions) -> bool:
    """Returns whether J0 = J - U D U' is zero except on its diagonal, which is a constant on spins."""
    size = len(spin.field)
    probes = np.random.default_rng(0).choice((-1.0, 1.0), (size, 2))
    loadings = directions.loadings
    diagonal = (loadings**2).sum(axis=1)
    left = spin.times(probes) - loadings @ (loadings.T @ probes) + diagonal[:, None] * probes
    return float(np.linalg.norm(left, axis=0).max()) * np.sqrt(size) < _NOTHING


class FreeRest:
    """s given z with independent spins."""

    def __init__(self, spin: ScaledSpins, loadings: Float64[np.ndarray, "N r"]):
        self._spin, self._loadings = spin, loadings
        # s_i^2 = 1: the diagonal of U D U' counts in the observation and not in J.
        self._constant = spin.constant - (loadings**2).sum() / 2

    def _fields(self, points: Float64[np.ndarray, "Q r"]) -> Iterator[Float64[np.ndarray, "_P N"]]:
        step = max(1, _PIECE // len(self._loadings))
        for start in range(0, len(points), step):
            yield self._spin.field + points[start : start + step] @ self._loadings.T

    def log_z(self, points: Float64[np.ndarray, "Q r"]) -> Float64[np.ndarray, "Q"]:
        """Returns the logarithm of the sum over s, sum_i log 2 cosh(b_i + (U D^(1/2) z)_i) and a constant."""
        return self._constant + np.concatenate([_log_cosh(np.abs(h)).sum(axis=1) for h in self._fields(points)])

    def draw(self, rng: np.random.Generator, points: Float64[np.ndarray, "Q r"]) -> Int8[np.ndarray, "Q N"]:
        """Returns a state for each z."""
        chances = (expit(2 * fields) for fields in self._fields(points))
        return np.concatenate([(rng.random(one.shape) < one).astype(np.int8) for one in chances])


def _log_cosh(fields: Float64[np.ndarray, "*B"]) -> Float64[np.ndarray, "*B"]:
    """Returns log 2 cosh of numbers at least 0."""
    return fields + np.log1p(np.exp(-2 * fields))


class Series(NamedTuple):
    """`moments` records of B chains: sums of K observables, of their squares, and of their squared changes."""

    moments: int
    sums: Float64[np.ndarray, "B K"]
    squares: Float64[np.ndarray, "B K"]
    moves: Float64[np.ndarray, "B K"]

    @property
    def means(self) -> Float64[np.ndarray, "B K"]:
        return self.sums / self.moments

    def joined(self, later: Series) -> Series:
        return Series(self.moments + later.moments, *(a + b for a, b in zip(self[1:], later[1:], strict=True)))


class CoupledRest:
    """s given z by chains of a base sampler at temperature 1, each with a z of its own.

    `terms` are those of 1/2 s'J0 s, without its constant, and `steps` the Markov steps so far.
    """

    def __init__(self, spin: ScaledSpins, loadings: Float64[np.ndarray, "N r"], options: Request):
        size = len(spin.field)
        if size > MOST_COUPLED:
            raise InputError(
                f"method low_rank: without the outlying directions, the remaining coupling is dense on "
                f"{size:,} variables, above {MOST_COUPLED:,}; use method='tempering'"
            )
        self._loadings, self._options = loadings, options
        self._field = spin.field.astype(np.float32)
        couplings = spin.matrix() - loadings @ loadings.T
        np.fill_diagonal(couplings, 0.0)
        self._couplings = couplings.astype(np.float32)
        pairs = np.stack(np.triu_indices(size, 1), axis=1).astype(np.int32)
        sums = couplings.sum(axis=1)
        self.terms = Coefficients(-2 * sums, pairs, 4 * couplings[pairs[:, 0], pairs[:, 1]], 1.0)
        # Constants that f omits, from x in {0,1}^N and from s_i^2 = 1.
        self._pairs_constant, self._constant = sums.sum() / 2, spin.constant - (loadings**2).sum() / 2
        self.seed, self.steps, self.engine = options.seed, 0, ""

    def chains(self, num_chains: int, stream: int) -> RecordedChains:
        """Chains whose z is not set yet."""
        chains = chains_of(self.terms, self._options, num_chains, stream=stream)
        self.engine = chains.engine.name
        return chains

    def fields(self, points: Float64[np.ndarray, "B r"]) -> Float32[np.ndarray, "B N"]:
        """Returns b + U D^(1/2) z, the tilt of each chain."""
        return self._field + points.astype(np.float32) @ self._loadings.T.astype(np.float32)

    def mean_field(self, points: Float64[np.ndarray, "Q r"]) -> Float64[np.ndarray, "Q r"]:
        """Returns roughly D^(1/2) U'E[s|z], by the naive mean-field equations m = tanh(b + U D^(1/2) z + J0 m)."""
        fields = self.fields(points)
        means = np.tanh(fields)
        for _ in range(_ROUNDS):
            means = (means + np.tanh(fields + means @ self._couplings)) / 2
        return means @ self._loadings

    def log_z(self, z: Float64[np.ndarray, "r"], stream: int) -> Float64[np.ndarray, "G"]:
        """Returns the logarithm of the sum over s, for each group.

        Without J0 it has a closed form. The rest is the mean of 1/2 s'J0 s under lambda J0, integrated over lambda in
        [0, 1]. The tilt holds all other terms, so that lambda is an inverse temperature.
        """
        groups = self._options.groups
        parts, weights = np.polynomial.legendre.leggauss(_PARTS)
        temperatures = np.tile(2 / (1 + parts), groups)
        chains = self.chains(len(temperatures), stream)
        fields = self.fields(np.tile(z, (len(temperatures), 1)))
        chains.restart((fields > 0).astype(np.int8), fields)
        chains.record(temperatures, 1, _WARM_UP)
        values = chains.record(temperatures, _MOMENTS, SWEEPS).values.mean(axis=0, dtype=float) + self._pairs_constant
        self.steps += chains.steps
        free = _log_cosh(np.abs(fields[0].astype(np.float64))).sum()
        return self._constant + free + values.reshape(groups, -1) @ weights / 2

    def watch(self, chains: RecordedChains, points: Float64[np.ndarray, "B r"], moments: int) -> Series:
        """Continues the chains, and sums D^(1/2) U'E[s_i | other spins] and 1/2 s'J0 s over `moments` records.

        These conditional means have the same expectations as the spins, and less variance (Rao-Blackwell).
        """
        loadings, fields = self._loadings.astype(np.float32), self.fields(points)
        shape = len(points), loadings.shape[1] + 1
        total, last = Series(moments, *(np.zeros(shape) for _ in range(3))), None
        before = chains.steps
        for recorded in chains.play(1.0, moments, SWEEPS):
            for states, values in zip(recorded.states, recorded.values, strict=True):
                spins = 2 * states.astype(np.float32) - 1
                seen = np.tanh(spins @ self._couplings + fields) @ loadings
                now = np.concatenate([seen, values[:, None]], axis=1).astype(np.float64)
                total.sums[...] += now
                total.squares[...] += now**2
                total.moves[...] += (now - (now if last is None else last)) ** 2
                last = now
        self.steps += chains.steps - before
        return total
