"""A problem with the user's labels, sense and offset, and the exact value of any answer."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Int, Int8

from sl_discs.instances.source import Source
from sl_discs.models.terms import Coefficients
from sl_discs.problems.kind import (
    KINDS,
    PENALTY,
    UNCHANGED,
    Evaluated,
    Kind,
    Units,
    checked_states,
    find_kind,
)
from sl_discs.support.checks import real, text
from sl_discs.support.doubles import unmasked
from sl_discs.support.errors import InputError

# What a problem is posed on, a `sl_discs.instances.source.Source`.
PosedOn = TypeVar("PosedOn", bound=Source)
# One answer: a value for each label, or values in the order of the labels.
Sample = Mapping[Hashable, int] | Sequence[int] | np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Problem(Generic[PosedOn]):
    """A problem exactly as it was given; made by `sl_discs.maxcut`, `sl_discs.qubo` and the other
    constructors.

    Example:
        >>> problem = sl_discs.maxcut([[0, 1], [1, 2], [2, 0]])
        >>> problem.num_variables, problem.maximise, problem.value([0, 1, 1])
        (3, True, 2.0)

    Attributes:
      kind: its name, such as `mis` or `qubo`.
      name: used in results.
      labels: N labels, a tuple or a range, in the order of the variables.
      source: what it is posed on: a graph, or a form with its sense and offset.
      penalty: of a conflict, for problems with conflicts: at least 1.
      left_out: what of its file could change the answer and was not read, in words: its results
        have no bound.
    """

    kind: str
    name: str
    labels: Sequence[Hashable]
    source: PosedOn
    penalty: float = PENALTY
    left_out: str = ""
    _units: Units = UNCHANGED

    def __post_init__(self):
        text("name", self.name)
        kind = find_kind(self.kind)
        if not kind.accepts(self.source):
            raise kind.refusal(self.name, self.source)
        distinct = self.labels if isinstance(self.labels, range) else set(self.labels)
        if not len(self.labels) == len(distinct) == self.num_variables:
            raise InputError(
                f"{self.name}: expected {self.num_variables} distinct labels, one per variable"
            )
        penalty = real(f"{self.name}: penalty", self.penalty, least=1)
        object.__setattr__(self, "penalty", penalty)  # as a float, which arrays of numbers take

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is pickled: the fields alone, since what was prepared from them holds
        functions.
        """
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    @property
    def num_variables(self) -> int:
        """Number of variables N."""
        return self.source.num_variables

    @property
    def maximise(self) -> bool:
        """Whether the best value is the largest."""
        maximise = self._kind.maximise
        source: Any = self.source
        return source.maximise if maximise is None else maximise

    @property
    def spins(self) -> bool:
        """Whether variables are -1 and 1 instead of 0 and 1."""
        return self._kind.spins

    def terms(self) -> Coefficients:
        """Returns the quadratic model that is maximised, see `Kind.model`."""
        return self._kind.model(self.source, self.penalty)

    @functools.cached_property
    def _evaluator(self) -> Callable[[np.ndarray], Evaluated]:
        return self._kind.evaluator(self.source)

    def magnitude(self, *, offset: bool = True) -> float:
        """Returns the magnitude of the objective's terms, see `Kind.magnitude`."""
        return self._kind.magnitude(self.source, self.penalty, offset=offset)

    @functools.cached_property
    def integer_values(self) -> bool:
        """Whether every value is surely a whole number."""
        integral = self._kind.integral
        return integral is not None and integral(self.source)

    @property
    def num_terms(self) -> int:
        """Number of edges or quadratic terms."""
        return self.source.num_terms

    def bound(self) -> Fraction | float | None:
        """Returns a value, in the problem's sense, that no answer is better than; None: none is
        known.
        """
        bound_of = self._kind.bound
        bound = bound_of(self.source) if bound_of else None
        return None if bound is None else rounded_bound(self, bound)

    def value(self, sample: Sample) -> float:
        """Returns the exact value of an answer, in the problem's own sense and offset.

        A set or clique with conflicts is repaired first.

        Args:
          sample: a value for each label, or N values in the order of `labels`; 0 and 1, or -1 and 1
            for `ising`.

        Raises:
          InputError: labels are missing or unknown, or a value is not one of these.
        """
        return float(self.evaluate(self.as_state(sample)[None]).values[0])

    def fix(self, values: Mapping[Hashable, int]) -> Problem:
        """The problem of the other variables where these have the given values, as in a conditional
        distribution.

        Its values are those of the whole, so that `solve` completes a partial answer and `sample`
        draws from the distribution given these values. A problem on a graph becomes a `qubo` with
        penalties for conflicts, in which nothing is repaired; the kind of other problems stays.
        With weights of nodes, a conflict with a given node counts as much as its other end, so that
        it never pays. Couplings with the given values are added to linear coefficients, and rounded
        once.

        Example:
            >>> problem = sl_discs.mis(nx.path_graph(4))
            >>> sl_discs.solve(problem.fix({1: 1})).best_sample
            {0: 0, 2: 0, 3: 1}

        Args:
          values: by label, 0 and 1, or -1 and 1 for `ising`.

        Raises:
          InputError: an unknown label, another value, no variable is left, or two of the values
            conflict.
        """
        if not isinstance(values, Mapping):
            raise InputError(
                f"{self.name}: values are {values!r}; expected a dict of a value by label"
            )
        known = set(self.labels)
        unknown = [label for label in values if label not in known]
        if unknown:
            raise InputError(
                f"{self.name}: {unknown[0]!r} is not a label; fix labels of the problem"
            )
        free = np.array([label not in values for label in self.labels], bool)
        if not free.any():
            raise InputError(
                f"{self.name}: all variables are fixed; `value` tells the value of a whole answer"
            )
        low = -1 if self.spins else 0
        state = self.as_state([values.get(label, low) for label in self.labels])
        # With all others left out of a set, or in a cover, only given values can conflict.
        state = np.where(free, np.int8(not self.maximise), state)
        repaired = np.flatnonzero(self.evaluate(state[None]).states[0] != state)
        if len(repaired):
            label = self.labels[repaired[0]]
            raise InputError(
                f"{self.name}: {values[label]} at {label!r} conflicts with another of the "
                f"values: no answer to {self.kind} has all of them; leave one out"
            )
        kind, source = self._kind.fixed(self.source, self.penalty, state, free)
        labels = [label for label, left in zip(self.labels, free, strict=True) if left]
        return Problem(kind, self.name, in_order(labels), source, left_out=self.left_out)

    def evaluate(self, states: np.ndarray) -> Evaluated:
        """Repairs and evaluates states [B, N] of zeros and ones (a one is spin 1), each distinct
        one once.

        Raises:
          InputError: a state has another shape or other values.
        """
        if is_frame(states):
            raise InputError(
                f"{self.name}: states in a DataFrame; give frame[list(problem.labels)].to_numpy()"
            )
        states = checked_states(self.name, states, self.num_variables)
        distinct, rows = _distinct(states.astype(np.int8))
        values, feasible, repaired = self._evaluator(distinct)
        return Evaluated(values[rows], feasible[rows], repaired[rows].astype(np.int8))

    def as_state(self, sample: Sample) -> Int8[np.ndarray, "N"]:
        """Returns an answer as [N] zeros and ones in the order of `labels`; InputError as
        `value`.
        """
        sample = of_series(f"{self.name}: the sample", sample)
        if isinstance(sample, Mapping):
            missing = [label for label in self.labels if label not in sample]
            if missing:
                raise InputError(
                    f"{self.name}: the sample has no value for {missing[0]!r}; give every label one"
                )
            if len(sample) > self.num_variables:
                known = set(self.labels)
                unknown = next(label for label in sample if label not in known)
                raise InputError(
                    f"{self.name}: the sample has a value for {unknown!r}, which is not a label"
                )
            sample = [sample[label] for label in self.labels]
        sample = unmasked(f"{self.name}: the sample", sample)
        try:
            values = np.asarray(sample)
        except ValueError:
            raise InputError(
                f"{self.name}: the sample has no rectangular shape; expected [{self.num_variables}]"
            ) from None
        if values.shape != (self.num_variables,):
            raise InputError(
                f"{self.name}: the sample has shape {values.shape}; expected [{self.num_variables}]"
            )
        low = -1 if self.spins else 0
        wrong = ~np.isin(values, (low, 1))
        if wrong.any():
            index = int(np.argmax(wrong))
            at = self.labels[index]
            raise InputError(
                f"{self.name}: the value at {at!r} is {values[index]}; expected {low} or 1"
            )
        return (values > 0).astype(np.int8)

    def as_values(self, states: np.ndarray) -> Int8[np.ndarray, "*B N"]:
        """States of zeros and ones in the problem's own values: -1 and 1 for `ising`."""
        states = np.asarray(states, np.int8)
        return (2 * states - 1).astype(np.int8) if self.spins else states

    def __repr__(self) -> str:
        sense = "maximise" if self.maximise else "minimise"
        return f"Problem({self.kind} {self.name!r}, {self.num_variables} variables, {sense})"


