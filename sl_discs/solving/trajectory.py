"""How the values of chains went."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64


class Trajectory(NamedTuple):
    """What L logged steps recorded, in the problem's own sense and offset; values are in 32 bits, conflicts counted.

    Attributes:
      step: of the whole run, over all rounds.
      round: of the step, from 0.
      best: the best value at a logged step so far.
      mean: over chains, of the value at this step.
      low: the tenth part of the chains has smaller values.
      high: the tenth part of the chains has larger values.
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
