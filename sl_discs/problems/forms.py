"""QUBO and Ising models in the forms that people have them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from sl_discs.checks import real_array
from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.problems.matrices import square
from sl_discs.problems.problem import Problem, in_order


def qubo(Q: Any, *, offset: float = 0.0, maximise: bool = False, name: str = "qubo") -> Problem:
    """offset + sum Q_ij x_i x_j over the entries of Q, with x in {0, 1}: x'Qx.

    Every entry counts as it stands: an asymmetric matrix is as good as a symmetric one, and the pair i, j has the
    coefficient Q_ij + Q_ji.

    Args:
      Q: a dict {(i, j): number} with any labels, where (i, i) is linear; or a matrix [N, N], dense or SciPy's sparse.
      offset: a constant.
      maximise: whether the largest value is the best.
      name: what results call it.

    Raises:
      InputError: no variables, a matrix that is not square, a number that is not finite, a key that is not a pair.
    """
    if isinstance(Q, Mapping):
        pairs, couplings = _pairs_of(name, "Q", Q)
        labels = _labels_of(name, pairs)
        size, (rows, columns), values = len(labels), _positions(name, labels, pairs), couplings
    else:
        size, rows, columns, values = square(name, "Q", Q)
        labels = range(size)
    _check_finite(name, "Q", labels, rows, columns, values)
    own = rows == columns
    linear = np.zeros(size)
    linear[rows[own]] = values[own]
    pairs = np.stack([rows[~own], columns[~own]], axis=1)
    form = QuadraticForm.from_arrays(name, linear, pairs, values[~own], offset, maximise=maximise)
    return Problem("qubo", name, labels, form)


def ising(h: Any, J: Any, *, offset: float = 0.0, maximise: bool = False, name: str = "ising") -> Problem:
    """offset + sum h_i s_i + sum J_ij s_i s_j over the entries of h and J, with s in {-1, 1}: dimod's energy.

    Every entry of J counts as it stands, so the two halves of a symmetric matrix count both; s_i s_i is 1.

    Args:
      h: a dict {i: number} with any labels, numbers [N], or None for none.
      J: a dict {(i, j): number}, a matrix [N, N], dense or SciPy's sparse, or None for none. Beside an array, the
        labels of a dict are 0 .. N-1.
      offset: a constant.
      maximise: whether the largest value is the best.
      name: what results call it.

    Raises:
      InputError: no variables, arrays of other shapes, a number that is not finite, a key that is not a pair.
    """
    h, J = ({} if one is None else one for one in (h, J))
    pairs, couplings = _pairs_of(name, "J", J) if isinstance(J, Mapping) else ([], [])
    size = rows = None
    if not isinstance(J, Mapping):
        size, rows, columns, couplings = square(name, "J", J)
    if not isinstance(h, Mapping):
        numbers = real_array(f"{name}: h", h)
        if numbers.ndim != 1 or (size is not None and len(numbers) != size):
            raise InputError(f"{name}: h has shape {numbers.shape}; expected [{'N' if size is None else size}]")
        size, h = len(numbers), dict(enumerate(numbers))
    labels = _labels_of(name, pairs, h) if size is None else range(size)
    [places] = _positions(name, labels, [(label,) for label in h]) if h else [np.zeros(0, np.int64)]
    if rows is None:
        rows, columns = _positions(name, labels, pairs)
    linear = np.zeros(len(labels))
    linear[places] = real_array(f"{name}: h", list(h.values()))
    _check_finite(name, "h", labels, places, places, linear[places])
    _check_finite(name, "J", labels, rows, columns, couplings)
    pairs = np.stack([rows, columns], axis=1)
    form = QuadraticForm.from_arrays(name, linear, pairs, couplings, offset, spins=True, maximise=maximise)
    return Problem("ising", name, labels, form)


def _pairs_of(name: str, what: str, terms: Mapping) -> tuple[list[tuple], np.ndarray]:
    for key in terms:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InputError(f"{name}: {what} has the key {key!r}; expected a pair of labels (i, j)")
    return list(terms), real_array(f"{name}: {what}", list(terms.values()))


def _labels_of(name: str, pairs: Iterable[tuple], first: Iterable[Hashable] = ()):
    """Labels as they appear; 0 .. n-1, in whatever order they do, is a range."""
    labels = list(dict.fromkeys([*first, *(label for pair in pairs for label in pair)]))
    if not labels:
        raise InputError(f"{name}: no variables; give at least one term")
    ints = [label for label in labels if isinstance(label, int | np.integer) and not isinstance(label, bool)]
    return in_order(sorted(ints) if len(ints) == len(labels) else labels)


def _positions(name: str, labels, keys: list[tuple]) -> np.ndarray:
    """Positions [K, M] of M keys of K labels each."""
    place = {label: k for k, label in enumerate(labels)}
    try:
        rows = [[place[label] for label in key] for key in keys]
    except KeyError as error:
        raise InputError(
            f"{name}: {error.args[0]!r} is not one of the labels 0..{len(labels) - 1}; beside an array, labels are "
            "its positions"
        ) from None
    return np.array(rows, np.int64).reshape(len(keys), -1 if keys else 2).T


def _check_finite(name: str, what: str, labels, rows, columns, values) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        k = int(np.argmax(wrong))
        ends = tuple(dict.fromkeys([labels[rows[k]], labels[columns[k]]]))
        raise InputError(f"{name}: {what} at {', '.join(map(repr, ends))} is {values[k]}; expected a finite number")
