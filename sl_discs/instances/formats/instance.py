"""One graph or model read from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph


@dataclasses.dataclass(frozen=True)
class Instance:
    """A graph or a quadratic model, with the labels that its file gives to the nodes or variables.

    Attributes:
      content: the graph or model; its nodes are 0 .. N - 1.
      labels: [N] the file's label of each: a number, counted from 1 in formats that count from 1, or text.
      format: name of the format, one of `formats.READERS`.
      path: the file.
    """

    content: Graph | QuadraticForm
    labels: Sequence[int | str]
    format: str
    path: Path
