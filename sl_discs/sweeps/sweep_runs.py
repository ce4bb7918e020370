"""The runs of a sweep: their folders and states, who performs them (this machine or Slurm), and tables of them.

| file in a run's folder | content |
|---|---|
| `run.json` | flags and values of the run, written before it starts |
| `stdout.txt`, `stderr.txt` | what its attempts printed |
| `failed.json` | how the last attempt failed, if it did |
| `checkpoint/` | where the run was interrupted (`sl_discs.experiment.checkpoint`) |
| `results.json` | the results, written atomically; the run is done if the file exists |
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import math
import os
import queue
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sl_discs.command import say
from sl_discs.errors import InputError, MissingExtra
from sl_discs.experiment.checkpoint import RESUME_ME
from sl_discs.experiment.summary import aligned
from sl_discs.files import (
    Damaged,
    FolderInUse,
    differences,
    holder_of,
    only_run_in,
    read_json,
    write_json,
    write_text,
)
from sl_discs.samplers.registry import PREFIX
from sl_discs.sweeps.sweep_file import SAMPLER, Sweep, short

DONE, RUNNING, FAILED, MISSING, DIFFERS = "done", "running", "failed", "missing", "differs"
INTERRUPTED = "interrupted"  # how a task ends; the run's state is `missing`

# Held by what performs a run; its program holds the folder's usual lock, for longer if its parent is killed.
_LOCK = ".sweep.lock"
_PATIENCE_S = 0.5  # `status` holds a lock for a moment


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a sweep, counted from 1: its settings as a text, the folder of its results, and the program.

    `arguments` are the flags and values that determine its results.
    """

    number: int
    label: str
    folder: Path
    arguments: Mapping[str, str]
    command: tuple[str, ...] = ()

    @property
    def results(self) -> Path:
        """The file that exists once the run is done."""
        return self.folder / "results.json"


class State(NamedTuple):
    """The state of a run.

    Attributes:
      name: `done`, `running`, `failed`, `missing`, or `differs`: the folder holds results of other arguments.
      detail: who performs it, why it failed, what differs, or that it was interrupted; otherwise empty.
    """

    name: str
    detail: str = ""


def state_of(run: Run) -> State:
    """The state of a run."""
    # The lock first: a run that ends between the two checks then counts as done or failed, not as missing.
    holder = holder_of(run.folder, _LOCK) or holder_of(run.folder)
    outcome = _outcome_of(run)
    return State(RUNNING, holder) if holder and outcome.name not in (DONE, DIFFERS) else outcome


def _outcome_of(run: Run) -> State:
    """The state of a run, regardless of who performs it."""
    if run.results.exists():
        noted = _read(run.folder / "run.json", arguments=dict)
        difference = "results of another command, without a readable run.json"
        if noted is not None:
            difference = "; ".join(differences(dict(run.arguments), noted["arguments"], "--"))
        return State(DIFFERS, difference) if difference else State(DONE)
    failure = _read(run.folder / "failed.json", exit_code=int, message=str)
    if failure is not None:
        return State(FAILED, _in_words(failure["exit_code"], failure["message"]))
    begun = (run.folder / "checkpoint").is_dir()
    return State(MISSING, "interrupted; it continues from its checkpoint" if begun else "")


def _in_words(exit_code: int, message: str) -> str:
    """A failure in one line; a negative exit code is that of a signal."""
    if exit_code < 0:
        known = -exit_code < signal.NSIG and signal.strsignal(-exit_code)
        return f"ended by {known or f'signal {-exit_code}'}" + (f"; it last said: {message}" if message else "")
    return message or f"exit code {exit_code}, with nothing on stderr"


def _read(path: Path, **fields: type) -> dict[str, Any] | None:
    """The content of a file with these fields; None if there is none, or it is damaged."""
    try:
        content = read_json(path) or {}
    except Damaged:
        return None
    return content if all(isinstance(content.get(name), kind) for name, kind in fields.items()) else None


def check_folders(runs: Sequence[Run]) -> None:
    """Raises InputError if a folder holds results of other arguments."""
    for run in runs:
        outcome = _outcome_of(run)
        if outcome.name == DIFFERS:
            raise InputError(f"{run.folder}: holds another run: {outcome.detail}; choose another --save_root")


