"""QUBO and Ising models, from dicts, arrays, sparse matrices and dimod's binary quadratic
models.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float64, Int8, Int32, Int64

from sl_discs.instances.form import (
    FORM_PROBLEMS,
    FormValues,
    QuadraticForm,
    exact_parts,
    fraction,
)
from sl_discs.instances.graph import is_networkx
from sl_discs.models.terms import (
    form_coefficients,
    form_of_spins,
    has_integer_values,
    normal_form,
    spin_form,
)
from sl_discs.problems.kind import Evaluated, Kind, Units
from sl_discs.problems.problem import Problem, in_order, is_frame, matrix_of_frame, of_series
from sl_discs.support.checks import real, real_array
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_number

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel
    from numpy.typing import ArrayLike
    from pandas import DataFrame, Series
    from scipy import sparse

    Linear: TypeAlias = Mapping[Hashable, float] | ArrayLike | Series
    """Numbers by label, or [N]."""
    Quadratic: TypeAlias = (
        Mapping[tuple[Hashable, Hashable], float]
        | ArrayLike
        | sparse.sparray
        | sparse.spmatrix
        | DataFrame
    )
    """Numbers by pair of labels, or a matrix [N, N] of NumPy, SciPy or pandas."""
else:  # Anything else gets an `InputError`.
    BinaryQuadraticModel = Linear = Quadratic = object


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormKind(Kind):
    """A problem on a quadratic form: any state is feasible, and the form says whether its value is
    maximised.
    """

    def accepts(self, source: Any) -> bool:
        return isinstance(source, QuadraticForm) and source.spins == self.spins

    def magnitude(self, source: Any, penalty: float, *, offset: bool = True) -> float:
        return source.magnitude(offset=offset)

    def normal(self, source: Any) -> tuple[Any, Units]:
        form, unit, constant = normal_form(source)
        return form, Units(unit, constant)

    def fixed(self, source, penalty, state, free):
        return self.name, source.fixed(state, free)

    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        values = FormValues(source)
        return lambda states: Evaluated(values(states), np.ones(len(states), bool), states)

    def exact_values(self, source: Any, states: Int8[np.ndarray, "B N"]) -> list[Fraction]:
        return FormValues(source).exactly(states)


def form_bound(form: QuadraticForm) -> Fraction:
    """Returns a value that no answer to a form is better than, not rounded.

    It has the best sign of each term of spins, and leaves out terms of zeros and ones that make it
    worse.
    """
    terms = np.concatenate([form.linear, form.couplings])
    own = form.pairs[:, 0] == form.pairs[:, 1]
    if form.spins:
        best = np.abs(terms) if form.maximise else -np.abs(terms)
        # s_a s_a is 1, whatever its sign.
        best[len(form.linear) :][own] = form.couplings[own]
    else:
        best = np.maximum(terms, 0) if form.maximise else np.minimum(terms, 0)
    parts, (_, rest) = exact_parts(best)
    sums = [float(leading.sum()) for _, leading in parts]
    return fraction([form.offset, *sums, *rest.tolist()])


QUBO, ISING = (
    FormKind(
        name=name,
        recounted="all terms as given, summed in exact arithmetic",
        model=lambda form, penalty: form_coefficients(form),
        to_spins=spin_form,
        from_spins=lambda spins, form: (form_of_spins(spins, form), 0.0),
        bound=form_bound,
        bounded_by="the signs of its terms",
        integral=has_integer_values,
        spins=spins,
    ).register()
    for name, spins in FORM_PROBLEMS.items()
)


def qubo(
    Q: Quadratic | tuple[Quadratic, float],
    *,
    offset: float = 0.0,
    maximise: bool = False,
    name: str = "qubo",
) -> Problem:
    """offset + sum Q_ij x_i x_j over the entries of Q, with x in {0, 1}: x'Qx.

    Every entry counts: the matrix may be asymmetric, and the pair i, j has the coefficient Q_ij +
    Q_ji.

    Example:
        >>> problem = sl_discs.qubo({("a", "a"): -1, ("a", "b"): 2, ("b", "b"): -2})
        >>> sl_discs.solve(problem).best_sample
        {'a': 0, 'b': 1}

    Args:
      Q: a dict {(i, j): number} with any labels, where (i, i) is linear; a matrix [N, N], dense or
        SciPy's sparse; a DataFrame whose rows and columns have the same labels, in any order; or a
        dict and a constant, as of dimod's `to_qubo()`.
      offset: a constant.
      maximise: whether the best value is the largest.
      name: used in results.

    Raises:
      InputError: no variables, a matrix that is not square, a number that is not finite, a key that
        is not a pair.
    """
    if isinstance(Q, tuple) and len(Q) == 2 and isinstance(Q[0], Mapping):
        Q, constant = Q
        offset = real(f"{name}: offset", offset) + real(f"{name}: offset", constant)
    labels, rows, columns, values = _by_label(name, "Q", Q)
    form = QuadraticForm.from_entries(
        name, len(labels), rows, columns, values, offset, maximise=maximise
    )
    return Problem("qubo", name, labels, form)


def ising(
    h: Linear | None,
    J: Quadratic,
    *,
    offset: float = 0.0,
    maximise: bool = False,
    name: str = "ising",
) -> Problem:
    """offset + sum h_i s_i + sum J_ij s_i s_j over the entries of h and J, with s in {-1, 1}:
    dimod's energy.

    Every entry of J counts, so both halves of a symmetric matrix do; s_i s_i is 1.

    Example:
        >>> problem = sl_discs.ising({"a": -0.5}, {("a", "b"): 1, ("b", "c"): 1})
        >>> sl_discs.solve(problem).best_sample
        {'a': 1, 'b': -1, 'c': 1}

    Args:
      h: a dict {i: number} with any labels, a Series, numbers [N], or None for none.
      J: a dict {(i, j): number}, a matrix [N, N] or a DataFrame as in `qubo`, or None for none.
        Together with an array, the labels of a dict are 0 .. N-1.
      offset: a constant.
      maximise: whether the best value is the largest.
      name: used in results.

    Raises:
      InputError: no variables, arrays of other shapes, a number that is not finite, a key that is
        not a pair.
    """
    h, J = ({} if terms is None else terms for terms in (h, J))
    h = of_series(f"{name}: h", h)
    size = None
    if isinstance(h, np.ma.MaskedArray):  # a masked entry is no field, and below no coupling
        h = h.filled(0)
    if not isinstance(h, Mapping):
        numbers = real_array(f"{name}: h", h)
        if numbers.ndim != 1:
            raise InputError(f"{name}: h has shape {numbers.shape}; expected [N]")
        size = len(numbers)
        h = dict(enumerate(numbers))
    labels, rows, columns, couplings = _by_label(name, "J", J, size, h)
    positions = _places(name, labels, h)
    linear = np.zeros(len(labels))
    linear[positions] = _numbers(f"{name}: h", h)
    _check_finite(name, "h", labels, positions, positions, linear[positions])
    pairs = np.stack([rows, columns], axis=1)
    form = QuadraticForm.from_arrays(
        name, linear, pairs, couplings, offset, spins=True, maximise=maximise
    )
    return Problem("ising", name, labels, form)


def from_bqm(bqm: BinaryQuadraticModel, *, name: str = "bqm") -> Problem:
    """Makes the problem of minimising a dimod model, with its own labels, order, vartype and
    offset.

    Values of answers are dimod's energies. What dimod makes of other models, such as
    `dimod.cqm_to_bqm`, is such a model.

    Example:
        >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -3.0}, 0.5, "BINARY")
        >>> result = sl_discs.solve(sl_discs.from_bqm(bqm))
        >>> result.best_sample, result.best_value
        ({'a': 1, 'b': 1}, -1.5)

    Args:
      bqm: a `dimod.BinaryQuadraticModel`, BINARY or SPIN.
      name: used in results.

    Raises:
      InputError: it is not such a model, has no variables, or holds a number that is not finite.
    """
    if not _is_bqm(bqm):
        kind = type(bqm).__name__
        how = f"; give {_TO_BQM[kind]}" if kind in _TO_BQM else ""
        raise InputError(f"{name}: a {kind} where a dimod BinaryQuadraticModel is expected{how}")
    labels = list(bqm.linear)
    if not labels:
        raise InputError(f"{name}: no variables; give at least one")
    index = {label: k for k, label in enumerate(labels)}
    linear = real_array(f"{name}: linear biases", [bqm.linear[label] for label in labels])
    pairs = np.array([(index[u], index[v]) for u, v in bqm.quadratic], np.int64).reshape(-1, 2)
    couplings = real_array(f"{name}: quadratic biases", list(bqm.quadratic.values()))
    spins = bqm.vartype.name == "SPIN"
    form = QuadraticForm.from_arrays(name, linear, pairs, couplings, bqm.offset, spins=spins)
    return Problem(form.own_problem, name, in_order(labels), form)


# Other models of dimod: what makes one with binary variables or spins only.
_TO_BQM = {
    "ConstrainedQuadraticModel": "dimod.cqm_to_bqm(model)[0], which has penalties for its "
    "constraints",
    "DiscreteQuadraticModel": (
        "dimod.cqm_to_bqm(dimod.ConstrainedQuadraticModel.from_discrete_quadratic_model(model))[0]"
    ),
    "QuadraticModel": "dimod.cqm_to_bqm("
    "dimod.ConstrainedQuadraticModel.from_quadratic_model(model))[0]",
    "BinaryPolynomial": "dimod.make_quadratic(model, strength, model.vartype) with a strength of "
    "your choice",
}


def _is_bqm(model: Any) -> bool:
    parts = all(hasattr(model, part) for part in ("linear", "quadratic", "offset", "vartype"))
    return parts and hasattr(model.vartype, "name")


# Terms by label.


def _by_label(
    name: str, what: str, terms: Any, size: int | None = None, more: Iterable[Hashable] = ()
) -> tuple[Sequence[Hashable], np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and the positions of both ends and the number of each entry of a dict {(i, j):
    number} or a matrix.

    Args:
      name: for messages.
      what: likewise: name of the dict or matrix.
      terms: the entries.
      size: number of variables, whose labels are then 0 .. size - 1; None: `terms` and `more` tell.
      more: further labels, which come first.

    Raises:
      InputError: no variables, a matrix of another size, a number that is not finite, a key that is
        not a pair.
    """
    labels: Sequence[Hashable]
    terms = of_series(f"{name}: {what}", terms)
    if isinstance(terms, Mapping):
        for key in terms:
            if not (isinstance(key, tuple) and len(key) == 2):
                raise InputError(
                    f"{name}: {what} has the key {key!r}; expected a pair of labels (i, j)"
                )
        labels = (
            range(size) if size is not None else _labels_of(name, itertools.chain(more, *terms))
        )
        values = _numbers(f"{name}: {what}", terms)
        rows, columns = _places(name, labels, itertools.chain.from_iterable(terms)).reshape(-1, 2).T
    else:
        given = None
        if is_frame(terms):
            given, terms = matrix_of_frame(f"{name}: {what}", terms)
        order, rows, columns, values = _of_matrix(name, what, terms)
        labels = range(order) if given is None else in_order(given)
        if size is not None and not isinstance(labels, range):
            raise InputError(
                f"{name}: {what} has labels and h has none; give h as a dict or Series"
            )
        if size is not None and size != order:
            raise InputError(
                f"{name}: h has length {size}, but {what} {order} rows; expected [{order}]"
            )
    _check_finite(name, what, labels, rows, columns, values)
    return labels, rows, columns, values


