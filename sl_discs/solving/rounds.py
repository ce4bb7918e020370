"""Annealings that fill a time limit, what watches them, and what collects their outcomes."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.engines.base import Best
from sl_discs.engines.compiled import compile_seconds
from sl_discs.experiment.chains import Outcome
from sl_discs.experiment.settings import Temperatures
from sl_discs.localization.method import LAST_STATE
from sl_discs.problems import Evaluated
from sl_discs.proofs.provers import TURN, Proofs
from sl_discs.reductions.presolve import Presolved
from sl_discs.solving.options import SolveOptions
from sl_discs.solving.result import Result, Trajectory, joined

# Part of the remaining time that a round of fixed length may plan with: rates vary, and an annealing that is cut off
# ends hot. And where temperatures follow the time, so that a rate that was measured too low does not end it early.
_SAFE, _AMPLE = 0.9, 2.0
# The number of calls to the engine that the rate is measured over.
_RECENT = 3
# Another round is skipped if it is shorter than this part of the longest.
_WORTH = 0.25
# Part of the time that provers have beside the annealings where one expects to end with a proof, and otherwise.
PROOFS, BOUNDS = 0.75, 0.05
# Relative error of the chains' 32-bit values, and of penalties that a repair takes away.
_ABOUT = 1e-3


class Clock:
    """Seconds of wall time since it was created, without those that this thread spent compiling."""

    def __init__(self, limit: float | None = None):
        self._limit = math.inf if limit is None else limit
        self._compiled, self._begin = compile_seconds(), time.perf_counter()

    def left(self) -> float:
        """Returns the seconds that are left of the time limit."""
        return self._limit - self()

    def __call__(self) -> float:
        return time.perf_counter() - self._begin - self.compiling()

    def compiling(self) -> float:
        """Those seconds of compiling."""
        return compile_seconds() - self._compiled


def round_lengths(
    first: int, unit: int, most: int, left: Callable[[], float], pace: Callable[[], float | None], *, timed: bool
) -> Iterator[int]:
    """Lengths of rounds, each requested after the previous round: one measures the rate, and the next fills the time.

    Others follow where that one took less time than expected.

    Args:
      first: steps of the round that measures the rate.
      unit: lengths are multiples of it.
      most: the most steps of a round.
      left: returns the remaining seconds.
      pace: returns the seconds per step of the latest round; None: there was none, so the first one measures them.
      timed: whether a round ends by itself when the time is over, and so may be too long.
    """
    longest = 0
    while True:
        known = pace()
        length = first
        if known is not None:
            length = int(min((_AMPLE if timed else _SAFE) * left() / known, most)) // unit * unit
            if length < max(unit, _WORTH * longest):
                return
        yield length
        longest = max(longest, length)


class Plan(NamedTuple):
    """A plan after `done` steps: the seconds left, the part of the schedule behind, and that of a step."""

    done: int
    left: float
    behind: float
    rate: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimedTemperatures(Temperatures):
    """Temperatures that follow the time: what is left of the schedule is spread over the steps that still fit in.

    `plan` decides on this anew after each call to the engine, so that the chains are cold when the time is over, even
    if the rate has changed.

    Attributes:
      left: returns the seconds that are left.
      pace: seconds per step, as far as it is known before the first one.
      plans: that were made, in order.
    """

    left: Callable[[], float]
    pace: float
    plans: list[Plan] = dataclasses.field(default_factory=list)

    def plan(self, done: int) -> bool:
        """Plans the steps after the first `done`; returns whether the time is over."""
        left, behind, pace = self.left(), 0.0, self.pace
        if self.plans:
            earlier = self.plans[-_RECENT:][0]
            behind, pace = float(self._behind(done)), max(earlier.left - left, 1e-9) / (done - earlier.done)
        fitting = min(max(left / pace, 1.0), max(len(self) - done, 1))
        self.plans.append(Plan(done, left, behind, (1 - behind) / fitting))
        return left <= 0

    def _behind(self, steps: np.ndarray | np.floating | int) -> np.ndarray | np.floating:
        """Returns the part of the schedule that is behind after `steps` steps."""
        # Mostly the latest alone, of many in a long run.
        first = bisect.bisect_right(self.plans, np.min(steps), key=lambda plan: plan.done) - 1
        done, _, behind, rate = map(np.array, zip(*self.plans[first:], strict=True))
        place = np.searchsorted(done, steps, side="right") - 1
        return np.minimum(behind[place] + (steps - done[place]) * rate[place], 1.0)

    def position(self, part: np.ndarray | np.floating) -> np.ndarray | np.floating:
        return self._behind(part * len(self))


class Turns:
    """When provers have their turns beside a search, and how much time they have.

    Once a twentieth of a time limit has passed and there are good answers, they have that part of it; and three
    quarters of the time that passes where one of them expects to end with a proof. Without a limit they have none.
    """

    def __init__(self, proofs: Proofs, options: SolveOptions, clock: Clock):
        self.proofs, self._options, self._clock = proofs, options, clock
        self._begun_at, self._spent_s = clock(), 0.0

    def _lacking(self) -> float:
        """Returns the seconds that provers lack of their part so far; 0 if they have none, or are over."""
        limit, passed = self._options.time_limit, self._clock() - self._begun_at
        if limit is None or self.proofs.over or passed < BOUNDS * limit:
            return 0.0
        return max(BOUNDS * limit, PROOFS * passed * self.proofs.hopeful) - self._spent_s

    @property
    def due(self) -> bool:
        """Whether provers lack enough for a turn."""
        return self._lacking() >= TURN

    def run(self) -> None:
        """Gives provers the seconds that they lack."""
        begin, share = self._clock(), self._lacking()
        over = functools.partial(is_over, self._options, self._clock)
        self.proofs.advance(share, PROOFS * max(self._clock.left(), 0.0), over)
        # Work that they save for a long computation is spent, too.
        self._spent_s += max(share, self._clock() - begin)


def is_over(options: SolveOptions, clock: Clock) -> bool:
    """Returns whether the time is over, or the user has interrupted the run."""
    return clock.left() <= 0 or options.is_interrupted()


class Watcher:
    """Checks the chains after each call to the engine, and decides when the run ends.

    Unless the options want the values of chains alone, proofs are told of better values, and have the turns that are
    due. The run then ends when nothing is left to prove.

    Attributes:
      reason: `target`, `bound`, `callback`, `interrupt` or `time`; empty while there is none.
      constant: what the chains' values leave out of the problem's, times the sign of its sense.
    """

    def __init__(
        self,
        options: SolveOptions,
        evaluate: Callable[[np.ndarray], Evaluated],
        maximise: bool,
        turns: Turns,
        clock: Clock,
    ):
        self.reason = ""
        self._options, self._evaluate, self._turns, self._clock = options, evaluate, turns, clock
        self._sign, self.constant = 1.0 if maximise else -1.0, 0.0
        self._proofs = turns.proofs if options.presolves else None
        self._best = -self._sign * np.inf
        self._before = self._done = 0
        self._highest = -np.inf

    def next_round(self) -> int:
        """Ends a round; the number of its steps that were run."""
        done, self._done, self._highest = self._done, 0, -np.inf
        self._before += done
        return done

    def reached(self, found: Evaluated) -> bool:
        """Takes verified answers into account; returns whether the run ends."""
        self._best = self._sign * max(self._sign * self._best, float((self._sign * found.values).max()))
        if self._proofs is not None:
            self._proofs.know(found)
            if self._proofs.closed:
                self.reason = "bound"
        target = self._options.target
        if target is not None and self._sign * (self._best - target) >= 0:
            self.reason = "target"
        return bool(self.reason)

    def __call__(self, done: int, best: Best) -> bool:
        """The watch of `anneal`; values are recomputed exactly where they are used."""
        self._done, options = done, self._options
        values = np.asarray(best.value)[0, : options.num_chains]
        place = int(np.argmax(values))
        due = self._proofs is not None and self._turns.due
        if values[place] > self._highest and (due or self._is_used(float(values[place]))):
            self._highest = values[place]
            self.reached(self._evaluate(np.asarray(best.x[0, place])[None]))
        if self._proofs is not None and due and not self.reason:
            self._turns.run()
            self.reason = "bound" if self._proofs.closed else ""
        if options.callback is not None and options.callback(self._before + done, self._best) and not self.reason:
            self.reason = "callback"
        if not self.reason and options.is_interrupted():
            self.reason = "interrupt"
        if not self.reason and self._clock.left() <= 0:
            self.reason = "time"
        return bool(self.reason)

    def _is_used(self, value: float) -> bool:
        """Whether target, callback or bound ask for the exact value; the bound only if it is about as good."""
        if self._options.target is not None or self._options.callback is not None:
            return True
        bound = None if self._proofs is None else self._proofs.bound
        if bound is None:
            return False
        return bool(value + self.constant >= self._sign * float(bound) - _ABOUT * max(1.0, abs(float(bound))))


# Collects the outcomes of rounds of chains into one result, with all values recomputed.


class Collector:
    """The best state of each chain over all rounds, the last samples, and the trajectory.

    Attributes:
      constant: what the reduced problem's value leaves out of the original's, times the sign of its sense.
    """

    def __init__(self, presolved: Presolved):
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

    def begin(self, states: Int8[np.ndarray, "B N"]) -> Evaluated:
        """Adds states of the original problem that count as visited; returns them with their values."""
        found = self._problem.evaluate(states)
        self._begun = found if self._begun is None else self._better(found, self._begun)
        return found

    def _better(self, one: Evaluated, other: Evaluated) -> Evaluated:
        """The better ones of pairs of states, by exact values where rounded ones are equal."""
        better = self._sign * (one.values - other.values) >= 0
        if not self._problem.integer_values:
            for row in np.flatnonzero((one.values == other.values) & (one.states != other.states).any(axis=1)):
                pair = zip(one, other, strict=True)
                both = Evaluated(*(np.stack([first[row], second[row]]) for first, second in pair))
                better[row] = self._problem.best_row(both) == 0
        pairs = zip(one, other, strict=True)
        return Evaluated(
            *(np.where(better if first.ndim == 1 else better[:, None], first, second) for first, second in pairs)
        )

    def add(
        self, outcome: Outcome, every: int, temperatures: Temperatures, steps: int, constant: float, *, complete: bool
    ) -> None:
        """Adds a round of `steps` steps, of which every `every`-th was logged.

        `constant` is the part of the reduced problem's value that the chains' model omits, and `complete` is whether
        the round was not cut short.
        """
        size, constant = len(self._presolved.kept), constant + self.constant
        values, states = outcome.best[0][0] + constant, outcome.best[1][0][:, :size]
        if self._states is not None:
            better = values > self._values
            values = np.where(better, values, self._values)
            states = np.where(better[:, None], states, self._states)
        self._values, self._states = values, states
        if self._final is None or complete:
            self._final, self._final_is = outcome.final[0][:, :size], outcome.final_is
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
                temperatures[number - 1].astype(np.float64),
                np.asarray(outcome.trace.acceptance)[:, 0].mean(axis=1, dtype=np.float64),
            )
        )
        self._acceptance.append(np.asarray(outcome.trace.acceptance))
        self._hops.append(np.asarray(outcome.trace.hops))
        self._steps += steps
        self._rounds += 1

    def _visited(self) -> Evaluated:
        """The chains' best states, evaluated once, at the end: for a dense problem this takes longer than a round."""
        if self._states is None:
            assert self._begun is not None
            return self._begun
        found = self._problem.evaluate(self._presolved.lift(self._states))
        return found if self._begun is None else self._better(found, self._begun)

    def _best(self) -> tuple[Evaluated, Float64[np.ndarray, "B"]]:
        """Those states after the problem's local improvement, and by how much that has raised or lowered values."""
        visited = self._visited()
        states = self._problem.improve(visited.states)
        if np.array_equal(states, visited.states):
            return visited, np.zeros(len(states))
        best = self._problem.evaluate(states)
        return best, self._sign * (best.values - visited.values)

    def result(
        self,
        *,
        bound: Fraction | float | None,
        annealing: Mapping[str, Any],
        timing: Mapping[str, float],
        **how: Any,
    ) -> Result:
        """The result so far; `how` holds the remaining fields of `Result`, `timing` what the problem cannot know."""
        begin = time.perf_counter()
        problem, (best, improved) = self._problem, self._best()
        # Where values are equal after rounding, the first chain stands for all.
        place = problem.best_row(best)
        equal = best.feasible & (best.values == best.values[place])
        if not problem.integer_values:
            best.states[equal] = best.states[place]
        reported = None if bound is None else problem.reported_bound(bound, best.states[place])
        timing = {"construct_s": problem.construct_s, **timing, "verify_s": time.perf_counter() - begin}
        trajectory = joined(self._parts)
        so_far = self._sign * np.maximum.accumulate(self._sign * trajectory.best)
        final = best.states if self._final is None else self._presolved.lift(self._final)
        return Result(
            kind=problem.kind, name=problem.name, labels=problem.labels, maximise=problem.maximise,
            spins=problem.spins, values=best.values, improved=improved, states=problem.as_values(best.states),
            feasible_chains=best.feasible, final_states=problem.as_values(final), final_is=self._final_is,
            presolved=self._presolved.summary() if self._presolved.removed else "",
            trajectory=trajectory._replace(best=so_far), acceptance=_mean(self._acceptance), hops=_mean(self._hops),
            steps=self._steps, rounds=self._rounds, annealing=dict(annealing), timing=timing, bound=reported, **how,
        )  # fmt: skip


def _mean(parts: list[np.ndarray]) -> float:
    """The mean over logged steps of all rounds and chains; 0 where there are none."""
    return float(np.concatenate(parts).mean(dtype=np.float64)) if parts else 0.0
