"""Exact rules that remove spins from a quadratic function of spins that is maximised.

Fields are couplings to one spin more that is always 1, so that every term is k s_a s_b.

Dominant coupling: where |k_ij| is at least the sum of all other |k_il|, some best state has s_i = sign(k_ij) s_j,
since turning s_i loses nothing; i is merged into j. It covers every spin with one or two couplings, and where j is
the spin that is always 1, i is fixed: first-order persistency.

Star to triangle: the best s_i gives |k_ia s_a + k_ib s_b + k_ic s_c| with three couplings. That does not change when
all three turn, so it is a constant and couplings between the three, exactly.

Sources: Boros and Hammer, "Pseudo-Boolean optimization", 2002, for persistency; Liers, Juenger, Reinelt and Rinaldi,
"Computing exact ground states of hard Ising spin glass problems by branch-and-cut", 2004, for the rules on cuts.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sl_discs.reductions.spin_terms import SpinTerms

# Above these the tables in Python would take over a second to make or to work through.
_MOST_COUPLINGS, _MOST_LOOKS = 300_000, 3_000_000

FREE, PENDANT, FIXED, MERGED, STAR = "free", "pendant", "fixed", "merged", "star"


class Reduced(NamedTuple):
    """Terms after rules.

    Attributes:
      terms: of the spins that are left.
      kept: [n] which those are.
      lift: spins [n, B] of those to spins [N, B] of all.
      removed: number of spins that went by each rule.
      complete: whether the rules were applied until none applied.
    """

    terms: SpinTerms
    kept: np.ndarray
    lift: Callable[[np.ndarray], np.ndarray]
    removed: collections.Counter[str]
    complete: bool


def unreduced(terms: SpinTerms, complete: bool = True) -> Reduced:
    """The same terms."""
    return Reduced(terms, np.arange(len(terms.fields)), lambda spins: spins, collections.Counter(), complete)


def reduce_terms(terms: SpinTerms) -> Reduced:
    """Applies the rules until none applies; large problems to which some apply are left as they are."""
    if not _some_rule_applies(terms):
        return unreduced(terms)
    if len(terms.pairs) > _MOST_COUPLINGS:
        return unreduced(terms, complete=False)
    return _SpinGraph(terms).reduced()


def _some_rule_applies(terms: SpinTerms) -> bool:
    sizes = np.abs(terms.fields)
    degrees = (sizes > 0) + np.bincount(terms.pairs.ravel(), minlength=len(sizes))
    total, largest = sizes.copy(), sizes.copy()
    for ends in terms.pairs.T:
        np.add.at(total, ends, np.abs(terms.couplings))
        np.maximum.at(largest, ends, np.abs(terms.couplings))
    return bool(((degrees <= 3) | (2 * largest >= total)).any())


class _SpinGraph:
    """Couplings of every spin as a table, changed rule by rule."""

    def __init__(self, terms: SpinTerms):
        self._size = size = len(terms.fields)
        self._constant = terms.constant
        # The last one is the spin that is always 1.
        self._near: list[dict[int, float]] = [{} for _ in range(size + 1)]
        for (a, b), coupling in zip(terms.pairs.tolist(), terms.couplings.tolist(), strict=True):
            self._near[a][b] = self._near[b][a] = coupling
        for a in np.flatnonzero(terms.fields).tolist():
            self._near[a][size] = self._near[size][a] = float(terms.fields[a])
        self._left = np.ones(size, bool)
        # Of each spin that was removed: those that decide it, with their couplings.
        self._decided: list[tuple[int, list[int], list[float]]] = []
        self._removed: collections.Counter[str] = collections.Counter()

    def reduced(self) -> Reduced:
        near, looks = self._near, 0
        queue = dict.fromkeys(range(self._size))  # in order, and each once
        while queue and looks < _MOST_LOOKS:
            spin = next(iter(queue))
            del queue[spin]
            looks += len(near[spin])
            others = list(near[spin])
            if self._try(spin):
                queue.update((other, None) for other in others if other < self._size)
        return Reduced(self._terms(), np.flatnonzero(self._left), self._lifter(), self._removed, not queue)

    def _try(self, spin: int) -> bool:
        """Removes a spin if a rule applies; says whether."""
        couplings = self._near[spin]
        if not couplings:
            self._remove(spin, FREE)
            return True
        other = max(couplings, key=lambda one: abs(couplings[one]))
        largest = abs(couplings[other])
        if largest >= sum(map(abs, couplings.values())) - largest:
            self._merge(spin, other)
            return True
        if len(couplings) == 3:
            self._replace_star(spin)
            return True
        return False

    def _remove(self, spin: int, rule: str) -> dict[int, float]:
        """Takes a spin out, and returns its couplings, by whose sum it is decided."""
        couplings, self._near[spin] = self._near[spin], {}
        for other in couplings:
            del self._near[other][spin]
        self._left[spin] = False
        self._removed[rule] += 1
        return couplings

    def _decide(self, spin: int, couplings: dict[int, float]) -> None:
        self._decided.append((spin, list(couplings), list(couplings.values())))

    def _couple(self, a: int, b: int, coupling: float) -> None:
        total = self._near[a].get(b, 0.0) + coupling
        if total:
            self._near[a][b] = self._near[b][a] = total
        else:
            self._near[a].pop(b, None)
            self._near[b].pop(a, None)

    def _merge(self, spin: int, other: int) -> None:
        alone = len(self._near[spin]) == 1
        couplings = self._remove(spin, FIXED if other == self._size else PENDANT if alone else MERGED)
        coupling = couplings.pop(other)
        self._decide(spin, {other: coupling})
        self._constant += abs(coupling)
        for third, its in couplings.items():
            self._couple(other, third, its if coupling > 0 else -its)

    def _replace_star(self, spin: int) -> None:
        couplings = self._remove(spin, STAR)
        self._decide(spin, couplings)
        (a, b, c), (ka, kb, kc) = couplings, couplings.values()
        # What the best spin gives where the three agree, and where one of them differs.
        agree, a_differs, b_differs, c_differs = (
            abs(ka + kb + kc),
            abs(kb + kc - ka),
            abs(ka + kc - kb),
            abs(ka + kb - kc),
        )
        self._constant += (agree + a_differs + b_differs + c_differs) / 4
        self._couple(b, c, (agree + a_differs - b_differs - c_differs) / 4)
        self._couple(a, c, (agree + b_differs - a_differs - c_differs) / 4)
        self._couple(a, b, (agree + c_differs - a_differs - b_differs) / 4)

    def _terms(self) -> SpinTerms:
        kept = np.flatnonzero(self._left)
        place = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        listed = [
            (place[a], place[b], coupling)
            for a in place
            for b, coupling in self._near[a].items()
            if a < b < self._size
        ]
        fields = np.array([self._near[a].get(self._size, 0.0) for a in place], np.float64)
        pairs = np.array([ends for *ends, _ in listed], np.int32).reshape(-1, 2)
        return SpinTerms(fields, pairs, np.array([coupling for *_, coupling in listed], np.float64), self._constant)

    def _lifter(self) -> Callable[[np.ndarray], np.ndarray]:
        size, kept, decided = self._size, np.flatnonzero(self._left), self._decided

        def lift(spins):
            full = np.ones((size + 1, spins.shape[1]), np.int8)
            full[kept] = spins
            for spin, others, couplings in reversed(decided):
                if others:
                    full[spin] = np.where(np.array(couplings) @ full[others] >= 0, 1, -1)
            return full[:-1]

        return lift
