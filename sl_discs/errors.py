"""The one exception that a user's mistake raises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


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


@contextlib.contextmanager
def fields_are_keywords() -> Iterator[None]:
    """For functions that take the fields of a sampler's config as keywords: errors name `sigma` alone."""
    try:
        yield
    except InputError as error:
        error.reword(str(error).replace("sampler_config.", ""))
        raise
