"""Collects the outcomes of rounds of chains into one result, with all values recomputed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.experiment.chains import Outcome
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import LAST_STATE
from sl_discs.problems import Evaluated
from sl_discs.reductions.presolved import Presolved
from sl_discs.solving.result import Result
from sl_discs.solving.trajectory import Trajectory, joined


class Collector:
    """The best state of each chain over all rounds, the last samples, and the trajectory.

    Attributes:
      constant: what the reduced problem's value leaves out of the original's, times the sign of its sense.
    """

    def __init__(self, presolved: Presolved):
        """Nothing is collected yet."""
        problem = presolved.original
        self._problem, self._presolved = problem, presolved
        self.constant = presolved.constant if problem.maximise else -presolved.constant
        self._sign = 1.0 if problem.maximise else -1.0
        self._begun: Evaluated | None = None
        # None until the first round is added.
        self._values: Any = None
        self._states: Any = None
        self._final: Any = None
        self._final_is: str = LAST_STATE
        self._parts: list[Trajectory] = []
        self._acceptance: list[np.ndarray] = []
        self._hops: list[np.ndarray] = []
        self._steps = self._rounds = 0

    def begin(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Adds states of the original problem that count as visited; returns their values."""
        self._begun = self._problem.evaluate(states)
        return self._begun.values

    def add(self, outcome: Outcome, settings: Settings, steps: int, constant: float) -> None:
        """Adds a round.

        Args:
          outcome: of its chains.
          settings: likewise.
          steps: fewer than in the settings if it was cut short.
          constant: the part of the reduced problem's value that the chains' model omits.
        """
        size, constant = len(self._presolved.kept), constant + self.constant
        values, states = outcome.best[0][0] + constant, outcome.best[1][0][:, :size]
        if self._states is not None:
            better = values > self._values
            values = np.where(better, values, self._values)
            states = np.where(better[:, None], states, self._states)
        self._values, self._states = values, states
        if self._final is None or steps == settings.chain_length:
            self._final, self._final_is = outcome.final[0][:, :size], outcome.final_is
        every = settings.log_every_steps
        number = every * np.arange(1, len(outcome.trace.value) + 1)
        values = self._sign * (np.asarray(outcome.trace.value)[:, 0].astype(np.float64) + constant)
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
        if self._states is None:
            assert self._begun is not None
            return self._begun
        found = self._problem.evaluate(self._presolved.lift(self._states))
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
        trajectory = joined(self._parts)
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
            final_states=problem.as_values(best.states if self._final is None else self._presolved.lift(self._final)),
            final_is=self._final_is,
            presolved=self._presolved.summary() if self._presolved.removed else "",
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
    """The mean over logged steps of all rounds and chains; 0 where there are none."""
    return float(np.concatenate(parts).mean(dtype=np.float64)) if parts else 0.0
