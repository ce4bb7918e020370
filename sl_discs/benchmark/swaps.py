"""The cost of exchanges in a ladder: the same sweeps of the same chains with and without exchanges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.benchmark.contenders import timed
from sl_discs.benchmark.drawing import SWEEPING, mean_and_error
from sl_discs.benchmark.targets import TARGETS
from sl_discs.models.coefficients import Coefficients
from sl_discs.sampling.arena import Arena

# Sweeps between two exchanges.
EVERY = (1, 4)


class SwapCost(NamedTuple):
    """CPU-seconds of R chains for the same sweeps.

    Attributes:
      target: its name.
      rungs: R of the ladder.
      sweeps: of each chain.
      every: between two exchanges.
      without: seconds without exchange, of each repetition.
      with_them: seconds with exchanges.
      exchanged: part of the exchanges that were accepted, of those that were tried.
    """

    target: str
    rungs: int
    sweeps: int
    every: int
    without: list[float]
    with_them: list[float]
    exchanged: float

    def added(self) -> tuple[float, float]:
        """The part of the sweeps' time that exchanges add, and its standard error."""
        mean, error = mean_and_error(a / b for a, b in zip(self.with_them, self.without, strict=True))
        return mean - 1, error


def _arena(terms: Coefficients, chains: int, rungs: int) -> Arena:
    return Arena(terms, "gibbs", SWEEPING, chains, rungs=rungs, engine="cpu", keeps_states=False)


def measure_swaps(target: str, rungs: int, sweeps: int, repeats: int) -> list[SwapCost]:
    """Repetitions in turn on the CPU engine, after one that warms up.

    Temperatures lie between the target's and twice that, so that chains are alike with and without exchanges.
    """
    chosen = TARGETS[target]
    terms = chosen.problem().terms()
    temperatures = chosen.temperature * np.linspace(1, 2, rungs)
    arenas = {every: [_arena(terms, rungs, ladder) for ladder in (1, rungs)] for every in EVERY}
    seconds: dict[int, list[tuple[float, float]]] = {every: [] for every in EVERY}
    exchanged: dict[int, list[float]] = {every: [] for every in EVERY}
    for _ in range(repeats + 1):
        for every, pair in arenas.items():
            played = [timed(arena.record, temperatures, sweeps // every, every) for arena in pair]
            seconds[every].append((played[0][0], played[1][0]))
            # Of R - 1 pairs every other one is tried.
            exchanged[every].append(float(played[1][2].exchanged.sum(axis=1).mean()) / ((rungs - 1) / 2))
    return [
        SwapCost(
            target, rungs, sweeps // every * every, every,
            [one for one, _ in seconds[every][1:]], [other for _, other in seconds[every][1:]],
            float(np.mean(exchanged[every][1:])),
        )
        for every in EVERY
    ]  # fmt: skip


def format_swaps(costs: list[SwapCost]) -> str:
    """A line for each."""
    lines = ["exchanges of a ladder, over the same sweeps without them (cpu, CPU-seconds)"]
    for cost in costs:
        added, error = cost.added()
        lines.append(
            f"  {cost.target:<16} {cost.rungs} rungs, every {cost.every} sweep{'s' * (cost.every > 1)}: "
            f"{100 * added:+.1f} % ({100 * error:.1f}), {100 * cost.exchanged:.0f} % accepted"
        )
    return "\n".join(lines)
