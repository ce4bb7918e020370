"""Checks of the type and length of arrays in an `.npz` archive."""

from __future__ import annotations

import os

import numpy as np

from sl_discs.errors import InputError


def check_names(path: str | os.PathLike, names: np.ndarray) -> int:
    """Number of names, one per instance.

    Raises:
      InputError: they are not text of shape [G].
    """
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InputError(f"{path}: names is {names.dtype} of shape {names.shape}; expected text of shape [G]")
    return len(names)


def check_array(path: str | os.PathLike, key: str, array: np.ndarray, shape: tuple[int, ...], kinds: str) -> None:
    """Checks an array of integers (kinds `iu`), truth values (`b`) or numbers (`fiub`).

    Raises:
      InputError: it has another type or shape.
    """
    if array.shape != shape or array.dtype.kind not in kinds:
        what = {"iu": "integers", "b": "truth values"}.get(kinds, "numbers")
        raise InputError(f"{path}: {key} is {array.dtype} of shape {array.shape}; expected {what} of shape {shape}")


def check_rows(path: str | os.PathLike, key: str, array: np.ndarray, pointer_key: str, pointer: np.ndarray) -> None:
    """Checks pairs of integers and the pointer that assigns them to instances.

    Raises:
      InputError: the pairs are not integers of shape [rows, 2], or the pointer does not rise from 0 to their number.
    """
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {key} is {array.dtype} of shape {array.shape}; expected integers of shape [rows, 2]"
        )
    if pointer[0] != 0 or pointer[-1] != len(array) or (pointer[1:] < pointer[:-1]).any():
        raise InputError(f"{path}: {pointer_key} must rise from 0 to the number of {key}, {len(array)}")
