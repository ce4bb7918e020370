"""Collects the outcomes of rounds of chains into one result, with all values recomputed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.experiment.player import Outcome
from sl_discs.experiment.settings import Settings
from sl_discs.problems import Evaluated, Problem
from sl_discs.solving.result import Result
from sl_discs.solving.trajectory import Trajectory


class Collector:
    """The best state of each chain over all rounds, the last samples, and the trajectory."""

    def __init__(self, problem: Problem, constant: float):
        """`constant` is the part of the problem's value that the model omits."""
        self._problem, self._constant = problem, constant
        self._sign = 1.0 if problem.maximise else -1.0
        self._begun: Evaluated | None = None
        # None until the first round is added.
        self._values: Any = None
        self._states: Any = None
        self._final: Any = None
        self._final_is: Any = None
        self._parts: list[Trajectory] = []
        self._acceptance: list[np.ndarray] = []
        self._hops: list[np.ndarray] = []
        self._steps = self._rounds = 0

    def begin(self, states: Int8[np.ndarray, "B N"]) -> None:
        """Adds the initial states, which count as visited."""
        self._begun = self._problem.evaluate(states)

    def add(self, outcome: Outcome, settings: Settings, steps: int) -> None:
        """Adds a round of so many steps, fewer than in the settings if it was cut short."""
        size = self._problem.num_variables
        values, states = outcome.best[0][0], outcome.best[1][0][:, :size]
        if self._states is not None:
            better = values > self._values
            values = np.where(better, values, self._values)
            states = np.where(better[:, None], states, self._states)
        self._values, self._states = values, states
        if self._final is None or steps == settings.chain_length:
            self._final, self._final_is = outcome.final[0][:, :size], outcome.final_is
        every = settings.log_every_steps
        number = every * np.arange(1, len(outcome.trace.value) + 1)
        values = self._sign * (np.asarray(outcome.trace.value)[:, 0].astype(np.float64) + self._constant)
        low, high = np.quantile(values, (0.1, 0.9), axis=1)
        self._parts.append(
            Trajectory(
                self._steps + number,
                np.full(len(number), self._rounds),
                self._sign * (self._sign * values).max(axis=1),
                values.mean(axis=1),
                low,
                high,
                settings.temperatures()[number - 1].astype(np.float64),
                np.asarray(outcome.trace.acceptance)[:, 0].mean(axis=1, dtype=np.float64),
            )
        )
        self._acceptance.append(np.asarray(outcome.trace.acceptance))
        self._hops.append(np.asarray(outcome.trace.hops))
        self._steps += steps
        self._rounds += 1

    def _met(self) -> Evaluated:
        """The chains' best states, evaluated once, at the end: for a dense problem this takes longer than a round."""
        found = self._problem.evaluate(self._states)
        if self._begun is None:
            return found
        better = self._sign * (found.values - self._begun.values) >= 0
        pairs = zip(found, self._begun, strict=True)
        return Evaluated(
            *(np.where(better if one.ndim == 1 else better[:, None], one, other) for one, other in pairs)
        )

    def _best(self) -> tuple[Evaluated, Float64[np.ndarray, "B"]]:
        """Those states after the problem's local improvement, and by how much that has raised or lowered values."""
        met = self._met()
        states = self._problem.improve(met.states)
        if np.array_equal(states, met.states):
            return met, np.zeros(len(states))
        best = self._problem.evaluate(states)
        return best, self._sign * (best.values - met.values)

    def result(self, *, annealing: Mapping[str, Any], timing: Mapping[str, float], **how: Any) -> Result:
        """The result so far; `how` holds the remaining fields of `Result`, `timing` all but `verify_s`."""
        begin = time.perf_counter()
        problem, (best, improved) = self._problem, self._best()
        timing = {**timing, "verify_s": time.perf_counter() - begin}
        trajectory = Trajectory(*(np.concatenate(leaves) for leaves in zip(*self._parts, strict=True)))
        so_far = self._sign * np.maximum.accumulate(self._sign * trajectory.best)
        return Result(
            kind=problem.kind,
            name=problem.name,
            labels=problem.labels,
            maximise=problem.maximise,
            spins=problem.spins,
            values=best.values,
            improved=improved,
            states=problem.as_values(best.states),
            feasible_chains=best.feasible,
            final_states=problem.as_values(self._final),
            final_is=self._final_is,
            trajectory=trajectory._replace(best=so_far),
            acceptance=_mean(self._acceptance),
            hops=_mean(self._hops),
            steps=self._steps,
            rounds=self._rounds,
            annealing=dict(annealing),
            timing=timing,
            **how,
        )


def _mean(parts: list[np.ndarray]) -> float:
    """The mean over logged steps of all rounds and chains."""
    return float(np.concatenate(parts).mean(dtype=np.float64))