def _distinct(
    states: Int8[np.ndarray, "B N"],
) -> tuple[Int8[np.ndarray, "D N"], Int[np.ndarray, "B"]]:
    """Returns the distinct rows, and the number of each row among them; `np.unique` of rows as
    bytes, many times as fast.
    """
    if not states.size:
        return states, np.arange(len(states))
    rows = np.ascontiguousarray(states).view(np.dtype((np.void, states.shape[1])))[:, 0]
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    return states[first], inverse


def in_order(labels: Sequence[Any]) -> Sequence[Hashable]:
    """Labels as a range if they are 0 .. n-1 in this order, otherwise as a tuple."""
    plain = range(len(labels))
    plain_integers = all(
        isinstance(label, int | np.integer) and not isinstance(label, bool) for label in labels
    )
    return (
        plain if plain_integers and all(map(int.__eq__, plain, map(int, labels))) else tuple(labels)
    )


# Labelled tables of pandas, which is not imported: their labels count, and never the order of rows
# and columns.


def is_frame(table: Any) -> bool:
    """Returns whether this is a pandas DataFrame."""
    return all(hasattr(table, name) for name in ("columns", "index", "to_numpy"))


def is_series(value: Any) -> bool:
    """Returns whether this is a pandas Series."""
    return all(hasattr(value, name) for name in ("items", "index", "to_numpy")) and not hasattr(
        value, "columns"
    )


