"""Rounds of annealing and of local search that fill a time limit, and what watches them and gives
provers turns.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64, Int8

from sl_discs.chains.annealing import (
    ChainSettings,
    TimedSchedule,
    annealed_terms,
    complete_annealing,
)
from sl_discs.chains.batches import (
    Layout,
    Shape,
    batch_bytes,
    devices_for,
    padded_size,
    program_bytes,
    shape_of_one,
)
from sl_discs.chains.budget import Budget
from sl_discs.chains.chains import Chains, anneal, schedule_of
from sl_discs.engines.devices import in_threads
from sl_discs.engines.program import Best, ClockTemperatures, Engine
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.problems import Evaluated, Problem
from sl_discs.problems.problem import units
from sl_discs.solving.board import ANNEALING, INITIAL_STATES, Board
from sl_discs.solving.options import MOST_STEPS, SolveOptions, times
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import TURN, Proofs
from sl_discs.solving.result import Collector
from sl_discs.support.memory import check_memory
from sl_discs.support.terminal import Advance

# Part of the remaining time that a round of fixed length may plan with: rates vary, and an
# annealing that is cut off ends hot. And where temperatures follow the time, so that a rate that
# was measured too low does not end it early.
_SAFE, _AMPLE = 0.9, 2.0
# Another round is skipped if it is shorter than this part of the longest.
_WORTH = 0.25
# Part of the time that each of several rivals has to show what it can do.
TRIAL = 0.1
# Part of the time that provers have beside the annealings where one expects to end with a proof,
# and otherwise.
PROOFS, BOUNDS = 0.75, 0.05
# Relative error of the chains' 32-bit values, and of penalties that a repair takes away.
_ABOUT = 1e-3
# Target number of seconds between two checks of the clock on the CPU engine.
_CALL_S = 0.1
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30
# The most padded sites of which rows cost next to nothing.
_SMALL = 128


# Estimates the memory and time that building the arrays of a problem will take, before they are
# built.

# Bytes of a term in the problem, in the model, and in the matrices for temperatures and exact
# values.
_TERM_BYTES = 60
# The least number of terms that one core processes per second.
TERMS_PER_S = 2e6


def check_fit(
    problem: Problem, options: SolveOptions, steps: int, engine: Engine, shape: Shape | None = None
) -> None:
    """Raises an InputError if the memory of chains is not there; without a shape, couplings do not
    count yet.
    """
    size = problem.num_variables
    terms = problem.num_terms
    shape = shape or Shape(padded_size(size), 1, options.num_chains, 0, Layout(1, 1))
    logged = min(steps, 100)
    need = terms * _TERM_BYTES + program_bytes(steps, not options.tries_one_site)
    need += batch_bytes(shape, logged, engine.name) * shape.layout.instances * shape.layout.chains
    check_memory(
        f"{problem.name} ({size:,} variables, {terms:,} terms) with {shape.num_chains:,} chains "
        f"of {steps:,} steps",
        need,
        "give a smaller problem, or fewer chains or steps",
    )


# Steps that tell how long one takes, and the most of a call.
_FIRST_WALK, _MOST_WALK = 500, 1_000_000


class LocalSearch(abc.ABC):
    """Walks beside the annealings of a problem, which its kind names, each on a core with its own
    random numbers.

    Where they are depends on the seed, the number of walks and the number of steps alone.

    Attributes:
      name: what it is, in words.
      step_s: nominal seconds of a step.
      conclusive: whether a trial tells what it would find in the rest of the time.
    """

    name: str
    step_s: float
    conclusive: bool = True

    def __init__(self, seed: int, walks: int):
        self._draws = [np.random.default_rng([seed, k]) for k in range(walks)]
        self._pace, self._over = 0.0, False

    @property
    @abc.abstractmethod
    def state(self) -> Int8[np.ndarray, "n"]:
        """The best state found, as zeros and ones."""

    @abc.abstractmethod
    def walk(self, place: int, draws: Float64[np.ndarray, "S"]) -> int:
        """Makes a step of a walk for each number from [0, 1); returns how many it made, fewer at
        its end.
        """

    def play(self, steps: int) -> bool:
        """Makes `steps` steps of each walk; returns whether more is to do."""
        draws = [one.random(steps) for one in self._draws]
        ended = []

        def advance(place: int) -> None:
            ended.append(self.walk(place, draws[place]) < steps)

        if not self._over:
            in_threads(advance, range(len(draws)), len(draws))
            self._over = any(ended)
        return not self._over

    def advance(self, seconds: float) -> bool:
        """Searches for about `seconds`; returns whether more is to do."""
        steps = max(min(int(seconds / self._pace), _MOST_WALK), 1) if self._pace else _FIRST_WALK
        # Compiles here: in other threads that would not count as compilation.
        self.walk(0, np.zeros(0))
        begin = time.perf_counter()
        more = self.play(steps)
        self._pace = (time.perf_counter() - begin) / steps
        return more


class Annealer:
    """Annealings of one sampler on one problem, perhaps with a penalty of its own; each has its own
    random numbers.

    InputError where coefficients are beyond the range of the model's 32-bit numbers.

    Attributes:
      first: steps of the round that measures the rate, or of each round.
      unit: lengths of rounds are multiples of it.
      seconds_per_step: of the last round; None: there was none.
      num_chains: of each annealing.
      constant: what the model's values leave out of those of the original problem, times the sign
        of its sense.
    """

    name = ANNEALING
    conclusive = True
    seconds_per_step: float | None = None

    def __init__(self, presolved: Presolved, options: SolveOptions):
        problem = presolved.left
        size = problem.num_variables
        self.problem = problem
        self.options = options
        self.engine, self.note = options.choose_engine(size)
        self.num_chains = options.chains_for(size, self.engine.on_host)
        self.first, self.unit = options.first_round(size, self.engine.on_host)
        self._given = times(options.annealing, 1 / units(presolved.original).unit)
        self._terms = annealed_terms(problem.name, problem.terms(), self._given)
        self._annealing = complete_annealing(self._given, self._terms)
        sign = 1.0 if problem.maximise else -1.0
        self.constant = self._terms.constant + sign * presolved.constant

    def settings(self, steps: int, every: int = 1) -> ChainSettings:
        """Returns the settings of a run of `steps` steps, which logs every `every`-th of them.

        Where a step tries one site, the temperature changes once in a sweep, but at least a hundred
        times; annealings inside levels may be shorter than that.
        """
        options = self.options
        annealing = self._annealing
        over_run = options.fields.get("anneal", Localization.anneal) == "run"
        if "anneal_every" not in self._given and options.tries_one_site and over_run:
            same = max(1, min(self.problem.num_variables, steps // 100))
            annealing = dataclasses.replace(annealing, anneal_every=same)
        return ChainSettings(
            batch_size=self.num_chains,
            chain_length=steps,
            log_every_steps=every,
            **vars(annealing),
        )

    def reported(self) -> dict[str, Any]:
        """Returns the fields of the annealing that results show: those of its temperatures, and the
        given ones.
        """
        names = (
            "t_schedule",
            "init_temperature",
            "final_temperature",
            "decay_rate",
            *self._given,
        )
        return {name: getattr(self._annealing, name) for name in names}

    @property
    def timed(self) -> bool:
        """Whether temperatures can follow the time.

        Levels of localization are numbers of steps, and the CPU engine weighs proposals for a whole
        run.
        """
        localized = self.options.built.localization is not None
        return not localized and (self.options.tries_one_site or not self.engine.on_host)

    @functools.cached_property
    def chains(self) -> Chains:
        """The chains, whose arrays are built on first use; InputError where they do not fit into
        memory.
        """
        terms = self._terms
        options = self.options
        sampler = options.built.sampler
        shape = shape_of_one(
            terms, self.num_chains, *devices_for(self.engine, sampler, self.settings(self.first))
        )
        degree = shape.degree
        # Similar problems share a program: neighbour lists have lengths of powers of two, small
        # problems have none.
        if degree is not None:
            longer = 1 << max(degree - 1, 0).bit_length()
            degree = longer if sparse_is_cheaper(longer, shape.num_sites) else degree
            shape = dataclasses.replace(shape, degree=None if shape.num_sites <= _SMALL else degree)
        check_fit(self.problem, options, self.first, self.engine, shape)
        return Chains.of_one(terms, 0, shape, sampler, self.engine, options.seed)

    def next_length(self, left: float, longest: int) -> int:
        """Returns the steps of the next round, of `left` seconds, after rounds of up to `longest`;
        0: there is none.

        One round measures the rate, and the next fills the time. Others follow where that took less
        than expected.
        """
        if self.seconds_per_step is None:
            return self.first
        # What draws sites by weight has a number for each of its steps in memory.
        most = _MOST_TRIES if self.options.tries_one_site else MOST_STEPS
        # A round whose temperatures follow the time ends by itself when it is over.
        planned = (_AMPLE if self.timed else _SAFE) * left / self.seconds_per_step
        length = int(min(planned, most)) // self.unit * self.unit
        return length if length >= max(self.unit, _WORTH * longest) else 0


class Rounds:
    """Plays rounds of annealing and of local search on one problem, gives provers their turns, and
    decides when the run ends.

    With provers, it ends when nothing is left to prove. They have no turns without a time limit.
    With one, once a twentieth of it has passed and there are good answers, they have that part of
    it, and three quarters of the time that passes where one of them expects to end with a proof.

    Attributes:
      board: what is known; without provers, of what chains visited alone.
      reason: why the run ends: `target`, `bound`, `callback`, `interrupt` or `time`; empty before.
      collector: of everything that was visited.
      bar: called with the name of a sampler, the number of chain-steps done, and what is known, in
        words.
    """

    def __init__(
        self,
        presolved: Presolved,
        options: SolveOptions,
        proofs: Proofs | None,
        clock: Budget,
        annealer: Annealer,
        states: Int8[np.ndarray, "R N"] | None = None,
    ):
        """Begins; chains begin in `states` in turn, or at random."""
        self._presolved = presolved
        self._options = options
        self._proofs = proofs
        self._clock = clock
        self._annealer = annealer
        self._problem = presolved.original
        self._sign = 1.0 if self._problem.maximise else -1.0
        self._units = units(self._problem)
        self._states = states
        self._number = 0
        self._steps = 0
        # The highest value of a chain so far, in the problem's units, and whether it is on the
        # board.
        self._highest = -np.inf
        self._is_verified = True
        # When provers may begin to have turns, and the seconds that they had.
        self._begun_at = clock()
        self._spent_s = 0.0
        self.board = Board(self._problem) if proofs is None else proofs.board
        self.reason = ""
        self.collector = Collector(presolved)
        self.bar: Advance = lambda name, done, words="": None
        incumbent = self.board.incumbent
        if states is not None:
            self.visit(self._problem.evaluate(states), INITIAL_STATES)
        if incumbent is not None and incumbent.by != INITIAL_STATES:
            self.visit(incumbent.answer, incumbent.by)

    def visit(self, found: Evaluated, by: str) -> None:
        """Counts answers as visited, by chains in turn."""
        chains = self._annealer.num_chains
        self.collector.visit(
            Evaluated(*(np.resize(part, (chains, *part.shape[1:])) for part in found))
        )
        self.take(found, by)

    def take(self, found: Evaluated, by: str) -> None:
        """Takes verified answers into account, which may end the run."""
        self.board.take(found, by)
        self._judge()

    def _judge(self) -> None:
        """Ends the run where what is known is as good as is asked for, or as can be."""
        target = self._options.target
        if self._proofs is not None and self.board.closed:
            self.reason = "bound"
        if target is not None:
            ahead = self._units.value(self.board.value) - target
            self.reason = "target" if self._sign * ahead >= 0 else self.reason

    def verify(self, states: np.ndarray) -> Evaluated:
        """Evaluates states of the reduced problem, which may be padded, on the original."""
        reduced = states[:, : len(self._presolved.kept)]
        return self._problem.evaluate(self._presolved.lift(reduced))

    def share(self, search: LocalSearch | None = None) -> None:
        """Fills the seconds that are left, by annealings and perhaps a local search beside them.

        Each of the two first has a tenth of the time. That which found the better value has the
        rest; where both found the same, they share it, annealing first. A local search whose trial
        is too short to tell what it would find has its trial alone.
        """
        rivals: list[Annealer | LocalSearch] = [self._annealer]
        if search is not None:
            rivals.append(search)
        compared = len(rivals) > 1
        left = self._clock.left()
        # Alone, annealing has a first answer, also for provers.
        for one in rivals:
            if not self.reason:
                self.fill(one, (TRIAL if compared else BOUNDS) * left, compared=compared)
        if compared:
            rivals = [one for one in rivals if one.conclusive]
            values = [self.board.values[one.name] for one in rivals]
            rivals = [
                one for one, value in zip(rivals, values, strict=True) if value == max(values)
            ]
        for number, one in enumerate(rivals):
            if not self.reason:
                self.fill(
                    one, self._clock.left() / (len(rivals) - number), compared=len(rivals) > 1
                )

    def fill(self, rival: Annealer | LocalSearch, seconds: float, *, compared: bool) -> None:
        """Anneals in rounds, or searches, for `seconds`; verifies what chains found where
        compared.
        """
        end = self._clock.left() - seconds

        def left() -> float:
            return self._clock.left() - end

        if isinstance(rival, LocalSearch):
            self._search(rival, left)
            return
        longest = 0
        while length := rival.next_length(left(), longest):
            states = self.play(length, left)
            longest = max(longest, length)
            if compared:
                self.take(self.verify(states), ANNEALING)
            if self.reason:
                return

    def _search(self, search: LocalSearch, left: Callable[[], float]) -> None:
        more = True
        states = np.empty((0, 0), np.int8)
        while more and (seconds := left()) > 0:
            more = search.advance(min(seconds, _CALL_S))
            before = states
            states = search.state[None]
            if not np.array_equal(states, before):
                self.visit(self.verify(states), search.name)
            if self._ends(0):
                break

    def play(self, length: int, left: Callable[[], float] | None = None) -> Int8[np.ndarray, "B N"]:
        """Anneals once, for `length` steps, or as many as fit into the seconds `left` if the rate
        is known.

        Returns the best state that each chain visited.
        """
        options = self._options
        annealer = self._annealer
        engine = annealer.engine
        chains = annealer.chains
        method = options.method(length, fit=options.fills_time)
        # A hundredth of the steps, but no more than the steps of a call, which cannot be
        # interrupted.
        every = max(1, min(length // 100, engine.steps_per_call(method.sampler)))
        if options.time_limit is None:
            steps_per_call = engine.visible_steps(method.sampler, length)
        elif engine.on_host:
            seconds = annealer.seconds_per_step
            steps_per_call = None if seconds is None else max(1, int(_CALL_S / seconds))
        else:
            steps_per_call = annealer.unit if options.fills_time else None
        if options.fills_time and not engine.on_host:  # calls of one shape
            every = annealer.unit
        settings = annealer.settings(length, every)
        timed = None
        if left is not None and annealer.timed and annealer.seconds_per_step is not None:
            timed = TimedSchedule(settings, length, seconds_per_step=annealer.seconds_per_step)

        def watch(done: int, best: Best) -> bool:
            self._inspect(best)
            over = self._ends(done)
            return over or (timed is not None and left is not None and left() <= 0)

        def plan(done: int) -> ClockTemperatures:
            nonlocal timed
            assert timed is not None and left is not None
            timed = timed.planned(done, left())
            return ClockTemperatures(timed)

        def tell(steps: int) -> None:
            annealing = "" if options.time_limit is None else f"annealing {self._number + 1}, "
            self.bar(options.sampler, steps * annealer.num_chains, annealing + self._status())

        chains.set_instance_ids([self._number] * chains.shape.num_instances)
        outcome = anneal(
            chains,
            method,
            settings,
            tell,
            states=self._states,
            watch=watch,
            steps_per_call=steps_per_call,
            temperatures=plan if timed is not None else None,
        )
        complete = chains.done == length or (timed is not None and self.reason in ("", "time"))
        played_at = schedule_of(method, settings) if timed is None else timed
        self.collector.add(
            outcome, every, played_at, chains.done, annealer.constant, complete=complete
        )
        self._number += 1
        self._steps += chains.done
        annealer.seconds_per_step = max(outcome.run_s, 1e-9) / chains.done
        return outcome.best[1][0]

    def _due(self) -> float:
        """Returns the seconds of proofs that are due, of which provers lack a turn, or all of their
        part of a short limit; 0 if they have none, or are over.
        """
        limit = self._options.time_limit
        passed = self._clock() - self._begun_at
        if self._proofs is None or limit is None or self._proofs.over or passed < BOUNDS * limit:
            return 0.0
        part = max(BOUNDS * limit, PROOFS * passed * self._proofs.hopeful)
        lacking = part - self._spent_s
        return lacking if lacking >= min(TURN, BOUNDS * limit) else 0.0

    def _inspect(self, best: Best) -> None:
        """Verifies the best state of the chains where that is used: by a target, a callback, a
        prover, or a bound that is about as good.
        """
        values = np.asarray(best.value)[0, : self._annealer.num_chains]
        chain = int(np.argmax(values))
        value = float(values[chain]) + self._annealer.constant
        if value > self._highest:
            self._highest = value
            self._is_verified = False
        if self._is_verified or value < self._highest:
            return
        used = self._options.target is not None or self._options.callback is not None
        bound = self.board.bound
        if bound is not None:
            short = _ABOUT * max(1.0, abs(float(bound)))
            used = used or value >= self._sign * float(bound) - short
        if used or self._due():
            self._is_verified = True
            self.take(self.verify(np.asarray(best.x[0, chain])[None]), ANNEALING)

    def _ends(self, done: int) -> bool:
        """Gives provers the turn that is due; returns whether the run ends, after `done` steps of a
        round.
        """
        options = self._options
        due = self._due()
        if self._proofs is not None and due and not self.reason:
            begin = self._clock()
            later = PROOFS * max(self._clock.left(), 0.0)
            self._proofs.advance(due, later, self._clock.is_over)
            # Work that they save for a long computation is spent, too.
            self._spent_s += max(due, self._clock() - begin)
            self._judge()
        if options.callback is not None:
            best = self._units.value(self.board.value)
            if options.callback(self._steps + done, best) and not self.reason:
                self.reason = "callback"
        if not self.reason and self._clock.is_interrupted():
            self.reason = "interrupt"
        if not self.reason and self._clock.left() <= 0:
            self.reason = "time"
        return bool(self.reason)

    def _status(self) -> str:
        """Returns the best value so far, less its penalty, the bound, and the seconds that are
        left.
        """
        best = max(self._highest, self._sign * self.board.value)
        value = self._units.value
        parts = [f"best {value(self._sign * best):.6g}"] if math.isfinite(best) else []
        if self.board.bound is not None:
            parts.append(f"bound {value(float(self.board.bound)):.6g}")
        if self._options.time_limit is not None:
            parts.append(f"{max(self._clock.left(), 0.0):.0f} s left")
        return ", ".join(parts)
