"""The entries of dense and SciPy sparse matrices; SciPy itself is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from sl_discs.errors import InputError, check_number, real_array


def is_sparse(matrix: Any) -> bool:
    """Whether this is one of SciPy's sparse matrices or arrays, of any format."""
    return hasattr(matrix, "tocoo")


def entries(
    name: str, matrix: Any
) -> tuple[Int64[np.ndarray, "M"], Int64[np.ndarray, "M"], Float64[np.ndarray, "M"]]:
    """Rows, columns and values of the nonzero entries of a sparse matrix; duplicates are summed.

    Raises:
      InputError: the entries are not real numbers; the message gives the matrix this name.
    """
    coo = matrix.tocoo(copy=True)
    if coo.data.dtype.kind in "iu" and coo.data.dtype.itemsize < 8:
        coo.data = coo.data.astype(np.int64)  # in which duplicates sum without overflow
    coo.sum_duplicates()
    values = real_array(name, coo.data)
    kept = values != 0
    return coo.row[kept].astype(np.int64), coo.col[kept].astype(np.int64), values[kept]


def square(name: str, what: str, matrix: Any):
    """Size, rows, columns and values of the nonzero entries of a dense or sparse [N, N] matrix.

    Raises:
      InputError: it is not a square matrix of numbers, or one of more than 2^31 - 1 rows.
    """
    if not is_sparse(matrix):
        matrix = real_array(f"{name}: {what}", matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise InputError(f"{name}: {what} has shape {matrix.shape}; expected a dict, or a square matrix [N, N]")
    check_number(f"{name}: {matrix.shape[0]} variables", matrix.shape[0], "so leave those without terms out")
    if is_sparse(matrix):
        return matrix.shape[0], *entries(f"{name}: {what}", matrix)
    matrix = _folded(matrix)
    rows, columns = np.nonzero(matrix)
    return matrix.shape[0], rows, columns, matrix[rows, columns]


def _folded(matrix: Float64[np.ndarray, "N N"]) -> Float64[np.ndarray, "N N"]:
    """The upper triangle with both entries of each pair summed, if all sums are exact; otherwise the matrix itself.

    Exact sums halve the number of terms and keep every value of the problem.
    """
    lower = np.tril(matrix, -1).T
    total = np.triu(matrix) + lower
    # The rounding error of each sum (Knuth's two-sum); NaN where an entry is not finite.
    part = total - lower
    with np.errstate(invalid="ignore"):
        lost = (np.triu(matrix) - part) + (lower - (total - part))
    return total if not lost.any() else matrix
