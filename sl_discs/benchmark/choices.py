"""What the benchmark commands can choose from."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from sl_discs.errors import InputError

# Those that can be measured on any machine; the GPU engine needs one, and is chosen by no benchmark.
ENGINES = ("xla", "cpu") if importlib.util.find_spec("numba") else ("xla",)


def check_choice(flag: str, chosen: Iterable[str], known: Iterable[str]) -> None:
    """Whether all names of a list flag are known.

    Raises:
      InputError: one that is not.
    """
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise InputError(f"--{flag}: {unknown[0]!r} is not available; there are {', '.join(known)}")
