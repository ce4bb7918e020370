"""Coefficients of a file as a quadratic form."""

from __future__ import annotations

import numpy as np

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats.number_rows import Columns


def both_directions(i, j, values: np.ndarray) -> np.ndarray:
    """Coefficients v_i v_j of a symmetric matrix given by one of each two mirrored entries; inf on overflow."""
    with np.errstate(over="ignore"):
        return np.where(i == j, values, 2 * values)


def quadratic_form(
    name: str, num_variables: int, i, j, values, rows: Columns, *, spins=False, maximise=False, add=False
) -> QuadraticForm:
    """The sum of values [E] times v_i v_j where i and j differ, and times v_i where i = j; indices count from 0.

    Args:
      name: name of the form.
      num_variables: number of variables N.
      i, j, values: [E], as above.
      rows: the lines of the coefficients, for messages.
      spins, maximise: as in `QuadraticForm`.
      add: whether repeated coefficients, in either direction, add up; otherwise they are an error.

    Raises:
      InputError: a repeated coefficient unless `add`, or a number beyond the range of a float.
    """
    rows.refuse(~np.isfinite(values), "coefficient {2} is too large; scale the model")
    if not add:
        codes = np.minimum(i, j) * np.int64(num_variables) + np.maximum(i, j)
        order = np.argsort(codes, kind="stable")
        again = np.zeros(len(codes), bool)
        again[order[1:]] = np.diff(codes[order]) == 0
        rows.refuse(again, "the coefficient of {0} and {1} was given before; give each pair once, in one direction")
    linear, own = np.zeros(num_variables), i == j
    with np.errstate(over="ignore"):
        np.add.at(linear, i[own], values[own])
    if add:
        largest = np.zeros(num_variables)
        with np.errstate(over="ignore"):
            np.add.at(largest, i[own], np.abs(values[own]))
        summed = np.bincount(i[own], minlength=num_variables)[i] > 1
        rows.refuse(
            own & summed & (largest[i] >= 2**53),
            "the coefficients of {0} add up to too much, beyond 2^53; scale the model",
        )
    pairs = np.stack([i[~own], j[~own]], axis=1)
    return QuadraticForm.from_arrays(name, linear, pairs, values[~own], spins=spins, maximise=maximise)
