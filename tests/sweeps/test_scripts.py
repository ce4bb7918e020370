"""The scripts for Slurm and for one machine, with stand-ins for sbatch, scontrol and the programs that they start."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "run_scripts").glob("*.sh"))

# Runs a copy of the script in a folder of its own, as Slurm does, once for each task. With `hit`, the batch script
# gets SIGUSR1 and SIGTERM once the program has started; with `hit=early`, the program does not listen yet.
SBATCH = """#!/usr/bin/env bash
echo "sbatch $*" >>"$LOG"
tasks=1
while [[ "$1" == --* ]]; do
  [[ "$1" == --array=1-* ]] && tasks="${1#--array=1-}" && array=1
  shift
done
mkdir -p "$SPOOL" && cp "$1" "$SPOOL/slurm_script" && shift
export SLURM_SUBMIT_DIR="$PWD"
for ((task = 1; task <= tasks; task++)); do
  [ -z "${array:-}" ] || export SLURM_ARRAY_TASK_ID="$task"
  SLURM_JOB_ID="$((100 + task))" bash "$SPOOL/slurm_script" "$@" &
  job=$!
  if [ -n "${hit:-}" ]; then
    until [ -f "$LOG.started" ]; do sleep 0.05; done
    kill -USR1 "$job"
    sleep 0.1
    kill -TERM "$job"
  fi
  wait "$job"
  echo "exit $?" >>"$LOG"
done
"""
SCONTROL = '#!/usr/bin/env bash\necho "scontrol $*" >>"$LOG"\n'
# The commands of a sweep are real where they only look; a worker only says that it was called.
PYTHON = """#!/usr/bin/env bash
case "$*" in
  "-m sl_discs program "*) exec "{python}" -m program "${{@:4}}" ;;
  *"sl_discs sweep run"*|*"sl_discs tune"*|*"sl_discs run"*) echo "python $*" >>"$LOG" ;;
  *) exec "{python}" "$@" ;;
esac
"""
PROGRAM = """
import os, pathlib, signal, sys, time
told = []
for number in (signal.SIGUSR1, signal.SIGTERM):
    if os.environ.get("hit") != "early":
        signal.signal(number, lambda number, frame: told.append(number))
pathlib.Path(os.environ["LOG"] + ".started").touch()
while not told:
    time.sleep(0.05)
time.sleep(0.5)  # what a checkpoint takes
sys.exit(int(sys.argv[1]) if len(told) == 1 else "told more than once")
"""


@pytest.fixture
def place(tmp_path):
    """A repository of scripts and configs with its environment made, and Slurm's commands on the PATH."""
    repository, commands = tmp_path / "repository", tmp_path / "bin"
    for name in ("run_scripts", "configs"):
        shutil.copytree(ROOT / name, repository / name)
    shutil.copy(ROOT / "pyproject.toml", repository)
    (repository / ".venv" / "bin").mkdir(parents=True)
    commands.mkdir()
    programs = {
        commands / "sbatch": SBATCH,
        commands / "scontrol": SCONTROL,
        repository / ".venv" / "bin" / "python": PYTHON.format(python=sys.executable),
    }
    for path, text in programs.items():
        path.write_text(text)
        path.chmod(0o755)
    (repository / "program.py").write_text(PROGRAM)
    with (repository / "pyproject.toml").open() as file:
        wanted = subprocess.run(["cksum"], stdin=file, capture_output=True, text=True, check=True).stdout
    for extras in ("run", "run,tune"):
        (repository / ".venv" / f"installed-{extras}").write_text(wanted)
    return repository


