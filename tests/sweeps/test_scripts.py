"""The scripts for Slurm and for a GPU, with stand-ins for sbatch, scontrol and the programs that
they start.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import programs
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "run_scripts").glob("*.sh"))
# Runs a copy of the script in a folder of its own, as Slurm does, once for each task. The batch
# script gets the signals in `hit` once the program has started; after `early`, that does not listen
# yet.
SBATCH = """
echo "sbatch $*" >>"$LOG"
tasks=1
while [[ "$1" == --* ]]; do
  [[ "$1" == --array=1-* ]] && tasks="${1#--array=1-}" && array=1
  [ "$1" != --export=NONE ] || unset EXTRAS PYTHON command parts slurm
  shift
done
mkdir -p "$SPOOL" && cp "$1" "$SPOOL/slurm_script" && shift
export SLURM_SUBMIT_DIR="$PWD"
for ((task = 1; task <= tasks; task++)); do
  [ -z "${array:-}" ] || export SLURM_ARRAY_TASK_ID="$task"
  set -m # the job has a group of processes of its own
  SLURM_JOB_ID="$((100 + task))" bash "$SPOOL/slurm_script" "$@" &
  job=$!
  set +m
  for signal in ${hit:-}; do
    until [ -f "$LOG.started" ]; do sleep 0.05; done
    [ "$signal" = early ] || kill "-$signal" "$job"
    sleep 0.1
  done
  wait "$job"
  echo "exit $?" >>"$LOG"
done
"""
# Minutes pass at once.
SLEEP = f"""
[ "${{1%.*}}" -lt 60 ] || {{ echo "waited $1" >>"$LOG"; exit; }}
exec {shutil.which("sleep")} "$1"
"""
PYTHON = """
case "$*" in
  "program.py "*) exec "{python}" "$@" ;;
  *"tuning/main.py"*|*"sl_discs run"*) echo "python $*" >>"$LOG" ;;
  *) exec "{python}" "$@" ;;
esac
"""
PROGRAM = """
import os, pathlib, signal, sys, time
told = []
for number in (signal.SIGUSR1, signal.SIGTERM):
    if "early" not in os.environ["hit"]:
        signal.signal(number, lambda number, frame: told.append(number))
pathlib.Path(os.environ["LOG"] + ".started").touch()
while not told:
    time.sleep(0.05)
