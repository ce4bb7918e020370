"""The choices that all methods share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Options(NamedTuple):
    """The user's choices.

    Attributes:
      draws_each: draws per group; None: as many as there is time for.
      groups: independent chains, ladders or populations.
      sampler: name of a base sampler.
      fields: of its config.
      engine: as in settings.
      seed: of all random numbers.
      store: path of a .npy file for the draws; None: memory.
    """

    draws_each: int | None
    groups: int
    sampler: str
    fields: Mapping[str, Any]
    engine: str
    seed: int
    store: str | None = None
