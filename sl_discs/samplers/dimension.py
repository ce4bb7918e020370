"""One dimension of a search for settings, of which a sampler registers those of its own fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Value = float | int | str


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One number or name to choose.

    Attributes:
      name: name in the storage; a field of the sampler, or a quantity that `points` converts to fields.
      choices: the possible values; empty for a number between low and high.
      low: smallest value.
      high: largest value.
      log: whether the scale is logarithmic.
      step: distance between neighbouring values; None: any value.
      only_if: (name, values) of an earlier dimension, which must have one of these values.
    """

    name: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    only_if: tuple[str, tuple[Value, ...]] | None = None

    def applies(self, point: Mapping[str, Value]) -> bool:
        """Whether a point with these earlier choices has this dimension."""
        return self.only_if is None or point.get(self.only_if[0]) in self.only_if[1]

    def contains(self, value: Value) -> bool:
        """Whether this value is possible."""
        if self.choices:
            return value in self.choices
        return not isinstance(value, str) and self.low <= value <= self.high
