"""The common interface of problems on graphs and on quadratic forms."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8

from sl_discs.models.coefficients import Coefficients

# The paper's lambda; above 1 every maximiser is feasible, and close to 1 conflicts are easy to pass through.
PENALTY = 1.0001


class Evaluated(NamedTuple):
    """States of a problem after repair, with their exact values.

    Attributes:
      values: [B] in the problem's own sense and offset.
      feasible: [B] whether the repaired states satisfy the constraints, recounted.
      states: [B, N] zeros and ones; only infeasible sets and cliques differ from the given states.
    """

    values: Float64[np.ndarray, "B"]
    feasible: Bool[np.ndarray, "B"]
    states: Int8[np.ndarray, "B N"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind(abc.ABC):
    """One kind of problem; its source is a graph or a quadratic form.

    Attributes:
      name: its name in flags and results.
      title: the heading of a report.
      recounted: a text on how an answer is verified.
      answer: a text on an answer, with its `size` and the numbers of `ones` and `zeros`.
    """

    name: str
    title: str
    recounted: str
    answer: str

    @abc.abstractmethod
    def accepts(self, source: Any) -> bool:
        """Whether this is a valid source."""

    @abc.abstractmethod
    def num_variables(self, source: Any) -> int:
        """Number of variables N."""

    def num_values(self, source: Any) -> tuple[int, ...] | None:
        """The number of values of each variable, which are 0 .. q - 1; None: two, as `spins` says."""
        return None

    @abc.abstractmethod
    def maximises(self, source: Any) -> bool:
        """Whether the best value is the largest."""

    @property
    @abc.abstractmethod
    def spins(self) -> bool:
        """Whether variables are -1 and 1 instead of 0 and 1."""

    @abc.abstractmethod
    def terms(self, source: Any, penalty: float = PENALTY) -> Coefficients:
        """The maximised quadratic model: with its constant, the value, or its negative if it is minimised.

        Raises:
          InputError: the problem has conflicts, and the penalty is not a finite number of at least 1.
        """

    def improver(self, source: Any) -> Callable[[Int8[np.ndarray, "N"]], Int8[np.ndarray, "N"]] | None:
        """What makes a feasible state at least as good by an exact local search; None where there is none."""
        return None

    def violated(self, source: Any, state: Int8[np.ndarray, "N"]) -> list[str]:
        """The constraints that do not hold at a state, in words; none where problems of this kind have none."""
        return []

    @abc.abstractmethod
    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """A function that repairs and evaluates states exactly; what depends only on the source is prepared once."""
