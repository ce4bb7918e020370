"""What is known of the answers to a problem: the incumbent and the bound, and who found each."""

from __future__ import annotations

import collections
from fractions import Fraction

import numpy as np

from sl_discs.problems import Evaluated, Problem
from sl_discs.problems.problem import best_row, compared

# Who finds an answer, beside provers and local searches.
ANNEALING = "annealing"
INITIAL_STATES = "initial states"
REDUCTIONS = "reductions"
GREEDY = "a greedy answer"


class Board:
    """The best answer to a problem and the tightest bound, whoever found them.

    Attributes:
      incumbent: the best answer, one state of the original problem with its exact value; None:
        there is none.
      by: who found it; empty without one.
      value: its value, rounded; infinitely bad without one.
      values: the best value of each finder, times the sign of the problem's sense; infinitely
        bad without one.
      closed: whether the incumbent is proved to be optimal; values and bounds are compared exactly.
      refused: which provers and bounds could not be used, and why, in words.
    """

    def __init__(self, problem: Problem):
        self._problem = problem
        self._sign = 1 if problem.maximise else -1
        self.incumbent: Evaluated | None = None
        self.by = ""
        self.value = -self._sign * np.inf
        self.values: dict[str, float] = collections.defaultdict(lambda: -np.inf)
        self.closed = False
        self.refused: list[str] = []
        # Bounds, each tighter than the one before, with what they are from; and what had one that
        # an answer passes.
        self._bounds: list[tuple[Fraction | float, str]] = []
        self._wrong: set[str] = set()

    @property
    def bound(self) -> Fraction | float | None:
        """A value that no answer to the original problem is better than; None: not known."""
        return self._bounds[-1][0] if self._bounds else None

    @property
    def bound_by(self) -> str:
        """What the bound is from, in words; empty without a bound."""
        return self._bounds[-1][1] if self._bounds else ""

    def take(self, evaluated: Evaluated, by: str) -> None:
        """Takes verified answers into account."""
        if not len(evaluated.values):
            return
        best = float((self._sign * evaluated.values).max())
        self.values[by] = max(self.values[by], best)
        candidates = evaluated
        if self.incumbent is not None:
            pairs = zip(self.incumbent, evaluated, strict=True)
            candidates = Evaluated(*map(np.concatenate, pairs))
        row = best_row(self._problem, candidates)
        if self.incumbent is not None and row == 0:
            return
        self.incumbent = Evaluated(*(part[row : row + 1] for part in candidates))
        self.by = by
        self.value = float(self.incumbent.values[0])
        self._settle()

    def take_bound(self, bound: Fraction | float | None, by: str) -> None:
        """Takes a bound on the original problem into account, if there is one."""
        if bound is None or by in self._wrong:
            return
        if self.bound is None or self._sign * bound < self._sign * self.bound:
            self._bounds.append((bound, by))
            self._settle()

    def _settle(self) -> None:
        """Compares the incumbent with the bound; a source of bounds that it passes counts no
        more.
        """
        self.closed = False
        while self._bounds and self.incumbent is not None:
            bound, by = self._bounds[-1]
            standing = compared(self._problem, self.incumbent.states[0], bound)
            if standing <= 0:
                self.closed = standing == 0
                return
            self._wrong.add(by)
            self._bounds = [known_bound for known_bound in self._bounds if known_bound[1] != by]
            self.refused.append(f"{by} is left out: an answer passes its bound")
