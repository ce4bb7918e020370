"""Forms and cuts, reduced by rules on spins."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.models.terms import merged_pairs
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import Presolved, ends_at, part_of, unreduced

# Forms and cuts as functions of spins to be maximised, which is how they are reduced.


class SpinTerms(NamedTuple):
    """constant + sum fields_i s_i + sum couplings_k s_a s_b over the pairs a < b, each once; no coupling is 0."""

    fields: Float64[np.ndarray, "N"]
    pairs: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    constant: float


def terms_of_form(form: QuadraticForm) -> SpinTerms:
    """Returns the terms of a form, those of its negative where it is minimised."""
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs.T
    own = first == second
    pairs, couplings = merged_pairs(form.num_variables, form.pairs[~own], sign * form.couplings[~own])
    fields, constant = sign * form.linear, sign * form.offset
    if form.spins:
        return SpinTerms(fields, pairs, couplings, constant + sign * float(form.couplings[own].sum()))
    # x = (1 + s) / 2.
    np.add.at(fields, first[own], sign * form.couplings[own])
    couplings = couplings / 4
    fields, constant = fields / 2, constant + float(fields.sum() / 2 + couplings.sum())
    for ends in pairs.T:
        np.add.at(fields, ends, couplings)
    return SpinTerms(fields, pairs, couplings, constant)


def form_of_terms(terms: SpinTerms, like: QuadraticForm) -> QuadraticForm:
    """Returns the form with these terms, of the sense and the kind of variables that another has."""
    sign = 1.0 if like.maximise else -1.0
    linear, couplings, offset = sign * terms.fields, sign * terms.couplings, sign * terms.constant
    if not like.spins:
        offset += float(couplings.sum() - linear.sum())
        linear *= 2
        for ends in terms.pairs.T:
            np.add.at(linear, ends, -2 * couplings)
        couplings = 4 * couplings
    return QuadraticForm.from_arrays(
        like.name, linear, terms.pairs, couplings, offset, spins=like.spins, maximise=like.maximise
    )


def terms_of_cut(graph: Graph) -> SpinTerms:
    """Returns the terms of the weight of a cut: an edge counts where (1 - s_u s_v) / 2 is 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    pairs, couplings = merged_pairs(graph.num_nodes, graph.edges, -weights / 2)
    return SpinTerms(np.zeros(graph.num_nodes), pairs, couplings, float(weights.sum() / 2))


def cut_of_terms(terms: SpinTerms, name: str) -> tuple[Graph, float]:
    """Returns the graph whose cuts have these terms, which have no fields, and what the terms are larger by."""
    weights = -2 * terms.couplings
    graph = Graph.from_arrays(name, len(terms.fields), terms.pairs, None if (weights == 1).all() else weights)
    return graph, terms.constant - float(weights.sum() / 2)


# Exact rules that remove spins from a quadratic function of spins that is maximised.
#
# Fields are couplings to one spin more that is always 1, so that every term is k s_a s_b.
#
# Dominant coupling: where |k_ij| is at least the sum of all other |k_il|, some best state has s_i = sign(k_ij) s_j,
# since turning s_i loses nothing; i is merged into j. It covers every spin with one or two couplings, and where j is
# the spin that is always 1, i is fixed: first-order persistency.
#
# Star to triangle: the best s_i gives |k_ia s_a + k_ib s_b + k_ic s_c| with three couplings. That does not change
# when all three turn, so it is a constant and couplings between the three, exactly.
#
# Sources: Boros and Hammer, "Pseudo-Boolean optimization", 2002, for persistency; Liers, Juenger, Reinelt and
# Rinaldi, "Computing exact ground states of hard Ising spin glass problems by branch-and-cut", 2004, for the rules on
# cuts.

