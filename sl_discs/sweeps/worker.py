"""A worker: performs the runs of a sweep that are neither done nor held by another worker, until none is left."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import RESUME_ME
from sl_discs.files import wait_until_free
from sl_discs.sweeps import claims
from sl_discs.sweeps.run_folder import (
    DIFFERS,
    FAILED,
    MISSING,
    RUNNING,
    Run,
    State,
    in_words,
    note_arguments,
    note_failure,
    outcome_of,
    state_of,
)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
# What a program gets for any of them. Slurm may send SIGTERM to a job's every process, and a second SIGTERM would end
# a program that saves its checkpoint because of the first.
_TO_PROGRAM = signal.SIGUSR1
# How long a program that was killed with its worker may hold its folder, since it first releases its memory. Less
# than claims.LEAST_STALE_S, because no heartbeats are sent meanwhile.
_LAST_BREATH_S = 10.0


@dataclasses.dataclass
class Worker:
    """One worker of a sweep; any number may share the folders of its runs.

    Attributes:
      runs: to perform, in this order.
      command: the program of a run.
      say: takes lines for the screen.
      stale_after: seconds without a sign of life after which another worker's claim no longer counts.
      beat: seconds between two heartbeats of this one.
      retry: whether to repeat runs that had failed when this worker began.
    """

    runs: Sequence[Run]
    command: Callable[[Run], list[str]]
    say: Callable[[str], object]
    stale_after: float
    beat: float = claims.BEAT_S
    retry: bool = False
    _program: subprocess.Popen | None = dataclasses.field(default=None, init=False)
    _stops: bool = dataclasses.field(default=False, init=False)
    _old_failures: dict[int, int] = dataclasses.field(default_factory=dict, init=False)

    def work(self) -> int:
        """Performs the runs; at SIGTERM, SIGINT or SIGUSR1 it interrupts the current program and stops.

        A second SIGINT kills the program.

        Returns:
          0, 1 if runs have failed, or `RESUME_ME` if the worker or a run was interrupted.

        Raises:
          InputError: a folder holds results of other arguments, before any run starts, or cannot be written.
        """
        states = [(run, self._state(run)) for run in self.runs]
        for run, state in states:
            if state.name == DIFFERS:
                raise InputError(f"{run.folder}: holds another run: {state.detail}; choose another --save_root")
        self._old_failures = {run.number: state.failed_ns for run, state in states if state.name == FAILED}
        with self._signals():
            while True:
                ended = [self._attempt(run) for run in self.runs]
                if self._stops:
                    return RESUME_ME
                if not any(ended) and not self._wait_for_others():
                    break
        return self._report()

    def _report(self) -> int:
        states = [(run, self._state(run)) for run in self.runs]
        bad = [(run, state) for run, state in states if state.name in (FAILED, DIFFERS)]
        for run, state in bad:
            self.say(f"[{run.number}] {state.name}: {state.detail}")
        if any(state.name == FAILED for _, state in bad):
            self.say("--retry repeats failed runs")
        return 1 if bad else 0

    def _state(self, run: Run) -> State:
        return state_of(run, self.stale_after)

    def _is_to_do(self, run: Run, state: State) -> bool:
        if state.name == FAILED:  # again only if it had failed when this worker began, or workers would go in circles
            return self.retry and self._old_failures.get(run.number) == state.failed_ns
        return state.name == MISSING

    def _attempt(self, run: Run) -> bool:
        """Performs a run that is missing and not held by another worker; returns whether it did."""
        if self._stops or not self._is_to_do(run, self._state(run)):
            return False
        claim = claims.take(run.attempts, self.stale_after)
        if claim is None:
            return False
        outcome = "interrupted"
        try:
            # Another worker may have ended the run between the check and the claim; after the claim, none can.
            outcome = self._run(run, claim) if self._is_to_do(run, outcome_of(run)) else "not needed"
        finally:
            claim.end(outcome)
        return True

    def _run(self, run: Run, claim: claims.Claim) -> str:
        """Runs the program of a run under a claim and returns how it ended."""
        note_arguments(run)
        wait_until_free(run.folder, _LAST_BREATH_S)
        self.say(f"[{run.number}] {run.label}: started")
        begin, errors = time.monotonic(), run.folder / "stderr.txt"
        with (run.folder / "stdout.txt").open("ab") as out, errors.open("ab") as err:
            before = err.tell()
            code, lost = self._play(self.command(run), claim, out, err)
        seconds = f"{time.monotonic() - begin:.1f} s"
        if lost:
            self.say(f"[{run.number}] stopped: another worker took this one for dead and has taken over the run")
            return "lost"
        if run.results.exists():
            note = f"; its program failed after that: {in_words(code, _last_line(errors, before))}" if code else ""
            self.say(f"[{run.number}] done in {seconds}{note}")
            return "done"
        # A program that is told to stop before it listens is ended by the signal.
        if code == RESUME_ME or (self._stops and code < 0):
            self._stops = True  # also if only the program was told, not this worker
            self.say(f"[{run.number}] interrupted after {seconds}")
            return "interrupted"
        message = _last_line(errors, before) if code else "exit code 0, but no results.json"
        note_failure(run, code, message)
        self.say(f"[{run.number}] failed after {seconds}: {in_words(code, message)}")
        return "failed"

    def _play(self, command: list[str], claim: claims.Claim, out: IO[bytes], err: IO[bytes]) -> tuple[int, bool]:
        """The exit code of a program that stops with this worker and dies with it; whether the claim was lost."""
        tied = [sys.executable, "-m", "sl_discs.sweeps.tied", str(os.getpid()), *command]
        # In a session of its own: otherwise a terminal would send it SIGINT in addition to the worker, which passes
        # it on.
        program = subprocess.Popen(tied, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        self._program = program
        try:
            if self._stops:  # since before there was a program
                program.send_signal(_TO_PROGRAM)
            with claims.HeartBeat(claim, self.beat, program.kill) as heart:
                code = program.wait()
            return code, heart.lost
        finally:
            self._program = None

    def _wait_for_others(self) -> bool:
        """Whether runs held by other workers become free; False once every holder has sent a heartbeat.

        This way an idle worker does not leave behind the runs of a recently killed worker.
        """
        states = [(run, self._state(run)) for run in self.runs]
        watched = {run.number: (run, state.seen) for run, state in states if state.name == RUNNING}
        if watched:
            self.say(f"held by others: {', '.join(map(str, watched))}; waiting for a heartbeat")
        while watched and not self._stops:
            time.sleep(min(1.0, self.beat / 2))
            for run, first in list(watched.values()):
                state = self._state(run)
                if self._is_to_do(run, state):
                    return True
                if state.name != RUNNING or state.seen != first:
                    del watched[run.number]
        return False

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number, _frame) -> None:
            first, self._stops = not self._stops, True
            if self._program is not None and first:
                self._program.send_signal(_TO_PROGRAM)
            elif self._program is not None and number == signal.SIGINT:
                self._program.kill()

        before = {number: signal.signal(number, stop) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _last_line(path: Path, start: int) -> str:
    """The last nonempty line of a file after an offset."""
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
