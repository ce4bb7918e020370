"""What a kind of problem is: the interface of kinds on graphs and on quadratic forms, and the kinds
by name.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float64, Int8

from sl_discs.models.terms import Coefficients, SpinForm
from sl_discs.support.checks import join_names, shown
from sl_discs.support.doubles import unmasked
from sl_discs.support.errors import InputError

# The paper's lambda; above 1 every maximiser is feasible, and close to 1 conflicts are easy to pass
# through.
PENALTY = 1.0001

Chosen = Bool[np.ndarray, "N"]


class Evaluated(NamedTuple):
    """States of a problem after repair, with their exact values.

    Attributes:
      values: [B] in the problem's own sense and offset.
      feasible: [B] whether the repaired states satisfy the constraints, recounted.
      states: [B, N] zeros and ones; only infeasible sets and cliques differ from the given states.
    """

    values: Float64[np.ndarray, "B"]
    feasible: Bool[np.ndarray, "B"]
    states: Int8[np.ndarray, "B N"]


class Units(NamedTuple):
    """What the values of a problem as it was given are: values of its normal form times a unit,
    plus a constant.
    """

    unit: float = 1.0
    constant: Fraction = Fraction(0)

    def exactly(self, value: Fraction | float) -> Fraction:
        """Returns the given problem's value of an answer, not rounded."""
        return Fraction(self.unit) * Fraction(value) + self.constant

    def value(self, value: float) -> float:
        """Returns the given problem's value of an answer, rounded once, and an infinite one as it
        is.
        """
        return float(self.exactly(value)) if math.isfinite(value) else value


# Those of a problem as it was given.
UNCHANGED = Units()


def checked_states(name: str, states: Any, size: int) -> Bool[np.ndarray, "B N"]:
    """Returns states of zeros and ones of any dtype as choices, a copy; InputError for other shapes
    or values.
    """
    states = np.asarray(unmasked(f"{name}: states", states))
    if states.ndim != 2 or states.shape[1] != size:
        raise InputError(
            f"{name}: states have shape {states.shape}; expected [B, {size}], without padding"
        )
    chosen = states.astype(bool)
    if not np.array_equal(states, chosen):
        raise InputError(f"{name}: states hold values other than 0 and 1; round them first")
    return chosen


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind(abc.ABC):
    """One kind of problem, which is posed on a source (`sl_discs.instances.source.Source`).

    Attributes:
      name: its name in flags and results.
      recounted: a text on how an answer is verified.
      model: the maximised quadratic model of a source and a penalty: with its constant, the value,
        or its negative if it is minimised.
      to_spins: the value of a source, or its negative if it is minimised, as a function of spins,
        by which states are compared exactly; None: it is none.
      from_spins: a source whose value is a function of spins, apart from a constant, which is
        returned beside it; the source that the function is of, in part, says the rest.
      improve: what makes feasible choices of a source at least as good by an exact local search,
        whatever the layout of the model; it is None, or returns None, where there is none.
      bound: a value that no answer is better than, found in little time; it is None, or returns
        None, where none is known.
      bounded_by: what `bound` is from, in words.
      integral: whether every value is surely a whole number, below 2^33, so that bounds can be
        rounded.
      maximise: whether the best value is the largest; None: the source says so.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      penalty: of a conflict, by default; None: there are no conflicts.
      weighted: whether weights of edges count.
      weights_of_nodes: whether weights of nodes count.
    """

    name: str
    recounted: str
    model: Callable[[Any, float], Coefficients]
    to_spins: Callable[[Any], SpinForm] | None = None
    from_spins: Callable[[SpinForm, Any], tuple[Any, float]] | None = None
    improve: Callable[[Any], Callable[[Chosen], Chosen] | None] | None = None
    bound: Callable[[Any], Fraction | float | None] | None = None
    bounded_by: str = "a bound of its kind"
    integral: Callable[[Any], bool] | None = None
    maximise: bool | None = None
    spins: bool = False
    penalty: float | None = None
    weighted: bool = False
    weights_of_nodes: bool = False

    def register(self) -> Self:
        """Makes this kind known by its name.

        Raises:
          InputError: there is another kind of this name.
        """
        if KINDS.get(self.name, self) is not self:
            raise InputError(f"there is a problem {self.name!r} already; choose another name")
        KINDS[self.name] = self
        return self

    @abc.abstractmethod
    def accepts(self, source: Any) -> bool:
        """Returns whether this is a valid source."""

    def refusal(self, where: object, source: Any) -> InputError:
        """Returns the error for a source that this does not accept; `where` it is, for the
        message.
        """
        return InputError(
            f"{where}: {self.name} is not posed on a {type(source).__name__}; known problems of "
            f"it: {', '.join(kinds_of(source)) or 'none'}"
        )

    def counted(self, source: Any, weights_of_nodes: bool = True) -> Any:
        """Returns the source without what does not count."""
        return source

    def normal(self, source: Any) -> tuple[Any, Units]:
        """Returns a source in units of a power of two, and these units, by which values are the
        same exactly.
        """
        return source, UNCHANGED

    @abc.abstractmethod
    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """A function that repairs and evaluates states exactly; what depends only on the source is
        prepared once.
        """

    @abc.abstractmethod
    def exact_values(self, source: Any, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
        """Returns the values of feasible states before they are rounded, by which optimality is
        decided.
        """

    def recounted_of(self, source: Any) -> str:
        """Returns a text on how an answer to a source is verified."""
        return self.recounted

    def magnitude(self, source: Any, penalty: float, *, offset: bool = True) -> float:
        """Returns a bound on the sum of all absolute terms of the objective, to which its rounding
        errors are proportional.

        Without `offset`, a kind may leave out the constant that all values have in common.
        """
        terms = self.model(source, penalty)
        return terms.reach() + abs(terms.constant)

    @abc.abstractmethod
    def fixed(
        self, source: Any, penalty: float, state: Int8[np.ndarray, "N"], free: Bool[np.ndarray, "N"]
    ) -> tuple[str, Any]:
        """The kind and source of the problem of the free variables where the others are as in a
        state.
        """


# Every kind by its name.
KINDS: dict[str, Kind] = {}


def kinds_of(source: Any) -> list[str]:
    """Returns the names of the kinds that take a source."""
    return [name for name, kind in KINDS.items() if kind.accepts(source)]


def find_kind(name: str) -> Kind:
    """Returns the kind of this name; InputError where there is none."""
    if not isinstance(name, str) or name not in KINDS:
        known = join_names([*KINDS, "one that register_problem or --import=FILE adds"], "and")
        raise InputError(f"problem is {shown(name)}; known: {known}", "problem")
    return KINDS[name]
