"""Runs performed here and as jobs of Slurm, with small programs in place of `sl-discs run`."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sl_discs.errors import InputError
from sl_discs.files import only_run_in
from sl_discs.sweeps import sweep_runs
from sl_discs.sweeps.sweep_file import Sweep
from sl_discs.sweeps.sweep_runs import Run, State, Task, perform_here, state_of

# Leaves a line in LOG when it begins and when it ends. `catch` saves half a second after a signal and exits with 75.
PROGRAM = """
import json, os, signal, sys, time
root, number, behaviour = sys.argv[1:4]
def log(word):
    with open(root + "/LOG", "a") as file:
        file.write(f"{word} {number} {os.getpid()} {os.getppid()}\\n")
def caught(signum, frame):
    log("caught")
    if behaviour == "stubborn":
        return
    if behaviour == "no room":
        sys.exit("error: no room")
    time.sleep(0.3)
    log("saved")
    sys.exit(75)
if behaviour in ("catch", "stubborn", "no room"):
    for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, caught)
log("begin")
if behaviour == "fail":
    sys.exit("a line before\\nerror: it does not work")
if behaviour == "silent":
    sys.exit()
if behaviour == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
def begun():
    return sum(line.startswith("begin") for line in open(root + "/LOG"))
while behaviour == "together" and begun() < 2 or behaviour == "held" and not os.path.exists(root + "/LET_GO"):
    time.sleep(0.01)
time.sleep(600 if behaviour in ("catch", "stubborn", "no room") else 0)
folder = f"{root}/runs/{number}"
with open(folder + "/.new", "w") as file:
    json.dump({"number": int(number)}, file)
os.replace(folder + "/.new", folder + "/results.json")
log("end")
if behaviour == "late":
    sys.exit("error: no figure")
