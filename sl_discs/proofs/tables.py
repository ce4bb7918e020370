"""Largest values of quadratic functions of zeros and ones: by comparing all states, or by eliminating variables.

Enumeration has a table of the values of all states of twelve variables; each further variable that is 1 adds a table
to it, so that a state costs an addition and a comparison. Elimination replaces a variable and all terms with it by
the best value that they can have, a table of the states of its neighbours (Bertele and Brioschi 1972, "Nonserial
dynamic programming"), in an order in which few variables are neighbours at a time.

Values are computed in double precision. If all coefficients are multiples of 2^-10 and small enough, these are exact,
and whole values are known by rounding. Otherwise all states that are best up to the error of rounding are found, and
compared in exact arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8, UInt8

from sl_discs.engines.cpu.jit import entered, in_long_vectors, inlined
from sl_discs.models.elimination import Elimination, narrow_elimination
from sl_discs.proofs.provers import Prover
from sl_discs.reductions.presolve import Presolved, unreduced

_EPS = float(np.finfo(np.float64).eps)
# Of what sums are exact: multiples of 2^-10 below 2^33.
_FINEST, _LARGEST_SUM = 2.0**10, 2.0**33
# States that are best up to rounding are listed up to this number.
_MOST_LISTED = 2**12


class Exact(Prover):
    """A prover that finds the largest value of terms, and all states that may have it."""

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        problem = presolved.left
        terms = problem.terms().listed()
        # A constant would only make values less precise.
        self.terms, self._constant = terms._replace(constant=0.0), terms.constant
        numbers = np.concatenate([self.terms.linear, self.terms.scale * self.terms.weights])
        # Also before they were merged, where sums may have been rounded to such multiples.
        self._exact = all(map(_sums_are_exact, (numbers, problem.numbers())))
        # A value is a sum of all terms, and each of these a sum of at most as many numbers as were given.
        summands = len(numbers) + problem.num_terms + problem.num_variables + 2
        self._error = 4 * summands * _EPS * problem.magnitude(offset=False)

    @property
    def slack(self) -> float:
        """States whose values differ by less may both be best; negative where one best state is enough."""
        return -1.0 if self._exact or self.presolved.original.integer_values else 2 * self._error

    def finish(self, value: float, states: Int8[np.ndarray, "K n"], complete: bool) -> None:
        """Takes the largest value, without the constant, and states of the reduced problem that have it.

        `complete` says whether no other may be best.
        """
        problem, view = self.presolved.original, self.presolved
        sign = 1.0 if problem.maximise else -1.0
        self.states = view.lift(states)
        if not problem.integer_values and (self._exact or complete):
            found = problem.evaluate(self.states)
            best = problem.best_row(found)
            [self.bound] = problem.exact_values(found.states[best : best + 1])
            return
        error = 0.0 if self._exact else self._error + 4 * _EPS * problem.magnitude()
        self.bound = view.lifted_bound(sign * (value + self._constant + error))


def _sums_are_exact(numbers: Float64[np.ndarray, "K"] | None) -> bool:
    """Returns whether all sums of some of these numbers, in any order, are exact in double precision."""
    if numbers is None:
        return False
    finest = numbers * _FINEST
    return np.array_equal(finest, np.rint(finest)) and float(np.abs(numbers).sum()) < _LARGEST_SUM


def view_of(presolved: Presolved) -> Presolved:
    """What is left if values are whole, otherwise all: the coefficients of what is left are rounded."""
    return presolved if presolved.original.integer_values else unreduced(presolved.original)


# Enumeration. State h of the variables beyond the first twelve has bit k at the variable that is k-th from the end.

MOST_ENUMERATED = 30
_LOW = 12
# Additions and comparisons of a core in a second.
_STATES_A_SECOND = 2e9


class Enumeration(Exact):
    """Compares all states of up to 30 variables."""

    by = "enumeration"

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        terms, size = self.terms, self.terms.num_sites
        low = min(_LOW, size)
        couplings = np.zeros((size, size))
        couplings[tuple(terms.edges.T)] = terms.scale * terms.weights
        couplings += couplings.T
        states = (np.arange(2**low)[:, None] >> np.arange(low) & 1).astype(np.float64)
        inside = np.triu(couplings[:low, :low])
        self._low, self._begin, self._number = low, 0, 2 ** (size - low)
        self._scan = Scan(
            states @ terms.linear[:low] + np.einsum("si,si->s", states @ inside, states) + terms.constant,
            np.ascontiguousarray((states @ couplings[:low, low:]).T),
            terms.linear[low:].copy(),
            np.ascontiguousarray(couplings[low:, low:]),
            np.zeros((size - low + 1, 2**low)),
            np.zeros(size - low + 1, np.int64),
            np.full(1, -np.inf),
            np.zeros((_MOST_LISTED, 2), np.int64),
            np.zeros(_MOST_LISTED),
            np.zeros(2, np.int64),
        )

    def advance(self, work: float, best: float) -> bool:
        end = min(self._number, self._begin + max(1, int(work * _STATES_A_SECOND / 2**self._low)))
        _scan(self._scan, self._begin, end, self.slack)
        self._begin = end
        self.expected = (self._number - end) * 2**self._low / _STATES_A_SECOND
        if end < self._number:
            return True
        count, lost = self._scan.found
        states, high = self._scan.states[:count], self.terms.num_sites - self._low
        bits = states[:, :1] >> np.arange(high)[::-1] & 1, states[:, 1:] >> np.arange(self._low) & 1
        self.finish(float(self._scan.best[0]), np.concatenate(bits[::-1], axis=1).astype(np.int8), not lost)
        return False


class Scan(NamedTuple):
    """All states, of L low ones and of H variables beyond.

    Attributes:
      table: [L] values of the low states.
      rows: [H, L] what each further variable adds to them.
      linear: [H] what it adds anyway.
      couplings: [H, H] what pairs of these add.
      tables: [H + 1, L] working memory: the values with some of them.
      places: [H + 1] working memory: which of the tables has them; -1 is `table`.
      best: [1] the largest value.
      states: [K, 2] the high and low parts of states that may have it.
      values: [K] of these.
      found: how many there are, and whether there were more.
    """

    table: Float64[np.ndarray, "L"]
    rows: Float64[np.ndarray, "H L"]
    linear: Float64[np.ndarray, "H"]
    couplings: Float64[np.ndarray, "H H"]
    tables: Float64[np.ndarray, "H1 L"]
    places: Int[np.ndarray, "H1"]
    best: Float64[np.ndarray, "1"]
    states: Int[np.ndarray, "K 2"]
    values: Float64[np.ndarray, "K"]
    found: Int[np.ndarray, "2"]


# For maxima of numbers that are not NaN.
_ANY_ORDER = frozenset({"nnan", "nsz", "reassoc", "contract"})


@inlined(fastmath=_ANY_ORDER)
def _largest(values):
    found = values[0]
    for k in range(values.shape[0]):
        found = max(found, values[k])
    return found


@inlined
def _add_row(before, row, number, after):
    for k in range(row.shape[0]):
        after[k] = before[k] + (row[k] + number)


@inlined
def _is_listed(scan, value, slack):
    """Whether a state of this value may be the best; where those as good are too many, only a better one counts."""
    return value > scan.best[0] or (slack >= 0 and scan.found[1] == 0 and value >= scan.best[0] - slack)


@inlined
def _list(scan, high, low, value, slack):
    """Lists a state that may be the best; those that are not any more make place."""
    found = scan.found
    if value > scan.best[0] + max(slack, 0.0):
        found[0] = found[1] = 0
    scan.best[0] = max(scan.best[0], value)
    if found[0] == scan.values.shape[0]:
        kept = 0
        for place in range(found[0]):
            if scan.values[place] >= scan.best[0] - slack:
                scan.values[kept] = scan.values[place]
                scan.states[kept, 0], scan.states[kept, 1] = scan.states[place, 0], scan.states[place, 1]
                kept += 1
        found[0] = kept
    if found[0] == scan.values.shape[0]:
        found[1] = 1
        return
    place = found[0]
    scan.states[place, 0], scan.states[place, 1], scan.values[place] = high, low, value
    found[0] += 1


@entered
def _scan(scan, begin, end, slack):
    """Looks at the low states with all high ones from `begin` to `end`."""
    in_long_vectors()
    size, places = scan.linear.shape[0], scan.places
    places[0] = -1
    for high in range(begin, end):
        # The bits below the lowest that differs from the state before are new.
        depth = 0
        if high > begin:
            depth, changed = size, high ^ (high - 1)
            while changed:
                changed >>= 1
                depth -= 1
        for k in range(depth, size):
            places[k + 1] = places[k]
            if high >> (size - 1 - k) & 1:
                number = scan.linear[k]
                for j in range(k):
                    if high >> (size - 1 - j) & 1:
                        number += scan.couplings[j, k]
                before = scan.table if places[k] < 0 else scan.tables[places[k]]
                _add_row(before, scan.rows[k], number, scan.tables[k + 1])
                places[k + 1] = k + 1
        values = scan.table if places[size] < 0 else scan.tables[places[size]]
        if _is_listed(scan, _largest(values), slack):
            for low in range(values.shape[0]):
                if _is_listed(scan, values[low], slack):
                    _list(scan, high, low, values[low], slack)


# Elimination.

# Tables of more variables would take over a hundred megabytes; larger problems take too long to be ordered.
_MOST_WIDTH, _MOST_VARIABLES = 22, 2_000
_ENTRIES_A_SECOND = 3e8
# Nominal seconds for each variable until an order is found, or found to be too wide.
_ORDERED_S = 2e-4


class Table(NamedTuple):
    """The best values of what was eliminated, [2^d] for the states of d variables, the first of which is bit 0."""

    variables: list[int]
    values: Float64[np.ndarray, "S"]


class TableElimination(Exact):
    """Finds an order of the variables, eliminates them in it, and finds the best states backwards."""

    by = "elimination of variables"

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        self._order: list[int] | None = None
        self._value, self._work = 0.0, 0.0
        # Of each eliminated variable its neighbours, and which values are best, two bits a state.
        self._choices: list[tuple[list[int], UInt8[np.ndarray, "B"]]] = []

    def _put_in_order(self, found: Elimination) -> None:
        self._order = found.order
        # Most variables are in one table.
        self.expected = found.table_entries() / 2 * 3 / _ENTRIES_A_SECOND
        self._place = {v: place for place, v in enumerate(self._order)}
        self._couplings: list[dict[int, float]] = [{} for _ in self._order]
        weights = (self.terms.scale * self.terms.weights).tolist()
        for (u, v), weight in zip(self.terms.edges.tolist(), weights, strict=True):
            first, later = (u, v) if self._place[u] < self._place[v] else (v, u)
            self._couplings[first][later] = weight
        # Tables by the variable that is eliminated first.
        self._tables: list[list[Table]] = [[] for _ in self._order]

    def advance(self, work: float, best: float) -> bool:
        self._work += work
        if self._order is None:
            size = self.terms.num_sites
            if self._work < size * _ORDERED_S:
                return True
            self._work -= size * _ORDERED_S
            found = narrow_elimination(size, self.terms.edges, _MOST_WIDTH)
            if found is None:
                return False
            self._put_in_order(found)
        assert self._order is not None
        while len(self._choices) < len(self._order):
            v = self._order[len(self._choices)]
            tables = self._tables[v]
            scope = set(self._couplings[v]).union(*(table.variables for table in tables)) - {v}
            cost = 2 ** len(scope) * (len(tables) + 2) / _ENTRIES_A_SECOND
            if cost > self._work:
                return True
            self._work -= cost
            self.expected = max((self.expected or 0.0) - cost, 0.0)
            self._eliminate(v, sorted(scope, key=self._place.__getitem__))
        states, complete = self._best_states()
        self.finish(self._value, states, complete)
        return False

    def _eliminate(self, v: int, near: list[int]) -> None:
        half = len(near) // 2
        weights = np.array([self._couplings[v].get(u, 0.0) for u in near])
        low, high = (_sums(part) for part in (weights[:half], weights[half:]))
        one = (high[:, None] + (low + self.terms.linear[v])).ravel()
        zero = np.zeros(len(one))
        for table in self._tables[v]:
            # Bit 0 of a table is v, the others are among the neighbours in the same order.
            bit = {u: 1 << k for k, u in enumerate(table.variables)}
            steps = np.array([bit.get(u, 0) for u in near])
            _combine(
                one, zero, table.values, *(_sums(part).astype(np.int64) for part in (steps[:half], steps[half:]))
            )
        self._tables[v] = []
        choices = np.zeros(-(-len(one) // 4), np.uint8)
        _choose(one, zero, self.slack, choices)
        if near:
            self._tables[near[0]].append(Table(near, one))
        else:
            self._value += float(one[0])
        self._choices.append((near, choices))

    def _best_states(self) -> tuple[Int8[np.ndarray, "K n"], bool]:
        """States that may be best, and whether these are all."""
        assert self._order is not None
        states, complete = np.zeros((1, len(self._order)), np.int8), True
        for v, (near, choices) in zip(reversed(self._order), reversed(self._choices), strict=True):
            index = states[:, near].astype(np.int64) @ (1 << np.arange(len(near), dtype=np.int64))
            code = choices[index >> 2] >> (2 * (index & 3)).astype(np.uint8) & 3
            states[:, v] = code & 1
            both = states[code > 1]
            both[:, v] ^= 1
            states = np.concatenate([states, both])
            complete &= len(states) <= _MOST_LISTED
            states = states[:_MOST_LISTED]
        return states, complete


def _sums(numbers: np.ndarray) -> np.ndarray:
    """The sums of all subsets; number k is in those whose index has bit k."""
    found = np.zeros(1, numbers.dtype)
    for number in numbers:
        found = np.concatenate([found, found + number])
    return found


@entered
def _combine(one, zero, values, low, high):
    """Adds the values of a table to those with a variable 1 and 0; `low` and `high` are parts of places in it."""
    for h in range(high.shape[0]):
        for k in range(low.shape[0]):
            place, state = high[h] + low[k], h * low.shape[0] + k
            zero[state] += values[place]
            one[state] += values[place + 1]


@entered
def _choose(one, zero, slack, choices):
    """Puts the larger value into `one`, and notes whether it was that of 1, and whether they differ by the slack."""
    for state in range(one.shape[0]):
        difference = one[state] - zero[state]
        code = np.uint8(difference > 0) | (np.uint8(abs(difference) <= slack) << 1)
        choices[state >> 2] |= code << (2 * (state & 3))
        one[state] = max(one[state], zero[state])


def enumeration(presolved: Presolved) -> Prover | None:
    """Returns a prover of a problem on zeros and ones; None: it has too many variables."""
    view = view_of(presolved)
    return Enumeration(view) if view.left.num_variables <= MOST_ENUMERATED else None


def elimination(presolved: Presolved) -> Prover | None:
    """Likewise; None: it can be enumerated, or is large or dense."""
    view = view_of(presolved)
    size = view.left.num_variables
    if size <= MOST_ENUMERATED or size > _MOST_VARIABLES or view.left.num_terms > _MOST_WIDTH * size:
        return None
    return TableElimination(view)
