"""Checks of the arguments of `sl_discs.solve` that do not need the problem."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Engine
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError, boolean, check_memory, keywords, real, whole
from sl_discs.experiment.batches import Layout, Shape, padded_size
from sl_discs.experiment.memory import batch_bytes, program_bytes
from sl_discs.localization.method import DISCS_ONLY, method_fields
from sl_discs.problems import Problem
from sl_discs.solving.recipe import CHAINS, MOST_STEPS, Recipe, choose_sampler, given_annealing, tries_one_site

# Arguments of `sl_discs.solve` beside those of `check_arguments`.
_OTHER_ARGUMENTS = "problem", "initial_states", "progress"


def check_arguments(
    sampler: str,
    *,
    steps: Any = None,
    time_limit: Any = None,
    target: Any = None,
    chains: Any = None,
    annealing: Any = None,
    presolve: Any = None,
    engine: str,
    seed: Any,
    callback: Any = None,
    interrupt: Any = None,
    **sampler_fields: Any,
) -> Recipe:
    """Checks the arguments of `sl_discs.solve` of the same names.

    Returns:
      the common settings of the chains; of the annealing, only the given ones; 32 chains by default.

    Raises:
      InputError: an argument is wrong; the message names it.
    """
    seed = whole("seed", seed, bits=64)
    chains = CHAINS if chains is None else whole("chains", chains, 1, bits=31)
    steps = MOST_STEPS if steps is None else whole("steps", steps, 1, bits=31)
    if time_limit is not None:
        real("time_limit", time_limit, above=0)
    if target is not None:
        real("target", target)
    if presolve is not None:
        boolean("presolve", presolve)
    for name, function in ("callback", callback), ("interrupt", interrupt):
        if function is not None and not callable(function):
            raise InputError(f"{name} is {function!r}; expected a function")
    name, fields = choose_sampler(sampler, engine, sampler_fields)
    known = [field for field in method_fields(name) if field != "name"]
    arguments = [*inspect.signature(check_arguments).parameters, *_OTHER_ARGUMENTS]
    keywords(sorted(set(sampler_fields) - DISCS_ONLY), arguments, name, known)
    recipe = Recipe(name, fields, chains, engine, given_annealing(annealing), seed)
    method = recipe.method(steps, fit=time_limit is not None)
    choose_engine(engine, method.sampler)
    if method.localization is not None:
        method.localization.levels(steps)
    return recipe


def as_states(problem: Problem, given: Any, chains: int) -> Int8[np.ndarray, "R N"] | None:
    """The initial states as zeros and ones, from the forms that `sl_discs.solve` takes.

    Raises:
      InputError: they have another form, are too many, or a state does not fit the problem.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = [given]
    if not (isinstance(given, list | tuple) and given and isinstance(given[0], Mapping)):
        try:
            given = np.asarray(given)
        except ValueError:
            raise InputError("initial_states have rows of different lengths; expected [N] or [R, N]") from None
        if given.ndim not in (1, 2):
            raise InputError(
                f"initial_states have shape {given.shape}; expected a dict, a list of dicts, or values [N] or [R, N]"
            )
        given = np.atleast_2d(given)
    if not 1 <= len(given) <= chains:
        raise InputError(f"{len(given)} initial_states for {chains} chains; give from 1 to as many as chains")
    return np.stack([problem.as_state(one) for one in given])


# Estimates the memory and time that building the arrays of a problem will take, before they are built.

# Bytes of a term in the problem, in the model, and in the matrices for temperatures and exact values.
_TERM_BYTES = 60
# The least number of terms that one core processes per second.
_TERMS_PER_S = 2e6


def check_fit(problem: Problem, recipe: Recipe, steps: int, engine: Engine, shape: Shape | None = None) -> None:
    """Compares the estimated memory with that of the machine.

    Args:
      problem: the problem to sample.
      recipe: of the chains.
      steps: of a chain.
      engine: the engine used.
      shape: of the batch; None: not known yet, so couplings do not count.

    Raises:
      InputError: it does not fit.
    """
    size, terms = problem.num_variables, problem.num_terms
    shape = shape or Shape(padded_size(size), 1, recipe.chains, 0, Layout(1, 1))
    logged = min(steps, 100)
    need = terms * _TERM_BYTES + program_bytes(steps, not tries_one_site(recipe.sampler))
    need += batch_bytes(shape, logged, engine.name) * shape.layout.instances * shape.layout.chains
    check_memory(
        f"{problem.name} ({size:,} variables, {terms:,} terms) with {recipe.chains:,} chains of {steps:,} steps",
        need,
        "give a smaller problem, or fewer chains or steps",
    )


def layout_seconds(problem: Problem) -> float:
    """An upper estimate of the time to build the arrays of a problem."""
    return problem.num_terms / _TERMS_PER_S