@dataclasses.dataclass
class Task:
    """Performs one run, unless it is done, has failed without `retry`, or somebody else performs it.

    Slurm's jobs are pickled tasks.
    """

    run: Run
    retry: bool = False
    _program: subprocess.Popen | None = dataclasses.field(default=None, init=False)
    _stopped: bool = dataclasses.field(default=False, init=False)

    def __call__(self) -> str:
        """How it ended: `done`, `failed`, `interrupted` or, if somebody else performs it, `running`."""
        run = self.run
        outcome = _outcome_of(run)
        if outcome.name == DONE or (outcome.name == FAILED and not self.retry):
            return outcome.name
        if self._stopped:
            return INTERRUPTED
        try:
            run.folder.mkdir(parents=True, exist_ok=True)
            with only_run_in(run.folder, _LOCK, _PATIENCE_S):
                with only_run_in(run.folder):
                    pass  # no program that has outlived its parent
                outcome = _outcome_of(run)  # it may have ended since
                return DONE if outcome.name == DONE else self._perform()
        except FolderInUse as error:
            say(f"[{run.number}] skipped: {error.holder} performs it")
            return RUNNING
        except OSError as error:
            raise InputError(f"{run.folder}: cannot write ({error.strerror}); choose another --save_root") from None

    def _perform(self) -> str:
        run = self.run
        write_json(run.folder / "run.json", {"number": run.number, "arguments": dict(run.arguments)})
        (run.folder / "failed.json").unlink(missing_ok=True)
        say(f"[{run.number}] {run.label}: started")
        begin, errors = time.monotonic(), run.folder / "stderr.txt"
        with (run.folder / "stdout.txt").open("ab") as out, errors.open("ab") as err:
            before = err.tell()
            # In a session of its own: a terminal would send it SIGINT in addition to what `stop` sends.
            self._program = subprocess.Popen(
                run.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
            if self._stopped:  # since before there was a program
                self.stop()
            code = self._program.wait()
        seconds = f"{time.monotonic() - begin:.1f} s"
        message = _last_line(errors, before) if code else "exit code 0, but no results.json"
        if run.results.exists():
            note = f"; its program failed after that: {_in_words(code, message)}" if code else ""
            say(f"[{run.number}] done in {seconds}{note}")
            return DONE
        # A program that is told to stop before it listens is ended by the signal.
        if code == RESUME_ME or (self._stopped and code < 0):
            say(f"[{run.number}] interrupted after {seconds}")
            return INTERRUPTED
        write_json(run.folder / "failed.json", {"exit_code": code, "message": message})
        say(f"[{run.number}] failed after {seconds}: {_in_words(code, message)}")
        return FAILED

    def stop(self, number: int = signal.SIGUSR1) -> None:
        """Tells the program to save a checkpoint and end; a task that has not begun will not begin."""
        self._stopped = True
        if self._program is not None:
            self._program.send_signal(number)

    def checkpoint(self) -> Any:
        """What submitit runs again, called before the job's time is up."""
        import submitit

        self.stop()
        if self._program is not None:
            # Not `wait`, whose lock is held by the call that this signal has interrupted.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self._program.pid, os.WEXITED | os.WNOWAIT)
        return submitit.helpers.DelayedSubmission(SlurmTask(self.run, self.retry))


class SlurmTask(Task):
    """A task as a job of Slurm, whose signal before the time limit is submitit's to handle."""

    def __call__(self) -> str:
        """How it ended; waits for Slurm if something else has interrupted the program.

        At preemption Slurm sends SIGTERM to job and program alike and requeues the job after the grace period; a job
        that had ended by itself would not be requeued, and one that is cancelled must not be.
        """
        outcome = super().__call__()
        while outcome == INTERRUPTED:
            time.sleep(1.0)
        return outcome


def _last_line(path: Path, start: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def perform_here(tasks: Sequence[Task], parallel: int = 1) -> list[str]:
    """Returns how each task ended; `parallel` of them run at a time, each on an equal part of this process's cores.

    SIGTERM, SIGINT or SIGUSR1 interrupts all of them; a second SIGINT kills their programs.
    """
    parts: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    size = len(cores) // parallel
    for k in range(parallel):
        parts.put(cores[k * size : (k + 1) * size])

    def pin() -> None:
        part = parts.get()
        if part:  # of this thread, from which its programs inherit it
            os.sched_setaffinity(0, part)

    with _stopping(tasks), ThreadPoolExecutor(parallel, initializer=pin) as pool:
        return list(pool.map(lambda task: task(), tasks))


@contextlib.contextmanager
def _stopping(tasks: Sequence[Task]) -> Iterator[None]:
    told = False

    def stop(number, _frame) -> None:
        nonlocal told
        # Noted first: the next signal may come while this one is passed on.
        first, told = not told, True
        if first or number == signal.SIGINT:
            for task in tasks:
                task.stop(signal.SIGUSR1 if first else signal.SIGKILL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Slurm's default limit on the tasks of an array is 1001.
_ARRAY = 1000
_MAX_TIMEOUTS = 100  # time limits that a run may reach before it is not requeued any more


def submit(tasks: Sequence[Task], name: str, folder: Path, options: Sequence[str], parallel: int | None) -> list[str]:
    """Submits a job array with a task for each run, and returns the numbers of the jobs.

    Args:
      tasks: to submit.
      name: of the jobs.
      folder: for submitit's files, seen by all machines.
      options: `KEY=VALUE` of submitit's `SlurmExecutor`, such as `partition=gpu`, `time=4:00:00`.
      parallel: how many may run at a time; None: as many as Slurm allows.
    """
    try:
        import submitit
    except ImportError:
        raise MissingExtra("--executor=slurm needs submitit: pip install -e '.[cluster]' in the clone") from None
    given: dict[str, Any] = {"job_name": name, "array_parallelism": parallel or _ARRAY, "signal_delay_s": 120}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise InputError(f"--slurm: {option!r} is not KEY=VALUE, such as partition=gpu")
        given[key] = _minutes(value) if key == "time" else int(value) if value.isdecimal() else value
    try:
        executor = submitit.SlurmExecutor(folder, max_num_timeout=_MAX_TIMEOUTS)
        executor.update_parameters(**given, additional_parameters={"requeue": True})
        arrays = [tasks[k : k + _ARRAY] for k in range(0, len(tasks), _ARRAY)]
        return [job.job_id for part in arrays for job in executor.submit_array(part)]
    except (RuntimeError, ValueError, submitit.core.utils.FailedJobError) as error:
        raise InputError(f"--executor=slurm: {' '.join(str(error).split())}") from None


def _minutes(text: str) -> int:
    """Minutes of `90`, `1:30:00` or `2-00:00:00`."""
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):(\d\d):\d\d|(\d+))", text)
    if found is None:
        raise InputError(f"--slurm: time={text} is not understood; write minutes, H:MM:SS or D-HH:MM:SS")
    days, hours, minutes, alone = (int(group or 0) for group in found.groups())
    return alone or (days * 24 + hours) * 60 + minutes


def varied(sweep: Sweep) -> list[tuple[str, list[Any]]]:
    """The settings in which runs differ: the name of each, and its values for all runs, None where it has none."""
    values = [{SAMPLER: sweep.sampler} | settings for settings in sweep.runs]
    flags = dict.fromkeys(flag for settings in values for flag in settings)
    columns = {flag: [settings.get(flag) for settings in values] for flag in flags}
    columns = {flag: column for flag, column in columns.items() if any(value != column[0] for value in column)}
    names = {flag: "sampler" if flag == SAMPLER else short(flag) for flag in columns}
    twice = {name for name, count in Counter(names.values()).items() if count > 1}
    return [(flag if names[flag] in twice else names[flag], column) for flag, column in columns.items()]


def status_lines(sweep: Sweep, runs: Sequence[Run], states: Sequence[State]) -> list[str]:
    """A row for each run, details on runs that are not done, and the number of runs in each state."""
    columns = varied(sweep)
    rows = [["run", *(name for name, _ in columns), "state"]]
    pairs = [(run.number, state) for run, state in zip(runs, states, strict=True)]
    for number, state in pairs:
        rows.append([str(number), *(_word(column[number - 1]) for _, column in columns), state.name])
    details = [f"run {number} {state.name}: {state.detail}" for number, state in pairs if state.detail]
    counts = Counter(state.name for state in states)
    known = [f"{counts[name]} {name}" for name in (DONE, RUNNING, FAILED, MISSING, DIFFERS) if counts[name]]
    return [*aligned(rows), *details, f"{len(runs)} in total: {', '.join(known)}"]


def collect(sweep: Sweep, runs: Sequence[Run], folder: Path) -> list[str]:
    """Writes `collect.csv` and `collect.json` of the finished runs, and returns the table as lines.

    A row is a run, or each sampler of a run that had several: the settings in which runs differ, `mean` and `std` of
    the best objective over `n` instances (divisor n), chain-steps per second and the engine. Below the table, each
    localized sampler stands beside its base of the same settings, with their paired difference.
    """
    check_folders(runs)
    columns, done = varied(sweep), [run for run in runs if _outcome_of(run).name == DONE]
    rows, bests = [], []
    for run in done:
        settings = {name: column[run.number - 1] for name, column in columns}
        for row, best in _results(run, "sampler" not in settings):
            rows.append({"run": run.number} | settings | row)
            bests.append(best)
    if not rows:
        raise InputError(f"{folder}: no run of the sweep is done; `run` performs them, `status` shows their state")
    titles = list(dict.fromkeys(title for row in rows for title in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    pairs = _pairs(rows, bests, [name for name, _ in columns])
    paths = [
        write_text(folder / "collect.csv", text.getvalue()),
        write_json(folder / "collect.json", {"sweep": sweep.name, "rows": rows, "pairs": pairs}, indent=2),
    ]
    table = aligned([titles, *([_word(row.get(title)) for title in titles] for row in rows)])
    if pairs:
        titles = list(pairs[0])
        shown = [[_word(pair[title]) for title in titles] for pair in pairs]
        table += ["", *aligned([titles, *shown])]
    missing = len(runs) - len(done)
    note = [f"{missing} of {len(runs)} runs are not done and not included"] if missing else []
    return [*table, *note, f"saved {', '.join(map(str, paths))}"]


def _pairs(
    rows: Sequence[dict[str, Any]], bests: Sequence[dict[str, float]], settings: Sequence[str]
) -> list[dict[str, Any]]:
    """Each localized row beside its base's with the same of `settings`: means, paired difference and its error."""
    pairs = []
    for localized, of_localized in zip(rows, bests, strict=True):
        for base, of_base in zip(rows, bests, strict=True):
            if localized.get("sampler") not in (f"{PREFIX}{base.get('sampler')}", f"sl:{base.get('sampler')}"):
                continue
            others = [name for name in settings if name != "sampler" and base.get(name) is not None]
            if of_base.keys() != of_localized.keys() or any(base[name] != localized.get(name) for name in others):
                continue
            gains = np.array([of_localized[name] - of_base[name] for name in of_base])
            pair = {"run": localized["run"], "base run": base["run"]}
            pair |= {"localized": localized["mean"], "base": base["mean"]}
            error = float(gains.std(ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else None
            pairs.append(pair | {"difference": float(gains.mean()), "se": error, "n": len(gains)})
    return pairs


def _results(run: Run, with_name: bool) -> list[tuple[dict[str, Any], dict[str, float]]]:
    """A row for each sampler of a run, and the best values of its instances."""
    results = _read(run.results, samplers=dict) or {}
    try:
        with_name |= len(results["samplers"]) > 1
        return [
            (
                ({"sampler": name} if with_name else {})
                | {"mean": one["mean"], "std": one["std"], "n": len(one["instances"])}
                | {"chain_steps_per_s": one["chain_steps_per_s"], "engine": results["engine"]},
                {instance["name"]: instance["best"] for instance in one["instances"]},
            )
            for name, one in results["samplers"].items()
        ]
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{run.results}: damaged; remove it and run again") from None


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, float) and abs(value) >= 0.01 else str(value)
