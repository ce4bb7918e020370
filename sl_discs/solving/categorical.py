"""Problems whose variables have several values: chains of a Potts model on the reference engine.

There are no reductions for them. `auto` enumerates few states, and otherwise plays one sampler, `path_auxiliary`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.registry import get_engine
from sl_discs.errors import InputError
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import unreduced
from sl_discs.solving.exact import by_enumeration
from sl_discs.solving.options import as_states, check_arguments
from sl_discs.solving.recipe import (
    AUTO,
    MOST_STEPS,
    complete_annealing,
    default_steps,
    seconds_for_bound,
    temperature_range,
)
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock
from sl_discs.solving.search import Member, first_round, play_members
from sl_discs.solving.stage import Stage, check_range

_ENGINE = "reference"


def solve_categorical(
    problem: Problem,
    sampler: str,
    *,
    steps: int | None,
    time_limit: float | None,
    chains: int | None,
    initial_states: Any,
    presolve: bool | None,
    engine: str,
    target: float | None,
    callback: Any,
    interrupt: Any,
    progress: bool,
    **others: Any,
) -> Result:
    """As `sl_discs.solve` of a problem with `num_values`; the arguments have been checked.

    Raises:
      InputError: the sampler, the engine or presolve is for variables of two values.
    """
    clock, compiled_before = Clock(), compile_seconds()
    chosen = get_engine(_ENGINE)
    if engine != AUTO and get_engine(engine) is not chosen:
        raise InputError(
            f"engine is {engine!r}, but variables of several values are sampled by {_ENGINE!r}; leave it at 'auto'"
        )
    if presolve:
        raise InputError(f"presolve is {presolve}, but reductions are for variables of two values; leave it out")
    recipe = check_arguments(sampler, engine=_ENGINE, chains=chains, **others)
    if not recipe.method(MOST_STEPS, fit=True).sampler.several_values:
        raise InputError(f"sampler is {sampler!r}, which is for variables of two values")
    terms = problem.objective()
    check_range(problem, terms.largest())
    recipe = dataclasses.replace(
        recipe, annealing=complete_annealing(recipe.annealing, lambda: temperature_range(terms))
    )
    exactly = presolve is None and sampler == AUTO and initial_states is None
    if exactly and (result := by_enumeration(problem, recipe.seed, clock)):
        return result
    size, growing = problem.num_variables, time_limit is not None and steps is None
    wanted = None if growing else int(steps or default_steps(recipe.sampler, size))
    first, unit = first_round(recipe, chosen, size, wanted)
    states = as_states(problem, initial_states, recipe.chains)
    note = "" if engine != AUTO else "auto: the engine for variables of several values"
    lay_out = functools.partial(Stage, problem, terms)
    member = Member(problem, lay_out, recipe, chosen, note, first, unit)
    return play_members(
        unreduced(problem), [member], states, clock,
        growing=growing, time_limit=time_limit, target=target,
        bound=problem.bound(seconds_for_bound(time_limit)), ends_at_bound=sampler == AUTO,
        callback=callback, interrupt=interrupt, progress=progress, warned=False, compiled_before=compiled_before,
    )  # fmt: skip
