"""Forms and cuts, reduced by rules on spins."""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.models.terms import merged_pairs
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import Presolved, ends_at, none_found, part_of, unreduced

# Forms and cuts as functions of spins to be maximised, which is how they are reduced.


class SpinTerms(NamedTuple):
    """constant + sum fields_i s_i + sum couplings_k s_a s_b over the pairs a < b, each once; no coupling is 0."""

    fields: Float64[np.ndarray, "N"]
    pairs: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    constant: float


def terms_of_form(form: QuadraticForm) -> SpinTerms:
    """The terms of a form, those of its negative where it is minimised."""
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
    """The form with these terms, of the sense and the kind of variables that another has."""
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
    """The weight of a cut: an edge counts where (1 - s_u s_v) / 2 is 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    pairs, couplings = merged_pairs(graph.num_nodes, graph.edges, -weights / 2)
    return SpinTerms(np.zeros(graph.num_nodes), pairs, couplings, float(weights.sum() / 2))


def cut_of_terms(terms: SpinTerms, name: str) -> tuple[Graph, float]:
    """The graph whose cuts have these terms, which have no fields, and what the terms are larger by."""
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

FREE, PENDANT, FIXED, MERGED, STAR = "free", "pendant", "fixed", "merged", "star"


class Reduced(NamedTuple):
    """Terms of the spins that are left after rules, which those are, and how many went by each rule.

    `lift` maps their spins [n, B] to spins [N, B] of all; `complete` says whether no rule applies any more.
    """

    terms: SpinTerms
    kept: np.ndarray
    lift: Callable[[np.ndarray], np.ndarray]
    removed: collections.Counter[str]
    complete: bool


def not_reduced(terms: SpinTerms, complete: bool = True) -> Reduced:
    """The same terms."""
    return Reduced(terms, np.arange(len(terms.fields)), lambda spins: spins, collections.Counter(), complete)


def reduce_terms(terms: SpinTerms, seconds: float = math.inf) -> Reduced:
    """Applies the rules until none applies; large problems to which some apply are left as they are."""
    candidates = _candidates(terms)
    if not len(candidates):
        return not_reduced(terms)
    end = ends_at(seconds)
    seconds -= len(terms.pairs) * _PAIR_S
    if len(terms.pairs) > _MOST_IN_RULES or seconds <= 0:
        return not_reduced(terms, complete=False)
    return _SpinGraph(terms).reduced(candidates, min(_MOST_LOOKS, seconds / _LOOK_S), end)


def _candidates(terms: SpinTerms) -> Int[np.ndarray, "C"]:
    """The spins to which a rule applies."""
    sizes = np.abs(terms.fields)
    degrees = (sizes > 0) + np.bincount(terms.pairs.ravel(), minlength=len(sizes))
    total, largest = sizes.copy(), sizes.copy()
    for ends in terms.pairs.T:
        np.add.at(total, ends, np.abs(terms.couplings))
        np.maximum.at(largest, ends, np.abs(terms.couplings))
    return np.flatnonzero((degrees <= 3) | (2 * largest >= total))


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

    def reduced(self, candidates: Int[np.ndarray, "C"], most_looks: float, end: float) -> Reduced:
        near, looks = self._near, 0
        queue = dict.fromkeys(candidates.tolist())  # in order, and each once
        while queue and looks < most_looks and time.perf_counter() < end:
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
        agree, of_a, of_b, of_c = abs(ka + kb + kc), abs(kb + kc - ka), abs(ka + kc - kb), abs(ka + kb - kc)
        self._constant += (agree + of_a + of_b + of_c) / 4
        self._couple(b, c, (agree + of_a - of_b - of_c) / 4)
        self._couple(a, c, (agree + of_b - of_a - of_c) / 4)
        self._couple(a, b, (agree + of_c - of_a - of_b) / 4)

    def _terms(self) -> SpinTerms:
        kept = np.flatnonzero(self._left)
        place = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        listed = [(place[a], place[b], k) for a in place for b, k in self._near[a].items() if a < b < self._size]
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


# Roof duality by D-Wave's library `dwave-preprocessing`, where it is installed (extra `presolve`).

# With this number of couplings it takes about 0.2 s.
_MOST_IN_ROOF_DUALITY = 10**6
ROOF = "roof duality"


def fix_by_roof_duality(terms: SpinTerms) -> Reduced:
    """Fixes the spins whose values in all best states follow from a maximum flow.

    Without fields every state is as good as its opposite, and no spin can be fixed.

    Source: Boros, Hammer, Tavares, "Preprocessing of unconstrained quadratic binary optimization", 2006.
    """
    if not terms.fields.any():
        return not_reduced(terms)
    if len(terms.pairs) > _MOST_IN_ROOF_DUALITY:
        return not_reduced(terms, complete=False)
    try:
        from dimod import SPIN, BinaryQuadraticModel
        from dwave.preprocessing import roof_duality
    except ImportError:
        return not_reduced(terms)
    model = BinaryQuadraticModel.from_numpy_vectors(
        -terms.fields, (*terms.pairs.T, -terms.couplings), 0.0, SPIN, variable_order=range(len(terms.fields))
    )
    # strict=True fixes the spins that agree in all best states. False should fix more, as in some best state, but
    # version 0.6.11 minimises s_0 s_2 + s_1 with it by s_0 = s_2.
    _, fixed = roof_duality(model, strict=True)
    if not fixed:
        return not_reduced(terms)
    return _with_fixed(terms, np.array(list(fixed), np.int64), np.array(list(fixed.values()), np.int8))


def _with_fixed(terms: SpinTerms, spins: np.ndarray, values: np.ndarray) -> Reduced:
    size = len(terms.fields)
    full = np.zeros(size, np.int8)
    full[spins] = values
    left = full == 0
    kept = np.flatnonzero(left)
    place = np.cumsum(left) - 1
    constant, fields = terms.constant + float(terms.fields @ full), terms.fields.copy()
    for ends, others in (terms.pairs.T, terms.pairs.T[::-1]):
        np.add.at(fields, ends, terms.couplings * full[others])
    constant += float(terms.couplings @ (full[terms.pairs[:, 0]] * full[terms.pairs[:, 1]]))
    both = left[terms.pairs].all(axis=1)

    def lift(states):
        lifted = np.repeat(full[:, None], states.shape[1], axis=1)
        lifted[kept] = states
        return lifted

    rest = SpinTerms(fields[kept], place[terms.pairs[both]].astype(np.int32), terms.couplings[both], constant)
    return Reduced(rest, kept, lift, collections.Counter({ROOF: len(spins)}), True)


def reduce_form(problem: Problem[QuadraticForm], seconds: float) -> Presolved:
    """Reduces a problem `qubo` or `ising`; what is left has the constant in its offset."""
    form = problem.source
    fixed = fix_by_roof_duality(terms_of_form(form))
    rest = reduce_terms(fixed.terms, seconds)
    both = Reduced(
        rest.terms,
        fixed.kept[rest.kept],
        lambda spins: fixed.lift(rest.lift(spins)),
        fixed.removed + rest.removed,
        fixed.complete and rest.complete,
    )
    left = form_of_terms(rest.terms, form) if len(both.kept) else None
    constant = 0.0 if left else rest.terms.constant if form.maximise else -rest.terms.constant
    return _presolved(problem, both, left, constant)


def reduce_maxcut(problem: Problem[Graph], seconds: float) -> Presolved:
    """Reduces a problem `maxcut`; the weights of what is left can be fractions and of either sign."""
    graph = problem.source
    rest = reduce_terms(terms_of_cut(graph), seconds)
    left, constant = cut_of_terms(rest.terms, graph.name) if len(rest.kept) else (None, rest.terms.constant)
    return _presolved(problem, rest, left, constant)


def _presolved(problem: Problem, rest: Reduced, left: QuadraticForm | Graph | None, constant: float) -> Presolved:
    size, kept = problem.num_variables, rest.kept
    if len(kept) == size:
        return unreduced(problem, rest.complete)
    return Presolved(
        original=problem,
        problem=None if left is None else part_of(problem, kept, left),
        kept=kept,
        constant=float(constant),
        found=none_found(size),
        removed=dict(rest.removed),
        complete=rest.complete,
        _lift=lambda states: (rest.lift(2 * states.T - 1).T > 0).astype(np.int8),
    )
