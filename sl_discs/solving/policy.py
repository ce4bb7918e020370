"""The policy of `sl_discs.solve`: which worker has the next turn, and for how long.

All that is found is on one board: the incumbent, the bound, and who found them. Work is counted in
nominal seconds without a time limit, so that a run is the same on every machine, and by the budget
with one. These follow each other until the answer is proved, or the run is over:

1. under a time limit, a greedy answer, linear in the terms of the problem;
2. the provers, for a quarter of a second divided evenly;
3. the local search, for half a second;
4. the annealing, of 2,000 sweeps, or the steps of the sampler's default;
5. the provers, for five seconds, with the local search beside them for a fifth of the time.

A time limit goes on from there, and begins in smaller turns, so that a longer run does what a
shorter one does:

- Turns 2 and 3 take up to a tenth of it each, and turn 2 no more than a quarter of a short one in
  nominal seconds; where there is a local search, an annealing of a tenth comes before it.
- Annealings of turn 4 follow each other, each four times as long as the one before, while they find
  better answers. Where one that is as long as the default's, or longer, does not, turn 5 follows.
- Those that would take more than a quarter of what is left are not begun. The rest is one annealing
  whose temperature follows the clock, so that it ends cold; or the local search, if its trial found
  the better answer; or one after the other, if that was as good.
- Beside annealings, provers have three quarters of the time where one expects to end with a proof,
  a quarter where there is time for two annealings of turn 4, and otherwise a twentieth.

What cannot end in time is not begun: reductions, which have half of a limit, the layout of a local
search, or the arrays of the chains, beside which there has to be time to verify their answers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int8

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
from sl_discs.engines.devices import num_cores
from sl_discs.engines.program import Best, ClockTemperatures, Engine
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.models.terms import Coefficients
from sl_discs.problems import Problem
from sl_discs.problems.problem import units
from sl_discs.solving.board import ANNEALING, GREEDY, INITIAL_STATES, Board
from sl_discs.solving.options import MOST_STEPS, SolveOptions, times
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import TURN, Factory, LocalSearch, Proofs
from sl_discs.solving.result import Collector, Result
from sl_discs.solving.workers import workers_of
from sl_discs.support.memory import check_memory
from sl_discs.support.terminal import Advance, progress_bar

# Nominal seconds of turns, and the part of a time limit that each of the first ones may take.
_FIRST_PROOFS_S, _SEARCH_S, _PROOFS_S = 0.25, 0.5, 5.0
_PART = 0.1
# Turns of provers, after each of which the local search has one.
_TURNS = 4
# How much longer each annealing is than the one before, and the part of the time that is left that
# it may take.
_LONGER, _RUNG = 4, 0.25
# Parts of the time that provers have beside annealings: where one of them expects to end with a
# proof, where there is time for twice the steps of the default's annealing, and otherwise.
_HOPEFUL, _BESIDE, _LEAST = 0.75, 0.25, 0.05
# Relative error of the chains' 32-bit values, and of penalties that a repair takes away.
_ABOUT = 1e-3
# Target number of seconds between two checks of the budget on the CPU engine.
_CALL_S = 0.1
# Part of the remaining time that a round of fixed length may plan with: rates vary, and an
# annealing that is cut off ends hot. And where temperatures follow the time, so that a rate that
# was measured too low does not end it early.
_SAFE, _AMPLE = 0.9, 2.0
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30

# Bytes of a term in the problem, in the model, and in the matrices for temperatures and exact
# values.
_TERM_BYTES = 60
# Seconds in which a core lays out, or verifies, a term and a site; and in which it lays out an
# entry of padded lists of neighbours, four times as long as one of a matrix.
_TERM_S, _SITE_S, _ENTRY_S = 2e-7, 2e-6, 4e-8


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


class Annealer:
    """Annealings of one sampler on what reductions left of a problem; each has its own random
    numbers.

    InputError where coefficients are beyond the range of the model's 32-bit numbers.

    Attributes:
      num_chains, default, first, unit: see `Lengths`.
      seconds_per_step: of the last round; infinite before.
      reported: the fields of the annealing that results show: those of its temperatures, and the
        given ones.
      constant: what the model's values leave out of those of the original problem, times the sign
        of its sense.
    """

    seconds_per_step: float = math.inf

    def __init__(self, presolved: Presolved, terms: Coefficients, options: SolveOptions):
        problem = presolved.left
        size = problem.num_variables
        self.problem = problem
        self.options = options
        self.engine, self.note = options.choose_engine(size)
        lengths = options.lengths(size, self.engine.on_host)
        self.num_chains, self.default, self.first, self.unit = lengths
        self._given = times(options.annealing, 1 / units(presolved.original).unit)
        self._terms = annealed_terms(problem.name, terms, self._given)
        self._annealing = complete_annealing(self._given, self._terms)
        sign = 1.0 if problem.maximise else -1.0
        self.constant = self._terms.constant + sign * presolved.constant
        ends = "t_schedule", "init_temperature", "final_temperature", "decay_rate"
        self.reported = {name: getattr(self._annealing, name) for name in (*ends, *self._given)}

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
        # Similar problems share a program: neighbour lists have lengths of powers of two.
        if degree is not None:
            longer = 1 << max(degree - 1, 0).bit_length()
            if sparse_is_cheaper(longer, shape.num_sites):
                shape = dataclasses.replace(shape, degree=longer)
        check_fit(self.problem, options, self.first, self.engine, shape)
        return Chains.of_one(terms, 0, shape, sampler, self.engine, options.seed)

    def most(self, seconds: float) -> float:
        """Returns how many steps fit into `seconds`, by the rate of the last round."""
        return seconds / self.seconds_per_step

    def next_length(self, left: float, longest: int) -> int:
        """Returns the steps of the next round, of `left` seconds, after rounds of up to `longest`;
        0: there is none.

        Temperatures that follow the time end a round by themselves. Otherwise one fills the time,
        and others follow where that took less than expected.
        """
        # What draws sites by weight has a number for each of its steps in memory.
        limit = _MOST_TRIES if self.options.tries_one_site else MOST_STEPS
        planned = (_AMPLE if self.timed else _SAFE) * self.most(left)
        length = int(min(planned, limit)) // self.unit * self.unit
        return length if length >= max(self.unit, longest // 4) else 0


class Policy:
    """The workers of a run on what reductions left of a problem, and the turns that they have.

    Attributes:
      proofs: the provers.
      board: what is known; where nothing counts beside the chains, of what these visited alone.
      reason: why the run ends: `target`, `bound`, `callback`, `interrupt` or `time`; empty before.
    """

    _annealer: Annealer
    _search: LocalSearch | None = None

    def __init__(
        self,
        presolved: Presolved,
        options: SolveOptions,
        budget: Budget,
        states: Int8[np.ndarray, "R N"] | None = None,
        provers: Sequence[Factory] = (),
    ):
        """Begins; chains begin in `states` in turn, or at random."""
        problem = presolved.original
        self._presolved = presolved
        self._options = options
        self._budget = budget
        self._states = states
        self._problem = problem
        self._workers = workers_of(problem)
        self._sign = 1.0 if problem.maximise else -1.0
        self._units = units(problem)
        self._counts = options.counts
        self._limited = options.time_limit is not None
        # Seconds of the first local search, and in which the answers of chains will be verified.
        self._search_s = _PART * budget.left() if self._limited else _SEARCH_S
        self._kept_s = 0.0
        # Numbers of annealings, of steps so far, and of those of the longest annealing.
        self._number = 0
        self._steps = 0
        self._longest = 0
        # Whether the last annealing had at least the default's steps and found nothing better.
        self._vain = False
        # The highest value of a chain so far, in the problem's units, and of those on the board.
        self._highest = -np.inf
        self._verified = -np.inf
        # When the first annealing began, and the seconds of provers since then.
        self._begun_at = math.inf
        self._proofs_s = 0.0
        self.proofs = Proofs(
            presolved, provers if options.proofs else (), lambda: self._left() <= 0
        )
        self.board = self.proofs.board if self._counts else Board(problem)
        self.reason = ""
        self._bar: Advance = lambda name, done, description="": None
        initial = None if states is None else problem.evaluate(states)
        if initial is not None:
            self.board.take(initial, INITIAL_STATES)
        self._collector = Collector(presolved, initial)

    def play(self) -> Result:
        """Gives all workers their turns."""
        options = self._options
        budget = self._budget
        reduced = self._presolved.left
        if self._limited and options.searches and self._workers.greedy is not None:
            self._take(self._workers.greedy(reduced), GREEDY)
        end = (1 - _PART) * self._left()
        work = _FIRST_PROOFS_S / (1 + 1 / (options.time_limit or math.inf))
        self.proofs.advance(work, math.inf, lambda: self._left() < end or budget.is_interrupted())
        self._judge()
        if self.reason == "bound":
            return self.result(self.proofs.bound_by)
        terms = reduced.terms()
        size = terms.num_sites
        verify_s = len(terms.edges) * _TERM_S + size * _SITE_S
        # Lists of neighbours are up to twice as long as the longest one.
        entries = min(2 * size * terms.max_degree(), size**2 / 4)
        chains_s = 2 * verify_s + entries * _ENTRY_S
        hurried = self._left() < chains_s
        if options.searches and self._workers.search is not None:
            # Without a time limit, results do not depend on the number of cores.
            cores = num_cores() if self._limited else 1
            seconds = self._left() if hurried else self._search_s
            self._search = self._workers.search(self._presolved, options.seed, seconds, cores)
        if hurried:
            warnings.warn(
                f"{self._problem.name}: chains would take about {chains_s:.2g} s to build their "
                "arrays and to verify what they find, more than what is left of the time limit of "
                f"{options.time_limit:g} s; there are none if another answer is known, else one "
                "short annealing",
                stacklevel=5,
            )
            if self._counts and self.board.incumbent is not None:
                if self._search is not None:
                    self._walk(self._search, self._left())
                self.reason = self.reason or "time"
                return self.result("there was no time for chains")
        self._kept_s = verify_s
        self._annealer = Annealer(self._presolved, terms, options)
        annealer = self._annealer
        total = None if self._limited else annealer.default * annealer.num_chains
        with progress_bar(total, shown=options.progress) as self._bar:
            assert annealer.chains
            self._begun_at = budget()
            self._anneal_and_search()
        return self.result()

    def _anneal_and_search(self) -> None:
        annealer = self._annealer
        search = self._search
        if self._limited:
            self._anneal(annealer.first)
        while self._limited and not self._options.fills_time and not self.reason:
            self._anneal(annealer.first)
        if search is not None:
            if self._limited:
                self._fill(self._search_s)
            self._walk(search, self._search_s)
        if not self._limited:
            self._anneal(annealer.default)
            self._prove()
            return
        length = max(annealer.default, _LONGER * self._longest)
        if self._counts:
            while not (self._vain or self.reason) and length <= annealer.most(_RUNG * self._left()):
                self._anneal(length, self._left)
                length *= _LONGER
            if self._vain:
                self._prove()
        ahead = -np.inf
        if search is not None:
            ahead = self.board.values[search.by] - self.board.values[ANNEALING]
        if ahead <= 0:
            self._fill(self._left() / (2 if ahead == 0 else 1))
        if search is not None and ahead >= 0:
            self._walk(search, self._left())
        self.reason = self.reason or "time"

    def _left(self) -> float:
        """Returns the seconds that are left, without those of verification."""
        return self._budget.left() - self._kept_s

    def _judge(self) -> None:
        """Ends the run where what is known is as good as is asked for, or as can be."""
        target = self._options.target
        if self._counts and self.board.closed:
            self.reason = "bound"
        if target is not None:
            ahead = self._units.value(self.board.value) - target
            self.reason = "target" if self._sign * ahead >= 0 else self.reason

    def _fill(self, seconds: float) -> None:
        """Anneals for `seconds`: once, where temperatures follow the time."""
        end = self._left() - seconds

        def left() -> float:
            return self._left() - end

        longest = 0
        while not self.reason and (length := self._annealer.next_length(left(), longest)):
            longest = max(longest, self._anneal(length, left))

    def _walk(self, search: LocalSearch, seconds: float) -> None:
        """Searches for `seconds`, which are nominal ones without a time limit."""
        end = self._left() - seconds
        more = True
        while more and not self.reason and seconds > 0:
            more = self.proofs.turn(search, min(TURN, seconds))
            self._end(0)
            seconds = self._left() - end if self._limited else seconds - TURN

    def _prove(self) -> None:
        """Gives provers their long turn, with the local search beside them."""
        work = _PROOFS_S if self._counts else 0.0
        while work > 0 and not self.reason and not self.proofs.over:
            turn = min(work, _TURNS * TURN)
            work -= turn
            self._advance(turn, work)
            if self._search is not None:
                self.proofs.turn(self._search, TURN)
            self._end(0)

    def _advance(self, work: float, later: float) -> None:
        """Lets provers work, who may have `later` nominal seconds after that."""
        begin = self._budget()
        if self._limited:
            later = _HOPEFUL * max(self._left(), 0.0)
        self.proofs.advance(work, later, self._budget.is_over)
        # Work that they save for a long computation is spent, too.
        self._proofs_s += max(work, self._budget() - begin)

    def _anneal(self, length: int, left: Callable[[], float] | None = None) -> int:
        """Anneals once, for `length` steps, or as many as fit into the seconds `left` if the rate
        is known; returns how many.
        """
        options = self._options
        annealer = self._annealer
        engine = annealer.engine
        chains = annealer.chains
        pace = annealer.seconds_per_step
        before = self.board.value
        seconds = left or self._left
        method = options.method(length, fit=options.fills_time)
        # A hundredth of the steps, but no more than the steps of a call, which cannot be
        # interrupted.
        every = max(1, min(length // 100, engine.steps_per_call(method.sampler)))
        if not self._limited:
            steps_per_call = engine.visible_steps(method.sampler, length)
        elif engine.on_host:
            steps_per_call = None if math.isinf(pace) else max(1, int(_CALL_S / pace))
        else:
            steps_per_call = annealer.unit if options.fills_time else None
        if options.fills_time and not engine.on_host:  # calls of one shape
            every = annealer.unit
        settings = annealer.settings(length, every)
        timed = None
        if left is not None and annealer.timed:
            timed = TimedSchedule(settings, length, seconds_per_step=pace)

        def watch(done: int, best: Best) -> bool:
            self._inspect(best)
            self._end(done)
            return bool(self.reason) or (timed is not None and seconds() <= 0)

        def plan(done: int) -> ClockTemperatures:
            nonlocal timed
            assert timed is not None
            timed = timed.planned(done, seconds())
            return ClockTemperatures(timed)

        def tell(steps: int) -> None:
            # The best value so far, less its penalty.
            best = self._sign * max(self._highest, self._sign * self.board.value)
            value = self._units.value
            parts = [f"best {value(best):.6g}"] if math.isfinite(best) else []
            if self.board.bound is not None:
                parts.append(f"bound {value(float(self.board.bound)):.6g}")
            if self._limited:
                parts.insert(0, f"annealing {self._number + 1}")
                parts.append(f"{max(self._left(), 0.0):.0f} s left")
            self._bar(options.sampler, steps * annealer.num_chains, ", ".join(parts))

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
        self._collector.add(
            outcome, every, played_at, chains.done, annealer.constant, complete=complete
        )
        self._number += 1
        self._steps += chains.done
        self._longest = max(self._longest, chains.done)
        annealer.seconds_per_step = max(outcome.run_s, 1e-9) / chains.done
        self._inspect(Best(*outcome.best), wanted=self._counts)
        self._vain = chains.done >= annealer.default and self.board.value == before
        return chains.done

    def _due(self) -> float:
        """Returns the seconds of proofs that are due, of which provers lack a turn; else 0."""
        limit = self._options.time_limit
        if not self._counts or limit is None or not self._number or self.proofs.over:
            return 0.0
        annealer = self._annealer
        part = _LEAST if annealer.most(limit) < 2 * annealer.default else _BESIDE
        if self.proofs.hopeful:
            part = _HOPEFUL
        lacking = part * (self._budget() - self._begun_at) - self._proofs_s
        return lacking if lacking >= min(TURN, _LEAST * limit) else 0.0

    def _inspect(self, best: Best, *, wanted: bool = False) -> None:
        """Verifies the best state of the chains where that is wanted, or used: by a target, a
        callback, a prover, or a bound that is about as good.
        """
        values = np.asarray(best.value)[0, : self._annealer.num_chains]
        chain = int(np.argmax(values))
        value = float(values[chain]) + self._annealer.constant
        self._highest = max(self._highest, value)
        used = wanted or self._options.target is not None or self._options.callback is not None
        bound = self.board.bound
        if bound is not None:
            short = _ABOUT * max(1.0, abs(float(bound)))
            used = used or value >= self._sign * float(bound) - short
        if value > self._verified and (used or self._due()):
            self._verified = value
            self._state = np.asarray(best.x)[0, chain, : len(self._presolved.kept)]
            self._take(self._state[None], ANNEALING)
            self._judge()

    def _take(self, states: Int8[np.ndarray, "R n"], by: str) -> None:
        """Takes states of what reductions left into account."""
        self.board.take(self._problem.evaluate(self._presolved.lift(states)), by)

    def _end(self, done: int) -> None:
        """Gives provers the turn that is due, and ends the run where it is over, after `done` steps
        of a round.
        """
        due = self._due()
        if due and not self.reason:
            self._advance(due, 0.0)
        self._judge()
        callback = self._options.callback
        if callback is not None:
            best = self._units.value(self.board.value)
            if callback(self._steps + done, best):
                self.reason = self.reason or "callback"
        if self._budget.is_interrupted():
            self.reason = self.reason or "interrupt"
        if self._left() <= 0:
            self.reason = self.reason or "time"

    def result(self, note: str = "") -> Result:
        """Returns what is known; `note` says why there are no chains."""
        board = self.board
        descent = self._workers.descent
        if board.by == ANNEALING and self._options.searches and descent is not None:
            # At the last temperature, small gains are left.
            self._take(descent(self._presolved.left, self._state), ANNEALING)
        self._judge()
        budget = self._budget
        how: dict[str, Any] = {"engine": "none", "sampler": "none", "annealing": {}}
        build_s = min(self._begun_at, budget())
        if self._number:
            annealer = self._annealer
            note = annealer.note
            if board.values[board.by] > board.values[ANNEALING]:
                note = "; ".join(filter(None, [note, f"the best answer is by {board.by}"]))
            how["engine"] = annealer.engine.name
            how["sampler"] = self._options.sampler
            how["annealing"] = annealer.reported
        return self._collector.result(
            incumbent=board.incumbent,
            stopped=self.reason or "steps",
            bound=self.proofs.board.bound,
            bound_by=self.proofs.bound_by,
            timing={
                "build_s": build_s,
                "compile_s": budget.compiling(),
                "run_s": budget() - build_s,
            },
            engine_note=note,
            seed=self._options.seed,
            **how,
        )
