"""Forms and cuts, reduced by rules on spins."""

from __future__ import annotations

import collections
import dataclasses
import time

import numpy as np
from jaxtyping import Int

from sl_discs.models.terms import SpinForm
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.solving.presolved import Presolved, part_of, unreduced

# Exact rules that remove spins from a quadratic function of spins that is maximised.
#
# Fields are couplings to one spin more that is always 1, so that every term is k s_a s_b.
#
# Dominant coupling: where |k_ij| is at least the sum of all other |k_il|, some best state has s_i =
# sign(k_ij) s_j, since turning s_i loses nothing; i is merged into j. It covers every spin with one
# or two couplings, and where j is the spin that is always 1, i is fixed: first-order persistency.
#
# Star to triangle: the best s_i gives |k_ia s_a + k_ib s_b + k_ic s_c| with three couplings. That
# does not change when all three turn, so it is a constant and couplings between the three, exactly.
#
# Sources: Boros and Hammer, "Pseudo-Boolean optimization", 2002, for persistency; Liers, Juenger,
# Reinelt and Rinaldi, "Computing exact ground states of hard Ising spin glass problems by
# branch-and-cut", 2004, for the rules on cuts.

# Above these the tables in Python would take over a second to make or to work through.
_MOST_IN_RULES, _MOST_LOOKS = 300_000, 3_000_000
# Seconds for each pair to make a function of spins, and to make tables.
_FORM_S, _PAIR_S = 5e-8, 4e-6
# With more couplings than this roof duality takes over 0.2 s; seconds for each of them.
_MOST_IN_ROOF_DUALITY, _ROOF_PAIR_S = 10**6, 2e-7

FREE, FIXED, MERGED, STAR = "free", "fixed", "merged", "star"
ROOF = "roof duality"


