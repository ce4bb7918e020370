"""The runs of a sweep: their folders and states, who performs them (this machine or Slurm), and
tables of them.

| file in a run's folder | content |
|---|---|
| `run.json` | flags and values of the run, written before it starts |
| `stdout.txt`, `stderr.txt` | what its attempts printed |
| `failed.json` | how the last attempt failed, if it did |
| `checkpoint/` | where the run was interrupted (`sl_discs.chains.checkpoint`) |
| `results.json` | the results, written atomically; the run is done if the file can be read |
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sl_discs.experiment.record import paired
from sl_discs.experiment.results import Results, read_results
from sl_discs.experiment.sweep_file import SAMPLER, Sweep, pairs_of, short
from sl_discs.support.documents import Damaged, read_json, write_json
from sl_discs.support.errors import RESUME_ME, InputError
from sl_discs.support.files import write_text
from sl_discs.support.identity import differences
from sl_discs.support.locks import FolderInUse, holder_of, only_run_in
from sl_discs.support.signals import Notice, notice_of_end
from sl_discs.support.terminal import aligned, say

DONE, RUNNING, WAITING, FAILED, MISSING, DIFFERS = (
    "done",
    "running",
    "waiting",
    "failed",
    "missing",
    "differs",
)
INTERRUPTED = "interrupted"  # how a task ends; the run's state is `missing`

# Held by what performs a run; its program holds the folder's usual lock, for longer if its parent
# is killed.
_LOCK = ".sweep.lock"
_LOOK_S = 0.5  # from a notice to what is done about it
_PATIENCE_S = 0.5  # `status` holds a lock for a moment


class Run(NamedTuple):
    """A run of a sweep, counted from 1: its settings as a text, the folder of its results, and the
    program.

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
      name: `done`, `running`, `waiting` for its job of Slurm, `failed`, `missing`, or `differs`:
        the folder holds results of other arguments.
      detail: who performs it, why it failed, what differs, or that it was interrupted; otherwise
        empty.
    """

    name: str
    detail: str = ""


def state_of(run: Run, jobs: Mapping[str, str] | None = None) -> State:
    """Returns the state of a run; `jobs` are those of `jobs_in_queue`."""
    # The lock first: a run that ends between the two checks then counts as done or failed, not as
    # missing.
    holder = holder_of(run.folder, _LOCK) or holder_of(run.folder)
    outcome = _outcome_of(run)
    if outcome.name in (DONE, DIFFERS):
        return outcome
    job = (jobs or {}).get(run.folder.name)
    return State(RUNNING, holder) if holder else State(WAITING, job) if job else outcome


def _outcome_of(run: Run) -> State:
    """Returns the state of a run, regardless of who performs it."""
    if run.results.exists():
        noted = _read(run.folder / "run.json", arguments=dict)
        difference = "results of another command, without a readable run.json"
        if noted is not None:
            difference = "; ".join(differences(dict(run.arguments), noted["arguments"], "--"))
        if difference:
            return State(DIFFERS, difference)
        try:
            read_results(run.results)
        except InputError as error:
            return State(FAILED, str(error))
        return State(DONE)
    failure = _read(run.folder / "failed.json", message=str)
    if failure is not None:
        return State(FAILED, failure["message"])
    begun = (run.folder / "checkpoint").is_dir()
    return State(MISSING, "interrupted; it continues from its checkpoint" if begun else "")


def _describe_exit(exit_code: int, message: str) -> str:
    """Returns a failure in one line; a negative exit code is that of a signal."""
    if exit_code < 0:
        ended = f"ended by {signal.strsignal(-exit_code)}"
        return f"{ended}; it last said: {message}" if message else ended
    return message or f"exit code {exit_code}, with nothing on stderr"


def _read(path: Path, **fields: type) -> dict[str, Any] | None:
    try:
        content = read_json(path) or {}
    except Damaged:
        return None
    return (
        content
        if all(isinstance(content.get(name), kind) for name, kind in fields.items())
        else None
    )


def check_folders(runs: Sequence[Run]) -> None:
    """Raises InputError if a folder holds results of other arguments."""
    for run in runs:
        outcome = _outcome_of(run)
        if outcome.name == DIFFERS:
            raise InputError(
                f"{run.folder}: holds another run: {outcome.detail}; choose another --save_root"
            )


def run_program(command: Sequence[str], notice: Notice, **streams: Any) -> int:
    """Runs a program to its end and returns its exit code, negative if a signal ended it.

    Once the notice is given, the program gets SIGUSR1, after which `sl-discs run` saves a
    checkpoint and others end. Where an exception ends the wait, such as that of a second signal,
    the program is killed. `streams` are those of `subprocess.Popen`.
    """
    # In a session of its own: a terminal would interrupt it as well.
    with subprocess.Popen(command, start_new_session=True, **streams) as program:
        told = False
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return program.wait(_LOOK_S)
                if notice.given and not told:
                    # No SIGTERM, which Slurm sends to each process of a job: a second one would end
                    # a program that saves its checkpoint.
                    program.send_signal(signal.SIGUSR1)
                    told = True
        except BaseException:
            program.kill()
            raise


def perform(run: Run, retry: bool, notice: Notice) -> str:
    """Performs a run, unless it is done, has failed without `retry`, somebody else performs it, or
    notice was given.

    Returns:
      how it ended: `done`, `failed`, `interrupted` or, if somebody else performs it, `running`.
    """
    outcome = _outcome_of(run)
    if outcome.name == DONE or (outcome.name == FAILED and not retry):
        return outcome.name
    if notice.given:
        return INTERRUPTED
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        with only_run_in(run.folder, _LOCK, _PATIENCE_S):
            with only_run_in(run.folder):
                pass  # no program that has outlived its parent
            outcome = _outcome_of(run)  # it may have ended since
            return DONE if outcome.name == DONE else _perform(run, notice)
    except FolderInUse as error:
        say(f"[{run.number}] skipped: {error.holder} performs it")
        return RUNNING
    except OSError as error:
        raise InputError(
            f"{run.folder}: cannot write ({error.strerror}); choose another --save_root"
        ) from None


def _perform(run: Run, notice: Notice) -> str:
    write_json(run.folder / "run.json", {"number": run.number, "arguments": dict(run.arguments)})
    (run.folder / "failed.json").unlink(missing_ok=True)
    say(f"[{run.number}] {run.label}: started")
    begin = time.monotonic()
    with (
        (run.folder / "stdout.txt").open("ab") as out,
        (run.folder / "stderr.txt").open("ab+") as err,
    ):
        before = err.tell()
        code = run_program(run.command, notice, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        err.seek(before)
        printed = err.read().decode(errors="replace").split("\n")
    seconds = f"{time.monotonic() - begin:.1f} s"
    last = next((line.strip() for line in reversed(printed) if line.strip()), "")
    failure = _describe_exit(code, last) if code else "exit code 0, but no results.json"
    if _outcome_of(run).name == DONE:
        note = f"; its program failed after that: {failure}" if code else ""
        say(f"[{run.number}] done in {seconds}{note}")
        return DONE
    # A program that is told to stop before it listens is ended by the signal.
    if code == RESUME_ME or (notice.given and code < 0):
        say(f"[{run.number}] interrupted after {seconds}")
        return INTERRUPTED
    write_json(run.folder / "failed.json", {"message": failure})
    say(f"[{run.number}] failed after {seconds}: {failure}")
    return FAILED


def perform_here(runs: Sequence[Run], retry: bool = False) -> list[str]:
    """Returns how each run ended. They run one after the other, as each uses all cores.

    SIGTERM, SIGUSR1 or SIGINT interrupts the current one, and no other begins.
    """
    with notice_of_end(signal.SIGINT, raises=True) as notice:
        return [perform(run, retry, notice) for run in runs]


# A job of a Slurm array performs one run. Two minutes before the time limit it is told to save a
# checkpoint, and goes back into the queue, but not for ever. A job that gets SIGTERM saves one and
# waits: Slurm requeues it when the grace period is over if it was preempted, and ends it if it was
# cancelled. One that nobody ends does not wait for ever.
_GRACE_S = 1800
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
case "$told $code" in # 138, 143: ended by a signal, before it listened
  " {resume}" | "limit {resume}" | "limit 138")
    [ "${{SLURM_RESTART_COUNT:-0}}" -ge 100 ] || scontrol requeue "$SLURM_JOB_ID" ;;
  "end {resume}" | "end 138" | "end 143")
    sleep {patience} &
    wait ;;
esac
exit "$code"
"""


