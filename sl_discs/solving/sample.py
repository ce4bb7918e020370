"""`sl_discs.sample`: from a problem to its answer."""

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
from jaxtyping import Int8

from sl_discs.capacity import check_number
from sl_discs.errors import InputError
from sl_discs.experiment import cpu_engine
from sl_discs.experiment.player import choose_engine
from sl_discs.experiment.progress import progress_bar
from sl_discs.problems import Problem
from sl_discs.samplers.base import Sampler
from sl_discs.solving.collecting import Collector
from sl_discs.solving.contraction import ContractionRecorder
from sl_discs.solving.fit import check_fit
from sl_discs.solving.recipe import (
    AUTO,
    MOST_STEPS,
    Recipe,
    annealing_fields,
    choose_sampler,
    default_steps,
    tries_one_site,
)
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock, Watcher, round_lengths
from sl_discs.solving.stage import Stage, terms_of

# Steps of the first round under a time limit, few enough for one call to the engine, so that large problems too end
# cold: sweeps of samplers that try one site a step, steps of others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# Seconds between two looks at the clock that loops on CPU cores aim at.
_LOOK_S = 0.1
# About how often a localized chain is looked at, for its contraction.
_LOOKS = 50


def sample(
    problem: Problem,
    sampler: str = AUTO,
    *,
    steps: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    chains: int = 32,
    annealing: tuple[float, float] | Mapping[str, Any] | None = None,
    initial_states: Any = None,
    engine: str = "auto",
    seed: int = 0,
    callback: Callable[[int, float], object] | None = None,
    progress: bool = False,
    **sampler_fields: Any,
) -> Result:
    """Anneals many chains of a sampler on a problem.

    The same problem, arguments and engine give the same bits again, unless there is a time limit.

    Args:
      problem: of `sl_discs.maxcut`, `sl_discs.qubo` and their like.
      sampler: `gwg`, `path_auxiliary`, `dmala`, `gibbs`, `metropolis`, any of them localized, as `sl_path_auxiliary`,
        or `auto`: `metropolis` where the CPU engine plays, else `path_auxiliary`.
      steps: of each chain; None: 1,000 a variable for `metropolis` and `gibbs`, which try one variable a step, but
        10 million at most; ten a variable for the others, but 2,000 to 20,000.
      time_limit: seconds of wall time for laying the problem out and sampling; compilation and the exact recount of
        the answers come on top. A short annealing measures the rate, then each is twice as long as the one before,
        until one that fills the time. With `steps`, annealings of that length follow each other. The best of all
        counts. Time is looked at between calls to the engine, about ten times a second on CPU cores, so the limit may
        be overrun by that. Where nothing is left of it for sampling, a warning says so, and one short annealing is
        played all the same.
      target: a value: the run ends as soon as one as good is found, seen between calls to the engine.
      chains: that run side by side.
      annealing: None: exponential decay between temperatures taken from the problem's gains
        (`sl_discs.solving.scale`); (initial, final) for others; or a dict of t_schedule, init_temperature,
        final_temperature, decay_rate, anneal_every. Temperatures are in units of the problem's value.
      initial_states: where chains begin, in every round: one sample as a dict or [N] for all chains, or a list or
        array [R, N] of up to `chains` of them, which are repeated in turn; None: at random. They count as met.
      engine: `auto`, `cpu`, `xla` or `gpu`; one that cannot play the sampler gives way to `xla`.
      seed: at least 0, less than 2^64.
      callback: called between calls to the engine with the steps done and the exact best value so far; something true
        ends the run.
      progress: draws a bar on the terminal, with tqdm.
      **sampler_fields: of the sampler's config, such as `K=128, sigma=4.0` of localized ones. Levels K that are not
        given are as many as the steps suffice for, 256 at most; those that are given are lowered in the short rounds
        of a time limit alone.

    Raises:
      InputError: a wrong argument, or a problem or run that does not fit into memory; its message says which.
    """
    begin = time.perf_counter()
    if not isinstance(problem, Problem):
        raise InputError(
            f"the problem is a {type(problem).__name__}; make one with sl_discs.mis, maxclique, maxcut, qubo, ising "
            "or from_bqm"
        )
    _check(steps=steps, time_limit=time_limit, target=target, chains=chains, seed=seed)
    steps, chains, seed = steps and int(steps), int(chains), int(seed)
    name = choose_sampler(sampler, engine)
    states = _initial_states(problem, initial_states, chains)
    recipe = Recipe(name, sampler_fields, chains, engine, {}, seed)
    kernel = recipe.method(MOST_STEPS, fit=True).sampler
    player_engine, _ = choose_engine(engine, kernel)
    unit = _unit(player_engine, name)
    growing = time_limit is not None and steps is None
    first = steps or default_steps(name, problem.num_variables)
    if growing:
        first = max(_FIRST_SWEEPS * problem.num_variables if tries_one_site(name) else _FIRST_STEPS, recipe.n_min)
        first = -(-first // unit) * unit
    check_fit(problem, recipe, first, player_engine)
    terms, constant = terms_of(problem)
    recipe = dataclasses.replace(recipe, annealing=annealing_fields(annealing, terms))
    stage = Stage(problem, terms, recipe, first, states, fit=growing)
    build_s, compiled_before = time.perf_counter() - begin, stage.player.compile_s
    clock = Clock(stage.player)
    if time_limit is not None and build_s >= time_limit:
        warnings.warn(
            f"{problem.name}: laying the problem out took {build_s:.1f} s, more than the time limit of "
            f"{time_limit:g} s; one short annealing is played",
            stacklevel=2,
        )

    def left() -> float:
        return math.inf if time_limit is None else time_limit - build_s - clock()

    watcher = Watcher(problem, chains, target, callback, lambda: left() <= 0)
    collector = Collector(problem, constant)
    if states is not None:
        collector.begin(np.resize(states, (chains, states.shape[1])))
        watcher.reached(states)
    lengths = round_lengths(first, unit, MOST_STEPS, left) if growing else itertools.repeat(first)
    one_shape = growing and player_engine != "cpu"
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
            if player_engine == "cpu":
                look = max(1, int(_LOOK_S * length / max(clock() - before, 1e-9)))
    run_s = clock()
    stage.close()
    return collector.result(
        contraction=recorder.contraction(),
        stopped=watcher.reason or ("steps" if time_limit is None else "time"),
        timing={
            "construct_s": problem.construct_s,
            "build_s": build_s,
            "compile_s": stage.player.compile_s - compiled_before,
            "run_s": run_s,
        },
        engine=stage.player.engine,
        engine_note=stage.player.engine_note,
        sampler=name,
        annealing=recipe.annealing,
        seed=seed,
    )


def _unit(engine: str, sampler: str) -> int:
    """Of which lengths of rounds are multiples; JAX plays so many steps a call, so that one program serves all."""
    return 1_000 if engine != "cpu" and tries_one_site(sampler) else 100


def _logged_every(steps: int, engine: str, sampler: Sampler) -> int:
    """A hundredth of the steps, or as many as make a call, whose parts cannot be looked at."""
    most = cpu_engine.steps_per_call(sampler) if engine == "cpu" else 1_000
    return max(1, min(steps // 100, most))


def _check(*, steps, time_limit, target, chains, seed) -> None:
    for name, value in ("steps", steps), ("chains", chains):
        if name == "steps" and value is None:
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} is {value!r}; expected a whole number, at least 1")
        check_number(name, value, "so give fewer")
    for name, value in ("time_limit", time_limit), ("target", target):
        if value is not None and not (isinstance(value, int | float | np.number) and math.isfinite(value)):
            raise InputError(f"{name} is {value!r}; expected a finite number, or None")
    if time_limit is not None and time_limit <= 0:
        raise InputError(f"time_limit is {time_limit}; expected seconds above 0")
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed!r}; expected a whole number from 0 to 2^64 - 1")


def _initial_states(problem: Problem, given: Any, chains: int) -> Int8[np.ndarray, "R N"] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        samples = [given]
    elif isinstance(given, list | tuple) and given and isinstance(given[0], Mapping):
        samples = given
    else:
        given = np.asarray(given)
        samples = given[None] if given.ndim == 1 else given
    if not 1 <= len(samples) <= chains:
        raise InputError(
            f"{len(samples)} initial states for {chains} chains; give from 1 to as many as there are chains"
        )
    return np.stack([problem.as_state(one) for one in samples])
