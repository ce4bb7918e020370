"""Exact reductions of a problem before any search."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int, Int8

from sl_discs.problems import Problem
from sl_discs.problems.kind import UNCHANGED
from sl_discs.problems.problem import rounded_bound

# What is left of a problem after reductions, and the way back.

# How far the rounding of reductions moves values at most, in units of the sum of all absolute
# terms.
ROUNDED = 2.0**-40


@dataclasses.dataclass(frozen=True, eq=False)
class Presolved:
    """A smaller problem of the same kind, whose best states give best states of the original.

    A state of the reduced problem, repaired where it has conflicts, lifts to a feasible state of
    the original whose value is larger by `constant`. The value of an answer is found by evaluating
    it on the original all the same.

    Attributes:
      original: the problem that was reduced.
      problem: what is left, with the labels of the variables that are; None: nothing is.
      kept: [n] which variables of the original those are.
      constant: the value of a lifted state less that of the reduced state.
      found: [F, N] states of the original that count as well: known answers, and those of rules
        after which only better ones are sure to be left. Where F is 0, a best state of the reduced
        problem lifts to a best one.
      removed: number of variables that went by each rule, of the rules that applied.
    """

    original: Problem
    problem: Problem | None
    kept: Int[np.ndarray, "n"]
    constant: float
    found: Int8[np.ndarray, "F N"]
    removed: Mapping[str, int]
    _lift: Callable[[np.ndarray], np.ndarray]

    @property
    def left(self) -> Problem:
        """What is left, which must be something."""
        assert self.problem is not None
        return self.problem

    def lift(self, states: np.ndarray) -> Int8[np.ndarray, "B N"]:
        """States of the original problem from states [B, n] of the reduced one, of zeros and ones.

        Sets and cliques with conflicts are repaired first, unless nothing was reduced. Where
        nothing is left, the empty state, [1, 0], lifts to a best one.
        """
        states = np.asarray(states, np.int8)
        if self.problem is self.original:
            return states
        if self.problem is not None:
            states = self.problem.evaluate(states).states
        return self._lift(states)

    def lifted_bound(self, bound: Fraction | float) -> Fraction | float:
        """Returns a bound on the answers to the original problem from one on those of the reduced
        one.
        """
        problem = self.original
        if self.problem is not problem:
            worst = max if problem.maximise else min
            values = problem.evaluate(self.found).values.tolist()
            bound = worst([bound + self.constant, *values])
            if not problem.integer_values:
                # Coefficients of what is left are rounded.
                bound += (1 if problem.maximise else -1) * ROUNDED * problem.magnitude()
        return rounded_bound(problem, bound)

    def __repr__(self) -> str:
        return f"Presolved({self.summary()})"

    def summary(self) -> str:
        """Tells how many variables are left, and which rules removed the others."""
        size = self.original.num_variables
        left = len(self.kept)
        rules = ", ".join(f"{rule} {count:,}" for rule, count in self.removed.items())
        return f"{left:,} of {size:,} variables left" + (f": {rules}" if rules else "")


def unreduced(problem: Problem) -> Presolved:
    """Returns a problem to which no rule applies, as it is."""
    size = problem.num_variables
    none = np.zeros((0, size), np.int8)
    return Presolved(problem, problem, np.arange(size), 0.0, none, {}, lambda states: states)


def part_of(problem: Problem, kept: Int[np.ndarray, "n"], source: Any) -> Problem:
    """Returns the same problem of another source, on some of its variables."""
    return dataclasses.replace(
        problem, labels=tuple(problem.labels[k] for k in kept), source=source, _units=UNCHANGED
    )
