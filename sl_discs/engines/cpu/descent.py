"""Local search under linear constraints: flips of one variable or two, which repair violations first.

Each accepted move lowers the sum of violations, or keeps it without lowering the value. When no such move is left, a
few variables are flipped at random, and the state is repaired greedily, at the least loss of value per unit of
violation. If the result is worse, it is undone (iterated local search: Lourenco, Martin and Stuetzle 2003).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64

from sl_discs.engines.cpu.jit import called, entered

# The largest number of variables that a kick flips, and the number of tries that take about as long as a kick.
_KICKED, _KICK_TRIES = 3, 4


class Rules(NamedTuple):
    """A maximised form and its constraints.

    Attributes:
      linear: [N] c.
      starts: [N + 1] where each variable's couplings begin.
      others: [2 M] the other variable of each coupling.
      weights: [2 M] J.
      first: [N + 1] where each variable's coefficients in constraints begin.
      rows: [Z] the constraint of each coefficient.
      numbers: [Z] the coefficients.
      low: [C] smallest left-hand sides allowed.
      high: [C] largest ones.
      negligible: gains up to this are rounding errors.
    """

    linear: Float64[np.ndarray, "N"]
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
    """The change of the sum of violations by a flip."""
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
    """The flip that lowers violations at the least loss per unit; -1 if none does."""
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


@called
def _repair(rules, x, field, sides):
    while True:
        i = _cheapest_repair(rules, x, field, sides)
        if i < 0:
            return
        _flip(rules, x, field, sides, i)


@called
def _settle(rules, x, field, sides, tries):
    """Flips variables until no flip of one or two is an improvement, or `tries` variables have been tried."""
    _repair(rules, x, field, sides)
    i = since = 0
    for _ in range(tries):
        since = 0 if _improve_from(rules, x, field, sides, i) else since + 1
        if since >= x.shape[0]:
            return
        i = (i + 1) % x.shape[0]


@called
def _kick(rules, x, field, sides, draws):
    """Flips a few variables, repairs violations and makes the best single flips that keep the constraints."""
    for k in range(1 + draws[0] % _KICKED):
        i = draws[k + 1] % x.shape[0]
        if draws[k + 1] // x.shape[0] % 2:
            # Zeros are more frequent in most states, so half of the time the next one is flipped.
            for _ in range(x.shape[0]):
                if x[i]:
                    break
                i = (i + 1) % x.shape[0]
        _flip(rules, x, field, sides, i)
    _repair(rules, x, field, sides)
    while True:
        most, found = rules.negligible, -1
        for i in range(x.shape[0]):
            if (1 - 2 * x[i]) * field[i] > most and _change(rules, x, sides, i) <= 0:
                most, found = (1 - 2 * x[i]) * field[i], i
        if found < 0:
            return
        _flip(rules, x, field, sides, found)


@called
def _violation(rules, sides):
    total = 0
    for c in range(sides.shape[0]):
        total += _excess(sides[c], rules.low[c], rules.high[c])
    return total


@called
def _value(rules, x, field):
    """c.x + x'Jx / 2, where the field is c + Jx."""
    total = 0.0
    for i in range(x.shape[0]):
        if x[i]:
            total += rules.linear[i] + field[i]
    return total / 2


@called
def _copy(one, other):
    for i in range(one.shape[0]):
        other[i] = one[i]


@entered
def descend(rules, states, fields, sides, kept, draws, tries):
    """Improves states until no flip of one or two variables is an improvement, and kicks them out of such states.

    Args:
      rules: `Rules`.
      states: [B, N] modified in place.
      fields: [B, N] the form's local fields, updated with the states.
      sides: [B, C] left-hand sides, likewise.
      kept: state [N], field [N] and left-hand sides [C] as working memory.
      draws: [D, 4] random non-negative whole numbers for kicks.
      tries: the largest number of variables tried for each state; a kick counts as several.
    """
    for b in range(states.shape[0]):
        x, field, side = states[b], fields[b], sides[b]
        _settle(rules, x, field, side, tries)
        least, best = _violation(rules, side), _value(rules, x, field)
        _copy(x, kept[0])
        _copy(field, kept[1])
        _copy(side, kept[2])
        for k in range(tries // _KICK_TRIES):
            _kick(rules, x, field, side, draws[(b * 97 + k) % draws.shape[0]])
            violation, value = _violation(rules, side), _value(rules, x, field)
            if violation < least or (violation == least and value >= best - rules.negligible):
                # Rounding errors must not add up over many kicks.
                least, best = violation, value if violation < least else max(best, value)
                _copy(x, kept[0])
                _copy(field, kept[1])
                _copy(side, kept[2])
            else:
                _copy(kept[0], x)
                _copy(kept[1], field)
                _copy(kept[2], side)
        _settle(rules, x, field, side, tries)
