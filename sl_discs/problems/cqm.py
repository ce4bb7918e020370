"""dimod's constrained quadratic models of binary variables as problems; dimod itself is not needed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sl_discs.errors import InputError, real, real_array
from sl_discs.instances.form import QuadraticForm, check_sum, expansion
from sl_discs.problems.constraints import Linear, with_constraints
from sl_discs.problems.problem import Problem, in_order, timed

# Coefficients such as 0.1 are read as the fraction of the smallest denominator, up to this one, that they equal.
_LARGEST_DENOMINATOR = 10_000


@timed
def from_cqm(cqm: Any, *, name: str = "cqm") -> Problem:
    """A dimod constrained quadratic model of binary variables, to be minimised, with its own labels and order.

    Spins s are replaced by 2x - 1 without rounding, so that answers have 1 for spin 1 and 0 for spin -1.

    Args:
      cqm: a `dimod.ConstrainedQuadraticModel` whose variables are BINARY or SPIN and whose constraints are linear
        with rational coefficients, which are scaled to whole numbers.
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
    return with_constraints(name, in_order(labels), _objective(name, cqm.objective, labels, spins), constraints)


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
    sums = [expansion(numbers) for numbers in terms]
    linear = [numbers[0] if numbers else 0.0 for numbers in sums]
    rest = [(one, number) for one, numbers in enumerate(sums) for number in numbers[1:]]
    own = np.array([(one, one) for one, _ in rest], np.int64).reshape(-1, 2)
    constants = expansion([offset, *(given * shift), *(couplings * shift[first] * shift[second])])
    return QuadraticForm.from_arrays(
        name,
        linear,
        np.concatenate([pairs, own]),
        np.concatenate([couplings * scale[first] * scale[second], [number for _, number in rest]]),
        constants[0] if constants else 0.0,
        offset_rest=constants[1:],
    )


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
    return _whole(where, numbers, one.sense.value, bound, str(word))


def _rational(where: str, value: float) -> Fraction:
    value = real(f"{where}: a coefficient", value)
    found = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if float(found) != value:
        raise InputError(
            f"{where} has the coefficient {value!r}; expected whole numbers, or fractions with denominators up to "
            f"{_LARGEST_DENOMINATOR:,}"
        )
    return found


def _whole(where: str, numbers: Mapping[Hashable, Fraction], sense: str, bound: Fraction, word: str) -> Linear:
    scale = math.lcm(bound.denominator, *(value.denominator for value in numbers.values()))
    whole = {label: int(value * scale) for label, value in numbers.items()}
    try:
        return Linear(whole, sense, int(bound * scale), word)
    except InputError as error:
        error.reword(f"{where}: {error}")
        raise
