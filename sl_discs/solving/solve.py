"""`sl_discs.solve`: from a problem to its answer."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sl_discs.engines.base import Engine
from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.registry import check_threads, choose_engine
from sl_discs.errors import InputError, fields_are_keywords
from sl_discs.problem_names import CATEGORICAL, FORM_PROBLEMS, GRAPH_PROBLEMS, in_words
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import Presolved, unreduced
from sl_discs.reductions.presolve import presolve as reduced_exactly
from sl_discs.solving.categorical import solve_categorical
from sl_discs.solving.constrained import solve_constrained
from sl_discs.solving.exact import by_enumeration, by_reductions
from sl_discs.solving.options import as_states, check_arguments, check_fit, layout_seconds
from sl_discs.solving.recipe import (
    AUTO,
    MOST_STEPS,
    Recipe,
    complete_annealing,
    default_chains,
    default_steps,
    rivals,
    seconds_for_bound,
    temperature_range,
)
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock
from sl_discs.solving.search import Member, first_round, play_members
from sl_discs.solving.stage import Stage, terms_of

# How far the rounding of reductions moves values at most, in units of the sum of all absolute terms.
_ROUNDED = 2.0**-40


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
    presolve: bool | None = None,
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
      problem: from `sl_discs.maxcut`, `sl_discs.qubo` or another constructor. Variables of several values, of `potts`
        and `coloring`, have the engine `reference`, no reductions, and the samplers `gibbs`,
        `metropolis`, `gwg`, `path_auxiliary` and `dmala`.
      sampler: `gwg`, `path_auxiliary`, `dmala`, `gibbs`, `metropolis`, `exchange`, any of these localized (`sl_gwg`),
        or `auto`: `metropolis` with scan="sequential" on the CPU engine, else `path_auxiliary`, also where variables
        have several values.
      steps: of each chain; None: 1,000 per variable, but at most 10 million, for `metropolis`, `gibbs` and
        `exchange`, which try one or two variables per step; ten per variable, but 2,000 to 20,000, for the others.
      time_limit: seconds of wall time for building the arrays and sampling; compilation and the exact verification of
        the answers are not included. A short annealing measures the rate, then each is twice as long as the previous
        one, until one that fills the time. With `steps`, annealings of that length follow each other. The best state
        of all counts. The time is checked between calls to the engine, about ten times per second on CPU cores, and
        may be exceeded by that much. If none is left for sampling, a warning says so (in advance, if the problem is
        much too large for the limit), and one short annealing is run all the same. On sets, cliques and covers `auto`
        also tries `exchange`, see `sl_discs.solving.search`.
      target: a value: the run ends as soon as a value this good is found, which is checked between calls to the
        engine.
      chains: number of parallel chains; None: 32, but fewer under a time limit in which 32 chains of `metropolis` or
        `gibbs` would have less than about 20,000 sweeps each.
      annealing: None: exponential decay between temperatures chosen from the problem's gains
        (`sl_discs.solving.recipe`); (initial, final) for other temperatures; or a dict of t_schedule,
        init_temperature, final_temperature, decay_rate, anneal_every, where t_schedule may be a sequence of
        temperatures, each for an equal part of the steps. Temperatures are in units of the problem's value.
      initial_states: initial states of every round: one sample as a dict or [N] for all chains, or a list or array
        [R, N] of up to `chains` samples, which are repeated in turn; None: random. They count as visited.
      presolve: whether a problem of up to 2^20 states is enumerated instead, exact reductions remove variables of
        larger ones first (`sl_discs.reductions`), and the run ends as soon as an answer is proved to be optimal;
        None: for the sampler `auto`, without initial states.
      engine: `cpu`, `reference`, or `auto`: `cpu` where it can run the sampler, otherwise `reference`.
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
    clock, compiled_before = Clock(), compile_seconds()
    check_threads()
    if not isinstance(problem, Problem):
        raise InputError(
            f"the problem is a {type(problem).__name__}; make one with "
            f"sl_discs.{in_words([*GRAPH_PROBLEMS, *FORM_PROBLEMS, *CATEGORICAL, 'from_bqm'])}"
        )
    recipe = check_arguments(
        sampler,
        steps=steps,
        time_limit=time_limit,
        target=target,
        chains=chains,
        annealing=annealing,
        presolve=presolve,
        engine=engine,
        seed=seed,
        callback=callback,
        interrupt=interrupt,
        **sampler_fields,
    )
    if problem.num_values is not None:
        return solve_categorical(
            problem, sampler, steps=steps, time_limit=time_limit, target=target, chains=chains, annealing=annealing,
            initial_states=initial_states, presolve=presolve, engine=engine, seed=seed, callback=callback,
            interrupt=interrupt, progress=progress, **sampler_fields,
        )  # fmt: skip
    if problem.constrained:
        return solve_constrained(
            solve, problem, sampler, steps=steps, time_limit=time_limit, target=target, chains=chains,
            annealing=annealing, initial_states=initial_states, presolve=presolve, engine=engine, seed=seed,
            callback=callback, interrupt=interrupt, progress=progress, **sampler_fields,
        )  # fmt: skip
    steps = steps and int(steps)
    if presolve is None:
        presolve = sampler == AUTO and initial_states is None
    elif presolve and initial_states is not None:
        raise InputError("presolve and initial_states are both given; what is left has other variables")
    growing = time_limit is not None and steps is None
    player_engine, _ = _engine(recipe)
    check_fit(problem, recipe, _rounds(recipe, player_engine, problem, steps, growing)[0], player_engine)
    if presolve and (result := by_enumeration(problem, recipe.seed, clock)):
        return result
    presolved = reduced_exactly(problem) if presolve else unreduced(problem)
    reduced = presolved.problem
    if reduced is None:
        return by_reductions(presolved, recipe.seed, clock, compile_seconds() - compiled_before)
    size = reduced.num_variables
    if chains is None:
        recipe = dataclasses.replace(recipe, chains=default_chains(recipe.sampler, size, time_limit))
    chains = recipe.chains
    states = as_states(problem, initial_states, chains)
    too_large = time_limit is not None and layout_seconds(reduced) > time_limit
    if too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem will take about {layout_seconds(reduced):.1f} s, "
            f"more than the time limit of {time_limit:g} s; one short annealing will be played",
            stacklevel=2,
        )
    members = [_member(reduced, recipe, steps, growing)]
    if sampler == AUTO and growing and not sampler_fields and not too_large:
        members += [_member(*rival, steps, growing) for rival in rivals(reduced, recipe)]
    best_possible = None if too_large else _bound(presolved, time_limit)
    return play_members(
        presolved, members, states, clock,
        growing=growing, time_limit=time_limit, target=target, bound=best_possible, ends_at_bound=presolve,
        callback=callback, interrupt=interrupt, progress=progress, warned=too_large, compiled_before=compiled_before,
    )  # fmt: skip


def _engine(recipe: Recipe) -> tuple[Engine, str]:
    return choose_engine(recipe.engine, recipe.method(MOST_STEPS, fit=True).sampler)


def _rounds(recipe: Recipe, engine: Engine, problem: Problem, steps: int | None, growing: bool) -> tuple[int, int]:
    size = problem.num_variables
    return first_round(recipe, engine, size, None if growing else steps or default_steps(recipe.sampler, size))


def _member(problem: Problem, recipe: Recipe, steps: int | None, growing: bool) -> Member:
    engine, note = _engine(recipe)
    first, unit = _rounds(recipe, engine, problem, steps, growing)
    terms = terms_of(problem)
    annealing = complete_annealing(recipe.annealing, lambda: temperature_range(terms))
    recipe = dataclasses.replace(recipe, annealing=annealing)
    lay_out = functools.partial(Stage, problem, terms)
    return Member(problem, lay_out, recipe, engine, note, first, unit, terms.constant)


def _bound(presolved: Presolved, time_limit: float | None) -> float | None:
    """A value that no answer to the original problem is better than, from what reductions leave of it."""
    problem, reduced = presolved.original, presolved.problem
    assert reduced is not None
    seconds = seconds_for_bound(time_limit)
    best = reduced.bound(seconds)
    if best is None or reduced is problem:
        return best
    worst, tightest = (max, min) if problem.maximise else (min, max)
    found = problem.evaluate(presolved.found).values.tolist() if len(presolved.found) else []
    best = worst([best + presolved.constant, *found])
    if problem.whole_values:
        return problem.rounded_bound(best)
    # What is left is rounded, unlike the problem as given, whose own bound may be met.
    best += (1 if problem.maximise else -1) * _ROUNDED * problem.magnitude()
    own = problem.bound(seconds)
    return best if own is None else tightest(best, own)
