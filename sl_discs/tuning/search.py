"""The search: each trial runs on a few training instances first, and on more of them if it did well."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np
import optuna
from optuna.trial import Trial, TrialState

from sl_discs.instances.dataset import Dataset
from sl_discs.tuning import storage
from sl_discs.tuning.instances import part_of
from sl_discs.tuning.playing import Stage
from sl_discs.tuning.points import Candidate, candidate_of, without_tilt
from sl_discs.tuning.space import Dimension, propose

# Run seed of trial 0; later trials count up from it. Test runs use smaller seeds.
FIRST_TRIAL_SEED = 1_000


def rungs_of(num_instances: int) -> tuple[int, ...]:
    """Numbers of instances after which a trial may be pruned: a quarter, a half, all."""
    return tuple(sorted({max(1, num_instances // 4), max(1, num_instances // 2), num_instances}))


@dataclasses.dataclass(frozen=True)
class Search:
    """The definition of a trial.

    Attributes:
      space: the search space.
      start: settings for everything that the space omits.
      null: whether the tilt is switched off.
      train: the training instances.
      rungs: numbers of instances after which a trial may be pruned; the last one is all of them.
      seed: seed of the choices.
    """

    space: tuple[Dimension, ...]
    start: Candidate
    null: bool
    train: Dataset
    rungs: tuple[int, ...]
    seed: int

    def candidate(self, point) -> Candidate:
        """The settings that a point represents."""
        candidate = candidate_of(point, self.start)
        return without_tilt(candidate) if self.null else candidate


@dataclasses.dataclass(frozen=True)
class Played:
    """A trial that this worker has finished.

    Attributes:
      number: number of the trial.
      value: mean verified best over the instances that it was run on.
      instances: number of these instances.
      pruned: whether it was stopped before it had run on all instances.
      seconds: its duration.
    """

    number: int
    value: float
    instances: int
    pruned: bool
    seconds: float


def _play(search: Search, stage: Stage, trial: Trial, progress: Callable[[int], None]) -> Played:
    pulse = storage.Pulse(trial)

    def report(steps):
        pulse.beat()
        progress(steps)

    begin, first, best = time.perf_counter(), 0, np.empty(0)
    candidate = search.candidate(propose(search.space, trial))
    seed = FIRST_TRIAL_SEED + trial.number
    for stop in search.rungs:
        best = np.concatenate([best, stage.play(candidate, part_of(search.train, first, stop), seed, report)])
        trial.report(float(best.mean()), stop)
        first = stop
        if stop < search.rungs[-1] and trial.should_prune():
            break
    pruned = len(best) < search.rungs[-1]
    return Played(trial.number, float(best.mean()), len(best), pruned, time.perf_counter() - begin)


def play_trials(
    study: optuna.Study,
    search: Search,
    stage: Stage,
    total: int,
    stale_after: float,
    progress: Callable[[int], None],
    tell: Callable[[Played], None],
) -> None:
    """Runs trials until the study has `total` of them, including those of other workers.

    Args:
      study: the shared study.
      search: what to try.
      stage: how to evaluate it.
      total: number of trials of the whole study.
      stale_after: seconds without a heartbeat after which another worker's trial no longer counts.
      progress: called with the number of chain-steps done.
      tell: called with each trial that this worker finished.
    """
    while (trial := storage.next_trial(study, total, stale_after)) is not None:
        # Seeded by the trial: a single worker repeats its choices, and several workers never make the same ones.
        seed = int(np.random.SeedSequence([search.seed, trial.number]).generate_state(1)[0])
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        try:
            played = _play(search, stage, trial, progress)
        except BaseException:
            study.tell(trial, state=TrialState.FAIL)
            raise
        if played.pruned:
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, played.value)
        tell(played)
