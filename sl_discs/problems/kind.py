"""What a kind of problem is: the common interface, the kinds by name, and quadratic forms."""

from __future__ import annotations

import abc
import dataclasses
import enum
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float64, Int8

from sl_discs.errors import InputError
from sl_discs.instances.form import FormValues, QuadraticForm, fraction
from sl_discs.models.terms import Coefficients, form_coefficients, has_integer_values

# The paper's lambda; above 1 every maximiser is feasible, and close to 1 conflicts are easy to pass through.
PENALTY = 1.0001
# The penalty at which exchanges of nodes cross plateaus that flips do not: with one close to 1, two flips exchange
# nodes by way of conflicts, which are as good and far more numerous.
EXCHANGE_PENALTY = 1.3
# How far rounding in double precision moves a bound on whole numbers at most.
_ROUNDED = 1 / 64


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


class Structure(enum.Enum):
    """What an answer to a problem is, for exact methods that several kinds of problems share."""

    SETS = "a largest or heaviest independent set of a graph, or its complement, a vertex cover"
    CLIQUES = "a largest or heaviest clique of a graph"
    CUT = "a heaviest cut of a graph"
    FORM = "a best value of a quadratic form"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind(abc.ABC):
    """One kind of problem; its source is a graph or a quadratic form.

    Attributes:
      name: its name in flags and results.
      recounted: a text on how an answer is verified.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      penalty: of a conflict, by default; None: there are no conflicts.
      exchange_penalty: the penalty with which `auto` also tries the sampler `exchange`; None: it does not.
      structure: what reductions, provers and local searches take it for; None: they know nothing of it.
      bounded_by: what `bound_of` is from, in words.
    """

    name: str
    recounted: str
    spins: bool = False
    penalty: float | None = None
    exchange_penalty: float | None = None
    structure: Structure | None = None
    bounded_by: str = "a bound of its kind"

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
        """Whether this is a valid source."""

    def num_variables(self, source: Any) -> int:
        """Number of variables N."""
        return source.num_variables

    def maximises(self, source: Any) -> bool:
        """Whether the best value is the largest."""
        return source.maximise

    @abc.abstractmethod
    def terms(self, source: Any, penalty: float = PENALTY) -> Coefficients:
        """The maximised quadratic model: with its constant, the value, or its negative if it is minimised.

        Raises:
          InputError: the problem has conflicts, and the penalty is not a finite number of at least 1.
        """

    def improver(self, source: Any) -> Callable[[Int8[np.ndarray, "N"]], Int8[np.ndarray, "N"]] | None:
        """What makes a feasible state at least as good by an exact local search; None where there is none."""
        return None

    def bound_of(self, source: Any, seconds: float) -> Fraction | float | None:
        """A value that no answer is better than, found in about `seconds`; None: not known."""
        return None

    def integer_values(self, source: Any) -> bool:
        """Whether every value is surely a whole number, below 2^33, so that bounds can be rounded."""
        return False

    def rounded_bound(self, source: Any, bound: Fraction | float) -> Fraction | float:
        """A bound, up to errors of rounding, made as tight as whole numbers allow."""
        if not (math.isfinite(bound) and self.integer_values(source)):
            return bound
        return float(np.floor(bound + _ROUNDED) if self.maximises(source) else np.ceil(bound - _ROUNDED))

    def recounted_of(self, source: Any) -> str:
        """A text on how an answer to a source is verified."""
        return self.recounted

    def magnitude(self, source: Any, penalty: float, *, offset: bool = True) -> float:
        """The sum of all absolute terms that the objective is the sum of, in units of which it is rounded.

        Without `offset`, constants that all values have in common are left out.
        """
        return self.terms(source, penalty).magnitude()

    def numbers(self, source: Any) -> Float64[np.ndarray, "K"] | None:
        """The numbers given, of which values are sums or differences but for a constant; None: not known."""
        return None

    def num_terms(self, source: Any) -> int:
        """Number of edges or quadratic terms."""
        return len(source.couplings)

    def fixed(
        self, source: Any, penalty: float, state: Int8[np.ndarray, "N"], free: Bool[np.ndarray, "N"]
    ) -> tuple[str, Any]:
        """The kind and source of the problem of the free variables where the others are as in a state.

        Raises:
          InputError: there is no such problem.
        """
        raise InputError(f"variables of a problem {self.name!r} cannot be fixed")

    def excluded(
        self, source: Any, state: Int8[np.ndarray, "N"], free: Bool[np.ndarray, "N"]
    ) -> tuple[int, int] | None:
        """Two variables that are not free and whose values no feasible state has both; None: none is known."""
        return None

    @abc.abstractmethod
    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """A function that repairs and evaluates states exactly; what depends only on the source is prepared once."""

    def exact_values(self, source: Any, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
        """Returns the values of feasible states before they are rounded, by which claims of optimality are decided.

        By default those of `evaluator`, for kinds whose values double precision holds.
        """
        return list(map(Fraction, self.evaluator(source)(states).values.tolist()))


# Every kind by its name.
KINDS: dict[str, Kind] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormKind(Kind):
    """A problem on a quadratic form: any state is feasible, and the form says whether its value is maximised."""

    recounted: str = "all terms as given, summed in exact arithmetic"
    structure: Structure | None = Structure.FORM
    bounded_by: str = "the signs of its terms"

    def accepts(self, source: Any) -> bool:
        return isinstance(source, QuadraticForm) and source.spins == self.spins

    def maximises(self, source: Any) -> bool:
        return source.maximise

    def terms(self, source: Any, penalty: float = PENALTY) -> Coefficients:
        return form_coefficients(source)

    def bound_of(self, source: Any, seconds: float) -> Fraction:
        return form_bound(source)

    def integer_values(self, source: Any) -> bool:
        return has_integer_values(source)

    def magnitude(self, source: Any, penalty: float, *, offset: bool = True) -> float:
        return source.magnitude(offset=offset)

    def numbers(self, source: Any) -> Float64[np.ndarray, "K"]:
        return source.numbers

    def fixed(self, source, penalty, state, free):
        return self.name, source.fixed(state, free)

    def num_terms(self, source: Any) -> int:
        return len(source.couplings)

    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        values = FormValues(source)
        return lambda states: Evaluated(values(states), np.ones(len(states), bool), states)

    def exact_values(self, source: Any, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
        return FormValues(source).exactly(states)


def form_bound(form: QuadraticForm) -> Fraction:
    """Returns a value that no answer to a form is better than, not rounded.

    It has the best sign of each term of spins, and leaves out terms of zeros and ones that make it worse.
    """
    terms = np.concatenate([form.linear, form.couplings])
    own = form.pairs[:, 0] == form.pairs[:, 1]
    if form.spins:
        best = np.abs(terms) if form.maximise else -np.abs(terms)
        # s_a s_a is 1, whatever its sign.
        best[len(form.linear) :][own] = form.couplings[own]
    else:
        best = np.maximum(terms, 0) if form.maximise else np.minimum(terms, 0)
    return fraction([form.offset, *best.tolist()])
