"""The choices of the benchmark commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sl_discs.errors import InputError
from sl_discs.samplers.single_site import SEQUENTIAL

# Engines that can be measured on any machine; the GPU engine has its own check.
ENGINES = ("reference", "cpu")
# Names for the case's own choice of a sampler: further fields, and its steps in the time of one default step.
TUNED = {"tuned": ({}, 1), "tuned-sequential": ({"scan": SEQUENTIAL}, 2)}


def check_choice(
    flag: str, chosen: Iterable[str], known: Iterable[str], absent: Mapping[str, str] | None = None
) -> None:
    """Checks that all names of a list flag are known.

    Args:
      flag: name of the flag, without dashes.
      chosen: the given names.
      known: the available names.
      absent: names that could be made available, and how.

    Raises:
      InputError: a name is not available.
    """
    unknown = [name for name in chosen if name not in known]
    if unknown:
        how = f"; it needs {absent[unknown[0]]}" if absent and unknown[0] in absent else ""
        raise InputError(f"--{flag}: {unknown[0]!r} is not available{how}; there are {', '.join(known)}")
