"""Workers as processes, with small programs for runs (`fake_worker`)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from fake_worker import runs_of
from marks import slow_except

from sl_discs.files import only_run_in
from sl_discs.sweeps import run_folder
from sl_discs.sweeps.processes import is_running
from sl_discs.sweeps.run_folder import state_of

ROOT = Path(__file__).parents[2]
PATIENT = 60.0  # seconds of silence: longer than any test


@pytest.fixture
def start(tmp_path):
    """A function that starts a worker; those that still run at the end are killed."""
    started = []

    def start(count, seconds=0.2, stale_after=PATIENT, *more):
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, Path(__file__).with_name("fake_worker.py"), tmp_path, count, seconds, stale_after]
        started.append(
            subprocess.Popen(
                [*map(str, command), *more],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        worker.communicate()


def behave(folder, **behaviour):
    (folder / "behaviour.json").write_text(json.dumps(behaviour))


def log(folder):
    path = folder / "LOG"
    return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def ended(worker):
    out, err = worker.communicate(timeout=120)
    return worker.returncode, out, err


def states(folder, count, stale_after=PATIENT):
    return [state_of(run, stale_after).name for run in runs_of(folder, count)]


def outcomes(folder, number):
    files = sorted((folder / "runs" / str(number) / "attempts").glob("*.json"), key=lambda path: int(path.stem))
    return [json.loads(path.read_text()).get("outcome") for path in files]


def test_twelve_runs_two_workers_one_killed_in_the_middle(tmp_path, start):
    """The killed worker's run dies with it and is done by the other; every other run begins once and ends once."""
    behave(tmp_path, **{"5": "hang"})
    workers = {worker.pid: worker for worker in (start(12), start(12))}
    wait_until(lambda: any(line[:2] == ("begin", "5") for line in log(tmp_path)))
    behave(tmp_path)
    killed = workers.pop(state_of(runs_of(tmp_path, 12)[4], PATIENT).seen.pid)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert ended(*workers.values())[0] == 0
    lines = log(tmp_path)
    began = Counter(number for word, number, _ in lines if word == "begin")
    every = Counter(map(str, range(1, 13)))
    assert states(tmp_path, 12) == ["done"] * 12
    assert began == every + Counter({"5": 1})
    assert Counter(number for word, number, _ in lines if word == "end") == every
    assert outcomes(tmp_path, 5) == [None, "done"]
    (orphan,) = {process for word, number, process in lines if number == "5"} - {
        process for word, _, process in lines if word == "end"
    }
    assert not is_running(int(orphan))
    assert start(12).wait() == 0 and log(tmp_path) == lines  # nothing is done again


def test_both_workers_work(tmp_path, start):
    workers = [start(6, 0.3), start(6, 0.3)]
    outputs = [ended(worker) for worker in workers]
    assert [code for code, *_ in outputs] == [0, 0]
    assert all(": started" in out for _, out, _ in outputs)
    assert Counter(number for word, number, _ in log(tmp_path) if word == "begin") == Counter(map(str, range(1, 7)))


def test_a_failure_is_recorded_and_only_repeated_on_request(tmp_path, start):
    behave(tmp_path, **{"1": "fail", "3": "silent"})
    code, out, _ = ended(start(3))
    assert code == 1 and "error: it does not work" in out
    assert states(tmp_path, 3) == ["failed", "done", "failed"]
    failures = [state_of(run, PATIENT).detail for run in runs_of(tmp_path, 3)]
    assert failures == ["error: it does not work", "", "exit code 0, but no results.json"]
    count = len(log(tmp_path))
    assert ended(start(3))[0] == 1 and len(log(tmp_path)) == count
    behave(tmp_path, **{"3": "fail"})
    assert ended(start(3, 0.1, PATIENT, "retry"))[0] == 1
    assert states(tmp_path, 3) == ["done", "done", "failed"]
    assert Counter(number for word, number, _ in log(tmp_path) if word == "begin") == {"1": 2, "2": 1, "3": 2}


def test_a_program_that_a_signal_ends_has_failed(tmp_path, start):
    worker = start(2, 1.0)
    wait_until(lambda: log(tmp_path))
    os.kill(int(log(tmp_path)[0][2]), signal.SIGKILL)
    assert ended(worker)[0] == 1
    assert states(tmp_path, 2) == ["failed", "done"]
    assert state_of(runs_of(tmp_path, 1)[0], PATIENT).detail == "ended by signal SIGKILL"


@pytest.mark.parametrize("number", slow_except([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1], [signal.SIGTERM]))
def test_a_signal_interrupts_the_program_and_frees_the_run(tmp_path, start, number):
    """Also where Slurm sends SIGTERM to the program and the worker alike, and a script another one to the worker."""
    behave(tmp_path, **{"1": "catch"})
    worker = start(2, 30.0)
    wait_until(lambda: log(tmp_path))
    if number == signal.SIGTERM:
        os.kill(int(log(tmp_path)[0][2]), number)
    worker.send_signal(number)
    wait_until(lambda: len(log(tmp_path)) > 1)
    worker.send_signal(signal.SIGTERM)
    code, out, _ = ended(worker)
    assert code == 75 and "[1] interrupted after" in out
    assert log(tmp_path)[-1][0] == "saved"
    assert states(tmp_path, 2) == ["missing", "missing"] and outcomes(tmp_path, 1) == ["interrupted"]
    behave(tmp_path)
    assert ended(start(2, 0.1))[0] == 0 and states(tmp_path, 2) == ["done", "done"]


