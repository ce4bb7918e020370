"""Annealings of one or more samplers on a problem, how a time limit is shared among them, and answers without any.

Of several samplers, and local searches beside them, each first has a tenth of the time. Those that found a value as
good as the best share the rest, one long annealing each: where short runs tell them apart, the best has nearly all
of the time, and where only long runs would, none is given up. A local search whose trial is too short to tell
what it would find has its trial alone.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import itertools
import math
import pkgutil
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Best
from sl_discs.experiment.batches import shape_of_one
from sl_discs.experiment.chains import Chains, Outcome, anneal, devices_for
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import Method
from sl_discs.models.enumeration import MOST_STATES, largest_states
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.problems import Evaluated, Problem
from sl_discs.problems.kind import KINDS
from sl_discs.proofs.provers import TURN, Proofs
from sl_discs.reductions.presolve import Presolved, unreduced
from sl_discs.reductions.presolve import presolve as reduced_exactly
from sl_discs.samplers.registry import is_localized
from sl_discs.solving.annealing import complete_annealing, objective_of
from sl_discs.solving.options import MOST_STEPS, Options, as_states, check_fit, layout_seconds
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock, Collector, TimedTemperatures, Watcher, round_lengths

# Steps of the round that measures the rate, few enough for one call to the engine, so that large problems also end
# cold: in sweeps for samplers that try one site per step, in steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# Target number of seconds between two checks of the clock on the CPU engine.
_CALL_S = 0.1
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30
# Part of the time that each of several samplers has to show what it can do.
_TRIAL = 0.1
# Part of the time that provers have beside the annealings where one expects to end with a proof. Otherwise they have
# this part of the time limit, once as much of it has passed and there are good answers.
_PROOFS, _BOUNDS = 0.75, 0.05
# Part of the time limit that reductions may take, in nominal seconds, and the part that may have passed on the clock
# when a prover begins a turn before the first sweep. That begins within a quarter of the limit on a loaded machine.
_PRESOLVE, _FIRST_TURNS = 0.1, 0.15
# Nominal seconds of proofs before and after a search without a time limit.
_BEFORE_S, _AFTER_S = 0.25, 5.0
# For the watcher, where no chain has moved.
_NO_CHAINS = Best(np.full((1, 1), -np.inf), np.zeros((1, 1, 0), np.int8))
# The most padded sites of which rows cost next to nothing.
_SMALL = 128


def annealed(problem: Problem, options: Options) -> Result:
    """The answer of chains, or one that is known without them where the options ask for that.

    InputError where the problem's coefficients are out of range, or it does not fit into memory.
    """
    clock = Clock()
    engine, _ = options.choose_engine(problem.num_variables)
    check_fit(problem, options, first_round(options, problem.num_variables, engine.on_host)[0], engine)
    if options.presolve and (result := by_enumeration(problem, options.seed, clock)):
        return result
    seconds = math.inf if options.time_limit is None else _PRESOLVE * options.time_limit
    presolved = reduced_exactly(problem, seconds) if options.presolve else unreduced(problem)
    reduced = presolved.problem
    if reduced is None:
        return by_reductions(presolved, options, clock)
    options = options.for_size(reduced.num_variables, engine.on_host)
    seconds = layout_seconds(reduced)
    too_large = options.time_limit is not None and seconds > options.time_limit
    if too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem will take about {seconds:.1f} s, more than the time "
            f"limit of {options.time_limit:g} s; one short annealing will be played",
            stacklevel=4,
        )
    annealers, searches = [Annealer(reduced, options)], []
    if not too_large:
        annealers += [Annealer(*rival) for rival in options.rivals(reduced)]
        searches = local_searches(reduced, options)
    with contextlib.closing(
        Proofs(presolved, 0.0 if too_large else options.bound_seconds, None if options.proofs else ())
    ) as proofs:
        if not too_large:
            # Without a good answer, provers cannot tell how long they will take.
            short = options.bound_seconds if options.time_limit is not None or not options.presolve else _BEFORE_S
            limit = math.inf if options.time_limit is None else options.time_limit
            proofs.advance(short, math.inf, lambda: clock() >= _FIRST_TURNS * limit or options.is_interrupted())
            if options.presolve and proofs.closed:
                return _without_chains(presolved, proofs.states, proofs.by, proofs.by, options.seed, clock)
        return Search(presolved, options, proofs, clock).run(annealers, searches, warned=too_large)


def first_round(options: Options, num_sites: int, on_host: bool) -> tuple[int, int]:
    """The steps of the round that measures the rate, or of each round; and what lengths are multiples of."""
    one_site = options.tries_one_site
    # On JAX, the steps of a call, so that rounds share one program.
    unit = 1_000 if not on_host and one_site else 100
    if not options.fills_time:
        return options.steps or options.default_steps(num_sites), unit
    least = max(_FIRST_SWEEPS * num_sites if one_site else _FIRST_STEPS, options.n_min)
    return -(-least // unit) * unit, unit


class Annealer:
    """Annealings of one sampler on one problem, perhaps with a penalty of its own; each has its own random numbers.

    InputError where coefficients are beyond the range of the model's 32-bit numbers.
    """

    # Steps between two checks of the clock, and seconds per step of the last round, once they are known.
    steps_per_call: int | None = None
    pace: float | None = None
    # The best exact value found, times the sign of the problem's sense.
    best: float = -np.inf
    # Whether it may have the rest of the time.
    conclusive = True

    def __init__(self, problem: Problem, options: Options):
        self._terms = terms = objective_of(problem)
        complete = complete_annealing(options.annealing, terms)
        self.problem, self.options = problem, dataclasses.replace(options, annealing=complete)
        self.engine, self.note = options.choose_engine(problem.num_variables)
        self.first, self.unit = first_round(options, problem.num_variables, self.engine.on_host)
        # The part of the problem's value that the model omits, times the sign of its sense.
        self.constant = terms.constant

    def method(self, steps: int) -> Method:
        """Builds the sampler for chains of `steps` steps."""
        return self.options.method(steps, fit=self.options.fills_time)

    def settings(self, steps: int, every: int) -> Settings:
        """Returns the settings of a run of `steps` steps, which logs every `every`-th of them.

        Where a step tries one site, the temperature changes once in a sweep, but at least a hundred times.
        """
        settings = self.options.settings(steps, every)
        if "anneal_every" in self.options.annealing or not self.options.tries_one_site:
            return settings
        return dataclasses.replace(settings, anneal_every=max(1, min(self.problem.num_variables, steps // 100)))

    @property
    def timed(self) -> bool:
        """Whether temperatures can follow the time.

        Levels of localization are numbers of steps, and the CPU engine weighs proposals for a whole run.
        """
        options = self.options
        return not is_localized(options.sampler) and (options.tries_one_site or not self.engine.on_host)

    @functools.cached_property
    def chains(self) -> Chains:
        """The chains, whose arrays are built on first use; InputError where they do not fit into memory."""
        terms, options, sampler = self._terms, self.options, self.method(self.first).sampler
        shape = shape_of_one(
            terms, options.num_chains, *devices_for(self.engine, sampler, options.settings(self.first))
        )
        shape = dataclasses.replace(shape, degree=_rounded(shape.degree, shape.num_sites))
        check_fit(self.problem, options, self.first, self.engine, shape)
        return Chains.of_one(terms, 0, shape, sampler, self.engine, options.seed)

    def anneal(self, number: int, method: Method, settings: Settings, states, **how) -> Outcome:
        """Round `number`, whose random numbers it determines; `how` is passed to `experiment.chains.anneal`."""
        self.chains.rename([number] * self.chains.shape.num_instances)
        return anneal(self.chains, method, settings, states=states, **how)


def _rounded(degree: int | None, num_sites: int) -> int | None:
    """The length of neighbour lists, chosen so that similar problems share a program; None: rows.

    Lengths are powers of two, and small problems have no lists.
    """
    if degree is None or num_sites <= _SMALL:
        return None
    longer = 1 << max(degree - 1, 0).bit_length()
    return longer if sparse_is_cheaper(longer, num_sites) else degree


class LocalSearch(abc.ABC):
    """A search beside the annealings of a problem under a time limit, which the kind of the problem names.

    Attributes:
      name: what it is, in words.
      best: the best exact value found, times the sign of the problem's sense.
      conclusive: whether a trial of it is long enough to tell what it would find in the rest of the time.
    """

    name: str
    best: float = -np.inf
    conclusive: bool = True

    @property
    @abc.abstractmethod
    def state(self) -> Int8[np.ndarray, "n"]:
        """The best state found, as zeros and ones."""

    @abc.abstractmethod
    def advance(self, seconds: float) -> bool:
        """Searches for about `seconds`; returns whether more is to do."""


def found_by(searches: Sequence[LocalSearch], winner: Annealer) -> list[str]:
    """Which of them found better answers than the best sampler, in words."""
    return [f"the best answer is by {one.name}" for one in searches if one.best > winner.best]


def local_searches(problem: Problem, options: Options) -> list[LocalSearch]:
    """Those that `auto` uses on what reductions left of a problem."""
    if not options.uses_local_searches:
        return []
    assert options.time_limit is not None
    makers = map(pkgutil.resolve_name, KINDS[problem.kind].searches)
    made = [make(problem, options.seed, _TRIAL * options.time_limit) for make in makers]
    return [one for one in made if one is not None]


class Search:
    """Rounds of annealing on one problem, from their first step to a result."""

    settings: Settings

    def __init__(self, presolved: Presolved, options: Options, proofs: Proofs, clock: Clock):
        self._presolved, self._options, self._proofs, self._clock = presolved, options, proofs, clock
        self._problem, self._number = presolved.original, 0
        self._states = as_states(self._problem, options.initial_states, options.num_chains)
        self._collector = Collector(presolved)
        self._watcher = Watcher(
            options, self._exactly, self._problem.maximise, proofs=proofs if options.presolve else None,
            due=lambda: self._lacking() >= TURN, prove=self._prove, is_over=lambda: self._left() <= 0,
        )  # fmt: skip
        self._begun_at, self._proving_s = clock(), 0.0
        self._bar: Callable[[str, int], None] = lambda name, steps: None

    def _exactly(self, states: np.ndarray) -> Evaluated:
        """Evaluates states of the chains, which may be padded."""
        return self._problem.evaluate(self._presolved.lift(states[:, : len(self._presolved.kept)]))

    def _left(self) -> float:
        return math.inf if self._options.time_limit is None else self._options.time_limit - self._clock()

    def _is_over(self) -> bool:
        """Whether time is up, or the user has interrupted the run."""
        return self._left() <= 0 or self._options.is_interrupted()

    def _visit(self, states: Int8[np.ndarray, "K N"]) -> None:
        """Counts states of the original problem as visited, by chains in turn."""
        if len(states):
            shape = self._options.num_chains, states.shape[1]
            self._watcher.reached(self._collector.begin(np.resize(states, shape)))

    def _visit_found(self) -> None:
        """Counts what provers found as visited, unless the values asked for are those that chains visit."""
        if self._options.presolve:
            self._visit(self._proofs.states)

    def _lacking(self) -> float:
        """Seconds that provers lack of their part of the time so far; 0 where they have no part, or are over."""
        limit, passed = self._options.time_limit, self._clock() - self._begun_at
        if limit is None or self._proofs.over or passed < _BOUNDS * limit:
            return 0.0
        part = max(_BOUNDS * limit, _PROOFS * passed * self._proofs.hopeful)
        return part - self._proving_s

    def _prove(self) -> None:
        """Gives provers what they lack."""
        begin, share = self._clock(), self._lacking()
        self._proofs.advance(share, _PROOFS * max(self._left(), 0.0), self._is_over)
        # Work that they save for a long computation is spent, too.
        self._proving_s += max(share, self._clock() - begin)

    def run(self, annealers: Sequence[Annealer], searches: Sequence[LocalSearch], *, warned: bool) -> Result:
        """Anneals, and verifies the answers; InputError where the chains do not fit into memory.

        Local searches share a time limit with the samplers; `warned` says whether the user knows already that the
        limit is too short.
        """
        options, problem, limit = self._options, self._problem, self._options.time_limit
        self._visit(self._presolved.found if self._states is None else self._states)
        self._visit_found()
        winner = annealers[0]
        total = None if limit is not None else winner.first * options.num_chains
        with progress_bar(total, shown=options.progress) as self._bar:
            assert winner.chains
            build_s = self._clock()
            if limit is not None and build_s >= limit and not warned:
                warnings.warn(
                    f"{problem.name}: building the arrays of the problem took {build_s:.1f} s, more than the time "
                    f"limit of {limit:g} s; one short annealing is played",
                    stacklevel=5,
                )
            if options.fills_time:
                winner = self._share(annealers, searches)
            else:
                for _ in range(1) if limit is None else itertools.count():
                    states = self._round(winner, winner.first)
                    if self._watcher.reason:
                        break
        run_s = self._clock() - build_s
        if limit is None and options.presolve and not self._watcher.reason and not self._proofs.over:
            self._watcher.reached(self._exactly(states))
            # Without a time limit, results do not depend on the time that provers take.
            self._proofs.advance(_AFTER_S, 0.0, self._is_over)
        self._visit_found()
        return self._collector.result(
            stopped=self._watcher.reason or ("steps" if limit is None else "time"),
            bound=self._proofs.bound,
            bound_by=self._proofs.by,
            timing={"build_s": build_s, "compile_s": self._clock.compiling(), "run_s": run_s},
            engine=winner.engine.name,
            engine_note="; ".join(words for words in (winner.note, *found_by(searches, winner)) if words),
            sampler=winner.options.sampler,
            annealing={field: getattr(self.settings, field) for field in winner.options.annealing},
            seed=options.seed,
        )

    def _share(self, annealers: Sequence[Annealer], searches: Sequence[LocalSearch] = ()) -> Annealer:
        """Fills the seconds that are left; returns the sampler that found the best value, the first of equal ones."""
        rivals: list[tuple[Any, Callable]] = [(one, self._fill) for one in annealers]
        rivals += [(one, self._advance) for one in searches]
        if len(rivals) > 1:
            trial = _TRIAL * self._left()
            for one, fill in rivals:
                fill(one, trial, compared=True)
                if self._watcher.reason:
                    return max(annealers, key=lambda annealer: annealer.best)
            rivals = [rival for rival in rivals if rival[0].conclusive]
            best = max(one.best for one, _ in rivals)
            rivals = [rival for rival in rivals if rival[0].best == best]
        else:
            # A first answer, also for provers.
            self._fill(annealers[0], _BOUNDS * self._left(), compared=False)
            if self._watcher.reason:
                return annealers[0]
        for number, (one, fill) in enumerate(rivals):
            fill(one, self._left() / (len(rivals) - number), compared=len(rivals) > 1)
            if self._watcher.reason:
                break
        return max(annealers, key=lambda annealer: annealer.best)

    def _fill(self, annealer: Annealer, seconds: float, *, compared: bool) -> None:
        """Anneals in rounds that fill `seconds`; finds the `best` value where compared."""
        end = self._left() - seconds

        def left() -> float:
            return self._left() - end

        def pace() -> float | None:
            return annealer.pace

        # What draws sites by weight has a number for each of its steps in memory.
        most = _MOST_TRIES if annealer.options.tries_one_site else MOST_STEPS
        for length in round_lengths(annealer.first, annealer.unit, most, left, pace, timed=annealer.timed):
            states = self._round(annealer, length, left)
            if compared:
                values = self._exactly(states).values
                annealer.best = max(annealer.best, float((values if self._problem.maximise else -values).max()))
            if self._watcher.reason:
                return

    def _advance(self, search: LocalSearch, seconds: float, *, compared: bool = True) -> None:
        """Runs a local search for `seconds`; finds its `best` value."""
        end, more = self._left() - seconds, True
        states = np.empty((0, 0), np.int8)
        while more and (left := self._left() - end) > 0:
            more = search.advance(min(left, _CALL_S))
            before, states = states, search.state[None]
            if not np.array_equal(states, before):
                [value] = self._exactly(states).values
                search.best = max(search.best, float(value if self._problem.maximise else -value))
                self._visit(self._presolved.lift(states))
            if self._watcher(0, _NO_CHAINS):
                break
        self._watcher.next_round()

    def _round(
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
        self.settings = annealer.settings(length, every)
        temperatures = self.settings.temperatures()
        timed = None
        if left is not None and annealer.timed and annealer.pace is not None:
            temperatures = timed = TimedTemperatures(self.settings, left=left, pace=annealer.pace)
            timed.plan(0)

        def watch(done: int, best: Best) -> bool:
            over = self._watcher(done, best)
            return (timed is not None and timed.plan(done)) or over

        steps_per_call = annealer.unit if one_shape else annealer.steps_per_call
        self._watcher.constant = self._collector.constant + annealer.constant
        outcome = annealer.anneal(
            self._number, method, self.settings, self._states, watch=watch, steps_per_call=steps_per_call,
            progress=lambda steps: self._bar(options.sampler, steps * options.num_chains),
            temperatures=temperatures,
        )  # fmt: skip
        played = self._watcher.next_round()
        complete = played == length or (timed is not None and self._watcher.reason in ("", "time"))
        self._collector.add(outcome, every, temperatures, played, annealer.constant, complete=complete)
        self._number += 1
        annealer.pace = max(outcome.run_s, 1e-9) / played
        if host:
            annealer.steps_per_call = max(1, int(_CALL_S / annealer.pace))
        return outcome.best[1][0]


# Answers that need no chains: by enumeration of all states, and by reductions that leave nothing to search.


def by_enumeration(problem: Problem, seed: int, clock: Clock) -> Result | None:
    """The result of a problem of up to 2^20 states; None of larger ones, and where that proves no answer optimal.

    That is so where penalties are too small. Values in double precision tell which states may be best, and of these
    the exact values.
    """
    number = 2**problem.num_variables
    if number > MOST_STATES:
        return None
    objective = problem.terms()
    found = largest_states(objective, problem.magnitude(offset=False), problem.num_terms)
    evaluated = problem.evaluate(found.states)
    sign = 1.0 if problem.maximise else -1.0
    best = problem.best_row(evaluated)
    value, largest = float(evaluated.values[best]), found.value + objective.constant
    # With the constant, the value is rounded once more.
    error = found.error + 2.0**-50 * problem.magnitude()
    surely = found.complete and abs(sign * value - largest) <= error
    if not surely and value != problem.rounded_bound(sign * (largest + error)):
        return None
    note = f"all {number:,} states were compared"
    state = found.states[best : best + 1]
    return _without_chains(unreduced(problem), state, "enumeration", note, seed, clock)


def by_reductions(presolved: Presolved, options: Options, clock: Clock) -> Result:
    """The result where reductions leave nothing to search.

    Reductions round real coefficients, so that the best answer is theirs only up to a rounding error. Enumeration and
    elimination of the whole problem compare exactly, where they can.
    """
    problem = presolved.original
    states = np.concatenate([presolved.lift(np.zeros((1, 0), np.int8)), presolved.found])
    exact = [name for name in KINDS[problem.kind].provers if name.startswith("sl_discs.proofs.tables:")]
    proofs = Proofs(dataclasses.replace(unreduced(problem), found=states), 0.0, exact)
    by, note, bound = "reductions", "reductions left nothing to search", None
    if not problem.integer_values:
        proofs.advance(options.bound_seconds)
        if proofs.closed:
            by = proofs.by
        else:
            bound = presolved.lifted_bound(proofs.best - presolved.constant)
    return _without_chains(presolved, proofs.states, by, note, options.seed, clock, bound)


def _without_chains(
    presolved: Presolved,
    state: Int8[np.ndarray, "1 N"],
    by: str,
    note: str,
    seed: int,
    clock: Clock,
    bound: Fraction | float | None = None,
) -> Result:
    """The result of a state that is known to be the best, or otherwise to be so close to this bound."""
    collector = Collector(presolved)
    begun = collector.begin(state)
    return collector.result(
        stopped="bound" if bound is None else "steps",
        bound=presolved.original.exact_values(begun.states)[0] if bound is None else bound,
        bound_by=by,
        timing={"build_s": clock(), "compile_s": clock.compiling(), "run_s": 0.0},
        engine="none",
        engine_note=note,
        sampler="none",
        annealing={},
        seed=seed,
    )