def of_series(name: str, given: Any) -> Any:
    """Returns a Series as a dict of its numbers by label, and anything else as it is.

    Raises:
      InputError: two of its labels are the same.
    """
    if not is_series(given):
        return given
    if not given.index.is_unique:
        raise InputError(
            f"{name}: the Series has the label {given.index[given.index.duplicated()][0]!r} twice"
        )
    return dict(zip(given.index.tolist(), given.tolist(), strict=True))


def samples_of_frame(given: Any) -> Any:
    """Returns a DataFrame of samples, one a row, as dicts by the labels of its columns; anything
    else as it is.
    """
    if not is_frame(given):
        return given
    labels = given.columns.tolist()
    return [dict(zip(labels, row, strict=True)) for row in given.to_numpy().tolist()]


def has_matrix(frame: Any) -> bool:
    """Returns whether the rows and columns of a DataFrame have the same labels, in any order."""
    unique = frame.index.is_unique and frame.columns.is_unique
    return unique and frame.shape[0] == frame.shape[1] and set(frame.index) == set(frame.columns)


def matrix_of_frame(name: str, frame: Any) -> tuple[list[Hashable], np.ndarray]:
    """Returns the labels of the rows of a square DataFrame, and its matrix [N, N] with columns in
    the same order.

    Raises:
      InputError: rows and columns have different labels.
    """
    if not has_matrix(frame):
        raise InputError(
            f"{name}: a DataFrame whose rows and columns have different labels; label both "
            "alike, or give frame.to_numpy(), in which places count"
        )
    labels = frame.index.tolist()
    return labels, frame[labels].to_numpy()


def checked_problem(problem: Any, classes: tuple[type, ...] = ()) -> Any:
    """Returns what a function takes as a problem, a `Problem` or one of some further classes.

    Raises:
      InputError: it is something else; the message says which function takes it, or what makes a
        problem.
    """
    if isinstance(problem, (Problem, *classes)):
        return problem
    if getattr(problem, "kind", None) == "log_density":
        raise InputError(
            "the problem is a log-density, which only sl_discs.sample takes: draw at a low "
            "temperature and take the "
            "best draw, or write it as a qubo"
        )
    raise InputError(
        f"the problem is a {type(problem).__name__}; make one with sl_discs.mis, sl_discs.qubo or "
        "another constructor"
    )


# What provers and results ask about answers and bounds, exactly.

# How far rounding in double precision moves a bound on whole numbers at most.
_ROUNDED = 1 / 64


