"""Gathers what rounds of chains leave into one result, with everything evaluated anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.experiment.player import Outcome
from sl_discs.experiment.settings import Settings
from sl_discs.problems import Evaluated, Problem
from sl_discs.solving.result import Result, Trajectory


class Collector:
    """The best state of each chain over all rounds, the last samples, and the trajectory."""

    def __init__(self, problem: Problem, constant: float):
        """`constant` is what the model leaves out of the problem's value."""
        self._problem, self._constant = problem, constant
        self._sign = 1.0 if problem.maximise else -1.0
        self._best: Evaluated | None = None
        self._final = None
        self._parts: list[Trajectory] = []
        self._acceptance: list[np.ndarray] = []
        self._hops: list[np.ndarray] = []
        self._steps = self._rounds = 0

    def add_states(self, states: Int8[np.ndarray, "B N"]) -> None:
        """One state a chain, of zeros and ones; the better of it and the chain's best is kept."""
        found = self._problem.evaluate(states)
        if self._best is not None:
            better = self._sign * (found.values - self._best.values) > 0
            found = Evaluated(
                np.where(better, found.values, self._best.values),
                np.where(better, found.feasible, self._best.feasible),
                np.where(better[:, None], found.states, self._best.states),
            )
        self._best = found

    def add(self, outcome: Outcome, settings: Settings, steps: int) -> None:
        """A round of so many steps, fewer than the settings say where it was cut short."""
        size = self._problem.num_variables
        self.add_states(outcome.best[1][0][:, :size])
        if self._final is None or steps == settings.chain_length:
            self._final = outcome.final[0][:, :size]
        every = settings.log_every_steps
        number = every * np.arange(1, len(outcome.trace.value) + 1)
        values = self._sign * (outcome.trace.value[:, 0].astype(np.float64) + self._constant)
        self._parts.append(
            Trajectory(
                self._steps + number,
                np.full(len(number), self._rounds),
                self._sign * (self._sign * values).max(axis=1),
                values.mean(axis=1),
                settings.temperatures()[number - 1].astype(np.float64),
            )
        )
        self._acceptance.append(outcome.trace.acceptance)
        self._hops.append(outcome.trace.hops)
        self._steps += steps
        self._rounds += 1

    def result(self, *, annealing: Mapping[str, Any], **how: Any) -> Result:
        """Everything so far; `how` are the remaining fields of `Result`."""
        problem, best = self._problem, self._best
        trajectory = Trajectory(*(np.concatenate(leaves) for leaves in zip(*self._parts, strict=True)))
        so_far = self._sign * np.maximum.accumulate(self._sign * trajectory.best)
        return Result(
            kind=problem.kind,
            name=problem.name,
            labels=problem.labels,
            maximise=problem.maximise,
            spins=problem.spins,
            values=best.values,
            states=problem.as_values(best.states),
            feasible_chains=best.feasible,
            final_states=problem.as_values(self._final),
            trajectory=trajectory._replace(best=so_far),
            acceptance=_mean(self._acceptance),
            hops=_mean(self._hops),
            steps=self._steps,
            rounds=self._rounds,
            annealing=dict(annealing),
            **how,
        )


def _mean(parts: list[np.ndarray]) -> float:
    """Over logged steps of all rounds and chains."""
    return float(np.concatenate(parts).mean(dtype=np.float64))