def _numbers(where: str, terms: Mapping) -> Float64[np.ndarray, "M"]:
    array = real_array(where, list(terms.values()))
    if array.ndim != 1:
        raise InputError(f"{where}: {next(iter(terms.values()))!r} where a real number is expected")
    return array


def _labels_of(name: str, wanted: Iterable[Hashable]) -> Sequence[Hashable]:
    """Labels in order of appearance; in ascending order, and a range without gaps, where all are
    whole numbers.
    """
    labels: list[Any] = list(dict.fromkeys(wanted))
    if not labels:
        raise InputError(f"{name}: no variables; give at least one term")
    whole = all(
        isinstance(label, int | np.integer) and not isinstance(label, bool) for label in labels
    )
    return in_order(sorted(labels) if whole else labels)


def _places(
    name: str, labels: Sequence[Hashable], used: Iterable[Hashable]
) -> Int32[np.ndarray, "M"]:
    index = {label: k for k, label in enumerate(labels)}
    try:
        return np.fromiter(map(index.__getitem__, used), np.int32)
    except KeyError as error:
        raise InputError(
            f"{name}: {error.args[0]!r} is not one of the labels {labels[0]!r} to "
            f"{labels[-1]!r}; together with an array, labels are its positions, and with a "
            "DataFrame its own"
        ) from None


