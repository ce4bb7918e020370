"""What the benchmark commands can choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sl_discs.errors import InputError
from sl_discs.samplers.single_site import SEQUENTIAL

# Those that can be measured on any machine; the GPU engine needs one, and is chosen by no benchmark.
ENGINES = ("reference", "cpu")
# What stands for the case's own choice of a sampler: further fields, and its steps in the time of one by default.
TUNED = {"tuned": ({}, 1), "tuned-sequential": ({"scan": SEQUENTIAL}, 2)}


def check_choice(
    flag: str, chosen: Iterable[str], known: Iterable[str], absent: Mapping[str, str] | None = None
) -> None:
    """Whether all names of a list flag are known.

    Args:
      flag: without dashes.
      chosen: names that were given.
      known: names that there are.
      absent: names that there could be, and what to do for it.

    Raises:
      InputError: one that is not.
    """
    unknown = [name for name in chosen if name not in known]
    if unknown:
        how = f"; it needs {absent[unknown[0]]}" if absent and unknown[0] in absent else ""
        raise InputError(f"--{flag}: {unknown[0]!r} is not available{how}; there are {', '.join(known)}")
