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
import shlex
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
from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import RESUME_ME
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
from sl_discs.terminal import aligned

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
    """Performs one run, unless it is done, has failed without `retry`, or somebody else performs it."""

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


# A job of a Slurm array performs one run. Two minutes before the time limit it is told to save a checkpoint, and goes
# back into the queue, but not for ever. A job that gets SIGTERM saves one and waits: Slurm requeues it when the grace
# period is over if it was preempted, and ends it if it was cancelled.
_JOB = """\
#!/usr/bin/env bash
{options}

{command} &
program=$! told= again=1
tell() {{
  [ -n "$told" ] || kill -USR1 "$program"
  told=${{told:-$1}} again=1
}}
trap 'tell limit' USR1
trap 'tell end' TERM
while [ "$again" = 1 ]; do # a signal ends the wait, not the program
  again=0 code=0
  wait "$program" || code=$?
done
if [ "$told" = end ] && [ "$code" = {resume} ]; then
  sleep infinity &
  wait
elif [ "$code" = {resume} ] || [ "$told $code" = "limit $((128 + $(kill -l USR1)))" ]; then
  [ "${{SLURM_RESTART_COUNT:-0}}" -ge 100 ] || scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""


def job_script(
    name: str, numbers: Sequence[int], command: str, folder: Path, options: Sequence[str], parallel: int | None
) -> str:
    """Returns the script of a Slurm array with a job for each run.

    Args:
      name: of the jobs.
      numbers: of the runs, which are the indices of the array.
      command: line that performs the run `$SLURM_ARRAY_TASK_ID`.
      folder: for the jobs' logs, seen by all machines.
      options: `KEY=VALUE` or `KEY` of sbatch, such as `partition=gpu`, `cpus_per_task=8`.
      parallel: how many jobs may run at a time; None: as many as Slurm allows.
    """
    array = ",".join(map(str, numbers)) + (f"%{parallel}" if parallel else "")
    wanted = [f"job-name={name}", f"array={array}", f"output={folder.absolute()}/%A_%a.txt", "open-mode=append"]
    wanted += ["requeue", "signal=B:USR1@120"]
    for option in options:
        key, equals, value = option.partition("=")
        if not re.fullmatch(r"[a-z][a-z_-]*", key) or not value.isprintable():
            raise InputError(f"--slurm: {option!r} is not an option of sbatch, such as partition=gpu or time=4:00:00")
        wanted.append(key.replace("_", "-") + equals + value)
    # What stands behind the first = is one word.
    wanted = [re.sub("=(.*)", lambda match: f"={shlex.quote(match[1])}", option) for option in wanted]
    lines = "\n".join(f"#SBATCH --{option}" for option in wanted)
    return _JOB.format(options=lines, command=command, resume=RESUME_ME)


def submit(script: str) -> str:
    """Submits a script and returns what sbatch says; InputError if it refuses."""
    try:
        done = subprocess.run(["sbatch"], input=script, capture_output=True, text=True)
    except OSError as error:
        raise InputError(
            f"--executor=slurm: sbatch cannot be run ({error.strerror}); give the command where Slurm is installed"
        ) from None
    if done.returncode:
        raise InputError(f"--executor=slurm: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


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
            pair |= {"base": base["mean"], "localized": localized["mean"]}
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
