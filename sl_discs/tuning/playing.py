"""Evaluates candidates on instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.output import best_values
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.tuning.points import Candidate


@dataclasses.dataclass(frozen=True)
class Stage:
    """How candidates are evaluated.

    Attributes:
      settings: chains, steps and engine; a candidate brings its own annealing.
      penalty: penalty of the problem's model.
    """

    settings: Settings
    penalty: float

    def play(
        self, candidate: Candidate, dataset: Dataset, seed: int, progress: Callable[[int], None]
    ) -> Float64[np.ndarray, "G"]:
        """Verified best objective of each instance.

        Args:
          candidate: settings to try; InputError if they are invalid.
          dataset: the instances.
          seed: of the chains.
          progress: called with the number of chain-steps done.
        """
        settings = dataclasses.replace(candidate.settings(self.settings), seed=seed)
        method = candidate.method(settings.batch_size)
        return best_values(run_sampler(dataset.problem, dataset, self.penalty, method, settings, progress))
