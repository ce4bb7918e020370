"""Who has the next slice of the time: reductions, provers, one or more samplers, and local searches.

Of several samplers, and local searches beside them, each first has a tenth of the time. Those that found a value as
good as the best share the rest, one long annealing each: where short runs tell them apart, the best has nearly all
of the time, and where only long runs would, none is given up. A local search whose trial is too short to tell
what it would find has its trial alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from sl_discs.experiment.progress import progress_bar
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS, Structure
from sl_discs.proofs import provers_of
from sl_discs.proofs.provers import Proofs
from sl_discs.reductions import presolve
from sl_discs.reductions.presolve import Presolved, unreduced
from sl_discs.solving.annealer import Annealer, LocalSearch, Rounds, first_round
from sl_discs.solving.options import SolveOptions, check_fit, layout_seconds
from sl_discs.solving.proving import by_enumeration, by_reductions, without_chains
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import BOUNDS, Clock, Turns, is_over

# Part of the time that each of several samplers has to show what it can do.
_TRIAL = 0.1
# Part of the time limit that reductions may take, in nominal seconds, and the part that may have passed on the clock
# when a prover begins a turn before the first sweep. That begins within a quarter of the limit on a loaded machine.
_PRESOLVE, _FIRST_TURNS = 0.1, 0.15
# Nominal seconds of proofs before and after a search without a time limit.
_BEFORE_S, _AFTER_S = 0.25, 5.0


def annealed(problem: Problem, options: SolveOptions) -> Result:
    """Returns the answer of chains, or one that is known without them where the options ask for that.

    InputError where the problem's coefficients are out of range, or it does not fit into memory.
    """
    clock, limit = Clock(options.time_limit), math.inf if options.time_limit is None else options.time_limit
    engine, _ = options.choose_engine(problem.num_variables)
    check_fit(problem, options, first_round(options, problem.num_variables, engine.on_host)[0], engine)
    if options.presolves and (result := by_enumeration(problem, options.seed, clock)):
        return result
    presolved = presolve(problem, _PRESOLVE * limit) if options.presolves else unreduced(problem)
    reduced = presolved.problem
    if reduced is None:
        return by_reductions(presolved, options, clock)
    options = options.for_size(reduced.num_variables, engine.on_host)
    seconds = layout_seconds(reduced)
    too_large = seconds > limit
    if too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem will take about {seconds:.1f} s, more than the time "
            f"limit of {limit:g} s; one short annealing will be played",
            stacklevel=4,
        )
    annealers: list[Annealer] = [Annealer(reduced, options)]
    searches: list[LocalSearch] = []
    if not too_large:
        annealers += [Annealer(*rival) for rival in options.rivals(reduced)]
        searches = local_searches(reduced, options)
    provers = provers_of(KINDS[problem.kind].structure) if options.proofs else ()
    with contextlib.closing(Proofs(presolved, 0.0 if too_large else options.bound_seconds, provers)) as proofs:
        if not too_large:
            # Without a good answer, provers cannot tell how long they will take.
            short = options.bound_seconds if limit < math.inf or not options.presolves else _BEFORE_S
            proofs.advance(short, math.inf, lambda: clock() >= _FIRST_TURNS * limit or options.is_interrupted())
            if options.presolves and proofs.closed:
                return without_chains(presolved, proofs.states, proofs.by, proofs.by, options.seed, clock)
        return Search(presolved, options, proofs, clock).run(annealers, searches, warned=too_large)


def local_searches(problem: Problem, options: SolveOptions) -> list[LocalSearch]:
    """Returns the local searches that `auto` uses beside the samplers."""
    fits = KINDS[problem.kind].structure in (Structure.SETS, Structure.CLIQUES)
    if options.time_limit is None or not (options.uses_local_searches and fits):
        return []
    # Imported where it is needed, since numba takes a while.
    from sl_discs.solving.cover_search import cover_search

    search = cover_search(problem, options.seed, _TRIAL * options.time_limit)
    return [] if search is None else [search]


class Search:
    """Shares the time of one run among samplers and local searches, from the first round to a result."""

    def __init__(self, presolved: Presolved, options: SolveOptions, proofs: Proofs, clock: Clock):
        self._options, self._proofs, self._clock = options, proofs, clock
        self.rounds = Rounds(presolved, options, Turns(proofs, options, clock), clock)

    def _visit_proved(self) -> None:
        """Counts what provers found as visited, unless the values asked for are those that chains visit."""
        if self._options.presolves:
            self.rounds.visit(self._proofs.states)

    def run(self, annealers: Sequence[Annealer], searches: Sequence[LocalSearch], *, warned: bool) -> Result:
        """Anneals, and verifies the answers; InputError where the chains do not fit into memory.

        Local searches share a time limit with the samplers; `warned` says whether the user knows already that the
        limit is too short.
        """
        options, limit, rounds, winner = self._options, self._options.time_limit, self.rounds, annealers[0]
        rounds.begin()
        self._visit_proved()
        total = None if limit is not None else winner.first * options.num_chains
        with progress_bar(total, shown=options.progress) as rounds.bar:
            assert winner.chains
            build_s = self._clock()
            if limit is not None and build_s >= limit and not warned:
                warnings.warn(
                    f"{winner.problem.name}: building the arrays of the problem took {build_s:.1f} s, more than the "
                    f"time limit of {limit:g} s; one short annealing is played",
                    stacklevel=5,
                )
            if options.fills_time:
                winner = self.share(annealers, searches)
            else:
                for _ in range(1) if limit is None else itertools.count():
                    states = rounds.play(winner, winner.first)
                    if rounds.watcher.reason:
                        break
        run_s = self._clock() - build_s
        if limit is None and options.presolves and not rounds.watcher.reason and not self._proofs.over:
            rounds.watcher.reached(rounds.exactly(states))
            # Without a time limit, results do not depend on the time that provers take.
            self._proofs.advance(_AFTER_S, 0.0, functools.partial(is_over, options, self._clock))
        self._visit_proved()
        found_by = [f"the best answer is by {one.name}" for one in searches if one.best > winner.best]
        return rounds.collector.result(
            stopped=rounds.watcher.reason or ("steps" if limit is None else "time"),
            bound=self._proofs.bound,
            bound_by=self._proofs.by,
            timing={"build_s": build_s, "compile_s": self._clock.compiling(), "run_s": run_s},
            engine=winner.engine.name,
            engine_note="; ".join(words for words in (winner.note, *found_by) if words),
            sampler=winner.options.sampler_name,
            annealing=winner.reported(),
            seed=options.seed,
        )

    def share(self, annealers: Sequence[Annealer], searches: Sequence[LocalSearch] = ()) -> Annealer:
        """Fills the seconds that are left; returns the sampler that found the best value, the first of equal ones."""
        rounds, left = self.rounds, self._clock.left
        rivals: list[tuple[Any, Callable]] = [(one, rounds.fill) for one in annealers]
        rivals += [(one, rounds.advance) for one in searches]
        if len(rivals) > 1:
            trial = _TRIAL * left()
            for one, fill in rivals:
                fill(one, trial, compared=True)
                if rounds.watcher.reason:
                    return max(annealers, key=lambda annealer: annealer.best)
            rivals = [rival for rival in rivals if rival[0].conclusive]
            best = max(one.best for one, _ in rivals)
            rivals = [rival for rival in rivals if rival[0].best == best]
        else:
            # A first answer, also for provers.
            rounds.fill(annealers[0], BOUNDS * left(), compared=False)
            if rounds.watcher.reason:
                return annealers[0]
        for number, (one, fill) in enumerate(rivals):
            fill(one, left() / (len(rivals) - number), compared=len(rivals) > 1)
            if rounds.watcher.reason:
                break
        return max(annealers, key=lambda annealer: annealer.best)
