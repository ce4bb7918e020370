"""Local search under linear constraints: flips of one variable or two, which repair violations first.

It is deterministic: each accepted move lowers the sum of violations, or keeps it and raises the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64

from sl_discs.engines.cpu.jit import called, entered


class Rules(NamedTuple):
    """A maximised form and its constraints.

    Attributes:
      starts: [N + 1] of each variable's couplings.
      others: [2 M] the other variable of each.
      weights: [2 M] J.
      first: [N + 1] of each variable's coefficients in constraints.
      rows: [Z] the constraint of each.
      numbers: [Z] the coefficient.
      low: [C] smallest left-hand sides allowed.
      high: [C] largest ones.
      negligible: gains up to this are rounding errors.
    """

    starts: Int32[np.ndarray, "N1"]
    others: Int32[np.ndarray, "M2"]
    weights: Float64[np.ndarray, "M2"]
    first: Int32[np.ndarray, "N1"]
    rows: Int32[np.ndarray, "Z"]
    numbers: Int64[np.ndarray, "Z"]
    low: Int64[np.ndarray, "C"]
    high: Int64[np.ndarray, "C"]
    negligible: float


@called
def _excess(side, low, high):
    return max(low - side, 0) + max(side - high, 0)


@called
def _change(rules, x, sides, i):
    """Of the sum of violations, by a flip."""
    total = 0
    for k in range(rules.first[i], rules.first[i + 1]):
        c = rules.rows[k]
        after = sides[c] + (1 - 2 * x[i]) * rules.numbers[k]
        low, high = rules.low[c], rules.high[c]
        total += _excess(after, low, high) - _excess(sides[c], low, high)
    return total


@called
def _flip(rules, x, field, sides, i):
    sign = 1 - 2 * x[i]
    x[i] = 1 - x[i]
    for k in range(rules.starts[i], rules.starts[i + 1]):
        field[rules.others[k]] += sign * rules.weights[k]
    for k in range(rules.first[i], rules.first[i + 1]):
        sides[rules.rows[k]] += sign * rules.numbers[k]


@called
def _cheapest_repair(rules, x, field, sides):
    """The flip that lowers violations at the least loss for each unit; -1 where none does."""
    best, found = -np.inf, -1
    for i in range(x.shape[0]):
        change = _change(rules, x, sides, i)
        if change < 0 and (1 - 2 * x[i]) * field[i] / -change > best:
            best, found = (1 - 2 * x[i]) * field[i] / -change, i
    return found


@called
def _improve_from(rules, x, field, sides, i):
    """Flips i, or i and the best other variable, if that is an improvement; returns whether it is."""
    change, gain = _change(rules, x, sides, i), (1 - 2 * x[i]) * field[i]
    if change < 0 or (change == 0 and gain > rules.negligible):
        _flip(rules, x, field, sides, i)
        return True
    _flip(rules, x, field, sides, i)
    least, most, found = 0, rules.negligible, -1
    for j in range(x.shape[0]):
        both = change + _change(rules, x, sides, j)
        if j != i and both <= least:
            total = gain + (1 - 2 * x[j]) * field[j]
            if both < least or total > most:
                least, most, found = both, total, j
    _flip(rules, x, field, sides, i if found < 0 else found)
    return found >= 0


@entered
def descend(rules, states, fields, sides, tries):
    """Improves states until no flip of one or two variables is an improvement.

    Args:
      rules: `Rules`.
      states: [B, N] changed in place.
      fields: [B, N] the form's local fields, changed along.
      sides: [B, C] left-hand sides, likewise.
      tries: variables that are tried for each state, at most.
    """
    for b in range(states.shape[0]):
        x, field, side = states[b], fields[b], sides[b]
        while True:
            i = _cheapest_repair(rules, x, field, side)
            if i < 0:
                break
            _flip(rules, x, field, side, i)
        i = since = 0
        for _ in range(tries):
            since = 0 if _improve_from(rules, x, field, side, i) else since + 1
            if since >= x.shape[0]:
                break
            i = (i + 1) % x.shape[0]
