"""Checks of arguments: each returns the value in a plain type, or raises an InputError that names
the argument.
"""

import difflib
import math
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Sized
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.support.doubles import exact_doubles, unmasked
from sl_discs.support.errors import InputError

# The longest value that a message repeats.
_LONGEST = 80


def shown(value: Any) -> str:
    """Returns a value as messages show it, in one line: of arrays, tables and long values, the type
    and size.
    """
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    shape = getattr(value, "shape", None)
    size = (
        f" of shape {shape}"
        if shape
        else f" of length {len(value)}"
        if isinstance(value, Sized)
        else ""
    )
    return f"a {type(value).__name__}{size}"


def join_names(names: Iterable[str], joined: str = "or") -> str:
    """`mis, maxcut or maxclique`."""
    *before, last = names
    return f"{', '.join(before)} {joined} {last}" if before else last


def text(name: str, value: Any) -> str:
    """Returns a string."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {shown(value)}; expected text", name)
    return value


def one_of(name: str, value: Any, known: Collection[str]) -> str:
    """Returns one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} is {shown(value)}; known: {', '.join(known)}", name)
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """Returns what can be called."""
    if not callable(value):
        raise InputError(f"{name} is {shown(value)}; expected a function", name)
    return value


def file_path(name: str, value: Any) -> Path:
    """Returns the path of a file, from text or a path."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} is {shown(value)}; expected the path of a file", name)
    return Path(value)


def integer(name: str, value: Any, least: int = 0, bits: int | None = None) -> int:
    """Returns a whole number from `least` to 2^bits - 1, Python's or NumPy's, but not a boolean."""
    known = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if _is_enormous(value):
        raise InputError(f"{name} has over 300 digits; expected a smaller number", name)
    if not known or value < least or (bits is not None and value >= 2**bits):
        allowed = f", at least {least}" if bits is None else f" from {least} to 2^{bits} - 1"
        raise InputError(f"{name} is {shown(value)}; expected a whole number{allowed}", name)
    return int(value)


def real(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> float:
    """Returns a finite number, Python's or NumPy's, but not a boolean; at least `least`, and larger
    than `above`.
    """
    allowed = ""
    if _is_enormous(value):
        raise InputError(f"{name} has over 300 digits; expected a finite number", name)
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        if (least is None or not value < least) and (above is None or not value <= above):
            return exact_doubles(name, value).item()
        allowed = f", at least {least:g}" if least is not None else f" above {above:g}"
    raise InputError(f"{name} is {shown(value)}; expected a finite number{allowed}", name)


def _is_enormous(value: Any) -> bool:
    """Returns whether a number is too large for a float, or to be written down."""
    return isinstance(value, int | Fraction) and not -(2**1023) <= value <= 2**1023


def check_label(where: str, label: Any) -> None:
    """Raises an InputError unless it is hashable, as labels are."""
    try:
        hash(label)
    except TypeError:
        raise InputError(
            f"{where}: {shown(label)} is not a label; expected a number, a string or a tuple of "
            "these"
        ) from None


def boolean(name: str, value: Any) -> bool:
    """Returns True or False, Python's or NumPy's."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}; expected True or False", name)
    return bool(value)


def real_array(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers in an array of any shape, not necessarily finite.

    Booleans, complex numbers, strings, and whole numbers that are not exact in double precision are
    refused.
    """
    values = unmasked(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name}: rows of different lengths; expected numbers in a rectangular array"
        ) from None
    mixed = isinstance(values, list | tuple) and bool in set(map(type, values))
    if array.dtype.kind in "iuf" and not mixed:
        return exact_doubles(name, values)
    for value in values if mixed else array.ravel().tolist():
        try:
            if isinstance(value, bool | str | bytes):
                raise TypeError
            float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name}: {shown(value)} where a real number is expected") from None
    return exact_doubles(name, values)


def keywords(
    names: Iterable[str], arguments: Collection[str], sampler: str, fields: Collection[str]
) -> None:
    """Names that are not among a function's own arguments must be fields of its sampler's
    config.
    """
    for name in names:
        if name not in fields:
            near = difflib.get_close_matches(name, [*arguments, *fields])
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            if name == "beta" and "temperature" in arguments:
                meant = "use temperature = 1/beta; "
            raise InputError(
                f"there is no argument {name!r}, and sampler {sampler!r} has no field {name!r}; "
                f"{meant}its fields: {', '.join(fields) or 'none'}"
            )


def check_choice(flag: str, chosen: Iterable[str], known: Collection[str]) -> None:
    """Raises an InputError unless all chosen names of a list flag are known."""
    for name in chosen:
        one_of(f"--{flag}", name, known)
