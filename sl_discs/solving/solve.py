"""`sl_discs.solve`: from a problem to its answer."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.contract import Engine
from sl_discs.engines.devices import check_threads
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError, fields_are_keywords
from sl_discs.experiment.progress import progress_bar
from sl_discs.problem_names import FORM_PROBLEMS, GRAPH_PROBLEMS, in_words
from sl_discs.problems import Problem
from sl_discs.samplers.base import Sampler
from sl_discs.solving.arguments import as_states, check_arguments
from sl_discs.solving.collecting import Collector
from sl_discs.solving.contraction import ContractionRecorder
from sl_discs.solving.fit import check_fit, layout_seconds
from sl_discs.solving.recipe import (
    AUTO,
    MOST_STEPS,
    complete_annealing,
    default_chains,
    default_steps,
    tries_one_site,
)
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock, Watcher, round_lengths
from sl_discs.solving.stage import Stage, terms_of

# Steps of the first round under a time limit, few enough for one call to the engine, so that large problems also end
# cold: sweeps for samplers that try one site per step, steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# Target seconds between two checks of the clock on CPU cores.
_LOOK_S = 0.1
# About how many records of the contraction a localized run makes.
_LOOKS = 50


@fields_are_keywords()
def solve(
    problem: Problem,
    sampler: str = AUTO,
    *,
    steps: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    chains: int | None = None,
    annealing: tuple[float, float] | Mapping[str, Any] | None = None,
    initial_states: Any = None,
    engine: str = "auto",
    seed: int = 0,
    callback: Callable[[int, float], object] | None = None,
    interrupt: Callable[[], object] | None = None,
    progress: bool = False,
    **sampler_fields: Any,
) -> Result:
    """Anneals many chains of a sampler on a problem.

    The same problem, arguments and engine give bit-identical results, unless there is a time limit.

    Args:
      problem: from `sl_discs.maxcut`, `sl_discs.qubo` or another constructor.
      sampler: `gwg`, `path_auxiliary`, `dmala`, `gibbs`, `metropolis`, `exchange`, any of these localized (`sl_gwg`),
        or `auto`: `metropolis` with scan="sequential" on the CPU engine, else `path_auxiliary`.
      steps: of each chain; None: 1,000 per variable, but at most 10 million, for `metropolis` and `gibbs`, which try
        one variable per step; ten per variable, but 2,000 to 20,000, for the others.
      time_limit: seconds of wall time for building the arrays and sampling; compilation and the exact verification of
        the answers are not included. A short annealing measures the rate, then each is twice as long as the previous
        one, until one that fills the time. With `steps`, annealings of that length follow each other. The best state
        of all counts. The time is checked between calls to the engine, about ten times per second on CPU cores, and
        may be exceeded by that much. If none is left for sampling, a warning says so (in advance, if the problem is
        much too large for the limit), and one short annealing is run all the same.
      target: a value: the run ends as soon as a value this good is found, which is checked between calls to the
        engine.
      chains: number of parallel chains; None: 32, but fewer under a time limit in which 32 chains of `metropolis` or
        `gibbs` would have less than about 20,000 sweeps each.
      annealing: None: exponential decay between temperatures chosen from the problem's gains
        (`sl_discs.solving.scale`); (initial, final) for other temperatures; or a dict of t_schedule,
        init_temperature, final_temperature, decay_rate, anneal_every, where t_schedule may be a sequence of
        temperatures, each for an equal part of the steps. Temperatures are in units of the problem's value.
      initial_states: initial states of every round: one sample as a dict or [N] for all chains, or a list or array
        [R, N] of up to `chains` samples, which are repeated in turn; None: random. They count as visited.
      engine: `auto`, `cpu`, `gpu` or `reference`, which is used where another cannot run.
      seed: at least 0, less than 2^64.
      callback: called between calls to the engine with the steps done and the exact best value so far; a true result
        ends the run.
      interrupt: called without arguments between calls to the engine; a true result ends the run. It is cheaper
        than `callback`, since nothing is evaluated for it.
      progress: whether to show a progress bar, with tqdm.
      **sampler_fields: of the sampler's config, such as `K=128, sigma=4.0` of localized ones. The default number of
        levels K is the largest for which the steps suffice, but at most 256; a given K is only lowered in the short
        rounds of a time limit.

    Raises:
      InputError: an argument is wrong (the message names it), the problem or run does not fit into memory, or the
        process was forked from one that was using JAX, where chains would wait for threads for ever: use
        multiprocessing's start method `spawn`.
      KeyboardInterrupt: Ctrl-C, which discards the results. To keep them, end the run with `interrupt` or `callback`.
    """
    begin = time.perf_counter()
    check_threads()
    if not isinstance(problem, Problem):
        raise InputError(
            f"the problem is a {type(problem).__name__}; make one with "
            f"sl_discs.{in_words([*GRAPH_PROBLEMS, *FORM_PROBLEMS, 'from_bqm'])}"
        )
    recipe = check_arguments(
        sampler,
        steps=steps,
        time_limit=time_limit,
        target=target,
        chains=chains,
        annealing=annealing,
        engine=engine,
        seed=seed,
        callback=callback,
        interrupt=interrupt,
        **sampler_fields,
    )
    name, steps = recipe.sampler, steps and int(steps)
    if chains is None:
        recipe = dataclasses.replace(recipe, chains=default_chains(name, problem.num_variables, time_limit))
    chains = recipe.chains
    states = as_states(problem, initial_states, chains)
    kernel = recipe.method(MOST_STEPS, fit=True).sampler
    player_engine, engine_note = choose_engine(engine, kernel)
    unit = _unit(player_engine, name)
    growing = time_limit is not None and steps is None
    first = steps or default_steps(name, problem.num_variables)
    if growing:
        first = max(_FIRST_SWEEPS * problem.num_variables if tries_one_site(name) else _FIRST_STEPS, recipe.n_min)
        first = -(-first // unit) * unit
    check_fit(problem, recipe, first, player_engine)
    too_large = time_limit is not None and layout_seconds(problem) > time_limit
    if too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem will take about {layout_seconds(problem):.1f} s, "
            f"more than the time limit of {time_limit:g} s; one short annealing will be played",
            stacklevel=2,
        )
    terms = terms_of(problem)
    recipe = dataclasses.replace(recipe, annealing=complete_annealing(recipe.annealing, terms))
    stage = Stage(problem, terms, recipe, first, states, fit=growing)
    build_s, compiled_before = time.perf_counter() - begin, compile_seconds()
    clock = Clock()
    if time_limit is not None and build_s >= time_limit and not too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem took {build_s:.1f} s, more than the time limit of "
            f"{time_limit:g} s; one short annealing is played",
            stacklevel=2,
        )

    def left() -> float:
        return math.inf if time_limit is None else time_limit - build_s - clock()

    watcher = Watcher(problem, chains, target, callback, interrupt, lambda: left() <= 0)
    collector = Collector(problem, terms.constant)
    if states is not None:
        collector.begin(np.resize(states, (chains, states.shape[1])))
        watcher.reached(states)
    lengths = round_lengths(first, unit, MOST_STEPS, left) if growing else itertools.repeat(first)
    one_shape = growing and not player_engine.on_host
    look = unit if one_shape else None
    total = None if time_limit is not None else first * chains
    with progress_bar(total) if progress else contextlib.nullcontext(lambda name, steps: None) as bar:
        for number, length in enumerate(lengths):
            every = unit if one_shape else _logged_every(length, player_engine, kernel)
            settings, method = recipe.settings(length, every), recipe.method(length, fit=growing)
            before = clock()
            recorder = ContractionRecorder(method, chains, length)
            if method.localization is not None and not one_shape:
                look = min(look or length, max(1, length // _LOOKS))
            outcome = stage.play(
                number, method, settings, watcher, lambda played: bar(name, played * chains), look, recorder
            )
            collector.add(outcome, settings, watcher.next_round())
            if watcher.reason or time_limit is None:
                break
            if player_engine.on_host:
                look = max(1, int(_LOOK_S * length / max(clock() - before, 1e-9)))
    run_s = clock()
    return collector.result(
        contraction=recorder.contraction(),
        stopped=watcher.reason or ("steps" if time_limit is None else "time"),
        timing={
            "construct_s": problem.construct_s,
            "build_s": build_s,
            "compile_s": compile_seconds() - compiled_before,
            "run_s": run_s,
        },
        engine=player_engine.name,
        engine_note=engine_note,
        sampler=name,
        annealing={field: getattr(settings, field) for field in recipe.annealing},
        seed=recipe.seed,
    )


def _unit(engine: Engine, sampler: str) -> int:
    """Lengths of rounds are multiples of this; on JAX, the steps of a call, so that rounds share one program."""
    return 1_000 if not engine.on_host and tries_one_site(sampler) else 100


def _logged_every(steps: int, engine: Engine, sampler: Sampler) -> int:
    """A hundredth of the steps, or the steps of a call if these cannot be divided."""
    return max(1, min(steps // 100, engine.steps_per_call(sampler)))