def _check_finite(name: str, what: str, labels, rows, columns, values) -> None:
    for k in np.flatnonzero(~np.isfinite(values))[:1]:
        ends = tuple(dict.fromkeys([labels[rows[k]], labels[columns[k]]]))
        raise InputError(
            f"{name}: {what} at {', '.join(map(repr, ends))} is {values[k]}; expected a finite "
            "number"
        )


# The entries of dense and SciPy sparse matrices; SciPy itself is not needed.


def is_sparse(matrix: Any) -> bool:
    """Returns whether this is one of SciPy's sparse matrices or arrays, of any format."""
    return hasattr(matrix, "tocoo")


def entries(
    name: str, matrix: Any
) -> tuple[Int64[np.ndarray, "M"], Int64[np.ndarray, "M"], Float64[np.ndarray, "M"]]:
    """Rows, columns and values of the nonzero entries of a sparse matrix; duplicates are summed."""
    coo = matrix.tocoo(copy=True)
    if coo.data.dtype.kind in "iu" and coo.data.dtype.itemsize < 8:
        coo.data = coo.data.astype(np.int64)  # in which duplicates sum without overflow
    coo.sum_duplicates()
    values = real_array(name, coo.data)
    kept = values != 0
    return coo.row[kept].astype(np.int64), coo.col[kept].astype(np.int64), values[kept]


