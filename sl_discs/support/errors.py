"""The exceptions that a user's mistake raises, and the checks of arguments that raise them."""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Bad input: its one-line message says what is wrong, where, and what to do about it.

    Commands print only the message, without a traceback, and exit with code 2.

    Attributes:
      argument: name of the function argument with which the message begins, which a command writes
        as its flag; None if it begins otherwise. Fields of configs are written as
        `sampler_config.sigma` anywhere in a message.
    """

    def __init__(self, message: str, argument: str | None = None):
        super().__init__(message)
        self.argument = argument


class FormatError(InputError):
    """A file's content is damaged, or is not what its format, or the program that reads it, asks
    for.
    """


class NotSupported(InputError):
    """Valid in itself, but this package cannot do it: a sampler on an engine, or a format that it
    does not read.
    """


class MissingExtra(InputError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def import_extra(name: str) -> Any:
    """Returns a module of an optional package; MissingExtra if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(f"this needs {name}; install it with: pip install {name}") from error


# EX_TEMPFAIL in sysexits.h, the exit code after `Interrupted`: the same command, run again,
# continues.
RESUME_ME = 75


class Interrupted(Exception):
    """The run was told to stop and has saved its state in a folder or another named place."""

    def __init__(self, place: Path | str):
        super().__init__(f"interrupted; the same command, run again, continues from {place}")


@contextlib.contextmanager
def fields_are_keywords() -> Iterator[None]:
    """Makes errors name `sigma` alone, for functions that take the fields of a sampler's config as
    keywords.
    """
    try:
        yield
    except InputError as error:
        error.args = (str(error).replace("sampler_config.", ""),)
        raise


@contextlib.contextmanager
def errors_of(where: object) -> Iterator[None]:
    """Errors of the block are of the content of a file: FormatError, unless they are of another
    kind than InputError.

    They begin with `where` they are, such as the path of the file, unless they do already.
    """
    try:
        yield
    except InputError as error:
        if not str(error).startswith(str(where)):
            error.args = (f"{where}: {error}",)
            error.argument = None
        if type(error) is InputError:
            raise FormatError(*error.args) from error.__cause__
        raise
