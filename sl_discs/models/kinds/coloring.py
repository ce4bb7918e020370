"""Graph colouring: the number of edges between nodes of the same colour, which is minimised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Int8

from sl_discs.instances.form import PottsForm
from sl_discs.models.kind import Evaluated
from sl_discs.models.kinds.potts import PottsKind


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColoringKind(PottsKind):
    """A Potts form that counts equal pairs; only what has none is feasible, and nothing is repaired."""

    def evaluator(self, source: PottsForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """The number of conflicts of each state."""
        evaluate = super().evaluator(source)

        def counted(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            found = evaluate(states)
            return found._replace(feasible=found.values == 0)

        return counted

    def violated(self, source: PottsForm, state: Int8[np.ndarray, "N"]) -> list[str]:
        """The edges in conflict, by the positions of their nodes."""
        return [f"edge {u}-{v}" for u, v in source.pairs[source.equal(state)].tolist()]


KIND = ColoringKind(
    name="coloring",
    title="Graph colouring",
    recounted="the edges between nodes of the same colour, counted from the graph as given",
    answer="a colour for each of {size:,} nodes",
)
