"""Plays candidates on instances; what was compiled for a sampler serves its other schedules and temperatures too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.player import Player
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.localization.method import Method
from sl_discs.results.summary import best_values
from sl_discs.samplers.base import Sampler
from sl_discs.tuning.points import Candidate


class Stage:
    """Where candidates are played.

    Attributes:
      settings: chains, steps and engine; annealing is the candidate's.
      penalty: of the problem's model.
    """

    def __init__(self, settings: Settings, penalty: float):
        self.settings, self.penalty = settings, penalty
        self._players: dict[tuple[Sampler, bool], Player] = {}

    def _player(self, method: Method, settings: Settings) -> Player:
        key = method.sampler, method.localization is None
        if key in self._players:
            self._players[key].load(method, settings)
        else:
            self._players[key] = Player(method, settings)
        return self._players[key]

    def play(
        self, candidate: Candidate, dataset: Dataset, seed: int, progress: Callable[[int], None]
    ) -> Float64[np.ndarray, "G"]:
        """Verified best objective of each instance.

        Args:
          candidate: settings to try; InputError where they are impossible.
          dataset: the instances.
          seed: of the chains.
          progress: called with the number of chain-steps that were played.
        """
        settings = dataclasses.replace(candidate.settings(self.settings), seed=seed)
        method = candidate.method(settings.batch_size)
        player = self._player(method, settings)
        return best_values(run_sampler(dataset.problem, dataset, self.penalty, method, settings, progress, player))
