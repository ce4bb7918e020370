"""A study in a storage that any number of workers share: created once, and continued only by searches of its kind.

Trials that count towards the total are those that are complete or pruned, and running ones whose worker has given a
recent heartbeat. A trial whose worker was killed therefore stops counting after a while, whatever the storage. For
workers on the same machine, which see that its process is gone, it stops counting at once.
"""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.storages.journal import BaseJournalBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from sl_discs.errors import InputError
from sl_discs.files import differences
from sl_discs.sweeps.processes import is_running, this_machine
from sl_discs.tuning.space import Point

# Optuna's journal, a file with one line of JSON per operation, that survives workers killed while they write.
#
# A worker that is killed while it writes leaves an incomplete line. Optuna cannot read a file with such a line, even
# if others have appended to it since. Here an incomplete line is skipped, and terminated before the next one is
# appended. The worker that wrote it is gone, so no later operation depends on it.

# The beginning of every line that Optuna writes.
_BEGINNING = b'{"op_code":'


class Journal(BaseJournalBackend):
    """A journal that any number of workers, on any number of machines, read and write."""

    def __init__(self, path: Path):
        """Creates the file if there is none; OSError if that is impossible."""
        self._path = path
        self._lock = JournalFileOpenLock(str(path))
        # A lower bound on the position of each record, for those that have been read.
        self._offsets = [0]
        with path.open("ab"):
            pass

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The records from a number on; incomplete ones are skipped and not counted.

        Raises:
          InputError: there is a line that Optuna has not written.
        """
        number = min(log_number_from, len(self._offsets) - 1)
        offset = self._offsets[number]
        with self._path.open("rb") as file:
            file.seek(offset)
            for line in file:
                record = self._record(line)
                if not line.endswith(b"\n"):
                    return  # incomplete, or being written
                offset += len(line)
                if record is None:
                    continue
                number += 1
                if number == len(self._offsets):
                    self._offsets.append(offset)
                if number > log_number_from:
                    yield record

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """The record of a line; None if it is incomplete. A record appended to an incomplete line is kept."""
        last = max(0, line.rfind(_BEGINNING))
        torn, whole = line[:last], line[last:].rstrip(b"\n")
        if not all(_BEGINNING.startswith(part[: len(_BEGINNING)]) for part in (torn, whole)):
            raise InputError(
                f"{self._path}: {line[:40]!r} is not a line of an Optuna journal; give another --storage, or remove "
                "that line"
            )
        try:
            return json.loads(whole)
        except ValueError:
            return None

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Appends either all records or none.

        Raises:
          InputError: the records cannot be written, for instance because the disk is full.
        """
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        self._lock.acquire()
        try:
            with self._path.open("a+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                try:
                    text = self._ending_of_torn_line(file, size) + text
                    while text:
                        text = text[file.write(text) :]
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(size)
                    raise
        except OSError as error:
            raise InputError(
                f"{self._path}: cannot write ({error.strerror or error}); the same command continues once it can"
            ) from error
        finally:
            self._lock.release()

    @staticmethod
    def _ending_of_torn_line(file, size: int) -> bytes:
        if not size:
            return b""
        file.seek(size - 1)
        return b"" if file.read(1) == b"\n" else b"\n"


KIND, ALIVE, HOLDER = "kind", "alive", "holder"
# How long a worker waits for the creator of a new study to record its kind.
_PATIENCE_S = 30.0
# Seconds between heartbeats of a running trial.
_PULSE_S = 20.0


def quiet_optuna() -> None:
    """Limits Optuna's log to errors, since the command reports each trial itself."""
    optuna.logging.set_verbosity(logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def open_storage(text: str) -> optuna.storages.BaseStorage:
    """A storage: a URL of a database (`sqlite:///tuning.db`), or else the path of a journal file.

    Raises:
      InputError: it cannot be opened, or the file is not a journal.
    """
    try:
        if "://" in text:
            return optuna.storages.RDBStorage(text)
        path = Path(text).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        return optuna.storages.JournalStorage(Journal(path))
    except InputError:
        raise
    except Exception as error:  # database drivers and journal readers raise errors of many kinds
        raise InputError(f"--storage={text}: cannot open it ({' '.join(str(error).split())[:200]})") from None


def open_study(
    storage: optuna.storages.BaseStorage,
    name: str,
    kind: dict[str, Any],
    first_points: list[Point],
    *,
    maximise: bool = True,
) -> optuna.Study:
    """The study of this name, created if there is none.

    Args:
      storage: the shared storage.
      name: name of the study.
      kind: space, dataset, budget and version as plain data, recorded in the study's user attributes.
      first_points: points tried before any other; each may omit dimensions.
      maximise: whether the objective is maximised.

    Raises:
      InputError: a study of this name is of another kind.
    """
    kind = json.loads(json.dumps(kind))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=8)
    direction: Literal["maximize", "minimize"] = "maximize" if maximise else "minimize"
    try:
        study = optuna.create_study(storage=storage, study_name=name, direction=direction, pruner=pruner)
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(storage=storage, study_name=name, pruner=pruner)
    else:
        _complete(study, kind, first_points)
        return study
    found = _wait_for_kind(study)
    if found is None:
        _complete(study, kind, first_points)
        return study
    differs = "; ".join(differences(kind, found))
    if differs:
        raise InputError(f"study {name!r} is of another kind: {differs}; give another --study, or another --storage")
    return study


def _complete(study: optuna.Study, kind: dict[str, Any], first_points: list[Point]) -> None:
    """Queues the first points that are not queued yet, and then records the kind of the study."""
    for point in first_points[len(study.get_trials(deepcopy=False)) :]:
        study.enqueue_trial(point)
    study.set_user_attr(KIND, kind)


def _wait_for_kind(study: optuna.Study) -> dict[str, Any] | None:
    """The kind of a study; None if its creator was killed before recording it and nobody has begun a trial."""
    deadline = time.monotonic() + _PATIENCE_S
    while KIND not in study.user_attrs:
        if time.monotonic() > deadline:
            if all(trial.state is TrialState.WAITING for trial in study.get_trials(deepcopy=False)):
                return None
            raise InputError(f"study {study.study_name!r} does not say what it is; give another --study")
        time.sleep(0.1)
    return study.user_attrs[KIND]


class Pulse:
    """Heartbeats of a running trial; `beat` is called often and writes rarely."""

    def __init__(self, trial: Trial):
        self._trial, self._last = trial, -float("inf")
        trial.set_user_attr(HOLDER, {"machine": this_machine(), "pid": os.getpid()})
        self.beat()

    def beat(self) -> None:
        """Writes the time, unless it has done so recently."""
        if time.monotonic() - self._last > _PULSE_S:
            self._last = time.monotonic()
            self._trial.set_user_attr(ALIVE, time.time())


def _is_played(trial: FrozenTrial, stale_after: float) -> bool:
    """Whether a running trial's worker is still alive, as far as can be told."""
    holder = trial.user_attrs.get(HOLDER)
    if holder is not None and holder["machine"] == this_machine() and not is_running(holder["pid"]):
        return False
    began = 0.0 if trial.datetime_start is None else trial.datetime_start.timestamp()
    last_sign = trial.user_attrs.get(ALIVE, began)
    return time.time() - last_sign < stale_after


def counted_trials(study: optuna.Study, stale_after: float) -> list[FrozenTrial]:
    """Trials that count towards the total, ordered by number.

    Args:
      study: the study, as any worker has it.
      stale_after: seconds without a heartbeat after which a running trial on another machine no longer counts.
    """
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return [
        trial
        for trial in study.get_trials(deepcopy=False, states=states)
        if trial.state is not TrialState.RUNNING or _is_played(trial, stale_after)
    ]


def next_trial(study: optuna.Study, total: int, stale_after: float) -> Trial | None:
    """A trial to run, or None if all trials have been taken.

    Two workers may take the last trial at the same time. Trials are numbered in the order in which they are taken,
    and the later worker gives its own up, so that exactly `total` trials are run.
    """
    if len(counted_trials(study, stale_after)) >= total:
        return None
    trial = study.ask()
    before = [other for other in counted_trials(study, stale_after) if other.number < trial.number]
    if len(before) < total:
        return trial
    study.tell(trial, state=TrialState.FAIL)
    return None


def unfinished(study: optuna.Study, stale_after: float) -> int:
    """The number of trials running now."""
    return sum(trial.state is TrialState.RUNNING for trial in counted_trials(study, stale_after))


def complete_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that were run on all training instances, ordered by number."""
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def best_of_curve(study: optuna.Study) -> list[list[float]]:
    """[trial, value] of each trial that was better than all earlier ones."""
    sign = 1 if study.direction is StudyDirection.MAXIMIZE else -1
    curve: list[list[float]] = []
    for trial in complete_trials(study):
        if trial.value is not None and (not curve or sign * trial.value > sign * curve[-1][1]):
            curve.append([trial.number, trial.value])
    return curve