"""


def runs_of(root, *behaviours):
    program = (sys.executable, "-S", "-c", PROGRAM, str(root))
    return [
        Run(n, f"n={n}", root / "runs" / str(n), {"n": str(n)}, (*program, str(n), how))
        for n, how in enumerate(behaviours, 1)
    ]


def perform(root, *behaviours, retry=False, parallel=1):
    return perform_here([Task(run, retry) for run in runs_of(root, *behaviours)], parallel)


def states(root, count):
    return [state_of(run).name for run in runs_of(root, *[""] * count)]


def log(root):
    path = root / "LOG"
    return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []


def words(root):
    return [word for word, *_ in log(root)]


def wait_until(condition):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@contextlib.contextmanager
def told(root, *signals):
    """Sends signals to this process, each once the log has one more line."""

    def tell():
        for count, number in enumerate(signals, 1):
            wait_until(lambda: len(log(root)) >= count)  # noqa: B023 (called at once)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    yield
    thread.join(600)


def test_finished_runs_are_skipped_and_failures_repeated_on_request(tmp_path, capfd):
    assert perform(tmp_path, "fail", "", "silent", "killed", parallel=2) == ["failed", "done", "failed", "failed"]
    assert "error: it does not work" in capfd.readouterr().out
    failures = [state_of(run).detail for run in runs_of(tmp_path, *[""] * 4)]
    assert failures == ["error: it does not work", "", "exit code 0, but no results.json", "ended by Killed"]
    count = len(log(tmp_path))
    assert perform(tmp_path, "", "", "", "") == ["failed", "done", "failed", "failed"] and len(log(tmp_path)) == count
    assert perform(tmp_path, "", "", "late", "fail", retry=True) == ["done", "done", "done", "failed"]
    assert "its program failed after that: error: no figure" in capfd.readouterr().out
    assert states(tmp_path, 4) == ["done", "done", "done", "failed"]


def test_two_run_at_a_time_on_halves_of_the_cores(tmp_path):
    """Each ends once both have begun."""
    assert perform(tmp_path, "together", "together", parallel=2) == ["done", "done"]
    assert words(tmp_path) == ["begin", "begin", "end", "end"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_interrupts_the_programs_and_runs_continue(tmp_path, number):
    with told(tmp_path, number):
        assert perform(tmp_path, "catch", "") == ["interrupted", "interrupted"]
    assert words(tmp_path) == ["begin", "caught", "saved"] and states(tmp_path, 2) == ["missing", "missing"]
    assert perform(tmp_path, "", "") == ["done", "done"]


def test_a_second_interrupt_from_the_terminal_does_not_wait(tmp_path):
    with told(tmp_path, signal.SIGINT, signal.SIGINT):
        assert perform(tmp_path, "stubborn") == ["interrupted"]
    assert states(tmp_path, 1) == ["missing"]


def test_a_program_that_fails_while_it_is_interrupted_has_failed(tmp_path):
    with told(tmp_path, signal.SIGTERM):
        assert perform(tmp_path, "no room") == ["failed"]
    assert state_of(runs_of(tmp_path, "")[0]) == State("failed", "error: no room")


def test_a_run_that_somebody_else_performs_is_skipped(tmp_path, capsys):
    (run,) = runs_of(tmp_path, "held")
    other = threading.Thread(target=Task(run))
    other.start()
    wait_until(lambda: log(tmp_path))
    assert state_of(run) == State("running", f"process {os.getpid()} on {os.uname().nodename}")
    assert perform(tmp_path, "") == ["running"]  # after a moment
    (tmp_path / "LET_GO").touch()
    other.join()
    assert words(tmp_path) == ["begin", "end"]
    with only_run_in(tmp_path / "runs" / "1"):  # a program that has outlived its parent
        run.results.unlink()
        assert perform(tmp_path, "") == ["running"] and states(tmp_path, 1) == ["running"]
    assert "skipped: process" in capsys.readouterr().out


def test_results_of_other_arguments_are_refused(tmp_path):
    assert perform(tmp_path, "") == ["done"]
    runs, path = runs_of(tmp_path, ""), tmp_path / "runs" / "1" / "run.json"
    path.write_text(json.dumps({"number": 1, "arguments": {"n": "7", "seed": "3"}}))
    with pytest.raises(InputError, match="--n '7' there, '1' here; --seed '3' there, None here"):
        sweep_runs.check_folders(runs)
    for damage in (lambda: path.write_text("[]"), path.unlink):
        damage()
        with pytest.raises(InputError, match="results of another command"):
            sweep_runs.check_folders(runs)


@pytest.mark.parametrize("content", ["[]", "{}", "[" * 100_000, '{"arguments": 3}', '{"arguments": [1]}', "\xff"])
def test_damaged_records_are_no_tracebacks(tmp_path, content):
    """`run.json` beside results, and `failed.json`, which then does not count."""
    assert perform(tmp_path, "", "fail") == ["done", "failed"]
    runs = runs_of(tmp_path, "", "")
    (runs[0].folder / "run.json").write_text(content, encoding="latin-1")
    (runs[1].folder / "failed.json").write_text(content, encoding="latin-1")
    assert states(tmp_path, 2) == ["differs", "missing"]
    (runs[1].folder / "failed.json").write_text('{"exit_code": -1000, "message": ""}')
    assert state_of(runs[1]).detail == "ended by signal 1000"


@pytest.mark.parametrize("samplers", [None, [], {"gwg": []}, {"gwg": {}}])
def test_damaged_results_are_named_in_one_line(tmp_path, samplers):
    assert perform(tmp_path, "") == ["done"]
    [run] = runs_of(tmp_path, "")
    run.results.write_text(json.dumps({"samplers": samplers}))
    sweep = Sweep("a", "mis", "gwg", "er_density", ({},))
    with pytest.raises(InputError, match=r"results\.json: damaged; remove it and run again"):
        sweep_runs.collect(sweep, [run], tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "runs").touch()
    with pytest.raises(InputError, match=r"cannot write .*choose another --save_root"):
        perform(tmp_path, "")


def test_states_in_words(tmp_path):
    (run,) = runs_of(tmp_path, "")
    assert state_of(run) == State("missing")
    (run.folder / "checkpoint").mkdir(parents=True)
    assert state_of(run).detail == "interrupted; it continues from its checkpoint"


# Stand-ins: `sbatch` keeps the script, and `srun` leaves the output to the terminal.
SBATCH = '#!/bin/sh\ncp "$1" "$KEPT/$(ls "$KEPT" | wc -l).sh"\necho Submitted batch job 12\n'
SRUN = """#!/bin/sh
while true; do
  case "$1" in --output | --error) shift 2 ;; -*) shift ;; *) exec "$@" ;; esac
