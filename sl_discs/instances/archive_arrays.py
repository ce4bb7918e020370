"""Arrays of an `.npz` archive, checked for presence, type and length; nothing in it is unpickled."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sl_discs.damaged_npz import DAMAGED_NPZ
from sl_discs.errors import InputError


def load_arrays(
    path: str | os.PathLike,
    required: Sequence[str],
    optional: Sequence[str] = (),
    wanted: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """The required arrays and the optional ones that are present, restricted to the wanted ones if given.

    Raises:
      InputError: the file is missing, cut short or not an archive, or a required array is missing.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; give the path of an .npz archive")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: not an .npz archive, or cut short; copy or make it again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in required if key not in archive.files]
            if missing:
                raise InputError(f"{path}: array {missing[0]!r} is missing; an archive has {', '.join(required)}")
            return {key: archive[key] for key in wanted or [*required, *optional] if key in archive.files}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except DAMAGED_NPZ as error:
        raise InputError(f"{path}: not a readable .npz archive ({error}); copy or make it again") from error


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
