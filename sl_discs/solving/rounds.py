"""Rounds of annealing and of local search that fill a time limit, and what watches them and gives provers turns."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Best
from sl_discs.engines.compiled import compile_seconds
from sl_discs.experiment.chains import visible_steps
from sl_discs.experiment.progress import Advance
from sl_discs.experiment.settings import Temperatures
from sl_discs.problems import Evaluated
from sl_discs.proofs.provers import TURN, Proofs
from sl_discs.reductions.presolve import Presolved
from sl_discs.solving.annealer import Annealer, LocalSearch
from sl_discs.solving.options import MOST_STEPS, SolveOptions, as_states
from sl_discs.solving.result import Collector

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
# Target number of seconds between two checks of the clock on the CPU engine.
_CALL_S = 0.1
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30
# For the watcher, where no chain has moved.
_NO_CHAINS = Best(np.full((1, 1), -np.inf), np.zeros((1, 1, 0), np.int8))


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


def is_over(options: SolveOptions, clock: Clock) -> bool:
    """Returns whether the time is over, or the user has interrupted the run."""
    return clock.left() <= 0 or options.is_interrupted()


class Watcher:
    """Checks the chains after each call to the engine, gives provers their turns, and decides when the run ends.

    Unless the options want the values of chains alone, proofs are told of better values, and the run ends when
    nothing is left to prove. Provers have no turns without a time limit. With one, once a twentieth of it has passed
    and there are good answers, they have that part of it, and three quarters of the time that passes where one of
    them expects to end with a proof.

    Attributes:
      reason: `target`, `bound`, `callback`, `interrupt` or `time`; empty while there is none.
      constant: what the chains' values leave out of the problem's, times the sign of its sense.
    """

    def __init__(
        self,
        options: SolveOptions,
        proofs: Proofs,
        clock: Clock,
        evaluate: Callable[[np.ndarray], Evaluated],
        maximise: bool,
    ):
        self.reason = ""
        self._options, self._evaluate, self._clock = options, evaluate, clock
        self._sign, self.constant = 1.0 if maximise else -1.0, 0.0
        self._proofs = proofs if options.presolves else None
        self._best = -self._sign * np.inf
        self._before = self._done = 0
        self._highest = -np.inf
        self._seen = -np.inf  # the highest value of a chain, with the constant
        # When provers may begin to have turns, and the seconds that they had.
        self._begun_at, self._spent_s = clock(), 0.0

    def _lacking(self) -> float:
        """Returns the seconds that provers lack of their part so far; 0 if they have none, or are over."""
        limit, passed = self._options.time_limit, self._clock() - self._begun_at
        if self._proofs is None or limit is None or self._proofs.over or passed < BOUNDS * limit:
            return 0.0
        return max(BOUNDS * limit, PROOFS * passed * self._proofs.hopeful) - self._spent_s

    def _run_provers(self, seconds: float) -> None:
        assert self._proofs is not None
        begin = self._clock()
        over = functools.partial(is_over, self._options, self._clock)
        self._proofs.advance(seconds, PROOFS * max(self._clock.left(), 0.0), over)
        # Work that they save for a long computation is spent, too.
        self._spent_s += max(seconds, self._clock() - begin)

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
        self._seen = max(self._seen, float(values[place]) + self.constant)
        lacking = self._lacking()
        due = lacking >= TURN
        if values[place] > self._highest and (due or self._is_used(float(values[place]))):
            self._highest = values[place]
            self.reached(self._evaluate(np.asarray(best.x[0, place])[None]))
        if self._proofs is not None and due and not self.reason:
            self._run_provers(lacking)
            self.reason = "bound" if self._proofs.closed else ""
        if options.callback is not None and options.callback(self._before + done, self._best) and not self.reason:
            self.reason = "callback"
        if not self.reason and options.is_interrupted():
            self.reason = "interrupt"
        if not self.reason and self._clock.left() <= 0:
            self.reason = "time"
        return bool(self.reason)

    def in_words(self) -> str:
        """Returns the best value so far, less its penalty, the bound, and the seconds that are left."""
        best = max(self._seen, self._sign * self._best)
        parts = [f"best {self._sign * best:.6g}"] if math.isfinite(best) else []
        if self._proofs is not None and self._proofs.bound is not None:
            parts.append(f"bound {float(self._proofs.bound):.6g}")
        if self._options.time_limit is not None:
            parts.append(f"{max(self._clock.left(), 0.0):.0f} s left")
        return ", ".join(parts)

    def _is_used(self, value: float) -> bool:
        """Whether target, callback or bound ask for the exact value; the bound only if it is about as good."""
        if self._options.target is not None or self._options.callback is not None:
            return True
        bound = None if self._proofs is None else self._proofs.bound
        if bound is None:
            return False
        return bool(value + self.constant >= self._sign * float(bound) - _ABOUT * max(1.0, abs(float(bound))))


class Rounds:
    """Plays rounds of annealing and of local search on one problem, watches them, and collects what they find.

    Attributes:
      watcher: its `reason` says why the run ends, and is empty before.
      collector: of everything that was visited.
      bar: called with the name of a sampler, the number of chain-steps done, and what the watcher says.
    """

    def __init__(self, presolved: Presolved, options: SolveOptions, proofs: Proofs, clock: Clock):
        self._presolved, self._options, self._clock = presolved, options, clock
        self._problem, self._number = presolved.original, 0
        self._states = as_states(self._problem, options.initial_states, options.num_chains)
        self.collector = Collector(presolved)
        self.watcher = Watcher(options, proofs, clock, self.exactly, self._problem.maximise)
        self.bar: Advance = lambda name, done, words="": None

    def _tell(self, sampler: str, chain_steps: int) -> None:
        annealing = "" if self._options.time_limit is None else f"annealing {self._number + 1}, "
        self.bar(sampler, chain_steps, annealing + self.watcher.in_words())

    def begin(self) -> None:
        """Counts the initial states as visited, or those that reductions found."""
        self.visit(self._presolved.found if self._states is None else self._states)

    def exactly(self, states: np.ndarray) -> Evaluated:
        """Evaluates states of the chains, which may be padded."""
        return self._problem.evaluate(self._presolved.lift(states[:, : len(self._presolved.kept)]))

    def visit(self, states: Int8[np.ndarray, "K N"]) -> None:
        """Counts states of the original problem as visited, by chains in turn."""
        if len(states):
            shape = self._options.num_chains, states.shape[1]
            self.watcher.reached(self.collector.begin(np.resize(states, shape)))

    def fill(self, annealer: Annealer, seconds: float, *, compared: bool) -> None:
        """Anneals in rounds that fill `seconds`; finds the `best` value where compared."""
        end = self._clock.left() - seconds

        def left() -> float:
            return self._clock.left() - end

        def pace() -> float | None:
            return annealer.pace

        # What draws sites by weight has a number for each of its steps in memory.
        most = _MOST_TRIES if annealer.options.tries_one_site else MOST_STEPS
        for length in round_lengths(annealer.first, annealer.unit, most, left, pace, timed=annealer.timed):
            states = self.play(annealer, length, left)
            if compared:
                values = self.exactly(states).values
                annealer.best = max(annealer.best, float((values if self._problem.maximise else -values).max()))
            if self.watcher.reason:
                return

    def advance(self, search: LocalSearch, seconds: float, *, compared: bool = True) -> None:
        """Runs a local search for `seconds`; finds its `best` value."""
        end, more = self._clock.left() - seconds, True
        states = np.empty((0, 0), np.int8)
        while more and (left := self._clock.left() - end) > 0:
            more = search.advance(min(left, _CALL_S))
            before, states = states, search.state[None]
            if not np.array_equal(states, before):
                [value] = self.exactly(states).values
                search.best = max(search.best, float(value if self._problem.maximise else -value))
                self.visit(self._presolved.lift(states))
            if self.watcher(0, _NO_CHAINS):
                break
        self.watcher.next_round()

    def play(
        self, annealer: Annealer, length: int, left: Callable[[], float] | None = None
    ) -> Int8[np.ndarray, "B N"]:
        """Anneals once, for `length` steps, or as many as fit into the seconds `left` if the rate is known.

        Returns the best state that each chain visited.
        """
        options, host = annealer.options, annealer.engine.on_host
        method = annealer.method(length)
        one_shape = options.fills_time and not host
        # A hundredth of the steps, but no more than the steps of a call, which cannot be interrupted.
        every = max(1, min(length // 100, annealer.engine.steps_per_call(method.sampler)))
        if one_shape:
            every = annealer.unit
        settings = annealer.settings(length, every)
        temperatures = settings.temperatures()
        timed = None
        if left is not None and annealer.timed and annealer.pace is not None:
            temperatures = timed = TimedTemperatures(settings, length, left=left, pace=annealer.pace)
            timed.plan(0)

        def watch(done: int, best: Best) -> bool:
            over = self.watcher(done, best)
            return (timed is not None and timed.plan(done)) or over

        steps_per_call = annealer.unit if one_shape else annealer.steps_per_call
        if options.time_limit is None:
            steps_per_call = visible_steps(annealer.engine, method.sampler, length)
        self.watcher.constant = self.collector.constant + annealer.constant
        outcome = annealer.anneal(
            self._number, method, settings, self._states, watch=watch, steps_per_call=steps_per_call,
            progress=lambda steps: self._tell(options.sampler_name, steps * options.num_chains),
            temperatures=temperatures,
        )  # fmt: skip
        played = self.watcher.next_round()
        complete = played == length or (timed is not None and self.watcher.reason in ("", "time"))
        self.collector.add(outcome, every, temperatures, played, annealer.constant, complete=complete)
        self._number += 1
        annealer.pace = max(outcome.run_s, 1e-9) / played
        if host:
            annealer.steps_per_call = max(1, int(_CALL_S / annealer.pace))
        return outcome.best[1][0]