# Above these the tables in Python would take over a second to make or to work through.
_MOST_IN_RULES, _MOST_LOOKS = 300_000, 3_000_000
# Seconds for each pair to make them, and for each coupling that is looked at.
_PAIR_S, _LOOK_S = 4e-6, 5e-6
# With more couplings than this roof duality takes over 0.2 s.
_MOST_IN_ROOF_DUALITY = 10**6

FREE, PENDANT, FIXED, MERGED, STAR = "free", "pendant", "fixed", "merged", "star"
ROOF = "roof duality"


class _Spins:
    """Terms of spins that are removed one after another; what is left keeps its numbers.

    Attributes:
      terms: of the spins that are left.
      complete: whether no rule applies any more.
    """

    def __init__(self, terms: SpinTerms):
        self.terms, self.complete = terms, True
        self._size = size = len(terms.fields)
        self._left, self._removed = np.ones(size, bool), collections.Counter[str]()
        # The values of spins that are fixed, and of the one that is always 1.
        self._values = np.ones(size + 1, np.int8)
        # Of each other spin that was removed: those that decide it, with their couplings.
        self._decided: list[tuple[int, list[int], list[float]]] = []

    def fix_by_roof_duality(self) -> None:
        """Fixes spins whose values in all best states follow from a maximum flow.

        It is computed by D-Wave's `dwave-preprocessing`, where that is installed (extra `presolve`). Without fields
        every state is as good as its opposite, and no spin can be fixed.

        Source: Boros, Hammer, Tavares, "Preprocessing of unconstrained quadratic binary optimization", 2006.
        """
        fields, pairs, couplings, constant = self.terms
        if not fields.any():
            return
        if len(pairs) > _MOST_IN_ROOF_DUALITY:
            self.complete = False
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
        # strict=True fixes the spins that agree in all best states. False should fix more, as in some best state, but
        # version 0.6.11 minimises s_0 s_2 + s_1 with it by s_0 = s_2.
        _, fixed = roof_duality(model, strict=True)
        if not fixed:
            return
        spins, full = np.array(list(fixed), np.int64), np.zeros(self._size, np.int8)
        self._values[spins] = full[spins] = list(fixed.values())
        self._left[spins], self._removed[ROOF] = False, len(spins)
        constant = constant + float(fields @ full) + float(couplings @ (full[pairs[:, 0]] * full[pairs[:, 1]]))
        fields = fields.copy()
        for ends, others in (pairs.T, pairs.T[::-1]):
            np.add.at(fields, ends, couplings * full[others])
        fields[spins] = 0
        both = self._left[pairs].all(axis=1)
        self.terms = SpinTerms(fields, pairs[both], couplings[both], constant)

    def _candidates(self) -> Int[np.ndarray, "C"]:
        """Returns the spins to which a rule applies."""
        fields, pairs, couplings, _ = self.terms
        sizes = np.abs(fields)
        degrees = (sizes > 0) + np.bincount(pairs.ravel(), minlength=self._size)
        total, largest = sizes.copy(), sizes.copy()
        for ends in pairs.T:
            np.add.at(total, ends, np.abs(couplings))
            np.maximum.at(largest, ends, np.abs(couplings))
        return np.flatnonzero(self._left & ((degrees <= 3) | (2 * largest >= total)))

    def apply_rules(self, seconds: float) -> None:
        """Applies the rules until none applies; large problems to which some apply are left as they are."""
        (fields, pairs, couplings, self._constant), size = self.terms, self._size
        queue = dict.fromkeys(self._candidates().tolist())  # in order, and each once
        if not queue:
            return
        end = ends_at(seconds)
        seconds -= len(pairs) * _PAIR_S
        if len(pairs) > _MOST_IN_RULES or seconds <= 0:
            self.complete = False
            return
        # The couplings of every spin, of which the last one is always 1.
        self._near: list[dict[int, float]] = [{} for _ in range(size + 1)]
        for (a, b), coupling in zip(pairs.tolist(), couplings.tolist(), strict=True):
            self._near[a][b] = self._near[b][a] = coupling
        for a in np.flatnonzero(fields).tolist():
            self._near[a][size] = self._near[size][a] = float(fields[a])
        looks, most_looks = 0, min(_MOST_LOOKS, seconds / _LOOK_S)
        while queue and looks < most_looks and time.perf_counter() < end:
            spin = next(iter(queue))
            del queue[spin]
            looks += len(self._near[spin])
            others = list(self._near[spin])
            if self._try(spin):
                queue.update((other, None) for other in others if other < size)
        self.complete &= not queue
        listed = [(a, b, k) for a in range(size) for b, k in self._near[a].items() if a < b < size]
        self.terms = SpinTerms(
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
        """Takes a spin out, and returns its couplings."""
        couplings, self._near[spin] = self._near[spin], {}
        for other in couplings:
            del self._near[other][spin]
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

    def _merge(self, spin: int, other: int) -> None:
        alone = len(self._near[spin]) == 1
        couplings = self._remove(spin, FIXED if other == self._size else PENDANT if alone else MERGED)
        coupling = couplings.pop(other)
        self._decided.append((spin, [other], [coupling]))
        self._constant += abs(coupling)
        for third, its in couplings.items():
            self._couple(other, third, its if coupling > 0 else -its)

    def _replace_star(self, spin: int) -> None:
        couplings = self._remove(spin, STAR)
        self._decided.append((spin, list(couplings), list(couplings.values())))
        (a, b, c), (ka, kb, kc) = couplings, couplings.values()
        # What the best spin gives where the three agree, and where one of them differs.
        agree, of_a, of_b, of_c = abs(ka + kb + kc), abs(kb + kc - ka), abs(ka + kc - kb), abs(ka + kb - kc)
        self._constant += (agree + of_a + of_b + of_c) / 4
        self._couple(b, c, (agree + of_a - of_b - of_c) / 4)
        self._couple(a, c, (agree + of_b - of_a - of_c) / 4)
        self._couple(a, b, (agree + of_c - of_a - of_b) / 4)

    def presolved(
        self, problem: Problem, source_of: Callable[[SpinTerms], tuple[QuadraticForm | Graph, float]]
    ) -> Presolved:
        """Returns what is left of a problem, with the source of its terms, and what their values are larger by."""
        kept, values, decided = np.flatnonzero(self._left), self._values, self._decided
        if len(kept) == self._size:
            return unreduced(problem, self.complete)
        left, constant = None, self.terms.constant if problem.maximise else -self.terms.constant
        if len(kept):
            place = (np.cumsum(self._left) - 1).astype(np.int32)
            terms = self.terms._replace(fields=self.terms.fields[kept], pairs=place[self.terms.pairs])
            source, constant = source_of(terms)
            left = part_of(problem, kept, source)

        def lift(states):
            full = np.repeat(values[:, None], len(states), axis=1)
            full[kept] = 2 * states.T - 1
            for spin, others, couplings in reversed(decided):
                full[spin] = np.where(np.array(couplings) @ full[others] >= 0, 1, -1)
            return (full[:-1].T > 0).astype(np.int8)

        return dataclasses.replace(
            unreduced(problem, self.complete),
            problem=left,
            kept=kept,
            constant=float(constant),
            removed=dict(self._removed),
            _lift=lift,
        )


def reduce_form(problem: Problem[QuadraticForm], seconds: float) -> Presolved:
    """Reduces a problem `qubo` or `ising`; what is left has the constant in its offset."""
    spins = _Spins(terms_of_form(problem.source))
    spins.fix_by_roof_duality()
    spins.apply_rules(seconds)
    return spins.presolved(problem, lambda terms: (form_of_terms(terms, problem.source), 0.0))


def reduce_maxcut(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxcut`; the weights of what is left can be fractions and of either sign."""
    spins = _Spins(terms_of_cut(problem.source))
    spins.apply_rules(seconds)
    return spins.presolved(problem, lambda terms: cut_of_terms(terms, problem.source.name))
