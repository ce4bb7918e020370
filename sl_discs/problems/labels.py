"""Labels in JSON files."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.errors import InputError


def plain_label(path: Path, label: Hashable) -> Any:
    """A label as a plain value; tuples become lists.

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
        f"{path}: the label {label!r} is a {type(label).__name__}; relabel with numbers, strings or tuples to save"
    )


def label_of(plain: Any) -> Hashable:
    """The label of `plain_label`."""
    return tuple(map(label_of, plain)) if isinstance(plain, list) else plain
