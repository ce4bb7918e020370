"""The semidefinite bound of quadratic functions of spins, by coordinate descent of low rank with a
certified dual.

A function constant + s'Cs of spins s, where fields are couplings to one spin more that is always 1,
is at most constant + sum z for every z with Diag(z) - C positive semidefinite: s'Cs <= s'Diag(z)s =
sum z. The best such z is the dual of the relaxation in which spins are unit vectors v_i. The mixing
method turns one vector after another into the direction of its field g_i = sum_j C_ij v_j, and
|g_i| tends to the best z.

z = |g| is not quite feasible, so it is stretched by a factor mu, which Lanczos' method estimates,
and then checked by a Cholesky factorization of M = S (Diag(z) - C) S, where S has powers of two
near z^(-1/2), so that M is exact. An estimate of the least eigenvalue, or its residual, would not
do, since another one may be smaller. A factorization in double precision that succeeds is that of M
+ E with |E| <= gamma trace(M) in the 2-norm, where gamma is about N times the unit roundoff (Rump
2006, "Verification of positive definiteness"). So what is factorized is M - theta, with theta well
above gamma trace(M): then M itself is positive semidefinite, whatever Lanczos' method said.

Sources: Goemans and Williamson 1995, "Improved approximation algorithms for maximum cut and
satisfiability problems using semidefinite programming"; Wang, Chang and Kolter 2017, "The mixing
method".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float32, Float64, Int32
from scipy import linalg, sparse
from threadpoolctl import ThreadpoolController

from sl_discs.engines.cpu.jit import REORDERED, entered, in_long_vectors, inlined
from sl_discs.instances.graph import Neighbours, neighbours_of
from sl_discs.models.terms import SpinForm
from sl_discs.problems.kind import KINDS
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import Worker

# Entries of a vector: two registers of 512 bits. More would hardly give better duals, which need
# not be optimal.
_RANK = 32
_EPS = float(np.finfo(np.float64).eps)
# Of the certificate: n and trace come with a factor for operations that libraries replace by two,
# such as divisions.
_SAFETY = 8
# By how much z is stretched beyond Lanczos' estimate, one after another until the certificate
# succeeds.
_MARGINS = 3e-4, 3e-3, 3e-2, 0.3
# Its relative error, and how often it begins again with the best vectors of twenty.
_LANCZOS_ERROR, _LANCZOS_RESTARTS = 1e-4, 30
# A dual is not below such a part of the sum of a row, so that no scale is out of range.
_LEAST = 1e-6


def pairs_of(spins: SpinForm) -> tuple[Neighbours, Float64[np.ndarray, "M"]]:
    """Returns the pairs of C, in which a last spin stands for 1 where there are fields, and its
    entries there.
    """
    size = spins.num_spins
    own = np.flatnonzero(spins.fields)
    ends = np.concatenate([spins.pairs, np.stack([own, np.full_like(own, size)], axis=1)]).astype(
        np.int32
    )
    return neighbours_of(size + bool(len(own)), ends), np.concatenate(
        [spins.couplings, spins.fields[own]]
    ) / 2


@inlined(fastmath=REORDERED)
def _turn(pairs, weights, vectors, field, i):
    """Turns a vector into the direction of its field, whose norm is returned."""
    for k in range(field.shape[0]):
        field[k] = 0
    for index in range(pairs.starts[i], pairs.starts[i + 1]):
        weight = weights[index]
        j = pairs.others[index]
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
    """Updates all vectors `sweeps` times, in place; returns the value of the relaxation, sum |g|.

    C has these weights at the entries of the pairs; `field` is working memory.
    """
    in_long_vectors()
    total = 0.0
    for _ in range(sweeps):
        total = 0.0
        for i in range(vectors.shape[0]):
            total += _turn(pairs, weights, vectors, field, i)
    return total


def certified(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """Returns a dual near a given one for which Diag(dual) - matrix surely is positive
    semidefinite.

    The matrix has zeros on its diagonal. By Gershgorin's circles, the sums of its absolute rows are
    such a dual; they are the result where stretching the given one does not help.
    """
    sums = np.asarray(abs(matrix).sum(axis=1)).reshape(-1)
    coupled = np.flatnonzero(sums)
    shift = np.zeros(len(dual))
    if len(coupled) == 0:
        return shift
    inside = matrix[coupled][:, coupled]
    sums = sums[coupled]
    dual = np.clip(dual[coupled], _LEAST * sums, sums)
    largest = _largest_eigenvalue(inside, dual)
    stretched = (dual * (largest + margin) for margin in _MARGINS)
    rounding = 1 + 4 * len(matrix.indices) * _EPS
    shift[coupled] = next(
        (candidate for candidate in stretched if _is_feasible(inside, candidate)), sums * rounding
    )
    return shift


def _largest_eigenvalue(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> float:
    """Estimates that of D^(-1/2) C D^(-1/2) with the dual D from below, as at least .5, by Lanczos'
    method.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    scale = sparse.diags_array(1 / np.sqrt(dual))
    begin = np.random.default_rng(0).normal(size=len(dual))
    try:
        eigenvalues = eigsh(
            scale @ matrix @ scale,
            1,
            which="LA",
            v0=begin,
            tol=_LANCZOS_ERROR,
            maxiter=_LANCZOS_RESTARTS,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence as error:
        eigenvalues = error.eigenvalues
    return max([0.5, *eigenvalues.tolist()])


def _is_feasible(matrix: sparse.csr_array, dual: Float64[np.ndarray, "n"]) -> bool:
    """Tells whether Diag(dual) - matrix is positive semidefinite; False also where rounding leaves
    it open.
    """
    size = len(dual)
    coordinates = matrix.tocoo()
    scale = 2.0 ** np.round(-np.log2(dual) / 2)
    diagonal = dual * scale * scale
    theta = _SAFETY * (size + _SAFETY) * _EPS * float(diagonal.sum())
    entries = np.zeros((size, size), order="F")
    entries[coordinates.row, coordinates.col] = (
        -coordinates.data * scale[coordinates.row] * scale[coordinates.col]
    )
    entries[np.arange(size), np.arange(size)] = diagonal - theta
    return bool(np.isfinite(entries).all()) and factorized(entries)


@functools.cache
def _blas() -> ThreadpoolController:
    """Returns the libraries of BLAS and LAPACK that are loaded with SciPy."""
    return ThreadpoolController()


def factorized(entries: Float64[np.ndarray, "n n"]) -> bool:
    """Tells whether a symmetric matrix in the order of Fortran has a Cholesky factor; overwrites
    it.

    LAPACK has one core: on all of them it takes many times as long where other work has them.
    """
    with _blas().limit(limits=1):
        try:
            linalg.cholesky(entries, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
    return True


# Inequalities of short cycles, which tighten the bound.
#
# Around a cycle of L spins the product of all s_a s_b is 1. So signs t of its pairs whose product
# is -1 do not all agree with them: sum t s_a s_b <= L - 2. With multipliers m >= 0 these are added
# to the function that is bounded: it is at most sum m (L - 2) plus the maximum of the function with
# couplings changed by -m t. Unit vectors that relax the spins violate some of them; multipliers
# grow with the violation and shrink with the slack, in steps that become shorter (Shor's
# subgradient method), and any multipliers give a bound. Triangles are used, and in sparse graphs
# cycles of four pairs; of many, those that are violated most.
#
# Sources: Barahona and Mahjoub 1986, "On the cut polytope"; Fischer, Gruber, Rendl and Sotirov
# 2006, "Computational experience with a bundle approach for semidefinite cutting plane relaxations
# of max-cut and equipartition".

# Bins of violations, of which the largest is below 2, for the choice of the most violated ones.
_BINS, _LARGEST = 256, 2.0
_NONE = -1


def find(
    pairs: Neighbours, values: Float32[np.ndarray, "M"], four: bool, most: int
) -> Int32[np.ndarray, "T 4"]:
    """Lists the pairs of triangles, whose last is -1, and cycles of four; of more than `most`, the
    most violated.
    """
    mark = np.full(len(pairs.starts) - 1, _NONE, np.int32)
    counts = np.zeros(_BINS, np.int64)
    count = _find(pairs, values, four, -1, mark, counts, np.empty((0, 4), np.int32))
    least = 0
    if count > most:
        # Bin 0 also has those that are not violated.
        fitting = np.flatnonzero(np.cumsum(counts[::-1])[::-1] <= most)
        least = int(fitting[0]) if len(fitting) else _BINS
        count = int(counts[least:].sum())
    cycles = np.empty((count, 4), np.int32)
    _find(pairs, values, four, least, mark, counts, cycles)
    return cycles


@inlined(fastmath=REORDERED)
def _product(vectors, a, b):
    total = np.float32(0)
    for k in range(vectors.shape[1]):
        total += vectors[a, k] * vectors[b, k]
    return total


@entered
def _multiply(ends, vectors, products):
    """Puts v_a v_b of each pair into `products`."""
    in_long_vectors()
    for k in range(ends.shape[0]):
        products[k] = _product(vectors, ends[k, 0], ends[k, 1])


@inlined
def _take(cycle, values, least, counts, cycles, count):
    """Counts a cycle, or puts it in its place where it is violated enough; the number of the next
    one.
    """
    total, product, smallest = 0.0, 1.0, 2.0
    for pair in cycle:
        if pair >= 0:
            value = values[pair]
            total += abs(value)
            product = product if value >= 0 else -product
            smallest = min(smallest, abs(value))
    # Signs of all values whose product is 1 violate nothing, so that of the smallest one is
    # changed.
    violation = total - (2 * smallest if product > 0 else 0.0) - (2.0 if cycle[3] >= 0 else 1.0)
    bin_index = min(max(int(violation * (_BINS / _LARGEST)), 0), _BINS - 1)
    if least < 0:
        counts[bin_index] += 1
    elif bin_index >= least:
        for k in range(4):
            cycles[count, k] = cycle[k]
    else:
        return count
    return count + 1


@entered
def _find(pairs, values, four, least, mark, counts, cycles):
    """Counts all cycles by violation where `least` is negative; lists those from this bin on
    otherwise.
    """
    starts = pairs.starts
    neighbours = pairs.others
    numbers = pairs.numbers
    total = 0
    for a in range(mark.shape[0]):
        for e in range(starts[a], starts[a + 1]):
            mark[neighbours[e]] = numbers[e]
        for e in range(starts[a], starts[a + 1]):
            b = neighbours[e]
            if b < a:
                continue
            for f in range(starts[b], starts[b + 1]):
                c = neighbours[f]
                if c > b and mark[c] >= 0:
                    total = _take(
                        (numbers[e], numbers[f], mark[c], np.int32(-1)),
                        values,
                        least,
                        counts,
                        cycles,
                        total,
                    )
                if four and c > a:
                    # From a by b to c, and back by d after b.
                    for g in range(starts[c], starts[c + 1]):
                        d = neighbours[g]
                        if d > b and mark[d] >= 0:
                            cycle = (numbers[e], numbers[f], numbers[g], mark[d])
                            total = _take(cycle, values, least, counts, cycles, total)
        for e in range(starts[a], starts[a + 1]):
            mark[neighbours[e]] = _NONE
    return total


class Multipliers:
    """Keeps the multipliers of T cycles, and the couplings that they change.

    Attributes:
      changed: [M] the couplings of pairs, less m t of all cycles; rounded.
    """

    def __init__(self, couplings: Float64[np.ndarray, "M"], cycles: Int32[np.ndarray, "T 4"]):
        self._given = couplings
        self._cycles = cycles
        self.changed = couplings.copy()
        self._values = np.zeros(len(cycles))
        self._signs = np.zeros((len(cycles), 4), np.int8)
        there = cycles >= 0
        length = there.sum(axis=1)
        self._constants = length - 2.0
        # How many cycles each pair is in: steps are shorter where many change a coupling together.
        self._uses = np.bincount(cycles[there], minlength=len(couplings))
        sizes, uses = (
            np.where(there, of[cycles], 0).sum(axis=1) / length
            for of in (np.abs(couplings), self._uses)
        )
        self._steps = sizes / np.sqrt(np.maximum(uses, 1))

    def step(self, values: Float32[np.ndarray, "M"], length: float) -> None:
        """Moves the multipliers by so much of a step along the violations at some products."""
        _step(self._cycles, values, length * self._steps, self._values, self._signs, self.changed)

    def exact(self) -> tuple[Float64[np.ndarray, "M"], float, float]:
        """Returns the changed couplings, sum m (L - 2), and a bound on the effect of rounding on
        any value.
        """
        there = self._cycles >= 0
        amounts = (self._signs * self._values[:, None])[there]
        changes = np.bincount(self._cycles[there], amounts, len(self._given))
        self.changed = self._given - changes
        total = np.abs(self._given).sum() + np.abs(amounts).sum()
        rounding = 4 * (int(self._uses.max(initial=0)) + 2) * _EPS * float(total)
        return self.changed, float((self._values * self._constants).sum()), rounding


@entered
def _step(cycles, values, steps, multipliers, signs, changed):
    for k in range(cycles.shape[0]):
        length = 4 if cycles[k, 3] >= 0 else 3
        if multipliers[k] == 0:
            # The signs that are violated most.
            product, smallest = 1, 0
            for j in range(length):
                value = values[cycles[k, j]]
                signs[k, j] = 1 if value >= 0 else -1
                product *= signs[k, j]
                if abs(value) < abs(values[cycles[k, smallest]]):
                    smallest = j
            if product > 0:
                signs[k, smallest] = -signs[k, smallest]
        violation = 2.0 - length
        for j in range(length):
            violation += signs[k, j] * values[cycles[k, j]]
        after = max(0.0, multipliers[k] + steps[k] * violation)
        change = after - multipliers[k]
        if change != 0:
            for j in range(length):
                changed[cycles[k, j]] -= change * signs[k, j]
            multipliers[k] = after


# Entries of vectors' fields that a core looks at in a second, operations of a factorization, pairs
# that are looked at for cycles, and cycles whose multipliers are moved.
_ENTRIES_A_SECOND, _OPERATIONS_A_SECOND, _LOOKS_A_SECOND, _CYCLES_A_SECOND = 2e8, 2e10, 4e8, 5e7
# Sweeps between two looks at the value, which has converged when it grows by less than such a part;
# and at most.
_SWEEPS, _CONVERGED, _MOST_SWEEPS = 10, 1e-5, 400
# More spins would take hundreds of megabytes, or over a second.
_MOST_SPINS = 4_000
# Cycles, pairs that are looked at to find them, and pairs for each spin of graphs in which those of
# four are used.
_MOST_CYCLES, _MOST_LOOKS, _SPARSE = 100_000, 2e8, 6
# Steps of the multipliers before the bound is computed, which doubles each time, the most, and the
# sweeps of a step.
_FIRST_STEPS, _MOST_STEPS, _SWEEPS_A_STEP = 50, 800, 2
# The length of steps, and after how many it is halved.
_STEP, _SHORTER = 0.5, 50
# Bounds that become better by less are not worth more steps.
_WORTH = 3e-4


class Semidefinite(Worker):
    """The semidefinite bound of terms whose maximum is that of the reduced problem, alone and with
    cycles.
    """

    by = "a semidefinite relaxation"

    def _run(self) -> Iterator[float]:
        problem = self.presolved.left
        to_spins = KINDS[problem.kind].to_spins
        assert to_spins is not None
        spins = to_spins(problem.source)
        pairs, values = pairs_of(spins)
        size = len(pairs.starts) - 1
        count = len(pairs.ends)
        # Unit vectors to begin with, always the same.
        vectors = np.random.default_rng(0).normal(size=(size, _RANK)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        # Each of the terms, and the constant, is a sum of at most as many numbers as were given.
        of_terms = _SAFETY * _EPS * (size + problem.num_terms) * problem.magnitude()

        def largest(couplings: Float64[np.ndarray, "M"], constant: float, rounding: float) -> float:
            """Returns a bound on the terms by some couplings, plus a constant."""
            changed = pairs.matrix(couplings)
            norms = np.linalg.norm(changed @ vectors.astype(np.float64), axis=1)
            dual = certified(changed, norms)
            return math.fsum([spins.constant, *dual.tolist(), constant, rounding, of_terms])

        def take(most: float) -> None:
            self.bound = self.presolved.lifted_bound(most if problem.maximise else -most)

        sweep = (len(pairs.others) + size) / _ENTRIES_A_SECOND
        factorization = size**3 / 3 / _OPERATIONS_A_SECOND
        weights = values[pairs.numbers].astype(np.float32)
        value = 0.0
        field = np.zeros(_RANK, np.float32)
        for _ in range(_MOST_SWEEPS // _SWEEPS):
            yield _SWEEPS * sweep
            before = value
            value = _mix(pairs, weights, vectors, field, _SWEEPS)
            if value - before <= _CONVERGED * value:
                break
        yield factorization
        most = largest(values, 0.0, 0.0)
        take(most)
        # Ends of pairs that are looked at to find the triangles, and also the cycles of four.
        four = count <= _SPARSE * size
        near = np.diff(pairs.starts).astype(np.float64)[pairs.ends]
        looks = float(near.sum() + (near.prod(axis=1) * near.max(axis=1)).sum() * four)
        if looks > _MOST_LOOKS:
            return
        yield 2 * looks / _LOOKS_A_SECOND
        along = np.zeros(count, np.float32)
        _multiply(pairs.ends, vectors, along)
        cycles = find(pairs, along, four, _MOST_CYCLES)
        if not len(cycles):
            return
        # Couplings of pairs, which have two entries in the matrix.
        multipliers = Multipliers(2 * values, cycles)
        step = _SWEEPS_A_STEP * sweep + count / _ENTRIES_A_SECOND + len(cycles) / _CYCLES_A_SECOND
        steps = 0
        block = _FIRST_STEPS
        while steps < _MOST_STEPS:
            for _ in range(block):
                yield step
                _multiply(pairs.ends, vectors, along)
                multipliers.step(along, _STEP / (1 + steps / _SHORTER))
                weights[:] = multipliers.changed[pairs.numbers] / 2
                _mix(pairs, weights, vectors, field, _SWEEPS_A_STEP)
                steps += 1
            block = steps
            changed, constant, rounding = multipliers.exact()
            weights[:] = changed[pairs.numbers] / 2
            yield factorization + _SWEEPS * sweep
            _mix(pairs, weights, vectors, field, _SWEEPS)
            before = most
            most = min(most, largest(changed / 2, constant, rounding))
            take(most)
            if before - most < _WORTH * abs(before - spins.constant):
                return


def semidefinite_prover(presolved: Presolved) -> Worker | str:
    """Returns a prover of a problem `qubo`, `ising` or `maxcut`, or why there is none."""
    if presolved.left.num_variables > _MOST_SPINS:
        return f"the semidefinite bound is for up to {_MOST_SPINS:,} variables"
    return Semidefinite(presolved)
