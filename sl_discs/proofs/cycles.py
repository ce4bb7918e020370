"""Inequalities of short cycles, which tighten the semidefinite bound.

Around a cycle of L spins the product of all s_a s_b is 1. So signs t of its pairs whose product is -1 do not all
agree with them: sum t s_a s_b <= L - 2. With multipliers m >= 0 these are added to the function that is bounded: it
is at most sum m (L - 2) plus the maximum of the function with couplings changed by -m t. Unit vectors that relax the
spins violate some of them; multipliers grow with the violation and shrink with the slack, in steps that become
shorter (Shor's subgradient method), and any multipliers give a bound.

Triangles are used, and in sparse graphs cycles of four pairs; of many, those that are violated most.

Sources: Barahona and Mahjoub 1986, "On the cut polytope"; Fischer, Gruber, Rendl and Sotirov 2006, "Computational
experience with a bundle approach for semidefinite cutting plane relaxations of max-cut and equipartition".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32
from scipy import sparse

from sl_discs.engines.cpu.jit import REORDERED, entered, in_long_vectors, inlined

# Bins of violations, of which the largest is below 2, for the choice of the most violated ones.
_BINS, _LARGEST = 256, 2.0
_NONE = -1


class Pairs(NamedTuple):
    """The pairs of a symmetric matrix, which has them by rows.

    Attributes:
      starts: [n + 1] where each row begins.
      others: [2 M] the other spin of each entry, in order.
      numbers: [2 M] the pair of each entry.
      ends: [M, 2] the spins of each pair.
    """

    starts: Int32[np.ndarray, "n1"]
    others: Int32[np.ndarray, "M2"]
    numbers: Int32[np.ndarray, "M2"]
    ends: Int32[np.ndarray, "M 2"]


def pairs_of(matrix: sparse.csr_array) -> tuple[Pairs, Float64[np.ndarray, "M"]]:
    """The pairs of a symmetric matrix without a diagonal, and its entries there."""
    upper = sparse.triu(matrix, 1).tocoo()
    ends, numbers = np.stack([upper.row, upper.col], axis=1).astype(np.int32), np.arange(1, upper.nnz + 1)
    numbered = sparse.csr_array((numbers, tuple(ends.T)), matrix.shape)
    rows = (numbered + numbered.T).tocsr()
    rows.sort_indices()
    starts, others = rows.indptr.astype(np.int32), rows.indices.astype(np.int32)
    return Pairs(starts, others, (rows.data - 1).astype(np.int32), ends), upper.data


def products(pairs: Pairs, vectors: Float32[np.ndarray, "n R"]) -> Float32[np.ndarray, "M"]:
    """v_a v_b of each pair."""
    found = np.zeros(len(pairs.ends), np.float32)
    _multiply(pairs.ends, vectors, found)
    return found


def looks(pairs: Pairs, four: bool) -> float:
    """How many ends of pairs are looked at to find the triangles, and also the cycles of four."""
    degrees = np.diff(pairs.starts).astype(np.float64)
    near = degrees[pairs.ends]
    return float(near.sum() + (near.prod(axis=1) * near.max(axis=1)).sum() * four)


def find(pairs: Pairs, values: Float32[np.ndarray, "M"], four: bool, most: int) -> Int32[np.ndarray, "T 4"]:
    """The pairs of triangles, whose last is -1, and of cycles of four; of more than `most`, the most violated."""
    mark, counts = np.full(len(pairs.starts) - 1, _NONE, np.int32), np.zeros(_BINS, np.int64)
    number = _find(pairs, values, four, -1, mark, counts, np.empty((0, 4), np.int32))
    least = 0
    if number > most:
        # Bin 0 also has those that are not violated.
        fitting = np.flatnonzero(np.cumsum(counts[::-1])[::-1] <= most)
        least = int(fitting[0]) if len(fitting) else _BINS
        number = int(counts[least:].sum())
    found = np.empty((number, 4), np.int32)
    _find(pairs, values, four, least, mark, counts, found)
    return found


@inlined(fastmath=REORDERED)
def _product(vectors, a, b):
    total = np.float32(0)
    for k in range(vectors.shape[1]):
        total += vectors[a, k] * vectors[b, k]
    return total


@entered
def _multiply(ends, vectors, found):
    in_long_vectors()
    for number in range(ends.shape[0]):
        found[number] = _product(vectors, ends[number, 0], ends[number, 1])


@inlined
def _take(cycle, values, least, counts, found, number):
    """Counts a cycle, or puts it in its place where it is violated enough; the number of the next one."""
    total, product, smallest = 0.0, 1.0, 2.0
    for pair in cycle:
        if pair >= 0:
            value = values[pair]
            total += abs(value)
            product = product if value >= 0 else -product
            smallest = min(smallest, abs(value))
    # Signs of all values whose product is 1 violate nothing, so that of the smallest one is changed.
    violation = total - (2 * smallest if product > 0 else 0.0) - (2.0 if cycle[3] >= 0 else 1.0)
    place = min(max(int(violation * (_BINS / _LARGEST)), 0), _BINS - 1)
    if least < 0:
        counts[place] += 1
    elif place >= least:
        for k in range(4):
            found[number, k] = cycle[k]
    else:
        return number
    return number + 1


@entered
def _find(pairs, values, four, least, mark, counts, found):
    """Counts all cycles by violation where `least` is negative; lists those from this bin on otherwise."""
    starts, others, numbers = pairs.starts, pairs.others, pairs.numbers
    total = 0
    for a in range(mark.shape[0]):
        for e in range(starts[a], starts[a + 1]):
            mark[others[e]] = numbers[e]
        for e in range(starts[a], starts[a + 1]):
            b = others[e]
            if b < a:
                continue
            for f in range(starts[b], starts[b + 1]):
                c = others[f]
                if c > b and mark[c] >= 0:
                    total = _take(
                        (numbers[e], numbers[f], mark[c], np.int32(-1)), values, least, counts, found, total
                    )
                if four and c > a:
                    # From a by b to c, and back by d after b.
                    for g in range(starts[c], starts[c + 1]):
                        d = others[g]
                        if d > b and mark[d] >= 0:
                            cycle = (numbers[e], numbers[f], numbers[g], mark[d])
                            total = _take(cycle, values, least, counts, found, total)
        for e in range(starts[a], starts[a + 1]):
            mark[others[e]] = _NONE
    return total


class Multipliers:
    """Keeps the multipliers of T cycles, and the couplings that they change.

    Attributes:
      changed: [M] the couplings of pairs, less m t of all cycles; rounded.
    """

    def __init__(self, couplings: Float64[np.ndarray, "M"], cycles: Int32[np.ndarray, "T 4"]):
        self._given, self._cycles, self.changed = couplings, cycles, couplings.copy()
        self._values, self._signs = np.zeros(len(cycles)), np.zeros((len(cycles), 4), np.int8)
        there = cycles >= 0
        length = there.sum(axis=1)
        self._constants = length - 2.0
        # How many cycles each pair is in: steps are shorter where many change a coupling together.
        self._uses = np.bincount(cycles[there], minlength=len(couplings))
        sizes, uses = (np.where(there, of[cycles], 0).sum(axis=1) / length for of in (np.abs(couplings), self._uses))
        self._steps = sizes / np.sqrt(np.maximum(uses, 1))

    def step(self, values: Float32[np.ndarray, "M"], length: float) -> None:
        """Moves the multipliers by so much of a step along the violations at some products."""
        _step(self._cycles, values, length * self._steps, self._values, self._signs, self.changed)

    def exact(self) -> tuple[Float64[np.ndarray, "M"], float, float]:
        """The changed couplings, sum m (L - 2), and a bound on the effect of rounding in both on any value."""
        there = self._cycles >= 0
        amounts = (self._signs * self._values[:, None])[there]
        changes = np.bincount(self._cycles[there], amounts, len(self._given))
        self.changed = self._given - changes
        total = np.abs(self._given).sum() + np.abs(amounts).sum()
        rounding = 4 * (int(self._uses.max(initial=0)) + 2) * float(np.finfo(np.float64).eps) * float(total)
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
