"""What anneals: chains of one sampler on one problem, local searches beside them, and the rounds that both play."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Best
from sl_discs.experiment.batches import shape_of_one
from sl_discs.experiment.chains import Chains, Outcome, anneal, devices_for
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import Method
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.problems import Evaluated, Problem
from sl_discs.reductions.presolve import Presolved
from sl_discs.samplers.registry import is_localized
from sl_discs.solving.annealing import complete_annealing, objective_of
from sl_discs.solving.options import MOST_STEPS, SolveOptions, as_states, check_fit
from sl_discs.solving.rounds import Clock, Collector, TimedTemperatures, Turns, Watcher, round_lengths

# Steps of the round that measures the rate, few enough for one call to the engine, so that large problems also end
# cold: in sweeps for samplers that try one site per step, in steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# Target number of seconds between two checks of the clock on the CPU engine.
_CALL_S = 0.1
# Steps of a round of samplers that try one site per step: numbers of steps have 31 bits.
_MOST_TRIES = 2**30
# For the watcher, where no chain has moved.
_NO_CHAINS = Best(np.full((1, 1), -np.inf), np.zeros((1, 1, 0), np.int8))
# The most padded sites of which rows cost next to nothing.
_SMALL = 128


def first_round(options: SolveOptions, num_sites: int, on_host: bool) -> tuple[int, int]:
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

    def __init__(self, problem: Problem, options: SolveOptions):
        self._terms = terms = objective_of(problem)
        self.problem, self.options = problem, options
        self.annealing = complete_annealing(options.annealing, terms)
        self.engine, self.note = options.choose_engine(problem.num_variables)
        self.first, self.unit = first_round(options, problem.num_variables, self.engine.on_host)
        self._settings = Settings(
            batch_size=options.num_chains, chain_length=self.first, log_every_steps=1, engine=options.engine,
            seed=options.seed, **vars(self.annealing),
        )  # fmt: skip
        # The part of the problem's value that the model omits, times the sign of its sense.
        self.constant = terms.constant

    def method(self, steps: int) -> Method:
        """Builds the sampler for chains of `steps` steps."""
        return self.options.method(steps, fit=self.options.fills_time)

    def settings(self, steps: int, every: int) -> Settings:
        """Returns the settings of a run of `steps` steps, which logs every `every`-th of them.

        Where a step tries one site, the temperature changes once in a sweep, but at least a hundred times.
        """
        same = self.annealing.anneal_every
        if "anneal_every" not in self.options.annealing and self.options.tries_one_site:
            same = max(1, min(self.problem.num_variables, steps // 100))
        return dataclasses.replace(self._settings, chain_length=steps, log_every_steps=every, anneal_every=same)

    def reported(self) -> dict[str, Any]:
        """Returns the fields of the annealing that results show: those of its temperatures, and the given ones."""
        names = "t_schedule", "init_temperature", "final_temperature", "decay_rate", *self.options.annealing
        return {name: getattr(self.annealing, name) for name in names}

    @property
    def timed(self) -> bool:
        """Whether temperatures can follow the time.

        Levels of localization are numbers of steps, and the CPU engine weighs proposals for a whole run.
        """
        options = self.options
        return not is_localized(options.sampler_name) and (options.tries_one_site or not self.engine.on_host)

    @functools.cached_property
    def chains(self) -> Chains:
        """The chains, whose arrays are built on first use; InputError where they do not fit into memory."""
        terms, options, sampler = self._terms, self.options, self.method(self.first).sampler
        shape = shape_of_one(terms, options.num_chains, *devices_for(self.engine, sampler, self._settings))
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
    """A search beside the annealings of a problem under a time limit, of those that fit its structure.

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


class Rounds:
    """Plays rounds of annealing and of local search on one problem, watches them, and collects what they find.

    Attributes:
      watcher: its `reason` says why the run ends, and is empty before.
      collector: of everything that was visited.
      settings: of the latest round.
      bar: called with the name of a sampler and the number of chain-steps done.
    """

    settings: Settings

    def __init__(self, presolved: Presolved, options: SolveOptions, turns: Turns, clock: Clock):
        self._presolved, self._options, self._clock = presolved, options, clock
        self._problem, self._number = presolved.original, 0
        self._states = as_states(self._problem, options.initial_states, options.num_chains)
        self.collector = Collector(presolved)
        self.watcher = Watcher(options, self.exactly, self._problem.maximise, turns, clock)
        self.bar: Callable[[str, int], None] = lambda name, steps: None

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
        self.settings = annealer.settings(length, every)
        temperatures = self.settings.temperatures()
        timed = None
        if left is not None and annealer.timed and annealer.pace is not None:
            temperatures = timed = TimedTemperatures(self.settings, length, left=left, pace=annealer.pace)
            timed.plan(0)

        def watch(done: int, best: Best) -> bool:
            over = self.watcher(done, best)
            return (timed is not None and timed.plan(done)) or over

        steps_per_call = annealer.unit if one_shape else annealer.steps_per_call
        self.watcher.constant = self.collector.constant + annealer.constant
        outcome = annealer.anneal(
            self._number, method, self.settings, self._states, watch=watch, steps_per_call=steps_per_call,
            progress=lambda steps: self.bar(options.sampler_name, steps * options.num_chains),
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
