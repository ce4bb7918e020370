"""Runs performed here and as jobs of Slurm, with small programs in place of `sl-discs run`."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest
from damage import DAMAGES

from sl_discs.experiment import sweep_runs
from sl_discs.experiment.sweep_file import Sweep
from sl_discs.experiment.sweep_runs import Run, State, perform_here, state_of
from sl_discs.support.errors import InputError
from sl_discs.support.locks import only_run_in
from sl_discs.support.signals import Notice

pytestmark = pytest.mark.usefixtures("in_foreground")

# Leaves a line in LOG when it begins and when it ends. `catch` saves half a second after a signal
# and exits with 75.
PROGRAM = """
import json, os, signal, sys, time
root, number, behaviour = sys.argv[1:4]
def log(word):
    with open(root + "/LOG", "a") as file:
        file.write(f"{word} {number}\\n")
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
    for signum in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(signum, caught)
log("begin")
if behaviour == "fail":
    sys.exit("a line before\\nerror: it does not work")
if behaviour == "silent":
    sys.exit()
if behaviour == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
while behaviour == "held" and not os.path.exists(root + "/LET_GO"):
    time.sleep(0.01)
time.sleep(600 if behaviour in ("catch", "stubborn", "no room") else 0)
folder = f"{root}/runs/{number}"
with open(folder + "/.new", "w") as file:
    gwg = {"instances": [{"name": "a", "best": 1.0}], "mean": 1.0, "std": 0.0, "chain_steps_per_s": 2.0}
    json.dump({"engine": "cpu", "samplers": {"gwg": gwg}, "versions": {"jax": number}}, file)
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


def perform(root, *behaviours):
    return perform_here(runs_of(root, *behaviours))


def states(root, count):
    return [state_of(run).name for run in runs_of(root, *[""] * count)]


def words(root):
    """The first word of each line of the log."""
    path = root / "LOG"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


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
            wait_until(lambda: len(words(root)) >= count)  # noqa: B023 (called at once)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    yield
    thread.join(600)


def test_finished_runs_are_skipped_and_failures_repeated_on_request(tmp_path, capfd):
    ends = perform(tmp_path, "fail", "", "silent", "killed")
    assert ends == ["failed", "done", "failed", "failed"]
    assert "error: it does not work" in capfd.readouterr().out
    failures = [state_of(run).detail for run in runs_of(tmp_path, *[""] * 4)]
    assert failures[0] == "error: it does not work" and failures[1] == "" and all(failures[2:])
    count = len(words(tmp_path))
    assert perform(tmp_path, "", "", "", "") == ends and len(words(tmp_path)) == count
    sweep_runs.forget_failures(runs_of(tmp_path, "", "", "", ""))
    again = perform(tmp_path, "", "", "late", "fail")
    assert again == ["done", "done", "done", "failed"]
    assert "its program failed after that: error: no figure" in capfd.readouterr().out
    assert states(tmp_path, 4) == ["done", "done", "done", "failed"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_interrupts_the_programs_and_runs_continue(tmp_path, number):
    with told(tmp_path, number):
        assert perform(tmp_path, "catch", "") == ["interrupted", "interrupted"]
    assert words(tmp_path) == ["begin", "caught", "saved"]
    assert states(tmp_path, 2) == ["missing", "missing"]
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)  # as before
    run, _ = runs_of(tmp_path, "", "")
    (run.folder / "checkpoint").mkdir()
    assert state_of(run).detail == "interrupted; it continues from its checkpoint"
    assert perform(tmp_path, "", "") == ["done", "done"]


def test_a_program_that_cannot_save_has_failed(tmp_path):
    with told(tmp_path, signal.SIGTERM):
        assert perform(tmp_path, "no room") == ["failed"]
    assert state_of(runs_of(tmp_path, "")[0]) == State("failed", "error: no room")


@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_second_signal_kills_the_program(tmp_path, number, ends):
    with told(tmp_path, number, number), pytest.raises(ends):
        perform(tmp_path, "stubborn")
    (run,) = runs_of(tmp_path, "")
    assert state_of(run) == State("missing")  # its lock is free, so it is gone


def test_a_run_that_somebody_else_performs_is_skipped(tmp_path, capsys):
    (run,) = runs_of(tmp_path, "held")
    other = threading.Thread(target=sweep_runs.perform, args=(run, Notice()))
    other.start()
    wait_until(lambda: words(tmp_path))
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
    with pytest.raises(InputError):
        sweep_runs.check_folders(runs)
    for damage in (lambda: path.write_text("[]"), path.unlink):
        damage()
        with pytest.raises(InputError):
            sweep_runs.check_folders(runs)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results_are_not_done_nor_replaced_and_notes_are_no_tracebacks(tmp_path, damage):
    """`run.json` beside results, and `failed.json`, which then does not count."""
    assert perform(tmp_path, "", "", "", "fail") == ["done", "done", "done", "failed"]
    runs = runs_of(tmp_path, "", "", "", "")
    paths = runs[0].results, runs[1].folder / "run.json", runs[3].folder / "failed.json"
    for path in paths:
        DAMAGES[damage](path)
    assert states(tmp_path, 4) == ["failed", "differs", "done", "missing"]
    assert "remove it and run again" in state_of(runs[0]).detail
    assert perform_here(runs[:1]) == ["failed"]
    sweep_runs.collect(Sweep("a", "mis", "gwg", "er_density", ({},) * 4), runs[::2], tmp_path)
    rows = json.loads((tmp_path / "collect.json").read_text())["rows"]
    assert [row["run"] for row in rows] == [3]