# The default MaxArraySize of Slurm, where it does not answer. Indices are below it.
_ARRAY_SIZE = 1001
# A value may be a list: a comma ends it only before the next KEY=.
_NEXT_OPTION = re.compile(r",(?=[a-z][a-z_-]*=)")


def arrays_of(runs: Sequence[Run]) -> dict[int, dict[int, Run]]:
    """Returns the runs by their indices in as many arrays as Slurm needs.

    The indices of an array are the numbers of its runs less an offset, by which arrays are named,
    and below the cluster's MaxArraySize.
    """
    try:
        said = re.search(r"MaxArraySize *= *([0-9]+)", _ask_slurm(["scontrol", "show", "config"]))
    except InputError:
        said = None
    most = max(1, int(said[1] if said else _ARRAY_SIZE) - 1)
    found: dict[int, dict[int, Run]] = {}
    for run in runs:
        before = (run.number - 1) // most * most
        found.setdefault(before, {})[run.number - before] = run
    return found


def _ranges(indices: Iterable[int]) -> str:
    """Returns increasing indices as Slurm writes them, such as `1-84,90`."""
    ends: list[list[int]] = []
    for index in indices:
        if ends and ends[-1][1] == index - 1:
            ends[-1][1] = index
        else:
            ends.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def job_script(
    name: str,
    indices: Iterable[int],
    command: str,
    folder: Path,
    options: Sequence[str],
    parallel: int | None,
) -> str:
    """Returns the script of a Slurm array with a job for each run.

    Args:
      name: of the jobs.
      indices: of the runs in the array, in increasing order.
      command: line that performs the run of `$SLURM_ARRAY_TASK_ID`.
      folder: for the jobs' logs, seen by all machines.
      options: of sbatch, each some of `KEY=VALUE` with commas between them, perhaps after a `KEY`,
        such as `partition=gpu,cpus_per_task=8`. A value may have commas.
      parallel: how many jobs may run at a time; None: as many as Slurm allows.
    """
    array = _ranges(indices) + (f"%{parallel}" if parallel else "")
    wanted = {
        "job_name": name,
        "array": array,
        "output": f"{folder.absolute()}/%A_%a.txt",
        "open_mode": "append",
    }
    wanted |= {"requeue": "", "signal": "B:USR1@120"}
    for option in (one for text in options for one in _NEXT_OPTION.split(text)):
        key, _, value = option.partition("=")
        wanted[key.replace("-", "_")] = value
    lines = []
    for key, value in wanted.items():
        # A line break would begin another line of the script.
        if not re.fullmatch(r"[a-z][a-z_]*", key) or not value.isprintable():
            raise InputError(
                f"--slurm: {key}={value!r} is no option of sbatch, such as partition=gpu or "
                "time=4:00:00"
            )
        assigned = f"={shlex.quote(value)}" if value else ""
        lines.append(f"#SBATCH --{key.replace('_', '-')}{assigned}")
    return _JOB.format(
        options="\n".join(lines), command=command, resume=RESUME_ME, patience=_GRACE_S
    )