def _of_matrix(name: str, what: str, matrix: Any):
    """Size, rows, columns and values of the nonzero entries of a dense or sparse [N, N] matrix.

    Raises:
      InputError: it is not a square matrix of numbers, or one of more than 2^31 - 1 rows.
    """
    if isinstance(matrix, np.ma.MaskedArray):  # a masked entry is no coupling
        matrix = matrix.filled(0)
    if _is_bqm(matrix) or type(matrix).__name__ in _TO_BQM:
        raise InputError(f"{name}: {what} is a model of dimod; use sl_discs.from_bqm")
    if is_networkx(matrix):
        raise InputError(
            f"{name}: {what} is a graph; pose a problem on it, such as sl_discs.maxcut"
        )
    if not is_sparse(matrix):
        matrix = real_array(f"{name}: {what}", matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise InputError(
            f"{name}: {what} has shape {matrix.shape}; expected a dict, or a square matrix [N, N]"
        )
    check_number(
        f"{name}: {matrix.shape[0]} variables", matrix.shape[0], "so leave those without terms out"
    )
    if is_sparse(matrix):
        return matrix.shape[0], *entries(f"{name}: {what}", matrix)
    matrix = _folded(matrix)
    rows, columns = np.nonzero(matrix)
    return matrix.shape[0], rows, columns, matrix[rows, columns]


def _folded(matrix: Float64[np.ndarray, "N N"]) -> Float64[np.ndarray, "N N"]:
    """The upper triangle with both entries of each pair summed, if all sums are exact; otherwise
    the matrix itself.

    Exact sums halve the number of terms and keep every value of the problem.
    """
    lower = np.tril(matrix, -1).T
    # The rounding error of each sum (Knuth's two-sum); NaN where one is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.triu(matrix) + lower
        part = total - lower
        lost = (np.triu(matrix) - part) + (lower - (total - part))
    return total if not lost.any() else matrix