def test_several_commands_share_the_runs(tmp_path):
    """Each run is performed by one of them, and none waits for the others."""
    runs = runs_of(tmp_path, "held", *[""] * 7)
    workers = [
        threading.Thread(target=lambda: [sweep_runs.perform(run, Notice()) for run in runs])
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    wait_until(lambda: states(tmp_path, 8) == ["running", *["done"] * 7])
    (tmp_path / "LET_GO").touch()
    for worker in workers:
        worker.join()
    assert sorted(words(tmp_path)) == ["begin"] * 8 + ["end"] * 8


def script_of(root, options="", command="true", name="a-sweep"):
    return sweep_runs.job_script(name, 3, command, root / "my logs", options)


def lines_of(script):
    """The options that sbatch reads, which ends at the first command."""
    head = script.partition("\n\n")[0].splitlines()
    assert head[0] == "#!/usr/bin/env bash" and all(
        line.startswith("#SBATCH --") for line in head[1:]
    )
    return [shlex.split(line.removeprefix("#SBATCH --"))[0] for line in head[1:]]


def test_what_slurm_gets(tmp_path):
    usual = {"job-name=a-sweep", "requeue", "signal=B:USR1@120", "open-mode=append", "array=1-3"}
    usual |= {f"output={tmp_path}/my logs/%A_%a.txt"}
    for options in (
        ["partition=gpu", "gpus-per-node=1", "time=1-04:30:00"],
        ["partition=gpu,debug", "exclusive", "exclude=node[01,05]", "mail-type=END,FAIL"],
    ):
        script = script_of(tmp_path, " ".join(f"--{option}" for option in options))
        assert set(lines_of(script)) == usual | {*options}
    assert "job-name=b" in lines_of(script_of(tmp_path, "--job-name=b"))


@pytest.mark.parametrize(
    "option", ["partition=gpu", "--=gpu", "-p gpu", "--Time=3", "--array=1-4", "--partition=a\x1bb"]
)
def test_no_line_of_the_script_is_from_a_value(tmp_path, option):
    """Neither of options, nor of the names of sweeps and folders."""
    with pytest.raises(InputError):
        script_of(tmp_path, option)
    for changes in ({"name": "a\n#SBATCH --uid=0"}, {"root": tmp_path / "a\nb"}):
        with pytest.raises(InputError):
            script_of(**{"root": tmp_path} | changes)
    # Slurm writes logs to a folder of this name, not of a job's number.
    assert "/50%% %%a/my logs/%A_%a.txt" in script_of(tmp_path / "50% %a")


def put(tmp_path, monkeypatch, **programs):
    """Puts stand-ins for Slurm's commands on the PATH."""
    commands = tmp_path / "bin"
    commands.mkdir(exist_ok=True)
    for name, text in programs.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")


def test_submission(tmp_path, monkeypatch):
    """What Slurm refuses is said."""
    put(tmp_path, monkeypatch, sbatch=f"cat >{tmp_path}/kept; echo Submitted batch job 12")
    script = script_of(tmp_path)
    assert sweep_runs.submit(script) == "Submitted batch job 12"
    assert (tmp_path / "kept").read_text() == script
    put(tmp_path, monkeypatch, sbatch="echo sbatch: error: invalid partition >&2; exit 1")
    with pytest.raises(InputError):
        sweep_runs.submit(script)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError):
        sweep_runs.submit(script)


@pytest.mark.parametrize(
    ("behaviour", "told", "code", "queued"),
    [
        ("", [], 0, False),
        ("fail", [], 1, False),
        ("catch", [signal.SIGUSR1], 75, True),  # the time limit
        ("catch", [signal.SIGUSR1, signal.SIGTERM], 75, True),
        ("catch", [signal.SIGTERM], 75, False),  # preempted, or cancelled
        ("held", [signal.SIGUSR1], 128 + signal.SIGUSR1, True),  # it does not listen yet
    ],
)
def test_a_job_of_slurm(tmp_path, monkeypatch, behaviour, told, code, queued):
    """The program is told once; its exit code and the signal say whether the job goes back into the
    queue.

    After SIGTERM it waits for Slurm to end it, but not for ever.
    """
    put(
        tmp_path,
        monkeypatch,
        scontrol=f'echo "$@" >>{tmp_path}/queue',
        sleep=f'echo "$1" >>{tmp_path}/waited',
    )
    (tmp_path / "runs" / "1").mkdir(parents=True)
    script = script_of(tmp_path, command=shlex.join(runs_of(tmp_path, behaviour)[0].command))
    environment = os.environ | {"SLURM_ARRAY_JOB_ID": "99", "SLURM_ARRAY_TASK_ID": "1"}
    job = subprocess.Popen(
        ["bash", "-c", script], env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for number in told:
            wait_until(lambda: words(tmp_path))
            job.send_signal(number)
            time.sleep(0.1)
        assert job.wait(600) == code
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
    assert words(tmp_path).count("caught") == (behaviour == "catch")
    requeued = (tmp_path / "queue").read_text() if (tmp_path / "queue").exists() else ""
    assert requeued == ("requeue 99_1\n" if queued else "")
    waited = (tmp_path / "waited").read_text().split() if (tmp_path / "waited").exists() else []
    assert waited == ["1800"] * (told == [signal.SIGTERM])