def units(problem: Problem) -> Units:
    """Returns the units of a problem's values, of which those of the problem as it was given are
    made.
    """
    return problem._units


def normal_form(problem: Problem) -> Problem:
    """Returns the same problem in units of a power of two, in which its coefficients are in a fixed
    range.

    A problem times a power of two has the same normal form. So has a quadratic form with another
    constant, or with its terms in parts, where coefficients are whole multiples of one unit.
    """
    source, units = problem._kind.normal(problem.source)
    return dataclasses.replace(problem, source=source, _units=units)


def rounded_bound(problem: Problem, bound: Fraction | float) -> Fraction | float:
    """Returns a bound, up to errors of rounding, made as tight as whole numbers allow, where all
    values are whole.
    """
    if not (math.isfinite(bound) and problem.integer_values):
        return bound
    return float(np.floor(bound + _ROUNDED) if problem.maximise else np.ceil(bound - _ROUNDED))


def exact_values(problem: Problem, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
    """Returns the values of feasible states of zeros and ones before they are rounded."""
    return problem._kind.exact_values(problem.source, states)


def best_row(problem: Problem, evaluated: Evaluated) -> int:
    """Returns the row of the best state; of equal values in double precision, exact ones decide."""
    sign = 1 if problem.maximise else -1
    values = sign * evaluated.values
    equal = np.flatnonzero(values == values.max())
    if (
        len(equal) == 1
        or problem.integer_values
        or (evaluated.states[equal] == evaluated.states[equal[0]]).all()
    ):
        return int(equal[0])
    exact = [sign * value for value in exact_values(problem, evaluated.states[equal])]
    return int(equal[exact.index(max(exact))])


def reported_bound(
    problem: Problem, bound: Fraction | float, best: Int8[np.ndarray, "N"], value: float
) -> float:
    """Returns a bound as a double, on the problem as it was given.

    It is the `value` of the best answer there if and only if that reaches the bound exactly.
    Otherwise it is rounded away from the answers.
    """
    if compared(problem, best, bound) >= 0:
        return value
    sign = 1 if problem.maximise else -1
    exact = units(problem).exactly(bound)
    reported = float(exact)
    while not sign * Fraction(reported) >= sign * exact or reported == value:
        reported = math.nextafter(reported, sign * math.inf)
    return reported


def compared(problem: Problem, state: Int8[np.ndarray, "N"], bound: Fraction | float) -> int:
    """Returns 1 if a feasible state is better than a bound, 0 if it is as good, and -1 if it is
    worse, exactly.
    """
    sign = 1 if problem.maximise else -1
    value = float(problem.evaluate(state[None]).values[0])
    if not math.isfinite(bound) or sign * value < sign * float(bound):
        return -1
    exact = Fraction(value) if problem.integer_values else exact_values(problem, state[None])[0]
    difference = sign * (exact - Fraction(bound))
    return (difference > 0) - (difference < 0)


def improve(problem: Problem, states: Int8[np.ndarray, "B N"]) -> Int8[np.ndarray, "B N"]:
    """Feasible states, made at least as good by an exact local search where there is one for this
    problem.

    Of independent sets and covers, and of cliques in graphs with at least half of all edges: a node
    is exchanged for two (in a cover two for one) until that is not possible any more, or no gain
    with weights of nodes, see `sl_discs.problems.graph_kind.TwoImprovement`.
    """
    improve_of = problem._kind.improve
    improver = improve_of(problem.source) if improve_of else None
    if improver is None:
        return states
    distinct, rows = _distinct(states)
    improved = [improver(state.astype(bool)).astype(np.int8) for state in distinct]
    return np.stack(improved)[rows]


# Labels in JSON files.


def plain_label(path: Path, label: Hashable) -> Any:
    """Returns a label as a plain value; tuples become lists.

    Raises:
      InputError: it is not made of numbers, strings, None and tuples; the message names `path`.
    """
    if isinstance(label, tuple):
        return [plain_label(path, part) for part in label]
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, bool | int | float | str):
        return label
    raise InputError(
        f"{path}: the label {label!r} is a {type(label).__name__}; relabel with numbers, strings "
        "or tuples to save"
    )


def label_of(plain: Any) -> Hashable:
    """Returns the label of `plain_label`."""
    return tuple(map(label_of, plain)) if isinstance(plain, list) else plain
