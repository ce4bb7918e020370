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
from collections.abc import Mapping, Sequence
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

DONE, RUNNING, FAILED, MISSING, DIFFERS = "done", "running", "failed", "missing", "differs"
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
      name: `done`, `running`, `failed`, `missing`, or `differs`: the folder holds results of other
        arguments.
      detail: who performs it, why it failed, what differs, or that it was interrupted; otherwise
        empty.
    """

    name: str
    detail: str = ""


def state_of(run: Run) -> State:
    """Returns the state of a run."""
    # The lock first: a run that ends between the two checks then counts as done or failed, not as
    # missing.
    holder = holder_of(run.folder, _LOCK) or holder_of(run.folder)
    outcome = _outcome_of(run)
    running = holder and outcome.name not in (DONE, DIFFERS)
    return State(RUNNING, holder) if running else outcome


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
        is_told = False
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return program.wait(_LOOK_S)
                if notice.given and not is_told:
                    # No SIGTERM, which Slurm sends to each process of a job: a second one would end
                    # a program that saves its checkpoint.
                    program.send_signal(signal.SIGUSR1)
                    is_told = True
        except BaseException:
            program.kill()
            raise


def perform(run: Run, notice: Notice) -> str:
    """Performs a run, unless it is done or has failed, somebody else performs it, or notice was
    given.

    Returns:
      how it ended: `done`, `failed`, `interrupted` or, if somebody else performs it, `running`.
    """
    outcome = _outcome_of(run)
    if outcome.name in (DONE, FAILED):
        return outcome.name
    if notice.given:
        return INTERRUPTED
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        with only_run_in(run.folder, _LOCK, _PATIENCE_S):
            with only_run_in(run.folder):
                pass  # no program that has outlived its parent
            outcome = _outcome_of(run)  # it may have ended since
            return outcome.name if outcome.name in (DONE, FAILED) else _perform(run, notice)
    except FolderInUse as error:
        say(f"[{run.number}] skipped: {error.holder} performs it")
        return RUNNING
    except OSError as error:
        raise InputError(
            f"{run.folder}: cannot write ({error.strerror}); choose another --save_root"
        ) from None


def _perform(run: Run, notice: Notice) -> str:
    write_json(run.folder / "run.json", {"number": run.number, "arguments": dict(run.arguments)})
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


def forget_failures(runs: Sequence[Run]) -> None:
    """Makes runs that have failed missing, so that they are performed again."""
    for run in runs:
        (run.folder / "failed.json").unlink(missing_ok=True)


def perform_here(runs: Sequence[Run]) -> list[str]:
    """Returns how each run ended. They run one after the other, as each uses all cores.

    Any number of processes may perform the same runs: each run is performed by one of them.
    SIGTERM, SIGUSR1 or SIGINT interrupts the current one, and no other begins.
    """
    with notice_of_end(signal.SIGINT, raises=True) as notice:
        return [perform(run, notice) for run in runs]


# A job of a Slurm array performs the runs that are left, as the other jobs of the array do. Two
# minutes before the time limit it is told to save a checkpoint, and goes back into the queue, but
# not for ever. A job that gets SIGTERM saves one and waits: Slurm requeues it when the grace period
# is over if it was preempted, and ends it if it was cancelled. One that nobody ends does not wait
# for ever.
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
    # The number of one of the jobs is that of the array, for which it would stand.
    [ "${{SLURM_RESTART_COUNT:-0}}" -ge 100 ] ||
      scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID" ;;
  "end {resume}" | "end 138" | "end 143")
    sleep {patience} &
    wait ;;
esac
exit "$code"
"""


def job_script(name: str, jobs: int, command: str, folder: Path, options: str) -> str:
    """Returns the script of a Slurm array.

    Args:
      name: of the jobs.
      jobs: their number.
      command: line that performs the runs that are left.
      folder: for the jobs' logs, seen by all machines.
      options: of sbatch, such as `--partition=gpu --cpus-per-task=8`.
    """
    wanted = {
        "job-name": name,
        "array": f"1-{jobs}",
        "output": f"{str(folder.absolute()).replace('%', '%%')}/%A_%a.txt",
        "open-mode": "append",
        "requeue": "",
        "signal": "B:USR1@120",
    }
    for option in options.split():
        key, _, value = option.partition("=")
        if not re.fullmatch("--[a-z-]+", key) or key == "--array":
            raise InputError(
                f"--slurm: {option!r} is none of sbatch's options here; write --NAME or "
                "--NAME=VALUE, such as --partition=gpu, and give --parallel in place of --array"
            )
        wanted[key.removeprefix("--")] = value
    lines = []
    for key, value in wanted.items():
        # A line break would begin another line of the script.
        if not value.isprintable():
            raise InputError(f"{key}={value!r} cannot be given to Slurm; choose another name")
        assigned = f"={shlex.quote(value)}" if value else ""
        lines.append(f"#SBATCH --{key}{assigned}")
    return _JOB.format(
        options="\n".join(lines), command=command, resume=RESUME_ME, patience=_GRACE_S
    )


def submit(script: str) -> str:
    """Submits a script, and returns what sbatch says; InputError if it refuses."""
    try:
        done = subprocess.run(["sbatch"], input=script, capture_output=True, text=True)
    except OSError as error:
        raise InputError(
            f"sbatch cannot be run ({error.strerror}); give the command where Slurm is installed"
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


def status_lines(sweep: Sweep, runs: Sequence[Run]) -> list[str]:
    """Returns a row for each run, details on runs that are not done, and the number of runs in each
    state.
    """
    columns = varied(sweep)
    pairs = [(run.number, state_of(run)) for run in runs]
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
        for name in (DONE, RUNNING, FAILED, MISSING, DIFFERS)
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
    collected = [
        pair
        for number, results in done.items()
        for pair in _rows(
            {"run": number} | {name: column[number - 1] for name, column in columns}, results
        )
    ]
    if not collected:
        raise InputError(
            f"{folder}: no run of the sweep is done; `run` performs them, `status` shows their "
            "state"
        )
    rows = [row for row, _ in collected]
    titles = list(rows[0])
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    pairs = _pairs(collected, [name for name, _ in columns])
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
    if differing := [number for number, results in done.items() if results.versions != usual]:
        which = "; ".join(differences(usual, done[differing[0]].versions))
        numbers = ", ".join(map(str, differing))
        notes.append(f"runs {numbers} had other versions than run {first}: {which}")
    return [*table, *notes, f"saved {', '.join(map(str, paths))}"]


def _rows(
    settings: dict[str, Any], results: Results
) -> list[tuple[dict[str, Any], dict[str, float]]]:
    """Returns a row for each sampler of a run, and the best values of its instances."""
    rows = []
    for name, result in results.samplers.items():
        spread = result.spread
        row = {
            **settings,
            "sampler": name,
            "mean": spread.mean,
            "std": spread.std,
            "n": spread.n,
        }
        rows.append(
            (
                row | {"chain_steps_per_s": result.chain_steps_per_s, "engine": results.engine},
                result.best,
            )
        )
    return rows


def _pairs(
    rows: Sequence[tuple[dict[str, Any], dict[str, float]]], settings: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns each localized row beside its base's with the same of `settings`: means, paired
    difference and its error.
    """
    varied = [name for name in settings if name != "sampler"]
    named = [
        (row["sampler"], {name: row[name] for name in varied if row[name] is not None})
        for row, _ in rows
    ]
    pairs = []
    for position, base_position in pairs_of(named):
        row, best = rows[position]
        base, best_of_base = rows[base_position]
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