_JOBS = "jobs.json"  # of each submission: its job, and the folder of the run of each index


def submit(script: str, jobs: Mapping[int, Run], folder: Path) -> str:
    """Submits a script that performs these runs, notes its job in `folder`, and returns what sbatch
    says.

    InputError if it refuses.
    """
    said = _ask_slurm(["sbatch"], script)
    if job := re.search(r"[0-9]+", said):
        folders = {str(index): run.folder.name for index, run in jobs.items()}
        write_json(folder / _JOBS, _noted(folder) | {job[0]: folders})
    return said


def jobs_in_queue(folder: Path) -> dict[str, str]:
    """Returns the jobs in Slurm's queue of those that `submit` noted, by the names of their runs'
    folders.

    InputError if Slurm does not answer.
    """
    if not (jobs := _noted(folder)):
        return {}
    found = {}
    for line in _ask_slurm(
        ["squeue", "--me", "--noheader", "--array", "--format=%F %K"]
    ).splitlines():
        job, _, index = line.partition(" ")
        if name := jobs.get(job, {}).get(index):
            found[name] = f"job {job}_{index} of Slurm"
    return found


def _noted(folder: Path) -> dict[str, dict[str, str]]:
    path = folder / _JOBS
    try:
        jobs = read_json(path) or {}
        if all(isinstance(names, dict) for names in jobs.values()):
            return jobs
    except Damaged:
        pass
    raise InputError(f"{path}: damaged; remove it once no job of the sweep is in Slurm's queue")


