"""The one exception that a user's mistake raises."""


class InputError(ValueError):
    """Bad input: its one-line message says what was wrong, where, and what to do about it.

    Commands print the message alone, without a traceback, and exit with code 2.
    """
