"""Values of chains against steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64


class Trajectory(NamedTuple):
    """Records of L logged steps, in the problem's own sense and offset; values have 32 bits and include penalties.

    Attributes:
      step: of the whole run, over all rounds.
      round: of the step, from 0.
      best: the best value at a logged step so far.
      mean: mean value of the chains at this step.
      low: the 10 % quantile of the chains' values.
      high: their 90 % quantile.
      temperature: at this step.
      acceptance: mean acceptance probability of the steps since the previous logged step.
    """

    step: Int64[np.ndarray, "L"]
    round: Int64[np.ndarray, "L"]
    best: Float64[np.ndarray, "L"]
    mean: Float64[np.ndarray, "L"]
    low: Float64[np.ndarray, "L"]
    high: Float64[np.ndarray, "L"]
    temperature: Float64[np.ndarray, "L"]
    acceptance: Float64[np.ndarray, "L"]


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """One after the other; empty where there are none."""
    kinds = [np.int64, np.int64, *[np.float64] * (len(Trajectory._fields) - 2)]
    empty = Trajectory(*(np.empty(0, kind) for kind in kinds))
    return Trajectory(*map(np.concatenate, zip(empty, *parts, strict=True)))
