"""Answers that need no chains: by enumeration of all states, by reductions that leave nothing, or by provers."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
from jaxtyping import Int8

from sl_discs.models.enumeration import MOST_STATES, largest_states
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.proofs import exact_provers
from sl_discs.proofs.provers import Proofs
from sl_discs.reductions.presolve import Presolved, unreduced
from sl_discs.solving.options import SolveOptions
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock, Collector


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
    return without_chains(unreduced(problem), state, "enumeration", note, seed, clock)


def by_reductions(presolved: Presolved, options: SolveOptions, clock: Clock) -> Result:
    """The result where reductions leave nothing to search.

    Reductions round real coefficients, so that the best answer is theirs only up to a rounding error. Enumeration and
    elimination of the whole problem compare exactly, where they can.
    """
    problem = presolved.original
    states = np.concatenate([presolved.lift(np.zeros((1, 0), np.int8)), presolved.found])
    exact = exact_provers(KINDS[problem.kind].structure)
    proofs = Proofs(dataclasses.replace(unreduced(problem), found=states), 0.0, exact)
    by, note, bound = "reductions", "reductions left nothing to search", None
    if not problem.integer_values:
        proofs.advance(options.bound_seconds)
        if proofs.closed:
            by = proofs.by
        else:
            bound = presolved.lifted_bound(proofs.best - presolved.constant)
    return without_chains(presolved, proofs.states, by, note, options.seed, clock, bound)


def without_chains(
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