time.sleep(0.5)  # what a checkpoint takes
pathlib.Path(os.environ["LOG"] + ".ended").touch()
sys.exit(int(sys.argv[1]) if len(told) == 1 else "told more than once")
"""


def write_programs(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / name).chmod(0o755)


@pytest.fixture
def place(tmp_path):
    """A repository of scripts with its environment made, in which `.venv/bin/python` is a stand-in,
    as is Slurm.
    """
    place = tmp_path / "repository"
    shutil.copytree(ROOT / "run_scripts", place / "run_scripts")
    shutil.copy(ROOT / "pyproject.toml", place)
    write_programs(place / ".venv" / "bin", python=PYTHON.format(python=sys.executable))
    write_programs(
        tmp_path / "bin", sbatch=SBATCH, scontrol='echo "scontrol $*" >>"$LOG"', sleep=SLEEP
    )
    (place / "program.py").write_text(PROGRAM)
    wanted = subprocess.run(
        ["cksum"], input=(place / "pyproject.toml").read_bytes(), capture_output=True
    ).stdout
    for extras in ("run", "run,tune"):
        (place / ".venv" / f"installed-{extras}").write_bytes(wanted)
    return place


def call(place, name, *arguments, **variables):
    """What a script, called from elsewhere, says, and what the stand-ins were told."""
    record = place.parent / "log"
    variables |= {"LOG": str(record), "SPOOL": str(place.parent / "spool")}
    variables |= {"PATH": f"{place.parent / 'bin'}:{place / '.venv/bin'}:{os.environ['PATH']}"}
    words = ["bash", place / "run_scripts" / name, *arguments]
    done = programs.call(*words, cwd=place.parent, PYTHON=sys.executable, **variables)
    return done, record.read_text().splitlines() if record.exists() else []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_shell_can_read_them(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_one_run_a_run_in_parts_and_workers_of_a_search(place):
    _, told = call(
        place,
        "sbatch_run.sh",
        "--samplers=gwg,sl_gwg",
        "--x=a folder",
        slurm="--time=4:00:00 --nodes=1",
    )
    arguments = "--samplers=gwg,sl_gwg --x=a folder"
    assert told[-2:] == [f"python -m sl_discs run {arguments}", "exit 0"]
    assert "--time=4:00:00 --nodes=1" in told[0]
    _, told = call(place, "sbatch_run.sh", "--engine=cpu", parts="2", slurm="--export=NONE")
    assert any(
        re.match(r"sbatch --array=1-2 --output=\S+ --export=NONE run_scripts/sbatch_run.sh ", line)
        for line in told
    )
    assert told[-4::2] == [f"python -m sl_discs run --part={k}/2 --engine=cpu" for k in (1, 2)]
    search = {"script": "studies/tuning/main.py", "slurm": "--array=1-3 --export=NONE"}
    _, told = call(place, "sbatch_run.sh", "--sampler=gwg", **search)
    assert told.count("python studies/tuning/main.py --sampler=gwg") == 3


@pytest.mark.parametrize(
    ("code", "hit", "restarts", "ends"),
    [
        ("75", "USR1 TERM", "", ["scontrol requeue 101", "exit 75"]),
        ("75", "USR1", "100", ["exit 75"]),
        ("1", "USR1 TERM", "", ["exit 1"]),
        ("0", "early USR1", "", ["scontrol requeue 101", f"exit {128 + signal.SIGUSR1}"]),
        ("75", "TERM", "", ["waited 1800", "exit 75"]),
    ],
)
def test_a_job_goes_back_into_the_queue_unless_it_may_have_been_cancelled(
    place, code, hit, restarts, ends
):
    """The program is told once and ends half a second later; after SIGTERM, Slurm says what becomes
    of the job.
    """
    _, told = call(
        place, "sbatch_run.sh", code, script="program.py", hit=hit, SLURM_RESTART_COUNT=restarts
    )
    assert told[1:] == ends


@pytest.mark.parametrize(
    ("driver", "code", "told"),
    [
        ("580.65.06", 0, "extras test,cuda13"),
        ("550.54.14", 0, "extras test,cuda12"),
        ("470.1", 2, "too old"),
        ("", 2, "no GPU"),
        ("580.1 wrong", 1, "FAILED: rates of cuda\n"),
    ],
)
def test_the_check_of_a_gpu(place, driver, code, told):
    """With stand-ins for nvidia-smi and Python, which fails if told to the benchmark that
    it gets.
    """
    (place / "run_scripts" / "environment.sh").write_text('echo "extras $EXTRAS"\n')
    fails = 'case "$*" in *--engines=cuda*) exit 1;; esac' if "wrong" in driver else ""
    programs = {
        "nvidia-smi": f"echo {driver}" if driver else "exit 9",
        "python": f'echo "$@"\n{fails}',
    }
    write_programs(place / ".venv" / "bin", **programs)
    done, _ = call(place, "gpu_check.sh", "--save=found.json", "--only=gibbs", "--durations=5")
    assert done.returncode == code and told in done.stdout + done.stderr
    if code == 2:
        assert done.stdout == "" and done.stderr.count("\n") == 1
    else:
        assert " and gibbs --durations=5" in done.stdout and "--output=found.json" in done.stdout


def test_tests_with_discs_need_a_checkout_of_it(tmp_path):
    """Before anything is installed; CI has the commit that the page has."""
    done = programs.call("bash", ROOT / "run_scripts" / "test.sh", f"--discs={tmp_path}")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"--discs={tmp_path}: no checkout of google-research/discs is there" in done.stderr
    commit = re.search(
        "DISCS_COMMIT: ([0-9a-f]{40})", (ROOT / ".github/workflows/tests.yml").read_text()
    )[1]
    assert f"`{commit[:7]}`" in (ROOT / "docs/discs.md").read_text()
