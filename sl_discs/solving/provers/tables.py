"""Largest values of quadratic functions of zeros and ones: by comparing all states, or by
eliminating variables.

Enumeration has a table of the values of all states of some variables; each further variable that is
1 adds a row to it, so that a state costs an addition and a comparison. Elimination replaces a
variable and all terms with it by the best value that they can have, a table of the states of its
neighbours (Bertele and Brioschi 1972, "Nonserial dynamic programming"), in an order in which few
variables are neighbours at a time.

Values are computed in double precision. Whole values are known by rounding. Otherwise all states
that are best up to the error of rounding are found, and compared in exact arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int8, UInt8

from sl_discs.engines.cpu.jit import entered
from sl_discs.models.exact_sums import all_states, narrow_elimination
from sl_discs.problems.problem import best_row, exact_values
from sl_discs.solving.presolved import Presolved, unreduced
from sl_discs.solving.proofs import Worker

_EPS = float(np.finfo(np.float64).eps)
# States that are best up to rounding are listed up to this number.
_MOST_LISTED = 2**12


class Exact(Worker):
    """A prover that finds the largest value of terms, and all states that may have it."""

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        problem = presolved.left
        terms = problem.terms().listed()
        # A constant would only make values less precise.
        self.terms = terms._replace(constant=0.0)
        self._constant = terms.constant
        # A value is a sum of all terms, and each of these a sum of at most as many numbers as were
        # given.
        summands = (
            terms.num_sites + len(terms.weights) + problem.num_terms + problem.num_variables + 2
        )
        self._error = 4 * summands * _EPS * problem.magnitude(offset=False)

    @property
    def slack(self) -> float:
        """States whose values differ by less may both be best; negative where one best state is
        enough.
        """
        return -1.0 if self.presolved.original.integer_values else 2 * self._error

    def finish(self, value: float, states: Int8[np.ndarray, "K n"], complete: bool) -> None:
        """Takes the largest value, without the constant, and states of the reduced problem that
        have it.

        `complete` says whether no other may be best. Values are whole, or those of the exact best
        one where that is worth what the function says, which it is not where a repair changes it,
        since penalties are too small.
        """
        problem = self.presolved.original
        view = self.presolved
        sign = 1.0 if problem.maximise else -1.0
        self.states = view.lift(states)
        most = value + self._constant
        rounding = self._error + 4 * _EPS * problem.magnitude()
        evaluated = problem.evaluate(self.states)
        best = best_row(problem, evaluated)
        if (
            not problem.integer_values
            and complete
            and abs(sign * evaluated.values[best] - most) <= rounding
        ):
            [self.bound] = exact_values(problem, evaluated.states[best : best + 1])
        else:
            self.bound = view.lifted_bound(sign * (most + rounding))


def view_of(presolved: Presolved) -> Presolved:
    """Returns what is left if values are whole, otherwise all: the coefficients of what is left are
    rounded.
    """
    return presolved if presolved.original.integer_values else unreduced(presolved.original)


# Enumeration.

MOST_ENUMERATED = 30
# Variables of the table, and additions and comparisons of a core in a second.
_LOW, _STATES_A_SECOND = 14, 1e9


class Enumeration(Exact):
    """Compares all states of up to 30 variables."""

    by = "enumeration"

    def _with_each(
        self, further: tuple[int, ...], table: Float64[np.ndarray, "L"], more: float
    ) -> Iterator[tuple[tuple[int, ...], Float64[np.ndarray, "L"], float]]:
        """Yields each state of the further variables that begins as given, with a table and what is
        added to it.
        """
        k = len(further)
        if k == len(self._rows):
            yield further, table, more
            return
        yield from self._with_each((*further, 0), table, more)
        more += float(self._linear[k] + self._couplings[k, :k] @ further)
        yield from self._with_each((*further, 1), table + self._rows[k], more)

    def _run(self) -> Iterator[float]:
        terms = self.terms
        size = terms.num_sites
        low = min(_LOW, size)
        couplings = np.zeros((size, size))
        couplings[tuple(terms.edges.T)] = terms.scale * terms.weights
        couplings += couplings.T
        states = all_states(low).astype(np.float64)
        table = states @ terms.linear[:low] + np.einsum(
            "si,si->s", states @ np.triu(couplings[:low, :low]), states
        )
        self._rows = np.ascontiguousarray((states @ couplings[:low, low:]).T)
        self._linear = terms.linear[low:]
        self._couplings = couplings[low:, low:]
        # States that may be best: the further variables, the place in the table, and the value.
        self._listed: list[tuple[tuple[int, ...], int, float]] = []
        self._value = -np.inf
        self._complete = True
        each = 2**low / _STATES_A_SECOND
        num_tables = 2 ** (size - low)
        for done, entry in enumerate(self._with_each((), table, 0.0)):
            self.expected = (num_tables - done) * each
            yield each
            self._compare(*entry)
        optima = [(*(index >> np.arange(low) & 1), *further) for further, index, _ in self._listed]
        self.finish(self._value, np.array(optima, np.int8), self._complete)

    def _compare(
        self, further: tuple[int, ...], table: Float64[np.ndarray, "L"], more: float
    ) -> None:
        """Lists the states that may be best; where they are too many, only a better one counts."""
        index = int(table.argmax())
        slack = self.slack
        value = float(table[index]) + more
        if value > self._value + max(slack, 0.0):
            self._listed = []
            self._complete = True
        if value > self._value and (slack < 0 or not self._complete):
            self._listed = [(further, index, value)]
        elif self._complete and value >= self._value - slack:
            values = table + more
            indices = np.flatnonzero(values >= max(value, self._value) - slack)
            self._listed += zip(
                itertools.repeat(further), indices.tolist(), values[indices].tolist()
            )
        self._value = max(self._value, value)
        if len(self._listed) > _MOST_LISTED:
            self._listed = [entry for entry in self._listed if entry[2] >= self._value - slack]
            self._complete = len(self._listed) <= _MOST_LISTED
            self._listed = sorted(self._listed, key=lambda entry: -entry[2])[:_MOST_LISTED]


# Elimination.

# Tables of more variables would take over a hundred megabytes; larger problems take too long to be
# ordered.
_MOST_WIDTH, _MOST_VARIABLES = 22, 2_000
_ENTRIES_A_SECOND = 6e8
# Nominal seconds for each variable until an order is found, or found to be too wide.
_ORDERED_S = 2e-4


class Table(NamedTuple):
    """The best values of what was eliminated, [2^d] for the states of d variables, the first of
    which is bit 0.
    """

    variables: list[int]
    values: Float64[np.ndarray, "S"]


class TableElimination(Exact):
    """Finds an order of the variables, eliminates them in it, and finds the best states
    backwards.
    """

    by = "elimination of variables"

    def _run(self) -> Iterator[float]:
        terms = self.terms
        size = terms.num_sites
        edges = terms.edges
        weights = terms.scale * terms.weights
        yield size * _ORDERED_S
        elimination = narrow_elimination(size, edges, _MOST_WIDTH)
        if elimination is None:
            return
        # Most variables are in one table.
        self.expected = elimination.table_entries() / 2 * 3 / _ENTRIES_A_SECOND
        position = {v: k for k, v in enumerate(elimination.order)}
        couplings: list[dict[int, float]] = [{} for _ in range(size)]
        for (u, v), weight in zip(edges.tolist(), weights.tolist(), strict=True):
            first, later = sorted((u, v), key=position.__getitem__)
            couplings[first][later] = weight
        # Tables by the variable that is eliminated first.
        tables: list[list[Table]] = [[] for _ in range(size)]
        # Of each eliminated variable its neighbours, and which values are best, two bits a state.
        choices: list[tuple[list[int], UInt8[np.ndarray, "B"]]] = []
        most = 0.0
        for v in elimination.order:
            scope = set(couplings[v]).union(*(table.variables for table in tables[v])) - {v}
            cost = 2 ** len(scope) * (len(tables[v]) + 2) / _ENTRIES_A_SECOND
            yield cost
            self.expected = max(self.expected - cost, 0.0)
            near = sorted(scope, key=position.__getitem__)
            best, chosen = self._eliminated(v, near, couplings[v], tables[v])
            tables[v] = []
            choices.append((near, chosen))
            if near:
                tables[near[0]].append(Table(near, best))
            else:
                most += float(best[0])
        states = np.zeros((1, size), np.int8)
        complete = True
        for v, (near, chosen) in zip(reversed(elimination.order), reversed(choices), strict=True):
            index = states[:, near].astype(np.int64) @ (1 << np.arange(len(near), dtype=np.int64))
            code = chosen[index >> 2] >> (2 * (index & 3)).astype(np.uint8) & 3
            states[:, v] = code & 1
            both = states[code > 1]
            both[:, v] ^= 1
            states = np.concatenate([states, both])
            complete &= len(states) <= _MOST_LISTED
            states = states[:_MOST_LISTED]
        self.finish(most, states, complete)

    def _eliminated(
        self, v: int, near: list[int], couplings: dict[int, float], tables: list[Table]
    ) -> tuple[Float64[np.ndarray, "S"], UInt8[np.ndarray, "B"]]:
        """Returns the best values of the terms and tables with v, for all states of its neighbours,
        and its own.
        """
        half = len(near) // 2
        weights = np.array([couplings.get(u, 0.0) for u in near])
        low, high = (_sums(part) for part in (weights[:half], weights[half:]))
        ones = (high[:, None] + (low + self.terms.linear[v])).ravel()
        zeros = np.zeros(len(ones))
        for table in tables:
            # Bit 0 of a table is v, the others are among the neighbours in the same order.
            bit = {u: 1 << k for k, u in enumerate(table.variables)}
            steps = np.array([bit.get(u, 0) for u in near], np.int64)
            _combine(ones, zeros, table.values, _sums(steps[:half]), _sums(steps[half:]))
        chosen = np.zeros(-(-len(ones) // 4), np.uint8)
        _choose(ones, zeros, self.slack, chosen)
        return ones, chosen


def _sums(numbers: np.ndarray) -> np.ndarray:
    """Returns the sums of all subsets; number k is in those whose index has bit k."""
    sums = np.zeros(1, numbers.dtype)
    for addend in numbers:
        sums = np.concatenate([sums, sums + addend])
    return sums


@entered
def _combine(ones, zeros, values, low, high):
    """Adds the values of a table to those with a variable 1 and 0; `low` and `high` are parts of
    places in it.
    """
    for h in range(high.shape[0]):
        for k in range(low.shape[0]):
            index = high[h] + low[k]
            state = h * low.shape[0] + k
            zeros[state] += values[index]
            ones[state] += values[index + 1]


@entered
def _choose(ones, zeros, slack, choices):
    """Puts the larger value into `ones`, and notes whether it was that of 1, and whether they
    differ by the slack.
    """
    for state in range(ones.shape[0]):
        difference = ones[state] - zeros[state]
        code = np.uint8(difference > 0) | (np.uint8(abs(difference) <= slack) << 1)
        choices[state >> 2] |= code << (2 * (state & 3))
        ones[state] = max(ones[state], zeros[state])


def enumeration(presolved: Presolved) -> Worker | None:
    """Returns a prover of any problem; None: it has too many variables."""
    view = view_of(presolved)
    return Enumeration(view) if view.left.num_variables <= MOST_ENUMERATED else None


def elimination(presolved: Presolved) -> Worker | None:
    """Returns another; None: it can be enumerated, or is large or dense."""
    view = view_of(presolved)
    size = view.left.num_variables
    if (
        size <= MOST_ENUMERATED
        or size > _MOST_VARIABLES
        or view.left.num_terms > _MOST_WIDTH * size
    ):
        return None
    return TableElimination(view)


# The provers that compare all answers in exact arithmetic.
EXACT = (enumeration, elimination)
