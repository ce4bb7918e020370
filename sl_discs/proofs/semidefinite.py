"""The semidefinite bound of quadratic functions of spins, by coordinate descent of low rank with a certified dual.

A function constant + s'Cs of spins s, where fields are couplings to one spin more that is always 1, is at most
constant + sum z for every z with Diag(z) - C positive semidefinite: s'Cs <= s'Diag(z)s = sum z. The best such z is
the dual of the relaxation in which spins are unit vectors v_i. The mixing method turns one vector after another into
the direction of its field g_i = sum_j C_ij v_j, and |g_i| tends to the best z.

z = |g| is not quite feasible, so it is stretched by a factor mu, which Lanczos' method estimates, and then checked by
a Cholesky factorization of M = S (Diag(z) - C) S, where S has powers of two near z^(-1/2), so that M is exact. An
estimate of the least eigenvalue, or its residual, would not do, since another one may be smaller. A factorization in
double precision that succeeds is that of M + E with |E| <= gamma trace(M) in the 2-norm, where gamma is about N times
the unit roundoff (Rump 2006, "Verification of positive definiteness"). So what is factorized is M - theta, with theta
well above gamma trace(M): then M itself is positive semidefinite, whatever Lanczos' method said.

Sources: Goemans and Williamson 1995, "Improved approximation algorithms for maximum cut and satisfiability problems
using semidefinite programming"; Wang, Chang and Kolter 2017, "The mixing method".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Float64
from scipy import sparse

from sl_discs.engines.cpu.jit import REORDERED, entered, in_long_vectors, inlined
from sl_discs.problems.kind import KINDS, Structure
from sl_discs.proofs.cycles import Multipliers, Pairs, find, looks, pairs_of, products
from sl_discs.proofs.provers import Prover
from sl_discs.reductions.presolve import Presolved
from sl_discs.reductions.quadratic import SpinTerms, terms_of_cut, terms_of_form

# Entries of a vector: two registers of 512 bits. More would hardly give better duals, which need not be optimal.
_RANK = 32
_EPS = float(np.finfo(np.float64).eps)
# Of the certificate: n and trace come with a factor for operations that libraries replace by two, such as divisions.
_SAFETY = 8
# By how much z is stretched beyond Lanczos' estimate, one after another until the certificate succeeds.
_MARGINS = 3e-4, 3e-3, 3e-2, 0.3
# Its relative error, the most steps, and those between two looks at it.
_LANCZOS_ERROR, _LANCZOS_STEPS, _LANCZOS_LOOKS = 1e-4, 300, 10
# Of a factorization: rows that are taken together, a multiple of 4, and columns, a multiple of these.
_BLOCK, _COLUMNS = 32, 512
# A dual is not below such a part of the sum of a row, so that no scale is out of range.
_LEAST = 1e-6


def matrix_of(terms: SpinTerms) -> sparse.csr_array:
    """C [n, n] of the couplings and fields, in which a last spin stands for 1 where there are fields."""
    size, own = len(terms.fields), np.flatnonzero(terms.fields)
    rows = np.concatenate([terms.pairs[:, 0], own])
    columns = np.concatenate([terms.pairs[:, 1], np.full(len(own), size)])
    size += bool(len(own))
    upper = sparse.csr_array(
        (np.concatenate([terms.couplings, terms.fields[own]]) / 2, (rows, columns)), (size, size)
    )
    return (upper + upper.T).tocsr()


def random_vectors(size: int) -> Float32[np.ndarray, "n R"]:
    """Unit vectors to begin with; always the same."""
    vectors = np.random.default_rng(0).normal(size=(size, _RANK)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def mixed(
    pairs: Pairs, weights: Float32[np.ndarray, "M2"], vectors: Float32[np.ndarray, "n R"], sweeps: int
) -> float:
    """Updates all vectors `sweeps` times, in place; returns the value of the relaxation, sum |g|.

    C has these weights at the entries of the pairs.
    """
    return _mix(pairs, weights, vectors, np.zeros(_RANK, np.float32), sweeps)


@inlined(fastmath=REORDERED)
def _turn(pairs, weights, vectors, field, i):
    """Turns a vector into the direction of its field, whose norm is returned."""
    for k in range(field.shape[0]):
        field[k] = 0
    for place in range(pairs.starts[i], pairs.starts[i + 1]):
        weight, j = weights[place], pairs.others[place]
        for k in range(field.shape[0]):
            field[k] += weight * vectors[j, k]
    square = np.float32(0)
    for k in range(field.shape[0]):
        square += field[k] * field[k]
    norm = np.sqrt(square)
    if norm > 0:
        scale = np.float32(1) / norm
        for k in range(field.shape[0]):
            vectors[i, k] = scale * field[k]
    return norm


@entered
def _mix(pairs, weights, vectors, field, sweeps):
    in_long_vectors()
    total = 0.0
    for _ in range(sweeps):
        total = 0.0
        for i in range(vectors.shape[0]):
            total += _turn(pairs, weights, vectors, field, i)
    return total


def certified(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """A dual near a given one for which Diag(dual) - matrix surely is positive semidefinite.

    The matrix has zeros on its diagonal. By Gershgorin's circles, the sums of its absolute rows are such a dual; they
    are the result where stretching the given one does not help.
    """
    sums = np.asarray(abs(matrix).sum(axis=1)).reshape(-1)
    coupled = np.flatnonzero(sums)
    found = np.zeros(len(dual))
    if len(coupled) == 0:
        return found
    inside, sums = matrix[coupled][:, coupled], sums[coupled]
    dual = np.clip(dual[coupled], _LEAST * sums, sums)
    largest = _largest_eigenvalue(inside, dual)
    stretched = (dual * (largest + margin) for margin in _MARGINS)
    rounding = 1 + 4 * len(matrix.indices) * _EPS
    found[coupled] = next((one for one in stretched if _is_feasible(inside, one)), sums * rounding)
    return found


def _largest_eigenvalue(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> float:
    """Estimates that of D^(-1/2) C D^(-1/2) with the dual D from below, as at least .5, by Lanczos' method.

    Rounding makes its vectors lose orthogonality, which the largest eigenvalue does not suffer from.
    """
    from scipy.linalg import eigh_tridiagonal

    scale = 1 / np.sqrt(dual)
    scaled = sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale)
    after = np.random.default_rng(0).normal(size=len(dual))
    vector, norm, found = np.zeros(len(dual)), _norm(after), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    while norm > _EPS and len(diagonal) < _LANCZOS_STEPS:
        before, vector = vector, after / norm
        after = scaled @ vector - norm * before
        diagonal.append(float((after * vector).sum()))
        after -= diagonal[-1] * vector
        norm = _norm(after)
        if len(diagonal) % _LANCZOS_LOOKS == 0 or norm <= _EPS:
            last = len(diagonal) - 1
            [found], vectors = eigh_tridiagonal(diagonal, beside, select="i", select_range=(last, last))
            if norm * abs(vectors[-1, 0]) <= _LANCZOS_ERROR * found:
                break
        beside.append(norm)
    return max(float(found), 0.5)


def _norm(vector: Float64[np.ndarray, "n"]) -> float:
    return math.sqrt(float((vector * vector).sum()))


def _is_feasible(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> bool:
    """Whether Diag(dual) - matrix is positive semidefinite; False also where rounding leaves it open."""
    size, given = len(dual), matrix.tocoo()
    scale = 2.0 ** np.round(-np.log2(dual) / 2)
    diagonal = dual * scale * scale
    theta = _SAFETY * (size + _SAFETY) * _EPS * float(diagonal.sum())
    entries = np.eye(-(-size // _BLOCK) * _BLOCK)
    entries[given.row, given.col] = -given.data * scale[given.row] * scale[given.col]
    entries[np.arange(size), np.arange(size)] = diagonal - theta
    return bool(np.isfinite(entries).all()) and factorized(entries)


@inlined(fastmath=REORDERED)
def _subtract(entries, i, k, begin, end):
    """Takes the multiple of row k that its column i says from row i, in some columns."""
    factor = entries[k, i]
    changed, row = entries[i, begin:end], entries[k, begin:end]
    for j in range(changed.shape[0]):
        changed[j] -= factor * row[j]


@inlined(fastmath=REORDERED)
def _subtract_four(entries, i, k, begin, end):
    """Does the same with rows k to k + 3, from rows i and i + 1, so that each entry is loaded for two."""
    a0, a1, a2, a3 = entries[k, i], entries[k + 1, i], entries[k + 2, i], entries[k + 3, i]
    b0, b1, b2, b3 = entries[k, i + 1], entries[k + 1, i + 1], entries[k + 2, i + 1], entries[k + 3, i + 1]
    first, second = entries[i, begin:end], entries[i + 1, begin:end]
    row0, row1, row2, row3 = (
        entries[k, begin:end], entries[k + 1, begin:end], entries[k + 2, begin:end], entries[k + 3, begin:end],
    )  # fmt: skip
    for j in range(first.shape[0]):
        x0, x1, x2, x3 = row0[j], row1[j], row2[j], row3[j]
        before = second[j]
        first[j] -= a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
        second[j] = before - (b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3)


@entered
def factorized(entries):
    """Replaces the upper triangle of a symmetric matrix [n, n] by its Cholesky factor; whether there is one.

    n is a multiple of `_BLOCK`. What is below the diagonal is overwritten. LAPACK's factorization runs on all cores,
    which takes many times as long where other work has them; this one takes twice as long as LAPACK's on one core.
    """
    in_long_vectors()
    size = entries.shape[0]
    for first in range(0, size, _BLOCK):
        last = first + _BLOCK
        for k in range(first, last):
            pivot = entries[k, k]
            if not pivot > 0:
                return False
            row, scale = entries[k, k:], 1 / np.sqrt(pivot)
            for j in range(row.shape[0]):
                row[j] *= scale
            for i in range(k + 1, last):
                _subtract(entries, i, k, i, size)
        for begin in range(last, size, _COLUMNS):
            end = min(begin + _COLUMNS, size)
            for i in range(last, end, 2):
                for k in range(first, last, 4):
                    _subtract_four(entries, i, k, max(i, begin), end)
    return True


# Entries of vectors' fields that a core looks at in a second, operations of a factorization, pairs that are looked at
# for cycles, and cycles whose multipliers are moved.
_ENTRIES_A_SECOND, _OPERATIONS_A_SECOND, _LOOKS_A_SECOND, _CYCLES_A_SECOND = 2e8, 2e10, 4e8, 5e7
# Sweeps between two looks at the value, which has converged when it grows by less than such a part; and at most.
_SWEEPS, _CONVERGED, _MOST_SWEEPS = 10, 1e-5, 400
# More spins would take hundreds of megabytes, or over a second.
_MOST_SPINS = 4_000
# Cycles, pairs that are looked at to find them, and pairs for each spin of graphs in which those of four are used.
_MOST_CYCLES, _MOST_LOOKS, _SPARSE = 100_000, 2e8, 6
# Steps of the multipliers before the bound is computed, which doubles each time, the most, and the sweeps of a step.
_FIRST_STEPS, _MOST_STEPS, _SWEEPS_A_STEP = 50, 800, 2
# The length of steps, and after how many it is halved.
_STEP, _SHORTER = 0.5, 50
# Bounds that become better by less are not worth more steps.
_WORTH = 3e-4


class Semidefinite(Prover):
    """The semidefinite bound of terms whose maximum is that of the reduced problem, alone and with cycles."""

    by = "a semidefinite relaxation"

    def __init__(self, presolved: Presolved, terms: SpinTerms):
        super().__init__(presolved)
        self._terms, matrix = terms, matrix_of(terms)
        # A power of 2, so that nothing is rounded.
        self._scale = 2.0 ** math.ceil(math.log2(np.abs(matrix.data).max(initial=0) or 1.0))
        self._pairs, entries = pairs_of(matrix)
        self._given, self._shape = entries / self._scale, matrix.shape
        self._vectors = random_vectors(matrix.shape[0])
        # What is left to do, by its costs, and the work that was not spent yet.
        self._costs, self._work = self._run(), 0.0
        self._next = next(self._costs)

    def advance(self, work: float, best: float) -> bool:
        self._work += work
        while self._next <= self._work:
            self._work -= self._next
            following = next(self._costs, None)
            if following is None:
                return False
            self._next = following
        return True

    def _run(self) -> Iterator[float]:
        """Yields the nominal seconds of each part of the work before it is done."""
        size, pairs = self._shape[0], self._pairs
        sweep = (len(pairs.others) + size) / _ENTRIES_A_SECOND
        factorization = size**3 / 3 / _OPERATIONS_A_SECOND
        weights = self._given[pairs.numbers].astype(np.float32)
        value = 0.0
        for _ in range(_MOST_SWEEPS // _SWEEPS):
            yield _SWEEPS * sweep
            before, value = value, mixed(pairs, weights, self._vectors, _SWEEPS)
            if value - before <= _CONVERGED * value:
                break
        yield factorization
        most = self._certify(self._given, 0.0, 0.0)
        four = len(pairs.ends) <= _SPARSE * size
        search = looks(pairs, four)
        if search > _MOST_LOOKS:
            return
        yield 2 * search / _LOOKS_A_SECOND
        cycles = find(pairs, products(pairs, self._vectors), four, _MOST_CYCLES)
        if not len(cycles):
            return
        # Couplings of pairs, which have two entries in the matrix.
        multipliers = Multipliers(2 * self._given, cycles)
        step, steps = _SWEEPS_A_STEP * sweep + len(pairs.ends) / _ENTRIES_A_SECOND + len(cycles) / _CYCLES_A_SECOND, 0
        block = _FIRST_STEPS
        while steps < _MOST_STEPS:
            for _ in range(block):
                yield step
                multipliers.step(products(pairs, self._vectors), _STEP / (1 + steps / _SHORTER))
                weights[:] = multipliers.changed[pairs.numbers] / 2
                mixed(pairs, weights, self._vectors, _SWEEPS_A_STEP)
                steps += 1
            block = steps
            changed, constant, rounding = multipliers.exact()
            weights[:] = changed[pairs.numbers] / 2
            yield factorization + _SWEEPS * sweep
            mixed(pairs, weights, self._vectors, _SWEEPS)
            before, most = most, min(most, self._certify(changed / 2, constant, rounding))
            if before - most < _WORTH * abs(before - self._terms.constant):
                return

    def _certify(self, entries: Float64[np.ndarray, "M"], constant: float, rounding: float) -> float:
        """Takes the bound by C with some entries, plus a constant, which are scaled; returns it for the terms."""
        problem, pairs, scale = self.presolved.left, self._pairs, self._scale
        matrix = sparse.csr_array((entries[pairs.numbers], pairs.others, pairs.starts), self._shape)
        norms = np.linalg.norm(matrix @ self._vectors.astype(np.float64), axis=1)
        dual = scale * certified(matrix, norms)
        # Each of the terms, and the constant, is a sum of at most as many numbers as were given.
        of_terms = _SAFETY * _EPS * (self._shape[0] + problem.num_terms) * problem.magnitude()
        most = math.fsum([self._terms.constant, *dual.tolist(), scale * constant, scale * rounding, of_terms])
        bound = self.presolved.lifted_bound(most if problem.maximise else -most)
        better = min if problem.maximise else max
        self.bound = bound if self.bound is None else better(self.bound, bound)
        return most


def semidefinite_prover(presolved: Presolved) -> Prover | str:
    """Returns a prover of a problem `qubo`, `ising` or `maxcut`, or why there is none."""
    problem = presolved.left
    if problem.num_variables > _MOST_SPINS:
        return f"the semidefinite bound is for up to {_MOST_SPINS:,} variables"
    terms_of = terms_of_cut if KINDS[problem.kind].structure is Structure.CUT else terms_of_form
    return Semidefinite(presolved, terms_of(problem.source))