def call(place, script, *arguments, signalled=False, **variables):
    """The exit code, output and errors of a script, called from elsewhere, and what the stand-ins were told."""
    record = place.parent / "log"
    record.unlink(missing_ok=True)
    environment = os.environ | variables | {
        "PATH": f"{place.parent / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHON": sys.executable,
        "LOG": str(record), "SPOOL": str(place.parent / "spool"), "JAX_PLATFORMS": "cpu",
    }  # fmt: skip
    command = ["bash", place / "run_scripts" / script, *arguments]
    with subprocess.Popen(
        command, cwd=place.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        if signalled:
            end = time.monotonic() + 60
            while not record.with_name("log.started").exists():
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    return done, record.read_text().splitlines() if record.exists() else []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_shell_can_read_them(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_one_run(place):
    arguments = ("--samplers=gwg,sl_gwg", "--config.experiment.save_root=a folder")
    _, told = call(place, "sbatch_run.sh", *arguments, slurm="--partition=gpu --time=4:00:00")
    assert told == [
        f"sbatch --partition=gpu --time=4:00:00 run_scripts/sbatch_run.sh {' '.join(arguments)}",
        f"python -m sl_discs run {' '.join(arguments)}",
        "exit 0",
    ]


@pytest.mark.parametrize(("code", "requeued"), [("75", True), ("0", False), ("1", False)])
def test_a_job_that_is_interrupted_goes_back_into_the_queue(place, code, requeued):
    """The program is told once and ends half a second later; its exit code counts, not that of the shell's wait."""
    _, told = call(place, "sbatch_run.sh", code, command="program", hit="yes")
    assert told[1:] == ["scontrol requeue 101"] * requeued + [f"exit {code}"]


def test_a_job_that_is_interrupted_before_it_listens_goes_back_too(place):
    _, told = call(place, "sbatch_run.sh", "0", command="program", hit="early")
    assert told[1:] == ["scontrol requeue 101", f"exit {128 + signal.SIGUSR1}"]


@pytest.mark.parametrize(("code", "restarts", "requeued"), [(134, 0, True), (137, 5, False), (2, 0, False)])
def test_a_run_whose_host_dies_goes_back_a_few_times(place, code, restarts, requeued):
    dies = place.parent / "bin" / "srun"
    dies.write_text(f'#!/usr/bin/env bash\necho "srun $*" >>"$LOG"\nexit {code}\n')
    dies.chmod(0o755)
    _, told = call(place, "sbatch_run.sh", "--engine=cpu", SLURM_NTASKS="4", SLURM_RESTART_COUNT=str(restarts))
    assert told[1] == "srun --kill-on-bad-exit=1 .venv/bin/python -m sl_discs run --engine=cpu"
    assert told[2:] == ["scontrol requeue 101"] * requeued + [f"exit {code}"]


def test_a_sweep_has_a_task_for_each_run(place):
    sweep = "--sweep=configs/sweep/seeds_and_samplers.py"
    done, told = call(place, "sbatch_sweep.sh", sweep, "--", "--engine=reference")
    assert done.returncode == 0, done.stderr
    assert told[0] == f"sbatch --array=1-12 run_scripts/sbatch_sweep.sh {sweep} -- --engine=reference"
    workers = [line for line in told if line.startswith("python")]
    assert workers == [
        f"python -m sl_discs sweep run --sweep_index={k} {sweep} -- --engine=reference" for k in range(1, 13)
    ]  # fmt: skip


def test_bad_input_submits_nothing(place):
    done, told = call(place, "sbatch_sweep.sh", "--sweep=nowhere.py")
    assert done.returncode == 2 and told == [] and "there is no file nowhere.py" in done.stderr
    done, told = call(place, "sbatch_sweep.sh", "--dataset=mis/er_density/r-0.10", command="tune")
    assert done.returncode == 2 and told == [] and "set workers" in done.stderr


@pytest.mark.parametrize("script", ["sbatch_sweep.sh", "run_sweep_local.sh"])
@pytest.mark.parametrize(("command", "program"), [("", "sweep run"), ("tune", "tune")])
def test_workers_of_a_sweep_and_of_a_search(place, script, command, program):
    sweep = "--sweep=configs/sweep/seeds_and_samplers.py"
    variables = {"command": command} if command else {}
    done, told = call(place, script, sweep, workers="3", **variables)
    assert [line for line in told if line.startswith("python")] == [f"python -m sl_discs {program} {sweep}"] * 3
    if script == "run_sweep_local.sh" and not command:
        assert "12 in total: 12 missing" in done.stdout


def test_the_local_runner_waits_for_its_workers_when_it_is_stopped(place):
    """Workers end half a second after the signal; their exit code counts, not that of the shell's wait."""
    done, _ = call(place, "run_sweep_local.sh", "75", command="program", workers="1", signalled=True)
    assert done.returncode == 75, done.stderr


@pytest.mark.parametrize(
    ("driver", "code", "told"),
    [
        ("580.65.06", 0, "jax[cuda13]"),
        ("550.54.14", 0, "jax[cuda12]"),
        ("470.1", 2, "too old"),
        ("", 2, "no GPU"),
        ("580.1 wrong", 1, "FAILED: laws of samplers\n"),
    ],
)
def test_the_check_of_a_gpu(driver, code, told, tmp_path):
    """With stand-ins for nvidia-smi and Python, which fails if told to the tests that it gets."""
    scripts, bin_folder = tmp_path / "run_scripts", tmp_path / ".venv" / "bin"
    scripts.mkdir()
    bin_folder.mkdir(parents=True)
    shutil.copy(ROOT / "run_scripts" / "gpu_check.sh", scripts)
    (scripts / "environment.sh").write_text("")
    (bin_folder / "nvidia-smi").write_text(f"#!/bin/sh\necho {driver}\n" if driver else "#!/bin/sh\nexit 9\n")
    fails = "case $* in *test_laws.py*) exit 1;; esac" if "wrong" in driver else ""
    (bin_folder / "python").write_text(f'#!/bin/sh\necho "$@"\n{fails}\n')
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    command = ["bash", str(scripts / "gpu_check.sh"), "--save=found.txt", "-k", "gibbs"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and told in done.stdout + done.stderr
    if code == 2:
        assert done.stdout == "" and done.stderr.count("\n") == 1
    else:
        saved = (tmp_path / "found.txt").read_text()
        assert saved.splitlines()[0] == "== device and rates" and saved.count("-k gibbs") == 3
        assert saved in done.stdout and saved.endswith("FAILED: laws of samplers\n" if code else "passed\n")
