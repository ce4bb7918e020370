"""How the observation localizes chains while they run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from sl_discs.experiment.monitor import contractions
from sl_discs.localization.method import Method


class Contraction(NamedTuple):
    """Q records of localized chains, averaged over variables and chains. Empty without localization.

    Attributes:
      step: of the last round.
      time: t of the current level.
      mean: |U|, where U is the estimated posterior mean of the spins; NaN where a level has just begun. A mean over
        few samples overestimates it.
      field: |tanh h|, the mean of free spins in the field h of the observation.
    """

    step: Int64[np.ndarray, "Q"]
    time: Float64[np.ndarray, "Q"]
    mean: Float64[np.ndarray, "Q"]
    field: Float64[np.ndarray, "Q"]


def no_contraction() -> Contraction:
    """Of chains that are not localized, or of no chains."""
    return Contraction(np.empty(0, np.int64), *(np.empty(0) for _ in Contraction._fields[1:]))


class ContractionRecorder:
    """A recorder that the player calls after each call to the engine."""

    def __init__(self, method: Method, num_chains: int, num_steps: int):
        self._chosen = slice(1), slice(num_chains)
        localization = method.localization
        self._times = np.empty(0) if localization is None else localization.times(num_steps)
        self._rows: list[tuple[float, float, float, float]] = []

    def recall(self, every: int, trace) -> None:
        """Does nothing: records from before an interruption are not used."""

    def add(self, first, stop, every, trace, chains, batch, program, seconds) -> None:
        """As `monitor.Curves.add`."""
        found = contractions(chains, batch, program, stop, self._chosen)
        if found:
            at = min(stop, len(self._times) - 1)
            mean = found.get("posterior_contraction", np.nan)
            self._rows.append((stop, self._times[at], mean, found["tilt_contraction"]))

    def contraction(self) -> Contraction:
        """The records."""
        columns = np.array(self._rows, np.float64).reshape(-1, 4).T
        return Contraction(columns[0].astype(np.int64), *columns[1:])
