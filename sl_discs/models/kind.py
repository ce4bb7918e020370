"""What a problem is, as far as graphs and quadratic forms have it in common."""

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
      states: [B, N] zeros and ones; only infeasible sets and cliques differ from what was given.
    """

    values: Float64[np.ndarray, "B"]
    feasible: Bool[np.ndarray, "B"]
    states: Int8[np.ndarray, "B N"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind(abc.ABC):
    """One problem; its source is the graph or the form that it is posed on.

    Attributes:
      name: as flags and results spell it.
      title: heads a report.
      recounted: how an answer is verified, in words.
      answer: an answer in words, of its `size` and the numbers of `ones` and `zeros`.
    """

    name: str
    title: str
    recounted: str
    answer: str

    @abc.abstractmethod
    def accepts(self, source: Any) -> bool:
        """Whether the problem can be posed on this."""

    @abc.abstractmethod
    def num_variables(self, source: Any) -> int:
        """Number of variables N."""

    @abc.abstractmethod
    def maximises(self, source: Any) -> bool:
        """The sense: whether the largest value is the best."""

    @property
    @abc.abstractmethod
    def spins(self) -> bool:
        """Whether variables are -1 and 1 instead of 0 and 1."""

    @abc.abstractmethod
    def terms(self, source: Any, penalty: float = PENALTY) -> Coefficients:
        """The quadratic model that is maximised: with its constant the value, or the negative of one to be minimised.

        Raises:
          InputError: a penalty that is not a finite number of at least 1, where the problem has conflicts.
        """

    def improver(self, source: Any) -> Callable[[Int8[np.ndarray, "N"]], Int8[np.ndarray, "N"]] | None:
        """What makes a feasible state at least as good by an exact local search; None where there is none."""
        return None

    @abc.abstractmethod
    def evaluator(self, source: Any) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """What repairs and evaluates states exactly; it prepares once what depends on the source alone."""
