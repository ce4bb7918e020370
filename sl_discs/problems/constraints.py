"""Quadratic forms of zeros and ones under linear constraints, given by label or as one of dimod's models."""

from __future__ import annotations

import dataclasses
import itertools
import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Bool, Int8
from scipy import sparse

from sl_discs.errors import InputError, boolean, check_label, errors_of, real, real_array, whole
from sl_discs.instances.form import ConstrainedForm, QuadraticForm, check_sum
from sl_discs.models.terms import Coefficients, form_coefficients
from sl_discs.problems.kind import PENALTY, FormKind
from sl_discs.problems.problem import Problem, in_order, timed

SENSES = ("==", "<=", ">=")
# Coefficients add up to so much at most: their squares, times penalties, are to keep their digits in 32-bit numbers,
# and slack takes few bits.
LARGEST_BITS = 20
# Terms that the words on a constraint show.
_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Linear:
    """sum coefficients[label] x[label], compared with a bound.

    Attributes:
      coefficients: whole numbers by label; those of 0 do not count.
      sense: `==`, `<=` or `>=`.
      bound: a whole number.
      name: used in messages; empty: the first terms are.

    Raises:
      InputError: no coefficient differs from 0, a number is not whole, or all together exceed 2^20.
    """

    coefficients: Mapping[Hashable, int]
    sense: str
    bound: int
    name: str = ""

    def __post_init__(self):
        if not isinstance(self.coefficients, Mapping):
            raise InputError(
                f"coefficients are a {type(self.coefficients).__name__}; expected a dict {{label: whole number}}"
            )
        if self.sense not in SENSES:
            raise InputError(f"sense is {self.sense!r}; known: {', '.join(SENSES)}", "sense")
        where, most = _words(self.name), 2**LARGEST_BITS
        found = {
            label: whole(f"{where}: the coefficient of {label!r}", number, -most)
            for label, number in self.coefficients.items()
        }
        found = {label: number for label, number in found.items() if number}
        if not found:
            raise InputError(f"{where}: no variables; give at least one")
        if sum(map(abs, found.values())) > most:
            raise InputError(f"{where}: coefficients add up to more than 2^{LARGEST_BITS}; scale and round them")
        object.__setattr__(self, "coefficients", found)
        object.__setattr__(self, "bound", whole(f"{where}: the bound", self.bound, -(2**62), bits=62))

    def range(self) -> tuple[int, int]:
        """The smallest and the largest value of the left-hand side."""
        numbers = self.coefficients.values()
        return sum(min(number, 0) for number in numbers), sum(max(number, 0) for number in numbers)

    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value that it allows, of those in `range`; the first is larger if none is."""
        smallest, largest = self.range()
        low = smallest if self.sense == "<=" else max(smallest, self.bound)
        return low, largest if self.sense == ">=" else min(largest, self.bound)

    def __str__(self) -> str:
        if self.name:
            return repr(self.name)
        shown = itertools.islice(self.coefficients.items(), _SHOWN)
        terms = [f"{'' if number == 1 else f'{number} '}x[{reprlib.repr(label)}]" for label, number in shown]
        if len(self.coefficients) > _SHOWN:
            terms.append(f"... ({len(self.coefficients)} terms)")
        return f"{' + '.join(terms)} {self.sense} {self.bound}"


def linear(coefficients: Mapping[Hashable, int], sense: str, bound: int, *, name: str = "") -> Linear:
    """sum coefficients[label] x[label], which must be `==`, `<=` or `>=` the bound; InputError as `Linear`."""
    return Linear(coefficients, sense, bound, name)


def exactly(number: int, labels: Iterable[Hashable], *, name: str = "") -> Linear:
    """Exactly so many of these variables are 1.

    Raises:
      InputError: no labels, one given twice, or a number that is not whole.
    """
    return Linear(_group(labels, name), "==", number, name)


def at_most(number: int, labels: Iterable[Hashable], *, name: str = "") -> Linear:
    """At most so many of these variables are 1; InputError as `exactly`."""
    return Linear(_group(labels, name), "<=", number, name)


def at_least(number: int, labels: Iterable[Hashable], *, name: str = "") -> Linear:
    """At least so many of these variables are 1; InputError as `exactly`."""
    return Linear(_group(labels, name), ">=", number, name)


def one_hot(labels: Iterable[Hashable], *, name: str = "") -> Linear:
    """Exactly one of these variables is 1; InputError as `exactly`."""
    return exactly(1, labels, name=name)


def _words(name: str) -> str:
    return f"constraint {name!r}" if name else "constraint"


def _group(labels: Iterable[Hashable], name: str) -> dict[Hashable, int]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"{_words(name)}: the group is {labels!r}; expected labels, such as a list")
    labels = list(labels)
    for label in labels:
        check_label(_words(name), label)
    group = dict.fromkeys(labels, 1)
    if not group:
        raise InputError(f"{_words(name)}: the group is empty; give at least one label")
    if len(group) < len(labels):
        twice = next(label for place, label in enumerate(labels) if label in labels[:place])
        raise InputError(f"{_words(name)}: {twice!r} is twice in the group; give each label once")
    return group


def with_constraints(name: str, labels: Sequence[Hashable], form: QuadraticForm, constraints: Any) -> Problem:
    """The problem of a form of zeros and ones on variables of these labels, of kind `qubo` without constraints."""
    if isinstance(constraints, Linear) or not isinstance(constraints, Iterable):
        raise InputError(f"{name}: constraints is a {type(constraints).__name__}; expected a list", "constraints")
    given = list(constraints)
    if not given:
        return Problem("qubo", name, labels, form)
    place = {label: k for k, label in enumerate(labels)}
    words = tuple(f"constraints[{c}] ({one})" for c, one in enumerate(given))
    seen: dict = {}
    for one, word in zip(given, words, strict=True):
        if not isinstance(one, Linear):
            raise InputError(
                f"{name}: {word} is not a constraint; make constraints with sl_discs.exactly, one_hot, "
                "at_most, at_least or linear"
            )
        for label in one.coefficients:
            if label not in place:
                raise InputError(
                    f"{name}: {word}: {label!r} is not a variable of the objective; give it the term "
                    f"({label!r}, {label!r}): 0 if it has none"
                )
        _check_bounds(name, one, word, place, seen)
    bounds = np.array([one.bounds() for one in given], np.int64).reshape(-1, 2)
    starts = np.cumsum([0, *(len(one.coefficients) for one in given)])
    columns = np.array([place[label] for one in given for label in one.coefficients], np.int32)
    numbers = np.array([number for one in given for number in one.coefficients.values()], np.int64)
    matrix = sparse.csr_array((numbers, columns, starts), shape=(len(given), form.num_variables))
    source = ConstrainedForm(form, matrix, bounds[:, 0], bounds[:, 1], words)
    return Problem(CONSTRAINED.name, name, labels, source)


def _check_bounds(where: str, one: Linear, name: str, places: Mapping[Hashable, int], seen: dict) -> None:
    """Whether some assignment meets a constraint, and whether those before it leave it a value.

    `seen` has, of each left-hand side, the largest lower and the smallest upper bound so far, with the constraints'
    names.
    """
    # Divided by the greatest common divisor, and by the sign of one coefficient, left-hand sides can be compared.
    divisor = math.gcd(*one.coefficients.values())
    low, high = one.bounds()
    low, high = -(-low // divisor), high // divisor
    if low > high:
        smallest, largest = one.range()
        steps = f", a multiple of {divisor}" if divisor > 1 else ""
        raise InputError(
            f"{where}: {name} holds for no assignment: the left-hand side is from {smallest} to {largest}{steps}"
        )
    terms = sorted((places[label], number // divisor) for label, number in one.coefficients.items())
    if terms[0][1] < 0:
        terms, low, high = [(place, -number) for place, number in terms], -high, -low
    key = tuple(terms)
    lower, upper = seen.get(key, ((low, name), (high, name)))
    lower, upper = max(lower, (low, name)), min(upper, (high, name))
    if lower[0] > upper[0]:
        raise InputError(f"{where}: {lower[1]} and {upper[1]} contradict each other; change one of them")
    seen[key] = lower, upper


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstrainedKind(FormKind):
    """A quadratic form of zeros and ones under linear constraints, which are checked, not repaired."""

    recounted: str = "all terms as given, summed in exact arithmetic, and every constraint holds"
    reduction: str = ""
    constrained: bool = True

    def form(self, source: ConstrainedForm) -> QuadraticForm:
        return source.form

    def accepts(self, source: Any) -> bool:
        return isinstance(source, ConstrainedForm) and not source.form.spins

    def sampled(self, source: ConstrainedForm, penalty: float) -> Coefficients:
        """There are none without penalties, which `sl_discs.reductions.penalised` adds: always an InputError."""
        raise InputError(
            f"{source.form.name}: a problem with constraints can only be solved, by sl_discs.solve; to sample, "
            "put penalties for the constraints into Q"
        )

    def terms(self, source: ConstrainedForm, penalty: float = PENALTY) -> Coefficients:
        return self.sampled(source, penalty)

    def fixed(self, source, penalty, state, free):
        matrix = source.matrix
        done = np.asarray(matrix[:, ~free] @ state[~free].astype(np.int64))
        left = sparse.csr_array(matrix[:, free])
        least, most = (np.asarray(side(0).sum(axis=1)) for side in (left.minimum, left.maximum))
        low, high = np.maximum(source.low - done, least), np.minimum(source.high - done, most)
        rows = itertools.pairwise(left.indptr.tolist())
        divisors = np.array([math.gcd(*left.data[start:stop].tolist()) or 1 for start, stop in rows], np.int64)
        impossible = -(-low // divisors) > high // divisors
        if impossible.any():
            raise InputError(
                f"{source.form.name}: with these values {source.names[int(np.argmax(impossible))]} cannot hold"
            )
        form, open_rows = source.form.fixed(state, free), np.flatnonzero(np.diff(left.indptr))
        if not len(open_rows):
            return "qubo", form
        names = tuple(source.names[row] for row in open_rows)
        return self.name, ConstrainedForm(form, left[open_rows], low[open_rows], high[open_rows], names)

    def objective(self, source: ConstrainedForm, penalty: float) -> Coefficients:
        return form_coefficients(source.form)

    def allowed(self, source: ConstrainedForm, states: Int8[np.ndarray, "B N"]) -> Bool[np.ndarray, "B"]:
        return np.asarray(source.met(states).all(axis=1))

    def violated(
        self, source: ConstrainedForm, state: Int8[np.ndarray, "N"], labels: Sequence[Hashable]
    ) -> list[str]:
        return [source.names[c] for c in np.flatnonzero(~source.met(state[None])[0])]


CONSTRAINED = ConstrainedKind(name="constrained").register()


# dimod's constrained quadratic models of binary variables as problems; dimod itself is not needed.

# Coefficients such as 0.1 are read as the fraction of the smallest denominator, up to this one, that they equal.
_LARGEST_DENOMINATOR = 10_000


@timed
def from_cqm(cqm: Any, *, maximise: bool = False, name: str = "cqm") -> Problem:
    """A dimod constrained quadratic model of binary variables, with its own labels and order.

    Spins s are replaced by 2x - 1 without rounding, so that answers have 1 for spin 1 and 0 for spin -1.

    Args:
      cqm: a `dimod.ConstrainedQuadraticModel` whose variables are BINARY or SPIN and whose constraints are linear
        with rational coefficients, which are scaled to whole numbers.
      maximise: whether the largest value of its objective is the best; otherwise the smallest one is.
      name: used in results.

    Raises:
      InputError: it is not such a model: a variable of another type, a quadratic or soft constraint, or one whose
        coefficients are not rational with small denominators; or as `sl_discs.qubo`.
    """
    if not all(hasattr(cqm, part) for part in ("objective", "constraints", "variables", "vartype")):
        raise InputError(f"{name}: a {type(cqm).__name__} where a dimod ConstrainedQuadraticModel is expected")
    labels = list(cqm.variables)
    if not labels:
        raise InputError(f"{name}: no variables; give at least one")
    types = {label: cqm.vartype(label).name for label in labels}
    for label, kind in types.items():
        if kind not in ("BINARY", "SPIN"):
            raise InputError(f"{name}: the variable {label!r} is {kind}; only BINARY and SPIN ones are supported")
    spins = {label for label, kind in types.items() if kind == "SPIN"}
    constraints = [_constraint(name, word, one, spins) for word, one in cqm.constraints.items()]
    # LP files may give binary variables narrower bounds.
    binary = [label for label in labels if label not in spins]
    constraints += [Linear({one: 1}, ">=", 1, f"bound of {one}") for one in binary if cqm.lower_bound(one) > 0]
    constraints += [Linear({one: 1}, "<=", 0, f"bound of {one}") for one in binary if cqm.upper_bound(one) < 1]
    form = dataclasses.replace(
        _objective(name, cqm.objective, labels, spins), maximise=boolean(f"{name}: maximise", maximise)
    )
    return with_constraints(name, in_order(labels), form, constraints)


def _objective(name: str, model: Any, labels: list, spins: set[Hashable]) -> QuadraticForm:
    """The form in zeros and ones: s_i s_j = 4 x_i x_j - 2 x_i - 2 x_j + 1, and so on where only one is a spin."""
    place = {label: k for k, label in enumerate(labels)}
    scale = np.array([2.0 if label in spins else 1.0 for label in labels])
    shift = np.array([-1.0 if label in spins else 0.0 for label in labels])
    given = real_array(f"{name}: linear biases", [model.linear.get(label, 0.0) for label in labels])
    pairs = np.array([(place[u], place[v]) for u, v in model.quadratic], np.int64).reshape(-1, 2)
    couplings = real_array(f"{name}: quadratic biases", list(model.quadratic.values()))
    first, second = pairs.T
    offset = real(f"{name}: offset", model.offset)
    check_sum(name, given, couplings, offset)
    # Products with -2, -1, 1, 2 and 4 are exact, sums are kept as numbers that add up exactly.
    terms: list[list[float]] = [[number] for number in (given * scale).tolist()]
    for here, there in ((first, second), (second, first)):
        shared = (couplings * scale[here] * shift[there]).tolist()
        for one, number in zip(here.tolist(), shared, strict=True):
            terms[one].append(number)
    constants = [offset, *(given * shift), *(couplings * shift[first] * shift[second])]
    return QuadraticForm.from_sums(name, terms, pairs, couplings * scale[first] * scale[second], constants)


def _constraint(name: str, word: Hashable, one: Any, spins: set[Hashable]) -> Linear:
    where = f"{name}: the constraint {word!r}"
    side = one.lhs
    if len(side.quadratic):
        raise InputError(f"{where} is quadratic; only linear ones are supported")
    if getattr(side, "is_soft", bool)():
        raise InputError(f"{where} is soft; put its penalty into the objective")
    numbers = {label: _rational(where, value) for label, value in side.linear.items()}
    bound = _rational(where, one.rhs) - _rational(where, side.offset)
    bound += sum(numbers[label] for label in numbers if label in spins)
    numbers = {label: 2 * value if label in spins else value for label, value in numbers.items()}
    denominator = math.lcm(bound.denominator, *(value.denominator for value in numbers.values()))
    scaled = {label: int(value * denominator) for label, value in numbers.items()}
    with errors_of(where):
        return Linear(scaled, one.sense.value, int(bound * denominator), str(word))


def _rational(where: str, value: float) -> Fraction:
    value = real(f"{where}: a coefficient", value)
    found = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if float(found) != value:
        raise InputError(
            f"{where} has the coefficient {value!r}; expected whole numbers, or fractions with denominators up to "
            f"{_LARGEST_DENOMINATOR:,}"
        )
    return found
