"""Quadratic forms as the user gives them: a QUBO or an Ising model, with its terms in any order,
sense and offset.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8, Int32
from scipy import sparse

from sl_discs.support.checks import boolean, real, real_array
from sl_discs.support.doubles import unmasked
from sl_discs.support.errors import InputError

# The problems that forms pose by themselves, and whether their variables are spins.
FORM_PROBLEMS = {"qubo": False, "ising": True}


# Sums of many doubles that are rounded once, as `math.fsum`'s are, at the speed of arrays. By
# `math.fsum` alone, the values of 32 states of 2,000 spins that are all coupled take 3.9 CPU s
# instead of .44, and of 5,000 spins 25 s.

# `math.fsum` adds up fewer numbers than this, and those near the ends of the range of doubles.
_FEW = 256
_SMALLEST, _LARGEST = 1e-200, 1e280


# Places of numbers [P] in an array, and values there.
Part = tuple[Int[np.ndarray, "P"], Float64[np.ndarray, "P"]]


def exact_parts(values: Float64[np.ndarray, "M"]) -> tuple[list[Part], Part]:
    """Parts of numbers of which any sums, with any signs, are exact in any order, and the rest, a
    few numbers.

    Leading bits of all numbers are split off together, so few that their sum is exact in any order;
    what is left of each number is smaller by as many bits, and after a few turns nothing is (Rump,
    Ogita and Oishi, 2008).
    """
    nonzero = np.flatnonzero(values)
    rest = values[nonzero]
    parts = []
    while len(rest) >= _FEW:
        largest = float(np.abs(rest).max())
        if not _SMALLEST < largest < _LARGEST:
            break
        # All numbers are below 2^e, and 2^k of them are more than there are.
        anchor = math.ldexp(1.0, math.frexp(largest)[1] + (len(rest) + 2).bit_length())
        leading = (anchor + rest) - anchor
        parts.append((nonzero, leading))
        rest = rest - leading
        left = rest != 0
        nonzero = nonzero[left]
        rest = rest[left]
    return parts, (nonzero, rest)


def check_sum(name: str, *values: Float64[np.ndarray, "..."] | float) -> None:
    """Raises an InputError where sums of finite numbers, or four times these, leave the range of
    doubles.
    """
    # Scaled, so that this sum does not overflow.
    if sum(float((np.abs(part) * 2.0**-60).sum()) for part in values) >= 2.0**960:
        raise InputError(f"{name}: coefficients that add up to more than 1e307; scale all of them")


def checked_pairs(name: str, what: str, pairs: Any, site: str, size: int) -> Int[np.ndarray, "M 2"]:
    """Returns rows of two indices 0 .. size - 1; InputError, with the row, for anything else."""
    pairs = np.asarray(unmasked(f"{name}: {what}s", pairs))
    pairs = pairs.reshape(-1, 2).astype(np.int32) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(
            f"{name}: {what}s of shape {pairs.shape} and dtype {pairs.dtype}; expected integers "
            "[M, 2]"
        )
    if pairs.size and (pairs.min() < 0 or pairs.max() >= size):
        row = int(np.argmax(((pairs < 0) | (pairs >= size)).any(axis=1)))
        raise InputError(
            f"{name}: {what} {row} is {tuple(pairs[row].tolist())}, but {site} are 0..{size - 1}"
        )
    return pairs


def check_finite(name: str, what: Callable[[int], str], numbers: Float64[np.ndarray, "M"]) -> None:
    """Raises an InputError for the first number that is not finite; `what` is that number, in
    words.
    """
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(f"{name}: {what(k)} is {numbers[k]}; expected a finite number")


def known_reference(reference: float | None) -> float | None:
    """Returns a best known objective, None where it is not finite."""
    return None if reference is None or not np.isfinite(reference) else reference


def fraction(values: Iterable[float]) -> Fraction:
    """Returns the sum of numbers, not rounded at all."""
    left = list(values)
    total = Fraction(0)
    while rounded := math.fsum(left):
        total += Fraction(rounded)
        left.append(-rounded)
    return total


def exact_sum(values: Float64[np.ndarray, "M"]) -> float:
    """Returns the correctly rounded sum."""
    if np.abs(values).sum() < 2**53 and np.array_equal(values, np.rint(values)):
        return float(values.sum())
    parts, (_, rest) = exact_parts(values)
    return math.fsum([*(float(leading.sum()) for _, leading in parts), *rest.tolist()])


@dataclasses.dataclass(frozen=True)
class QuadraticForm:
    """offset + sum linear_i v_i + sum couplings_k v_a v_b over the pairs (a, b), exactly as it was
    given.

    Nothing is merged: a pair may appear in several rows and in both directions, and also with a =
    b, where v_a v_a is v_a for variables in {0, 1} and 1 for spins. So `FormValues` are what the
    source defines, whatever a model is.

    Attributes:
      name: name of this instance in results.
      linear: [N] linear coefficients.
      pairs: [M, 2] indices 0 .. N - 1.
      couplings: [M] coefficients of the pairs.
      offset: a constant.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      maximise: whether the largest value is the best; otherwise the smallest one is.
      reference: best known value, or None.
    """

    name: str
    linear: Float64[np.ndarray, "N"]
    pairs: Int32[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    offset: float = 0.0
    spins: bool = False
    maximise: bool = False
    reference: float | None = None

    words: ClassVar[tuple[str, str, str]] = ("quadratic model", "variable", "quadratic term")

    @property
    def own_problem(self) -> str:
        """The problem that a form of spins, or of zeros and ones, poses."""
        return "ising" if self.spins else "qubo"

    @property
    def coefficients(self) -> Mapping[str, np.ndarray]:
        """The couplings."""
        return {"couplings": self.couplings}

    @property
    def num_variables(self) -> int:
        """Number of variables N."""
        return len(self.linear)

    @property
    def num_terms(self) -> int:
        """Number of quadratic terms."""
        return len(self.couplings)

    def magnitude(self, *, offset: bool = True) -> float:
        """Returns the sum of all absolute terms as a function of zeros and ones, with or without
        the constant.
        """
        constant = abs(self.offset) if offset else 0.0
        return float(4 * np.abs(self.couplings).sum() + 2 * np.abs(self.linear).sum() + constant)

    @property
    def numbers(self) -> Float64[np.ndarray, "K"]:
        """All coefficients, without the constant."""
        return np.concatenate([self.linear, self.couplings])

    @classmethod
    def from_arrays(
        cls,
        name,
        linear,
        pairs,
        couplings,
        offset=0.0,
        *,
        spins=False,
        maximise=False,
        reference=None,
    ) -> QuadraticForm:
        """Checks arrays of any integer or float dtype.

        Raises:
          InputError: no variables, an index out of range, a number that is not finite or a whole
            number that is not exact in double precision, numbers too large to be added up, or
            arrays of unequal length.
        """
        linear = real_array(f"{name}: linear coefficients", linear)
        couplings = real_array(f"{name}: couplings", couplings)
        offset = real(f"{name}: offset", offset)
        maximise = boolean(f"{name}: maximise", maximise)
        if linear.ndim != 1 or not len(linear):
            raise InputError(
                f"{name}: linear coefficients of shape {linear.shape}; expected [N], one a variable"
            )
        pairs = checked_pairs(name, "pair", pairs, "variables", len(linear))
        if couplings.shape != (len(pairs),):
            raise InputError(f"{name}: {couplings.shape} couplings for {len(pairs)} pairs")
        check_finite(name, "linear coefficient {}".format, linear)
        check_finite(name, "coupling {}".format, couplings)
        check_sum(name, linear, couplings, offset)
        pairs = pairs.astype(np.int32, copy=False)
        return cls(
            str(name),
            linear,
            pairs,
            couplings,
            offset,
            bool(spins),
            maximise,
            known_reference(reference),
        )

    @classmethod
    def from_entries(
        cls, name, size, rows, columns, values, offset=0.0, *, spins=False, maximise=False
    ) -> QuadraticForm:
        """Makes the form of coefficients [M] of pairs, of which those of a variable with itself are
        linear terms.
        """
        own = rows == columns
        linear = np.zeros(size)
        np.add.at(linear, rows[own], values[own])
        pairs = np.stack([rows[~own], columns[~own]], axis=1)
        return cls.from_arrays(
            name, linear, pairs, values[~own], offset, spins=spins, maximise=maximise
        )

    def fixed(self, x: Int8[np.ndarray, "N"], free: Bool[np.ndarray, "N"]) -> QuadraticForm:
        """Returns the form of the free variables where the others are as in x, zeros and ones (a
        one is spin 1).

        Couplings with variables that are not free are summed to linear coefficients, and their
        terms to the constant, each rounded once.
        """
        v = 2.0 * x - 1.0 if self.spins else x.astype(np.float64)
        first, second = self.pairs.T
        both = free[first] & free[second]
        none = ~free[first] & ~free[second]
        single = ~(both | none)
        inside, outside = (
            np.where(free[first] == side, first, second)[single] for side in (True, False)
        )
        summands: list[list[float]] = [[number] for number in self.linear.tolist()]
        for place, number in zip(
            inside.tolist(), (self.couplings[single] * v[outside]).tolist(), strict=True
        ):
            summands[place].append(number)
        products = self.couplings * v[first] * v[second]
        index = np.cumsum(free, dtype=np.int32) - 1
        return dataclasses.replace(
            self,
            linear=np.array([math.fsum(summands[place]) for place in np.flatnonzero(free)]),
            pairs=index[self.pairs[both]],
            couplings=self.couplings[both],
            offset=math.fsum([self.offset, *(self.linear * v)[~free], *products[none]]),
            reference=None,
        )


# Exact values of a quadratic form at many states, at the speed of matrix products.

# Number of states that are evaluated together: a product with that many vectors reads the matrix
# once.
_TOGETHER = 8


class FormValues:
    """Evaluates a form; its terms are split once into parts whose sums are exact in any order.

    A last variable that is always 1 makes all terms quadratic.
    """

    def __init__(self, form: QuadraticForm):
        self._spins = form.spins
        size = form.num_variables
        first = np.concatenate([form.pairs[:, 0], np.arange(size + 1, dtype=np.int32)])
        second = np.concatenate([form.pairs[:, 1], np.full(size + 1, size, np.int32)])
        parts, (nonzero, rest) = exact_parts(
            np.concatenate([form.couplings, form.linear, [form.offset]])
        )
        shape = size + 1, size + 1
        self._parts = [
            sparse.csr_matrix((part, (first[at], second[at])), shape) for at, part in parts
        ]
        self._rest = first[nonzero], second[nonzero], rest

    def __call__(self, states: Int[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Returns the form's value at each state of zeros and ones (a one is spin 1); sums are
        rounded once.
        """
        return np.array([math.fsum(terms) for terms in self._terms(states)])

    def exactly(self, states: Int[np.ndarray, "B N"]) -> list[Fraction]:
        """Returns the same values, not rounded at all."""
        return [fraction(terms) for terms in self._terms(states)]

    def _terms(self, states: np.ndarray) -> Iterator[list[float]]:
        """Yields for each state a few numbers whose sum is its value."""
        first, second, rest = self._rest
        for begin in range(0, len(states), _TOGETHER):
            x = states[begin : begin + _TOGETHER].T
            v = np.ones((len(x) + 1, x.shape[1]))
            v[:-1] = 2.0 * x - 1.0 if self._spins else x
            terms = [(v * (part @ v)).sum(axis=0)[None] for part in self._parts]
            yield from np.concatenate([*terms, rest[:, None] * v[first] * v[second]]).T.tolist()
