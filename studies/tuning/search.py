"""The search: Optuna's trials, which run on a few training instances first, and on more of them if
they do well.

Any number of workers share a study in a storage, which only searches of its kind may continue.
Trials count once they are complete or pruned: several workers may play a few more than asked for,
and one that was killed blocks none.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import optuna
from jaxtyping import Float64
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import MaxTrialsCallback, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from evaluation import FIRST_TRIAL_SEED, Tuning
from sl_discs.reproduction.tuned import part_of
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.identity import check_same
from space import Point, propose

KIND = "kind"  # of a study: the user attribute that identifies it
_COUNTED = (TrialState.COMPLETE, TrialState.PRUNED)


def open_study(
    where: str, name: str, kind: dict[str, Any], first: Point, *, maximise: bool = True
) -> optuna.Study:
    """Returns the study of this name, created if there is none; InputError if one of this name is
    of another kind.

    Args:
      where: path of the study's journal.
      name: name of the study.
      kind: space, dataset, budget and version as plain data, recorded in the study's user
        attributes.
      first: the point tried before any other, which may omit dimensions.
      maximise: whether the objective is maximised.
    """
    # The command reports each trial itself.
    optuna.logging.set_verbosity(logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    kind, path = json.loads(json.dumps(kind)), check_file(where).absolute()
    try:
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(
                JournalFileBackend(str(path), _JournalLock(path))
            ),
            study_name=name,
            direction="maximize" if maximise else "minimize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=8),
            load_if_exists=True,
        )
        found = study.user_attrs.get(KIND)
        if found is None:
            if not study.get_trials(deepcopy=False):
                study.enqueue_trial(first)
            study.set_user_attr(KIND, kind)
            return study
    except Exception as error:  # journal readers raise errors of many kinds
        raise InputError(
            f"--storage={where}: cannot open it ({' '.join(str(error).split())[:200]})"
        ) from None
    advice = "give another --study, or another --storage"
    if not isinstance(found, dict):
        raise InputError(f"study {name!r} is of another kind: it is of another program; {advice}")
    check_same(f"study {name!r} is of another kind", kind, found, advice)
    return study


class _JournalLock(JournalFileOpenLock):
    """The lock of a journal, under which the line within which a worker has died is removed.

    What another worker appends would otherwise become a part of that line, which nobody could read
    any more.
    """

    _BEGIN = b'{"op_code":'

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        super().acquire()
        try:
            with self._path.open("r+b") as file:
                self._remove_torn_line(file)
        except BaseException:
            self.release()
            raise
        return True

    def _remove_torn_line(self, file: BinaryIO) -> None:
        """Cuts off a last line without its end; ValueError if that is not one of a journal."""
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.seek(0)
                head, end, torn = file.read().rpartition(b"\n")
                if not torn.startswith(self._BEGIN) and not self._BEGIN.startswith(torn):
                    raise ValueError("it is not a journal")
                file.truncate(len(head + end))


def counted_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that count towards the total, ordered by number."""
    return study.get_trials(deepcopy=False, states=_COUNTED)


def best_of_curve(study: optuna.Study) -> list[list[float]]:
    """[trial, value] of each trial that was better than all earlier ones."""
    sign = 1 if study.direction is StudyDirection.MAXIMIZE else -1
    curve: list[list[float]] = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        if trial.value is not None and (not curve or sign * trial.value > sign * curve[-1][1]):
            curve.append([trial.number, trial.value])
    return curve


def run_trials(
    study: optuna.Study,
    tuning: Tuning,
    total: int,
    progress: Callable[[int, str], None],
    tell: Callable[[FrozenTrial], None],
) -> None:
    """Runs trials until the study has `total` of them, including those of other workers.

    `progress` is that of `run_sampler`, and `tell` is called with each trial that this worker
    finished, whose last step is the number of its instances.
    """

    def play(trial: Trial) -> float:
        # Seeded by the trial: a single worker repeats its choices, and several workers never make
        # the same ones.
        seed = int(np.random.SeedSequence([tuning.seed, trial.number]).generate_state(1)[0])
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        candidate, first = tuning.candidate(propose(tuning.space, trial)), 0
        best: Float64[np.ndarray, "G"] = np.empty(0)
        for stop in tuning.rungs:
            part = part_of(tuning.train, first, stop)
            best = np.append(
                best, tuning.evaluate(candidate, part, FIRST_TRIAL_SEED + trial.number, progress)
            )
            trial.report(float(best.mean()), stop)
            first = stop
            if stop < tuning.rungs[-1] and trial.should_prune():
                raise optuna.TrialPruned
        return float(best.mean())

    if len(counted_trials(study)) >= total:
        return
    enough: Callable[[optuna.Study, FrozenTrial], None] = MaxTrialsCallback(total, _COUNTED)
    try:
        study.optimize(play, callbacks=[lambda _, trial: tell(trial), enough])
    except OSError as error:
        raise InputError(
            f"cannot write ({error.strerror}); the same command continues once it can"
        ) from error
