"""Checks of arguments: each returns the value in a plain type, or raises an InputError that names the argument."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.errors import InputError
from sl_discs.exact_doubles import exact_doubles


def whole(name: str, value: Any, least: int = 0, bits: int | None = None) -> int:
    """A whole number, Python's or NumPy's, but not a boolean.

    Args:
      name: of the argument, as the user wrote it.
      value: the given value.
      least: the smallest one allowed.
      bits: 2^bits - 1 is the largest one allowed; None: no bound.
    """
    known = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if _is_enormous(value):
        raise InputError(f"{name} has over 300 digits; expected a smaller number", name)
    if not known or value < least or (bits is not None and value >= 2**bits):
        allowed = f", at least {least}" if bits is None else f" from {least} to 2^{bits} - 1"
        raise InputError(f"{name} is {value!r}; expected a whole number{allowed}", name)
    return int(value)


def real(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> float:
    """A finite number, Python's or NumPy's, but not a boolean.

    Args:
      name: of the argument, as the user wrote it.
      value: the given value.
      least: the smallest one allowed.
      above: it must be larger than this.
    """
    allowed = ""
    if _is_enormous(value):
        raise InputError(f"{name} has over 300 digits; expected a finite number", name)
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        if (least is None or not value < least) and (above is None or not value <= above):
            return exact_doubles(name, value).item()
        allowed = f", at least {least:g}" if least is not None else f" above {above:g}"
    shown = value.item() if isinstance(value, np.generic) else value
    raise InputError(f"{name} is {shown!r}; expected a finite number{allowed}", name)


def _is_enormous(value: Any) -> bool:
    """Whether a number is too large for a float, or to be written down."""
    return isinstance(value, int | Fraction) and not -(2**1023) <= value <= 2**1023


def check_label(where: str, label: Any) -> None:
    """An InputError unless it is hashable, as labels are."""
    try:
        hash(label)
    except TypeError:
        raise InputError(
            f"{where}: {label!r} is not a label; expected a number, a string or a tuple of these"
        ) from None


def boolean(name: str, value: Any) -> bool:
    """True or False, Python's or NumPy's."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r}; expected True or False", name)
    return bool(value)


def real_array(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers in an array of any shape, not necessarily finite.

    Booleans, complex numbers, strings, and whole numbers that are not exact in double precision are refused.
    """
    try:
        found = np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths; expected numbers in a rectangular array") from None
    mixed = isinstance(values, list | tuple) and bool in set(map(type, values))
    if found.dtype.kind in "iuf" and not mixed:
        return exact_doubles(name, values)
    for value in values if mixed else found.ravel().tolist():
        try:
            if isinstance(value, bool | str | bytes):
                raise TypeError
            float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name}: {value!r} where a real number is expected") from None
    return exact_doubles(name, values)


def keywords(given: Iterable[str], arguments: Collection[str], sampler: str, fields: Collection[str]) -> None:
    """Names that are not among a function's own arguments must be fields of its sampler's config.

    Args:
      given: the names.
      arguments: the function's own, which may have been misspelt.
      sampler: name of the sampler.
      fields: of its config.
    """
    for name in given:
        if name not in fields:
            near = difflib.get_close_matches(name, [*arguments, *fields])
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            raise InputError(
                f"there is no argument {name!r}, and sampler {sampler!r} has no field {name!r}; "
                f"{meant}its fields: {', '.join(fields) or 'none'}"
            )
