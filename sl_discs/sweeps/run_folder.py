"""A run's folder: the requested settings, the state of the run, and the reason of a failure.

| file | content |
|---|---|
| `run.json` | flags and values of the run, written before it starts |
| `attempts/<n>.json` | the claims on it, one per attempt (`sl_discs.sweeps.claims`) |
| `stdout.txt`, `stderr.txt` | what the attempts printed |
| `failed.json` | how the last attempt failed, if it did |
| `checkpoint/` | where the run was interrupted (`sl_discs.experiment.checkpoint`) |
| `results.json` | the results, written atomically; the run is done if the file exists |
"""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.files import Damaged, differences, read_json, write_json
from sl_discs.sweeps import claims

DONE, RUNNING, FAILED, MISSING, DIFFERS = "done", "running", "failed", "missing", "differs"


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a sweep.

    Attributes:
      number: counted from 1.
      label: a text with its settings.
      folder: of its results.
      arguments: flags and values that determine its results.
    """

    number: int
    label: str
    folder: Path
    arguments: Mapping[str, str]

    @property
    def attempts(self) -> Path:
        """The folder of the claims."""
        return self.folder / "attempts"

    @property
    def results(self) -> Path:
        """The file that exists once the run is done."""
        return self.folder / "results.json"


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a run.

    Attributes:
      name: `done`, `running`, `failed`, `missing`, or `differs`: the folder holds results of other arguments.
      detail: who runs it, why it failed, what differs, or that it was interrupted; otherwise empty.
      seen: the claim of a run in progress.
      failed_ns: the time of the failure, in nanoseconds by the file server's clock; 0 for other states.
    """

    name: str
    detail: str = ""
    seen: claims.Seen | None = None
    failed_ns: int = 0


def state_of(run: Run, stale_after: float) -> State:
    """The state of a run.

    Args:
      run: the run.
      stale_after: seconds without a sign of life after which a claim no longer counts.
    """
    # Claims first: a run that ends between the two checks then counts as done or failed, not as missing.
    seen = claims.latest(run.attempts)
    held = claims.is_held(run.attempts, seen, stale_after)
    outcome = outcome_of(run)
    if seen is not None and held and outcome.name not in (DONE, DIFFERS):
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seen.since))
        return State(RUNNING, f"on {seen.host} (process {seen.pid}) since {since}", seen)
    return outcome


def outcome_of(run: Run) -> State:
    """The state of a run, regardless of who holds it."""
    if run.results.exists():
        difference = _difference(run)
        return State(DIFFERS, difference) if difference else State(DONE)
    path = run.folder / "failed.json"
    failure = _read(path)  # a damaged file does not count
    if failure is None:
        begun = (run.folder / "checkpoint").is_dir()
        return State(MISSING, "interrupted; it continues from its checkpoint" if begun else "")
    return State(FAILED, in_words(failure["exit_code"], failure["message"]), failed_ns=path.stat().st_mtime_ns)


def note_arguments(run: Run) -> None:
    """Writes the arguments of a run before it starts, and removes the record of its last failure."""
    write_json(run.folder / "run.json", {"number": run.number, "arguments": dict(run.arguments)})
    (run.folder / "failed.json").unlink(missing_ok=True)


def note_failure(run: Run, exit_code: int, message: str) -> None:
    """Writes why a run failed.

    Args:
      run: the run.
      exit_code: of its program, negative if a signal ended it.
      message: the last line that it wrote to stderr.
    """
    write_json(run.folder / "failed.json", {"exit_code": exit_code, "message": message})


def in_words(exit_code: int, message: str) -> str:
    """A failure in one line."""
    if exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = str(-exit_code)
        return f"ended by signal {name}" + (f"; it last said: {message}" if message else "")
    return message or f"exit code {exit_code}, with nothing on stderr"


def read_results(run: Run) -> dict[str, Any]:
    """The results of a finished run; InputError if the file is damaged."""
    content = _read(run.results)
    if content is None:
        raise InputError(f"{run.results}: damaged; remove it and run again")
    return content


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a file, None if it is missing or damaged."""
    try:
        return read_json(path)
    except Damaged:
        return None


def _difference(run: Run) -> str:
    """The difference between a run and the one whose results are in its folder; empty if there is none."""
    noted = _read(run.folder / "run.json")
    if noted is None:
        return "results of another command, without a readable run.json"
    return "; ".join(differences(dict(run.arguments), noted["arguments"], "--"))