class _Spins:
    """A function of spins that are removed one after another; what is left keeps its numbers.

    Attributes:
      form: the function of the spins that are left.
    """

    def __init__(self, problem: Problem):
        self._problem = problem
        self._kind = KINDS[problem.kind]
        assert self._kind.to_spins is not None
        self.form = self._kind.to_spins(problem.source)
        self._size = size = self.form.num_spins
        self._left = np.ones(size, bool)
        self._removed = collections.Counter[str]()
        # The values of spins that are fixed, and of the one that is always 1.
        self._values = np.ones(size + 1, np.int8)
        # Of each other spin that was removed: those that decide it, with their couplings.
        self._decided: list[tuple[int, list[int], list[float]]] = []

    def fix_by_roof_duality(self, seconds: float) -> None:
        """Fixes spins whose values in all best states follow from a maximum flow.

        It is computed by D-Wave's `dwave-preprocessing`, where that is installed (extra
        `presolve`). Without fields every state is as good as its opposite, and no spin can be
        fixed.

        Source: Boros, Hammer, Tavares, "Preprocessing of unconstrained quadratic binary
          optimization", 2006.
        """
        fields = self.form.fields
        pairs = self.form.pairs
        couplings = self.form.couplings
        most = min(_MOST_IN_ROOF_DUALITY, seconds / _ROOF_PAIR_S)
        if not fields.any() or len(pairs) > most:
            return
        try:
            from dimod import SPIN, BinaryQuadraticModel
            from dwave.preprocessing import roof_duality
        except ImportError:
            return
        order = range(self._size)
        model = BinaryQuadraticModel.from_numpy_vectors(
            -fields, (*pairs.T, -couplings), 0.0, SPIN, variable_order=order
        )
        # strict=True fixes the spins that agree in all best states. False should fix more, as in
        # some best state, but version 0.6.11 minimises s_0 s_2 + s_1 with it by s_0 = s_2.
        _, fixed = roof_duality(model, strict=True)
        if not fixed:
            return
        spins = np.array(list(fixed), np.int64)
        full = np.zeros(self._size, np.int8)
        self._values[spins] = full[spins] = list(fixed.values())
        self._left[spins], self._removed[ROOF] = False, len(spins)
        products = full[pairs[:, 0]] * full[pairs[:, 1]]
        constant = self.form.constant + float(fields @ full) + float(couplings @ products)
        fields = fields.copy()
        for ends, heads in (pairs.T, pairs.T[::-1]):
            np.add.at(fields, ends, couplings * full[heads])
        fields[spins] = 0
        both = self._left[pairs].all(axis=1)
        self.form = SpinForm(fields, pairs[both], couplings[both], constant)

    def _candidates(self) -> Int[np.ndarray, "C"]:
        """Returns the spins to which a rule applies."""
        fields = self.form.fields
        pairs = self.form.pairs
        couplings = self.form.couplings
        sizes = np.abs(fields)
        degrees = (sizes > 0) + np.bincount(pairs.ravel(), minlength=self._size)
        total = sizes.copy()
        largest = sizes.copy()
        for ends in pairs.T:
            np.add.at(total, ends, np.abs(couplings))
            np.maximum.at(largest, ends, np.abs(couplings))
        return np.flatnonzero(self._left & ((degrees <= 3) | (2 * largest >= total)))

    def apply_rules(self, end: float) -> None:
        """Applies the rules until none applies, or the time is `end`; large problems to which some
        apply are left as they are.
        """
        fields = self.form.fields
        pairs = self.form.pairs
        couplings = self.form.couplings
        size = self._size
        queue = dict.fromkeys(self._candidates().tolist())  # in order, and each once
        if not queue:
            return
        if len(pairs) > min(_MOST_IN_RULES, (end - time.perf_counter()) / _PAIR_S):
            return
        self._constant = self.form.constant
        # The couplings of every spin, of which the last one is always 1.
        self._near: list[dict[int, float]] = [{} for _ in range(size + 1)]
        for (a, b), coupling in zip(pairs.tolist(), couplings.tolist(), strict=True):
            self._near[a][b] = self._near[b][a] = coupling
        for a in np.flatnonzero(fields).tolist():
            self._near[a][size] = self._near[size][a] = float(fields[a])
        looks = 0
        while queue and looks < _MOST_LOOKS and time.perf_counter() < end:
            spin = next(iter(queue))
            del queue[spin]
            looks += len(self._near[spin])
            neighbours = list(self._near[spin])
            if self._try(spin):
                queue.update((neighbour, None) for neighbour in neighbours if neighbour < size)
        listed = [(a, b, k) for a in range(size) for b, k in self._near[a].items() if a < b < size]
        self.form = SpinForm(
            np.array([self._near[a].get(size, 0.0) for a in range(size)]),
            np.array([ends for *ends, _ in listed], np.int32).reshape(-1, 2),
            np.array([coupling for *_, coupling in listed], np.float64),
            self._constant,
        )

    def _try(self, spin: int) -> bool:
        """Removes a spin if a rule applies; says whether."""
        couplings = self._near[spin]
        if not couplings:
            self._remove(spin, FREE)
            return True
        strongest = max(couplings, key=lambda neighbour: abs(couplings[neighbour]))
        largest = abs(couplings[strongest])
        if largest >= sum(map(abs, couplings.values())) - largest:
            self._merge(spin, strongest)
            return True
        if len(couplings) == 3:
            self._replace_star(spin)
            return True
        return False

    def _remove(self, spin: int, rule: str) -> dict[int, float]:
        """Takes a spin out, and returns its couplings."""
        couplings = self._near[spin]
        self._near[spin] = {}
        for neighbour in couplings:
            del self._near[neighbour][spin]
        self._left[spin] = False
        self._removed[rule] += 1
        return couplings

    def _couple(self, a: int, b: int, coupling: float) -> None:
        total = self._near[a].get(b, 0.0) + coupling
        if total:
            self._near[a][b] = self._near[b][a] = total
        else:
            self._near[a].pop(b, None)
            self._near[b].pop(a, None)

    def _merge(self, spin: int, partner: int) -> None:
        couplings = self._remove(spin, FIXED if partner == self._size else MERGED)
        coupling = couplings.pop(partner)
        self._decided.append((spin, [partner], [coupling]))
        self._constant += abs(coupling)
        for third, its in couplings.items():
            self._couple(partner, third, its if coupling > 0 else -its)

    def _replace_star(self, spin: int) -> None:
        couplings = self._remove(spin, STAR)
        self._decided.append((spin, list(couplings), list(couplings.values())))
        (a, b, c) = couplings
        (ka, kb, kc) = couplings.values()
        # What the best spin gives where the three agree, and where one of them differs.
        agree = abs(ka + kb + kc)
        of_a = abs(kb + kc - ka)
        of_b = abs(ka + kc - kb)
        of_c = abs(ka + kb - kc)
        self._constant += (agree + of_a + of_b + of_c) / 4
        self._couple(b, c, (agree + of_a - of_b - of_c) / 4)
        self._couple(a, c, (agree + of_b - of_a - of_c) / 4)
        self._couple(a, b, (agree + of_c - of_a - of_b) / 4)

    def presolved(self) -> Presolved:
        """Returns what is left of the problem."""
        problem = self._problem
        kept = np.flatnonzero(self._left)
        values = self._values
        decided = self._decided
        if len(kept) == self._size:
            return unreduced(problem)
        left = None
        constant = self.form.constant if problem.maximise else -self.form.constant
        if len(kept):
            position = (np.cumsum(self._left) - 1).astype(np.int32)
            form = dataclasses.replace(
                self.form, fields=self.form.fields[kept], pairs=position[self.form.pairs]
            )
            assert self._kind.from_spins is not None
            source, constant = self._kind.from_spins(form, problem.source)
            left = part_of(problem, kept, source)

        def lift(states):
            full = np.repeat(values[:, None], len(states), axis=1)
            full[kept] = 2 * states.T - 1
            for spin, neighbours, couplings in reversed(decided):
                full[spin] = np.where(np.array(couplings) @ full[neighbours] >= 0, 1, -1)
            return (full[:-1].T > 0).astype(np.int8)

        return dataclasses.replace(
            unreduced(problem),
            problem=left,
            kept=kept,
            constant=float(constant),
            removed=dict(self._removed),
            _lift=lift,
        )


def reduce_spins(problem: Problem, seconds: float) -> Presolved:
    """Reduces a problem whose value is a function of spins, `qubo`, `ising` or `maxcut`.

    What is left of a form has the constant in its offset; weights of what is left of a graph can be
    fractions and of either sign.
    """
    if problem.num_terms * _FORM_S > seconds:
        return unreduced(problem)
    end = time.perf_counter() + seconds
    spins = _Spins(problem)
    spins.fix_by_roof_duality(seconds)
    spins.apply_rules(end)
    return spins.presolved()
