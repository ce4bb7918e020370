"""The portable form of quadratic models: one NumPy `.npz` archive that holds many, as `archive` does for graphs.

Arrays: `names [G]`, `num_variables [G]`, `linear [sum of num_variables]` (model after model), `pair_ptr [G+1]`,
`pairs [M, 2]` (0-based; model k owns the rows from `pair_ptr[k]` up to `pair_ptr[k+1]`), `couplings [M]`,
`offset [G]`, `spins [G]` and `maximise [G]` (booleans), and `reference [G]` (best known value; NaN if there is
none). Terms are stored as they were given, see `QuadraticForm`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError
from sl_discs.instances.archive_arrays import check_array, check_names, check_rows
from sl_discs.instances.form import QuadraticForm
from sl_discs.npz import read_npz, save_npz

KEYS = (
    "names",
    "num_variables",
    "linear",
    "pair_ptr",
    "pairs",
    "couplings",
    "offset",
    "spins",
    "maximise",
    "reference",
)


def write_forms(path: str | os.PathLike, forms: Sequence[QuadraticForm]) -> None:
    """Writes models as an archive, bit by bit; a reader never sees a half-written file.

    Raises:
      InputError: the file cannot be written.
    """
    pairs = [np.zeros((0, 2), np.int32), *(form.pairs for form in forms)]
    arrays: dict[str, Any] = {
        "names": np.array([form.name for form in forms], dtype=np.str_),
        "num_variables": np.array([form.num_variables for form in forms], dtype=np.int32),
        "linear": np.concatenate([np.zeros(0), *(form.linear for form in forms)]),
        "pair_ptr": np.cumsum([len(rows) for rows in pairs], dtype=np.int64),
        "pairs": np.concatenate(pairs),
        "couplings": np.concatenate([np.zeros(0), *(form.couplings for form in forms)]),
        "offset": np.array([form.offset for form in forms], dtype=np.float64),
        "spins": np.array([form.spins for form in forms], dtype=bool),
        "maximise": np.array([form.maximise for form in forms], dtype=bool),
        "reference": np.array(
            [np.nan if form.reference is None else form.reference for form in forms], dtype=np.float64
        ),
    }
    write_atomically(path, lambda file: save_npz(file, arrays))


def read_forms(path: str | os.PathLike) -> list[QuadraticForm]:
    """All models of an archive.

    Raises:
      InputError: the file is missing, cut short or not an archive; an array is missing, has the wrong type or a
        length that contradicts another; or a model is not valid.
    """
    arrays = read_npz(path, KEYS, KEYS)
    names, num_variables, linear, ptr, pairs, couplings, *_ = (arrays[key] for key in KEYS)
    count = check_names(path, names)
    for key, kinds in (
        ("num_variables", "iu"),
        ("spins", "b"),
        ("maximise", "b"),
        ("offset", "fiub"),
        ("reference", "f"),
    ):
        check_array(path, key, arrays[key], (count,), kinds)
    check_array(path, "pair_ptr", ptr, (count + 1,), "iu")
    check_rows(path, "pairs", pairs, "pair_ptr", ptr)
    check_array(path, "couplings", couplings, (len(pairs),), "fiub")
    if (num_variables < 0).any():
        raise InputError(f"{path}: num_variables has a negative number; make the archive again")
    ends = np.cumsum([0, *num_variables.tolist()])
    check_array(path, "linear", linear, (int(ends[-1]),), "fiub")
    forms = []
    for k in range(count):
        rows = slice(int(ptr[k]), int(ptr[k + 1]))
        try:
            forms.append(
                QuadraticForm.from_arrays(
                    str(names[k]),
                    linear[ends[k] : ends[k + 1]],
                    pairs[rows],
                    couplings[rows],
                    arrays["offset"][k],
                    spins=bool(arrays["spins"][k]),
                    maximise=bool(arrays["maximise"][k]),
                    reference=float(arrays["reference"][k]),
                )
            )
        except InputError as error:
            raise InputError(f"{path}: model {k}: {error}") from None
    return forms
