"""Answers that need no chains: by enumeration of all states, and by reductions that leave nothing to search."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int8

from sl_discs.models.enumeration import MOST_STATES, largest_states
from sl_discs.problems import Problem
from sl_discs.reductions.presolve import Presolved, unreduced
from sl_discs.solving.result import Result, no_contraction
from sl_discs.solving.rounds import Clock, Collector


def by_enumeration(problem: Problem, seed: int, clock: Clock) -> Result | None:
    """The result of a problem of up to 2^20 states; None of larger ones, and where that proves no answer optimal.

    That is so where no state satisfies the constraints, and where penalties are too small. Values in double precision
    tell which states may be best, and of these the exact values.

    Args:
      problem: of any kind.
      seed: that the result names.
      clock: started with the search.
    """
    number = math.prod(problem.num_values or (2,) * problem.num_variables)
    if number > MOST_STATES:
        return None
    found = largest_states(problem.objective(), problem.magnitude(), problem.allowed if problem.constrained else None)
    if found is None:
        return None
    values = problem.evaluate(found.states).values
    sign = 1.0 if problem.maximise else -1.0
    best = int(np.argmax(sign * values))
    value = float(values[best])
    surely = found.complete and abs(sign * value - found.value) <= found.error
    if not surely and value != problem.rounded_bound(sign * (found.value + found.error)):
        return None
    return _without_chains(
        unreduced(problem), found.states[best : best + 1], f"all {number:,} states were compared", seed, clock, 0.0
    )


def by_reductions(presolved: Presolved, seed: int, clock: Clock, compiling: float) -> Result:
    """The result where reductions leave nothing to search; `compiling` took so many seconds."""
    problem = presolved.original
    states = np.concatenate([presolved.lift(np.zeros((1, 0), np.int8)), presolved.found])
    values = problem.evaluate(states).values
    best = int(np.argmax(values if problem.maximise else -values))
    return _without_chains(
        presolved, states[best : best + 1], "reductions left nothing to search", seed, clock, compiling
    )


def _without_chains(
    presolved: Presolved, state: Int8[np.ndarray, "1 N"], proof: str, seed: int, clock: Clock, compiling: float
) -> Result:
    problem = presolved.original
    collector = Collector(presolved)
    [value] = collector.begin(state)
    return collector.result(
        contraction=no_contraction(),
        stopped="bound",
        bound=float(value),
        timing={"construct_s": problem.construct_s, "build_s": clock(), "compile_s": compiling, "run_s": 0.0},
        engine="none",
        engine_note=proof,
        sampler="none",
        annealing={},
        seed=seed,
    )
