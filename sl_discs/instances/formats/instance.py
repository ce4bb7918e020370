"""What a file turned out to hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph


@dataclasses.dataclass(frozen=True)
class Instance:
    """A graph or a quadratic model, and the names that its file gives to the nodes or variables.

    Attributes:
      content: the graph or model; its nodes are 0 .. N - 1.
      labels: [N], what the file calls each: numbers from 1 in the formats that count from 1, text where it has text.
      format: name of the format, one of `formats.READERS`.
      path: the file.
    """

    content: Graph | QuadraticForm
    labels: Sequence[int | str]
    format: str
    path: Path
