"""The exceptions that a user's mistake raises, and the checks of arguments that raise them."""

import contextlib
import difflib
import importlib
import math
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64


class InputError(ValueError):
    """Bad input: its one-line message says what is wrong, where, and what to do about it.

    Commands print only the message, without a traceback, and exit with code 2.

    Attributes:
      argument: name of the function argument with which the message begins, which a command writes as its flag; None
        if it begins otherwise. Fields of configs are written as `sampler_config.sigma` anywhere in a message.
    """

    def __init__(self, message: str, argument: str | None = None):
        super().__init__(message)
        self.argument = argument

    def reword(self, message: str) -> None:
        """Replaces the message by one with the names that the user typed."""
        self.args = (message,)
        self.argument = None


class FormatError(InputError):
    """A file's content is damaged, or is not what its format, or the program that reads it, asks for."""


class NotSupported(InputError):
    """Valid in itself, but this package cannot do it: a sampler on an engine, or a format that it does not read."""


class MissingExtra(InputError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def import_extra(name: str) -> Any:
    """Returns a module of an optional package; MissingExtra if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(f"this needs {name}; install it with: pip install {name}") from error


# EX_TEMPFAIL in sysexits.h, the exit code after `Interrupted`: the same command, run again, continues.
RESUME_ME = 75


class Interrupted(Exception):
    """The run was told to stop and has saved its state in a folder or another named place."""

    def __init__(self, place: Path | str):
        super().__init__(f"interrupted; the same command, run again, continues from {place}")


@contextlib.contextmanager
def fields_are_keywords() -> Iterator[None]:
    """Makes errors name `sigma` alone, for functions that take the fields of a sampler's config as keywords."""
    try:
        yield
    except InputError as error:
        error.reword(str(error).replace("sampler_config.", ""))
        raise


@contextlib.contextmanager
def errors_of(where: object) -> Iterator[None]:
    """Errors of the block are of the content of a file: FormatError, unless they are of another kind than InputError.

    They begin with `where` they are, such as the path of the file, unless they do already.
    """
    try:
        yield
    except InputError as error:
        if not str(error).startswith(str(where)):
            error.reword(f"{where}: {error}")
        if type(error) is InputError:
            raise FormatError(*error.args) from error.__cause__
        raise


def unmasked(name: str, values: Any) -> Any:
    """Returns values without NumPy's mask; InputError where it hides some, which `np.asarray` would uncover."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if np.ma.is_masked(values):
        raise InputError(f"{name}: masked entries; fill them, or leave them out")
    return values.data


# Numbers in double precision that are the numbers that were given.


def exact_doubles(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers of any type as float64; InputError for a whole number beyond 2^53 that is not exact, or no number."""
    try:
        given = np.asarray(values)
        numbers = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number; give numbers") from None
    except OverflowError:
        raise InputError(f"{name}: a number beyond the range of double precision; scale all of them") from None
    large = np.abs(numbers) >= 2**53
    if large.any():
        # Among fractions NumPy has rounded whole numbers already.
        given = given if isinstance(values, np.ndarray) else np.asarray(values, object)
        for value, number in zip(given[large].tolist(), numbers[large].tolist(), strict=True):
            value = value.item() if isinstance(value, np.generic) else value
            if value != number:
                raise InputError(
                    f"{name}: {value} is beyond 2^53 and not exact in double precision; scale all of them"
                )
    return numbers


# Checks of arguments: each returns the value in a plain type, or raises an InputError that names the argument.


# The longest value that a message repeats.
_LONGEST = 80


def shown(value: Any) -> str:
    """Returns a value as messages show it, in one line: of arrays, tables and long values, the type and size."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    shape = getattr(value, "shape", None)
    size = f" of shape {shape}" if shape else f" of length {len(value)}" if isinstance(value, Sized) else ""
    return f"a {type(value).__name__}{size}"


def join_names(names: Iterable[str], joined: str = "or") -> str:
    """`mis, maxcut or maxclique`."""
    *others, last = names
    return f"{', '.join(others)} {joined} {last}" if others else last


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


def mapping(name: str, value: Any) -> dict[str, Any]:
    """Returns a dict with names as keys, from any mapping, or None for an empty one."""
    if not (value is None or (isinstance(value, Mapping) and all(isinstance(key, str) for key in value))):
        raise InputError(f"{name} is {shown(value)}; expected a dict of values by name", name)
    return dict(value or {})


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
    """Returns a finite number, Python's or NumPy's, but not a boolean; at least `least`, and larger than `above`."""
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
            f"{where}: {shown(label)} is not a label; expected a number, a string or a tuple of these"
        ) from None


def boolean(name: str, value: Any) -> bool:
    """Returns True or False, Python's or NumPy's."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {shown(value)}; expected True or False", name)
    return bool(value)


def real_array(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers in an array of any shape, not necessarily finite.

    Booleans, complex numbers, strings, and whole numbers that are not exact in double precision are refused.
    """
    values = unmasked(name, values)
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
            raise InputError(f"{name}: {shown(value)} where a real number is expected") from None
    return exact_doubles(name, values)


def keywords(given: Iterable[str], arguments: Collection[str], sampler: str, fields: Collection[str]) -> None:
    """Names that are not among a function's own arguments must be fields of its sampler's config."""
    for name in given:
        if name not in fields:
            near = difflib.get_close_matches(name, [*arguments, *fields])
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            if name == "beta" and "temperature" in arguments:
                meant = "use temperature = 1/beta; "
            raise InputError(
                f"there is no argument {name!r}, and sampler {sampler!r} has no field {name!r}; "
                f"{meant}its fields: {', '.join(fields) or 'none'}"
            )