def test_a_second_interrupt_from_the_terminal_does_not_wait(tmp_path, start):
    behave(tmp_path, **{"1": "stubborn"})
    worker = start(1, 30.0)
    wait_until(lambda: log(tmp_path))
    worker.send_signal(signal.SIGINT)
    wait_until(lambda: len(log(tmp_path)) > 1)
    assert worker.poll() is None
    worker.send_signal(signal.SIGINT)
    assert ended(worker)[0] == 75 and states(tmp_path, 1) == ["missing"]


def test_a_program_that_fails_while_it_is_interrupted_has_failed(tmp_path, start):
    """As one does that cannot write its checkpoint."""
    behave(tmp_path, **{"1": "no room"})
    worker = start(2, 30.0)
    wait_until(lambda: log(tmp_path))
    worker.send_signal(signal.SIGTERM)
    assert ended(worker)[0] == 75
    assert states(tmp_path, 2) == ["failed", "missing"]
    assert state_of(runs_of(tmp_path, 1)[0], PATIENT).detail == "error: no room"


def test_results_count_even_if_the_program_fails_after_them(tmp_path, start):
    behave(tmp_path, **{"1": "late"})
    code, out, _ = ended(start(1, 0.1))
    assert code == 0 and "done in" in out and "error: no figure" in out
    assert states(tmp_path, 1) == ["done"] and outcomes(tmp_path, 1) == ["done"]


def test_a_folder_that_a_dying_program_still_holds_is_waited_for(tmp_path, start):
    folder = tmp_path / "runs" / "1"
    folder.mkdir(parents=True)
    with only_run_in(folder):
        worker = start(1, 0.1)
        wait_until(lambda: (folder / "run.json").exists())
        time.sleep(0.5)
        assert not log(tmp_path)
    assert ended(worker)[0] == 0


def test_an_interrupted_program_stops_its_worker(tmp_path, start):
    behave(tmp_path, **{"2": "interrupted"})
    assert ended(start(3, 0.1))[0] == 75
    assert states(tmp_path, 3) == ["done", "missing", "missing"]


def test_a_worker_that_was_taken_for_dead_stops_its_program(tmp_path, start):
    behave(tmp_path, **{"1": "hang"})
    worker = start(1, 0.1, 2.0)
    wait_until(lambda: log(tmp_path))
    behave(tmp_path)
    worker.send_signal(signal.SIGSTOP)
    assert ended(start(1, 0.1, 2.0))[0] == 0
    worker.send_signal(signal.SIGCONT)
    code, out, _ = ended(worker)
    assert code == 0 and "another worker took this one for dead" in out
    assert [word for word, *_ in log(tmp_path)] == ["begin", "begin", "end"]
    assert outcomes(tmp_path, 1) == ["lost", "done"]


def test_a_silent_machine_is_waited_for_and_then_replaced(tmp_path, start):
    """A claim of another machine that gives no more signs of life is taken over once it is stale, not before."""
    attempts = tmp_path / "runs" / "1" / "attempts"
    attempts.mkdir(parents=True)
    (attempts / "1.json").write_text(json.dumps({"host": "elsewhere", "pid": 1, "since": 0, "machine": "other"}))
    begin = time.time()
    code, out, _ = ended(start(1, 0.1, 1.5))
    assert code == 0 and "held by others: 1" in out
    assert (attempts / "2.json").stat().st_mtime - (attempts / "1.json").stat().st_mtime >= 1.5
    assert time.time() - begin < 30


def test_a_living_holder_is_left_alone(tmp_path, start):
    holder = start(1, 8.0, 2.0)
    wait_until(lambda: log(tmp_path))
    code, out, _ = ended(start(1, 8.0, 2.0))
    assert code == 0 and holder.poll() is None and "held by others: 1" in out
    holder.terminate()
    assert ended(holder)[0] == 75


def test_results_of_other_arguments_are_refused(tmp_path, start):
    assert ended(start(2, 0.1))[0] == 0
    path = tmp_path / "runs" / "2" / "run.json"
    noted = json.loads(path.read_text())
    path.write_text(json.dumps(noted | {"arguments": {"n": "7", "seed": "3"}}))
    code, _, err = ended(start(3, 0.1))
    assert code == 2 and "--n '7' there, '2' here; --seed '3' there, None here" in err
    assert not (tmp_path / "runs" / "3").exists()
    for damage in (lambda: path.write_text("[]"), path.unlink):
        damage()
        code, _, err = ended(start(3, 0.1))
        assert code == 2 and "results of another command" in err


def test_states_in_words(tmp_path):
    (run,) = runs_of(tmp_path, 1)
    assert state_of(run, PATIENT) == run_folder.State("missing")
    (run.folder / "checkpoint").mkdir(parents=True)
    assert state_of(run, PATIENT).detail == "interrupted; it continues from its checkpoint"
    run_folder.note_arguments(run)
    run_folder.note_failure(run, -9, "")
    assert state_of(run, PATIENT).detail == "ended by signal SIGKILL"
    run_folder.note_failure(run, 3, "")
    assert state_of(run, PATIENT).detail == "exit code 3, with nothing on stderr"