done
"""
SCONTROL = '#!/bin/sh\necho "$@" >>"$KEPT/../scontrol"\n'


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm cluster that only keeps what is submitted; gives the texts of the scripts."""
    pytest.importorskip("submitit")
    kept, commands = tmp_path / "kept", tmp_path / "bin"
    for folder in (kept, commands):
        folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("scontrol", SCONTROL)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("KEPT", str(kept))
    return lambda: [path.read_text() for path in sorted(kept.iterdir())]


def submit(tasks, root, *options, parallel=None):
    return sweep_runs.submit(tasks, "a-sweep", root / "submitit", options, parallel)


def tasks_of(root, *behaviours):
    return [sweep_runs.SlurmTask(run) for run in runs_of(root, *behaviours)]


def test_what_slurm_gets(tmp_path, slurm):
    options = ("partition=gpu", "gpus_per_node=1", "time=1-04:30:00", "gres=gpu:a100:2")
    assert submit(tasks_of(tmp_path, "", "", ""), tmp_path, *options, parallel=2) == ["12_0", "12_1", "12_2"]
    (script,) = slurm()
    for line in ("job-name=a-sweep", "array=0-2%2", "partition=gpu", "gpus-per-node=1", "time=1710", "requeue",
                 "signal=USR2@120", "gres=gpu:a100:2", "open-mode=append"):  # fmt: skip
        assert f"#SBATCH --{line}\n" in script
    pickled = [tmp_path / "submitit" / f"12_{k}_submitted.pkl" for k in range(3)]
    assert [pickle.loads(path.read_bytes()).function.run.number for path in pickled] == [1, 2, 3]


def test_more_runs_than_an_array_may_have_are_several(tmp_path, slurm, monkeypatch):
    monkeypatch.setattr(sweep_runs, "_ARRAY", 2)
    assert len(submit(tasks_of(tmp_path, "", "", "", ""), tmp_path)) == 4
    assert ["array=0-1%2" in script for script in slurm()] == [True, True]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("gpu", "'gpu' is not KEY=VALUE"),
        ("time=soon", "time=soon is not understood"),
        ("gpus=1", r"Unavailable parameter\(s\): \['gpus'\]"),
    ],
)
def test_options_that_slurm_does_not_have(tmp_path, slurm, option, message):
    with pytest.raises(InputError, match=message) as refused:
        submit(tasks_of(tmp_path, "", ""), tmp_path, option)
    assert "\n" not in str(refused.value) and slurm() == []


def test_without_slurm(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match='Could not detect "srun"'):
        submit(tasks_of(tmp_path, ""), tmp_path)


def job(root, number):
    """Starts a submitted task as Slurm does, again in the same way after it was requeued."""
    variables = {"SLURM_JOB_ID": "99", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": str(number)}
    environment = os.environ | variables | {"PYTHONPATH": str(Path(__file__).parents[2])}
    script = next((root / "kept").iterdir())
    return subprocess.Popen(["bash", script], env=environment, stderr=subprocess.DEVNULL, start_new_session=True)


def test_a_job_at_its_time_limit_is_requeued_and_continues(tmp_path, slurm):
    """Slurm signals every process of a step; submitit asks the task, which waits for its program's checkpoint."""
    submit(tasks_of(tmp_path, "catch", ""), tmp_path, "time=60")
    first, second = job(tmp_path, 0), job(tmp_path, 1)

    def begun(count):
        found = [line for line in log(tmp_path) if line[:2] == ("begin", "1")]
        return len(found) == count and [int(process) for process in found[-1][2:]]

    wait_until(lambda: begun(1))
    for process in begun(1):
        os.kill(process, signal.SIGUSR2)
    assert first.wait(600) != 0 and second.wait(600) == 0
    said = [word for word, number, *_ in log(tmp_path) if number == "1"]
    assert said[:2] == ["begin", "caught"] and said[-1] == "saved"  # by Slurm, and perhaps before that by the task
    assert (tmp_path / "scontrol").read_text() == "requeue 12_0\n" and states(tmp_path, 2) == ["missing", "done"]
    again = job(tmp_path, 0)
    wait_until(lambda: begun(2))
    for process in begun(2):  # a machine that is lost
        os.kill(process, signal.SIGKILL)
    again.wait(600)
    assert states(tmp_path, 1) == ["missing"] and perform(tmp_path, "") == ["done"]
