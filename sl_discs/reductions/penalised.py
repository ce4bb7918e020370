"""Constraints as penalties: a form without constraints, whose best states satisfy them if penalties are large enough.

A constraint low <= a.x <= high with high - low of at most 1 costs P (a.x - low) (a.x - high), which is 0 where it
holds and at least P elsewhere, as a.x is whole. Others have slack: a.x + slack = high, with bits of 1, 2, 4, ... and
a last one of what is missing, so that the slack has the values from 0 to high - low and no others.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float64, Int8, Int64
from scipy import sparse

from sl_discs.errors import check_memory
from sl_discs.instances.form import ConstrainedForm, QuadraticForm
from sl_discs.models.terms import form_coefficients
from sl_discs.problems import Problem

# Bytes of a pair of variables in the arrays of this module and of the form.
_PAIR_BYTES = 60
# Penalties have so few bits that their products with coefficients are exact.
_PENALTY_BITS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Penalised:
    """A problem with constraints, and one of kind `qubo` with penalties and slack bits in their place.

    A state of the latter has the variables of the former first; where the constraints hold and slack fits, both have
    the same value.
    """

    original: Problem
    problem: Problem
    _slacks: tuple[_Slack, ...]

    def lift(self, states: np.ndarray) -> Int8[np.ndarray, "B N"]:
        """States without slack bits."""
        return np.asarray(states, np.int8)[:, : self.original.num_variables]

    def extend(self, states: np.ndarray) -> Int8[np.ndarray, "B n"]:
        """States [B, N] with the slack bits that cost least."""
        states = np.asarray(states, np.int8)
        return np.concatenate([states, *(slack.bits(states) for slack in self._slacks)], axis=1, dtype=np.int8)


@dataclasses.dataclass(frozen=True, eq=False)
class _Slack:
    """Of one constraint: its coefficients [N], the largest left-hand side, and the sizes [b] of the bits."""

    row: Int64[np.ndarray, "N"]
    high: int
    sizes: Int64[np.ndarray, "b"]

    def bits(self, states: Int8[np.ndarray, "B N"]) -> Int8[np.ndarray, "B b"]:
        left = np.clip(self.high - states @ self.row, 0, self.sizes.sum())
        found = np.zeros((len(states), len(self.sizes)), np.int8)
        # From the largest size on: the others make up any smaller number.
        for place in np.argsort(-self.sizes, kind="stable"):
            found[:, place] = left >= self.sizes[place]
            left = left - found[:, place] * self.sizes[place]
        return found


def slack_sizes(largest: int) -> Int64[np.ndarray, "b"]:
    """Sizes of bits whose sums are the numbers from 0 to `largest`, and no others; none for 0 and 1.

    The penalty of a constraint that leaves two values open has no need of slack.
    """
    if largest <= 1:
        return np.zeros(0, np.int64)
    count = largest.bit_length() - 1
    sizes = [2**k for k in range(count)]
    return np.array([*sizes, largest - sum(sizes)], np.int64)


def first_penalties(problem: Problem[ConstrainedForm]) -> Float64[np.ndarray, "C"]:
    """Of each constraint, so much that where it holds with equality no flip of a typical variable pays.

    A flip of a coefficient a costs P a^2, of which the mean over the constraint's variables is set to their largest
    gain. Gains of the objective are those in states with as many ones as the constraints let one expect, and two
    standard deviations more. Larger penalties would freeze sums of large coefficients; as long as violations by less
    than these still pay, penalties are to be raised.
    """
    source = problem.source
    chance = _chances(source)
    terms = form_coefficients(source.form).listed()
    size = source.num_variables
    upper = sparse.csr_array((terms.scale * terms.weights, tuple(terms.edges.T)), (size, size))
    coupling = upper + upper.T
    spread = coupling.power(2) @ (chance * (1 - chance))
    gains = np.abs(terms.linear + coupling @ chance) + 2 * np.sqrt(spread)
    matrix, _ = _divided(source)
    found = [
        float(gains[matrix.indices[begin:end]].max() / (matrix.data[begin:end] ** 2).mean())
        for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    smallest = min((one for one in found if one > 0), default=1.0)
    return np.array([_rounded(max(one, smallest)) for one in found])


def penalised(problem: Problem[ConstrainedForm], penalties: Float64[np.ndarray, "C"]) -> Penalised:
    """The problem without constraints that has these penalties, P > 0 of each constraint.

    Raises:
      InputError: it does not fit into memory.
    """
    source = problem.source
    form, (matrix, divisors) = source.form, _divided(source)
    low, high = -(-source.low // divisors), source.high // divisors
    sizes = [slack_sizes(int(width)) for width in high - low]
    lengths = np.diff(matrix.indptr) + [len(one) for one in sizes]
    num_pairs = len(form.couplings) + int((lengths * (lengths - 1) // 2).sum())
    check_memory(
        f"{problem.name} with the penalties of its constraints ({num_pairs:,} terms)",
        num_pairs * _PAIR_BYTES,
        "give constraints of fewer variables",
    )
    sign = -1.0 if form.maximise else 1.0
    size = form.num_variables
    starts = np.cumsum([size, *map(len, sizes)])
    own: list[list[float]] = [[number] for number in [*form.linear.tolist(), *[0.0] * (starts[-1] - size)]]
    pairs, couplings, constants, slacks = [form.pairs], [form.couplings], form.offsets.tolist(), []
    for c, penalty in enumerate(penalties):
        row = slice(matrix.indptr[c], matrix.indptr[c + 1])
        places = np.concatenate([matrix.indices[row], np.arange(starts[c], starts[c + 1])])
        numbers = np.concatenate([matrix.data[row], sizes[c]])
        # Slack fills what is open between low and high.
        first = int(low[c] if len(sizes[c]) == 0 else high[c])
        cost = sign * penalty
        for place, number in zip(
            places.tolist(), (numbers**2 - (first + int(high[c])) * numbers).tolist(), strict=True
        ):
            own[place].append(cost * number)
        one, other = np.triu_indices(len(places), 1)
        pairs.append(np.stack([places[one], places[other]], axis=1))
        couplings.append(2 * cost * (numbers[one] * numbers[other]))
        constants.append(cost * (first * int(high[c])))
        if len(sizes[c]):
            slacks.append(_Slack(matrix[[c]].toarray()[0], int(high[c]), sizes[c]))
    # No sum is rounded, so that what is best with the penalties is best.
    whole = QuadraticForm.from_sums(
        problem.name, own, np.concatenate(pairs), np.concatenate(couplings), constants, maximise=form.maximise
    )
    return Penalised(problem, Problem("qubo", problem.name, range(len(own)), whole), tuple(slacks))


def _divided(source: ConstrainedForm) -> tuple[sparse.csr_array, Int64[np.ndarray, "C"]]:
    """The rows divided by the greatest common divisors of their coefficients, and these divisors."""
    matrix = source.matrix.copy()
    divisors = np.gcd.reduceat(matrix.data, matrix.indptr[:-1])
    matrix.data //= np.repeat(divisors, np.diff(matrix.indptr))
    return matrix, divisors


def _chances(source: ConstrainedForm) -> Float64[np.ndarray, "N"]:
    """How often variables are 1: half of the time, or less often where a sum of them has an upper bound."""
    chance = np.full(source.num_variables, 0.5)
    matrix = source.matrix
    for c, high in enumerate(source.high):
        row = slice(matrix.indptr[c], matrix.indptr[c + 1])
        if (matrix.data[row] > 0).all():
            places = matrix.indices[row]
            chance[places] = np.minimum(chance[places], high / matrix.data[row].sum())
    return chance


def _rounded(number: float) -> float:
    """Up, to few bits."""
    part, exponent = math.frexp(number)
    return math.ldexp(math.ceil(math.ldexp(part, _PENALTY_BITS)), exponent - _PENALTY_BITS)