def _ask_slurm(command: Sequence[str], text: str = "") -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True)
    except OSError as error:
        raise InputError(
            f"{command[0]} cannot be run ({error.strerror}); give the command where Slurm is "
            "installed"
        ) from None
    if done.returncode:
        raise InputError(f"slurm: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def varied(sweep: Sweep) -> list[tuple[str, list[Any]]]:
    """Returns the settings in which runs differ: the name of each, and its values for all runs,
    None where it has none.
    """
    usual = {"model": sweep.model, "graph_type": sweep.graph_type, SAMPLER: sweep.sampler}
    values = [usual | settings for settings in sweep.runs]
    flags = dict.fromkeys(flag for settings in values for flag in settings)
    columns = {flag: [settings.get(flag) for settings in values] for flag in flags}
    columns = {
        flag: column
        for flag, column in columns.items()
        if any(value != column[0] for value in column)
    }
    names = {flag: "sampler" if flag == SAMPLER else short(flag) for flag in columns}
    twice = {name for name, count in Counter(names.values()).items() if count > 1}
    return [
        (flag if names[flag] in twice else names[flag], column) for flag, column in columns.items()
    ]


def status_lines(
    sweep: Sweep, runs: Sequence[Run], jobs: Mapping[str, str] | None = None
) -> list[str]:
    """Returns a row for each run, details on runs that are not done, and the number of runs in each
    state.

    `jobs` are those of `jobs_in_queue`.
    """
    columns = varied(sweep)
    pairs = [(run.number, state_of(run, jobs)) for run in runs]
    rows = [["run", *(name for name, _ in columns), "state"]]
    for number, state in pairs:
        rows.append(
            [str(number), *(_word(column[number - 1]) for _, column in columns), state.name]
        )
    details = [
        f"run {number} {state.name}: {state.detail}" for number, state in pairs if state.detail
    ]
    counts = Counter(state.name for _, state in pairs)
    known = [
        f"{counts[name]} {name}"
        for name in (DONE, RUNNING, WAITING, FAILED, MISSING, DIFFERS)
        if counts[name]
    ]
    return [*aligned(rows), *details, f"{len(runs)} in total: {', '.join(known)}"]


def collect(sweep: Sweep, runs: Sequence[Run], folder: Path) -> list[str]:
    """Writes `collect.csv` and `collect.json` of the finished runs, and returns the table as lines.

    A row is a sampler of a run: the settings in which runs differ, `mean` and `std` of the best
    objective over `n` instances (divisor n), chain-steps per second and the engine. Below the
    table, each localized sampler stands beside its base of the same settings, with their paired
    difference.
    """
    check_folders(runs)
    columns = varied(sweep)
    done = {run.number: read_results(run.results) for run in runs if _outcome_of(run).name == DONE}
    found = [
        pair
        for number, results in done.items()
        for pair in _rows(
            {"run": number} | {name: column[number - 1] for name, column in columns}, results
        )
    ]
    if not found:
        raise InputError(
            f"{folder}: no run of the sweep is done; `run` performs them, `status` shows their "
            "state"
        )
    rows = [row for row, _ in found]
    titles = list(rows[0])
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    pairs = _pairs(found, [name for name, _ in columns])
    paths = [
        write_text(folder / "collect.csv", text.getvalue()),
        write_json(
            folder / "collect.json", {"sweep": sweep.name, "rows": rows, "pairs": pairs}, indent=2
        ),
    ]
    table = aligned([titles, *([*map(_word, row.values())] for row in rows)])
    if pairs:
        table += [
            "",
            *aligned([list(pairs[0]), *(list(map(_word, pair.values())) for pair in pairs)]),
        ]
    missing = len(runs) - len(done)
    notes = (
        [f"{missing} of {len(runs)} runs are not done and not included; `status` shows why"]
        if missing
        else []
    )
    first = next(iter(done))
    usual = done[first].versions
    if others := [number for number, results in done.items() if results.versions != usual]:
        which = "; ".join(differences(usual, done[others[0]].versions))
        notes.append(f"runs {_ranges(others)} had other versions than run {first}: {which}")
    return [*table, *notes, f"saved {', '.join(map(str, paths))}"]


def _rows(
    settings: dict[str, Any], results: Results
) -> list[tuple[dict[str, Any], dict[str, float]]]:
    """Returns a row for each sampler of a run, and the best values of its instances."""
    rows = []
    for name, one in results.samplers.items():
        spread = one.spread
        row = {
            **settings,
            "sampler": name,
            "mean": spread.mean,
            "std": spread.std,
            "n": spread.n,
        }
        rows.append(
            (row | {"chain_steps_per_s": one.chain_steps_per_s, "engine": results.engine}, one.best)
        )
    return rows


def _pairs(
    found: Sequence[tuple[dict[str, Any], dict[str, float]]], settings: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns each localized row beside its base's with the same of `settings`: means, paired
    difference and its error.
    """
    varied = [name for name in settings if name != "sampler"]
    named = [
        (row["sampler"], {name: row[name] for name in varied if row[name] is not None})
        for row, _ in found
    ]
    pairs = []
    for place, other in pairs_of(named):
        row, best = found[place]
        base, best_of_base = found[other]
        if best.keys() == best_of_base.keys():
            gain = paired(
                *(
                    np.array([values[name] for name in best], float)
                    for values in (best, best_of_base)
                )
            )
            pair = {
                "run": row["run"],
                "base run": base["run"],
                "base": base["mean"],
                "localized": row["mean"],
            }
            pairs.append(pair | {"difference": gain.mean, "se": gain.se, "n": gain.n})
    return pairs


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.7g}" if isinstance(value, float) else str(value)
