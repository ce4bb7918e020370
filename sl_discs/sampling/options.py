"""What a user may choose of any method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Options(NamedTuple):
    """Choices that all methods share.

    Attributes:
      draws_each: of each group; None: as many as there is time for.
      groups: independent chains, ladders or populations.
      sampler: name of a base sampler.
      fields: of its config.
      engine: as in settings.
      seed: of everything.
      store: path of a .npy file that takes the draws; None: memory.
    """

    draws_each: int | None
    groups: int
    sampler: str
    fields: Mapping[str, Any]
    engine: str
    seed: int
    store: str | None = None
