"""Tabu search in double precision on quadratic functions of zeros and ones.

A step flips the variable that gains most, or loses least, among those that were not flipped lately;
one that leads to the best value of the walk may always be flipped. The number of steps for which a
variable rests is drawn at random. A walk that has found nothing better for long flips some
variables at random and goes on from there.

Chains have values of 32 bits, which hide small differences beside large coefficients, as in number
partitioning.

Source: Palubeckis 2004, "Multistart tabu search strategies for the unconstrained binary quadratic
optimization problem".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int8, Int64
from scipy import sparse

from sl_discs.engines.cpu.jit import entered, in_long_vectors
from sl_discs.models.terms import Coefficients
from sl_discs.problems import Problem
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import LocalSearch

# The shortest rest of a variable in steps, what is added at random, and the part of the variables
# that is added.
_REST, _MORE_REST, _REST_PART = 2, 10, 0.01
# Steps in vain for each variable after which some are flipped at random, and the part of them, but
# the least number of them.
_PATIENCE, _KICK_PART, _LEAST_KICK = 20, 0.1, 4
# Nominal seconds of a step, for each variable and for each neighbour of one.
_STEP_S, _SITE_S, _NEIGHBOUR_S = 1e-7, 1e-9, 1e-9
# Terms take some 40 bytes each; steps for each variable that a trial needs.
_MOST_TERMS, _LEAST_STEPS = 5_000_000, 10
# Terms that are laid out in a second, as for cover searches.
_TERMS_A_SECOND = 4e6
# Passes of a descent.
_MOST_PASSES = 20
# Entries of `state`: steps so far, the step in which the walk was last improved, and random flips
# that are left.
_STEP, _IMPROVED, _KICKS = range(3)
# Entries of `values`: that of the state, and the best ones since the last random flips and of all.
_VALUE, _TOP, _BEST = range(3)


class Walk(NamedTuple):
    """Where a walk is.

    Attributes:
      x: [n] its state.
      gains: [n] what each flip adds to the value.
      rests: [n] the step up to which a variable rests.
      best: [n] the best state so far.
      values: as above.
      state: as above.
    """

    x: Int8[np.ndarray, "n"]
    gains: Float64[np.ndarray, "n"]
    rests: Int64[np.ndarray, "n"]
    best: Int8[np.ndarray, "n"]
    values: Float64[np.ndarray, "3"]
    state: Int64[np.ndarray, "3"]


@entered
def walk(starts, neighbours, couplings, search, draws):
    """Makes a step for each of the numbers drawn uniformly from [0, 1); J has rows of `neighbours`
    and `couplings`.
    """
    in_long_vectors()
    x = search.x
    gains = search.gains
    rests = search.rests
    values = search.values
    state = search.state
    size = x.shape[0]
    for draw in draws:
        state[_STEP] += 1
        chosen = np.int64(draw * size)
        if state[_KICKS] > 0:
            state[_KICKS] -= 1
            if state[_KICKS] == 0:
                values[_TOP] = -np.inf
                state[_IMPROVED] = state[_STEP]
        else:
            most = -np.inf
            wanted = values[_TOP] - values[_VALUE]
            for i in range(size):
                if gains[i] > most and (rests[i] < state[_STEP] or gains[i] > wanted):
                    most = gains[i]
                    chosen = i
        values[_VALUE] += gains[chosen]
        change = 1 - 2 * x[chosen]
        x[chosen] += change
        gains[chosen] = -gains[chosen]
        for k in range(starts[chosen], starts[chosen + 1]):
            neighbour = neighbours[k]
            gains[neighbour] += change * (1 - 2 * x[neighbour]) * couplings[k]
        rests[chosen] = (
            state[_STEP] + _REST + np.int64(_REST_PART * size + _MORE_REST * ((draw * size) % 1.0))
        )
        if values[_VALUE] > values[_TOP]:
            values[_TOP] = values[_VALUE]
            state[_IMPROVED] = state[_STEP]
            if values[_VALUE] > values[_BEST]:
                values[_BEST] = values[_VALUE]
                for i in range(size):
                    search.best[i] = x[i]
        elif state[_STEP] - state[_IMPROVED] > _PATIENCE * size and state[_KICKS] == 0:
            state[_KICKS] = _LEAST_KICK + np.int64(_KICK_PART * size)


def _rows_of(terms: Coefficients) -> sparse.csr_array:
    size = terms.num_sites
    upper = sparse.csr_array((terms.scale * terms.weights, tuple(terms.edges.T)), (size, size))
    return (upper + upper.T).tocsr()


class TabuSearch(LocalSearch):
    """Walks from random states that share the terms of a problem."""

    by = "a tabu search in double precision"

    def __init__(self, presolved: Presolved, seed: int, walks: int):
        super().__init__(presolved, seed, walks)
        terms = presolved.left.terms().listed()
        size = terms.num_sites
        self._rows = _rows_of(terms)
        self._walks = list[Walk]()
        self.step_s = _STEP_S + _SITE_S * size + _NEIGHBOUR_S * self._rows.nnz / size
        for draws in self._draws:
            x = draws.integers(0, 2, size, np.int8)
            gains = (1.0 - 2 * x) * (terms.linear + self._rows @ x.astype(np.float64))
            value = float(x @ (terms.linear + self._rows @ x.astype(np.float64) / 2))
            values = np.array([value, -np.inf, value])
            self._walks.append(
                Walk(x, gains, np.zeros(size, np.int64), x.copy(), values, np.zeros(3, np.int64))
            )

    @property
    def state(self) -> Int8[np.ndarray, "n"]:
        return max(self._walks, key=lambda search: search.values[_BEST]).best

    def walk(self, index: int, draws: Float64[np.ndarray, "S"]) -> int:
        walk(self._rows.indptr, self._rows.indices, self._rows.data, self._walks[index], draws)
        return len(draws)


def tabu_search(presolved: Presolved, seed: int, seconds: float, walks: int) -> TabuSearch | None:
    """Returns a search of a problem without constraints; None if that is too large for a trial of
    `seconds`.
    """
    problem = presolved.left
    if problem.num_terms > min(_MOST_TERMS, seconds * _TERMS_A_SECOND):
        return None
    search = TabuSearch(presolved, seed, walks)
    return search if seconds >= _LEAST_STEPS * problem.num_variables * search.step_s else None


@entered
def _descend(starts, neighbours, couplings, linear, state):
    """Gives each variable in turn its better value, where those that have none yet count as halves,
    and then again while values change.
    """
    for _ in range(_MOST_PASSES):
        changed = False
        for i in range(state.shape[0]):
            gain = linear[i]
            for entry in range(starts[i], starts[i + 1]):
                gain += couplings[entry] * state[neighbours[entry]]
            if state[i] != (gain > 0):
                state[i] = gain > 0
                changed = True
        if not changed:
            return


def descent(
    problem: Problem, start: Int8[np.ndarray, "n"] | None = None
) -> Int8[np.ndarray, "1 n"]:
    """Returns an answer to a problem without constraints that no change of one variable improves,
    unless that takes many passes over the terms.

    It starts from a state; None: from no values at all.
    """
    terms = problem.terms().listed()
    rows = _rows_of(terms)
    state = np.full(terms.num_sites, 0.5) if start is None else start.astype(np.float64)
    _descend(rows.indptr, rows.indices, rows.data, terms.linear, state)
    return state.astype(np.int8)[None]
