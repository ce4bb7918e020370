"""Rounds of annealing of one or more samplers on a problem, and how a time limit is shared among them.

Of several samplers each first has a tenth of the time. Those that found a value as good as the best share the rest,
one long annealing each: where short runs tell them apart, the best sampler has nearly all of the time, and where only
long runs would, none is given up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Engine
from sl_discs.engines.compiled import compile_seconds
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.settings import Settings
from sl_discs.problems import Evaluated, Problem
from sl_discs.reductions.presolve import Presolved
from sl_discs.samplers.base import Sampler
from sl_discs.solving.recipe import MOST_STEPS, Recipe, tries_one_site
from sl_discs.solving.result import Contraction, ContractionRecorder, Result
from sl_discs.solving.rounds import Clock, Collector, Watcher, round_lengths
from sl_discs.solving.stage import Stage

# Steps of the first round under a time limit, few enough for one call to the engine, so that large problems also end
# cold: in sweeps for samplers that try one site per step, in steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# Target number of seconds between two checks of the clock on the CPU engine.
_LOOK_S = 0.1
# About how many times the contraction of a localized chain is recorded.
_LOOKS = 50
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30
# Part of the time that each of several samplers has to show what it can do.
_TRIAL = 0.1


@dataclasses.dataclass
class Member:
    """One sampler of a search.

    Attributes:
      problem: that it samples, perhaps with a penalty of its own.
      lay_out: makes its stage, given the recipe, the steps of the first round, initial states, and `fit` as in
        `Recipe.method`; InputError where that does not fit into memory.
      recipe: of its chains.
      engine: that plays it.
      note: why this engine.
      first: steps of the first round.
      unit: lengths of rounds are multiples of this.
      constant: the part of the problem's value that the chains' model omits, times the sign of its sense.
      stage: its chains; None until they are played.
      look: steps between two checks of the clock; None: not known yet.
      pace: seconds per step of its last round; None: not known yet.
      best: the best exact value that it found, times the sign of the problem's sense.
    """

    problem: Problem
    lay_out: Callable[..., Stage]
    recipe: Recipe
    engine: Engine
    note: str
    first: int
    unit: int
    constant: float = 0.0
    stage: Stage | None = None
    look: int | None = None
    pace: float | None = None
    best: float = -np.inf

    @property
    def kernel(self) -> Sampler:
        """The base sampler."""
        return self.recipe.method(MOST_STEPS, fit=True).sampler


def first_round(recipe: Recipe, engine: Engine, num_sites: int, steps: int | None) -> tuple[int, int]:
    """`Member.first` and `Member.unit`.

    Args:
      recipe: of the chains.
      engine: that plays them.
      num_sites: of the problem.
      steps: of each round; None: rounds grow.
    """
    one_site = tries_one_site(recipe.sampler)
    # On JAX, the steps of a call, so that rounds share one program.
    unit = 1_000 if not engine.on_host and one_site else 100
    if steps is None:
        least = max(_FIRST_SWEEPS * num_sites if one_site else _FIRST_STEPS, recipe.n_min)
        steps = -(-least // unit) * unit
    return steps, unit


class Search:
    """Rounds on one problem; each has random numbers of its own.

    Attributes:
      settings: of the last round.
    """

    settings: Settings

    def __init__(
        self,
        states: Int8[np.ndarray, "R N"] | None,
        growing: bool,
        evaluate: Callable[[np.ndarray], Evaluated],
        watcher: Watcher,
        collector: Collector,
        clock: Callable[[], float],
        bar: Callable[[str, int], None],
    ):
        """Nothing is played yet.

        Args:
          states: that chains begin at, in turn; None: random ones.
          growing: whether rounds grow to fill a time limit.
          evaluate: states of the problem, exactly.
          watcher: ends the search.
          collector: of what rounds find.
          clock: seconds so far.
          bar: told of progress.
        """
        self._states, self._growing = states, growing
        self._evaluate, self._watcher, self._collector = evaluate, watcher, collector
        self._clock, self._bar, self._number = clock, bar, 0
        self._recorder: ContractionRecorder | None = None

    def prepare(self, member: Member) -> None:
        """Builds the arrays of its chains; InputError where they do not fit into memory."""
        member.stage = member.lay_out(member.recipe, member.first, self._states, fit=self._growing)

    def share(self, members: Sequence[Member], left: Callable[[], float]) -> Member:
        """Fills the seconds that are left; returns the member that found the best value, the first of equal ones."""
        if len(members) > 1:
            trial = _TRIAL * left()
            for member in members:
                self._fill(member, trial, left, compared=True)
                if self._watcher.reason:
                    return max(members, key=lambda member: member.best)
            best = max(member.best for member in members)
            members = [member for member in members if member.best == best]
        for number, member in enumerate(members):
            self._fill(member, left() / (len(members) - number), left, compared=len(members) > 1)
            if self._watcher.reason:
                break
        return max(members, key=lambda member: member.best)

    def _fill(self, member: Member, seconds: float, left: Callable[[], float], *, compared: bool) -> None:
        """Rounds of growing length for so many of the seconds that are left; finds `Member.best` where compared."""
        end = left() - seconds
        # What draws sites by weight has a number for each of its steps in memory.
        most = _MOST_TRIES if tries_one_site(member.recipe.sampler) else MOST_STEPS
        for length in round_lengths(member.first, member.unit, most, lambda: left() - end, member.pace):
            before = left()
            met = self.play(member, length)
            # A later call then needs no short rounds.
            member.pace = max(before - left(), 1e-9) / length
            if compared:
                values = self._evaluate(met).values
                member.best = max(member.best, float((values if member.problem.maximise else -values).max()))
            if self._watcher.reason:
                return

    def repeat(self, member: Member, rounds: int | None) -> None:
        """So many rounds of the same length; None: until the watcher ends the search."""
        for _ in itertools.repeat(None) if rounds is None else range(rounds):
            self.play(member, member.first)
            if self._watcher.reason:
                return

    def play(self, member: Member, length: int) -> Int8[np.ndarray, "B N"]:
        """One round; returns the best state that each chain met."""
        if member.stage is None:
            self.prepare(member)
        assert member.stage is not None
        recipe, host = member.recipe, member.engine.on_host
        one_shape = self._growing and not host
        every = member.unit if one_shape else _logged_every(length, member.engine, member.kernel)
        self.settings, method = recipe.settings(length, every), recipe.method(length, fit=self._growing)
        before = self._clock()
        self._recorder = ContractionRecorder(method, recipe.chains, length)
        look = member.unit if one_shape else member.look
        if method.localization is not None and not one_shape:
            look = min(look or length, max(1, length // _LOOKS))
        self._watcher.constant = self._collector.constant + member.constant
        outcome = member.stage.play(
            self._number, method, self.settings, self._watcher,
            lambda played: self._bar(recipe.sampler, played * recipe.chains), look, self._recorder,
        )  # fmt: skip
        self._collector.add(outcome, self.settings, self._watcher.next_round(), member.constant)
        self._number += 1
        if host:
            member.look = max(1, int(_LOOK_S * length / max(self._clock() - before, 1e-9)))
        return outcome.best[1][0][:, : member.problem.num_variables]

    def contraction(self) -> Contraction:
        """Of the last round."""
        assert self._recorder is not None
        return self._recorder.contraction()


def _logged_every(steps: int, engine: Engine, sampler: Sampler) -> int:
    """A hundredth of the steps, but no more than the steps of a call, which cannot be interrupted."""
    return max(1, min(steps // 100, engine.steps_per_call(sampler)))


# The chains of a search, from their first step to a result.


def play_members(
    presolved: Presolved,
    members: Sequence[Member],
    states: Int8[np.ndarray, "R N"] | None,
    clock: Clock,
    *,
    growing: bool,
    time_limit: float | None,
    target: float | None,
    bound: float | None,
    ends_at_bound: bool,
    callback: Callable[[int, float], object] | None,
    interrupt: Callable[[], object] | None,
    progress: bool,
    warned: bool,
    compiled_before: float,
) -> Result:
    """Plays the chains of one or more samplers, and verifies their answers.

    Args:
      presolved: the problem, and what is left of it to be sampled.
      members: the samplers.
      states: that chains begin at; None: random ones.
      clock: started with the search.
      growing: whether rounds grow to fill the time limit.
      time_limit: of `sl_discs.solve`, as are target, callback, interrupt and progress.
      target: likewise.
      bound: a value that no answer is better than; None: not known.
      ends_at_bound: whether an answer of that value ends the run.
      callback: see above.
      interrupt: see above.
      progress: see above.
      warned: whether the user knows already that the time limit is too short.
      compiled_before: seconds that this thread had spent compiling.

    Raises:
      InputError: the chains do not fit into memory.
    """
    problem, recipe = presolved.original, members[0].recipe
    chains, size = recipe.chains, members[0].problem.num_variables

    def exactly(states: np.ndarray) -> Evaluated:
        """Of states of the chains, which may be padded."""
        return problem.evaluate(presolved.lift(states[:, :size]))

    def left() -> float:
        return math.inf if time_limit is None else time_limit - clock()

    collector = Collector(presolved)
    watcher = Watcher(
        exactly, chains, problem.maximise,
        target=target, bound=bound if ends_at_bound else None, callback=callback, interrupt=interrupt,
        is_over=lambda: left() <= 0,
    )  # fmt: skip
    visited = presolved.found if states is None else states
    if len(visited):
        watcher.reached(collector.begin(np.resize(visited, (chains, problem.num_variables))))
    total = None if time_limit is not None else members[0].first * chains
    with progress_bar(total) if progress else contextlib.nullcontext(lambda name, steps: None) as bar:
        search = Search(states, growing, exactly, watcher, collector, clock, bar)
        search.prepare(members[0])
        build_s = clock()
        if time_limit is not None and build_s >= time_limit and not warned:
            warnings.warn(
                f"{problem.name}: building the arrays of the problem took {build_s:.1f} s, more than the time limit "
                f"of {time_limit:g} s; one short annealing is played",
                stacklevel=3,
            )
        winner = members[0]
        if growing:
            winner = search.share(members, left)
        else:
            search.repeat(winner, 1 if time_limit is None else None)
    run_s = clock() - build_s
    return collector.result(
        contraction=search.contraction(),
        stopped=watcher.reason or ("steps" if time_limit is None else "time"),
        bound=bound,
        timing={
            "construct_s": problem.construct_s,
            "build_s": build_s,
            "compile_s": compile_seconds() - compiled_before,
            "run_s": run_s,
        },
        engine=winner.engine.name,
        engine_note=winner.note,
        sampler=winner.recipe.sampler,
        annealing={field: getattr(search.settings, field) for field in winner.recipe.annealing},
        seed=recipe.seed,
    )
