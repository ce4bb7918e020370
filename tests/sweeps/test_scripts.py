"""The scripts for Slurm and for a GPU, with stand-ins for sbatch, scontrol and the programs that they start."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "run_scripts").glob("*.sh"))


def test_the_quickstart_leaves_the_default_folders_free_and_says_what_comes_next(tmp_path):
    """A stand-in for Python notes its arguments; the commands of docs/reproduction.md save elsewhere."""
    (tmp_path / "run_scripts").mkdir()
    for path in (*SCRIPTS, ROOT / "pyproject.toml"):
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@" >>log\n')
    python.chmod(0o755)
    wanted = subprocess.run(["cksum"], stdin=(ROOT / "pyproject.toml").open(), capture_output=True, text=True)
    (tmp_path / ".venv" / "installed-run").write_text(wanted.stdout)
    done = subprocess.run(["bash", "run_scripts/quickstart.sh"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [run] = [line for line in (tmp_path / "log").read_text().splitlines() if "sl_discs run" in line]
    assert "--config.experiment.save_root=results/quickstart" in run.split()
    after = done.stdout.partition("== Next\n")[2]
    assert "source .venv/bin/activate" in after
    pages = [word for word in after.split() if word.startswith("docs/")]
    assert pages and all((ROOT / page).is_file() for page in pages)


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
PYTHON = """#!/usr/bin/env bash
case "$*" in
  "-m sl_discs program "*) exec "{python}" -m program "${{@:4}}" ;;
  *"sl_discs tune"*|*"sl_discs run"*) echo "python $*" >>"$LOG" ;;
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


def call(place, script, *arguments, **variables):
    """The exit code, output and errors of a script, called from elsewhere, and what the stand-ins were told."""
    record = place.parent / "log"
    record.unlink(missing_ok=True)
    environment = os.environ | variables | {
        "PATH": f"{place.parent / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHON": sys.executable,
        "LOG": str(record), "SPOOL": str(place.parent / "spool"), "JAX_PLATFORMS": "cpu",
    }  # fmt: skip
    command = ["bash", place / "run_scripts" / script, *arguments]
    done = subprocess.run(command, cwd=place.parent, env=environment, capture_output=True, text=True, timeout=600)
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


def test_workers_of_a_search(place):
    _, told = call(place, "sbatch_run.sh", "--sampler=gwg", command="tune", slurm="--array=1-3")
    assert told.count("python -m sl_discs tune --sampler=gwg") == 3 == told.count("exit 0")


@pytest.mark.parametrize(("code", "requeued"), [("75", True), ("0", False), ("1", False)])
def test_a_job_that_is_interrupted_goes_back_into_the_queue(place, code, requeued):
    """The program is told once and ends half a second later; its exit code counts, not that of the shell's wait."""
    _, told = call(place, "sbatch_run.sh", code, command="program", hit="yes")
    assert told[1:] == ["scontrol requeue 101"] * requeued + [f"exit {code}"]


def test_a_job_that_is_interrupted_before_it_listens_goes_back_too(place):
    _, told = call(place, "sbatch_run.sh", "0", command="program", hit="early")
    assert told[1:] == ["scontrol requeue 101", f"exit {128 + signal.SIGUSR1}"]


def test_a_run_in_parts(place):
    _, told = call(place, "sbatch_run.sh", "--engine=cpu", parts="2", slurm="--time=60")
    assert told[0] == "sbatch --time=60 --array=1-2 run_scripts/sbatch_run.sh --engine=cpu"
    assert [line for line in told if "python" in line] == [
        f"python -m sl_discs run --part={k}/2 --engine=cpu" for k in (1, 2)
    ]


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
def test_the_check_of_a_gpu(driver, code, told, tmp_path):
    """With stand-ins for nvidia-smi and Python, which fails if told to the benchmark that it gets."""
    scripts, bin_folder = tmp_path / "run_scripts", tmp_path / ".venv" / "bin"
    scripts.mkdir()
    bin_folder.mkdir(parents=True)
    shutil.copy(ROOT / "run_scripts" / "gpu_check.sh", scripts)
    (scripts / "environment.sh").write_text('echo "extras $EXTRAS"\n')
    (bin_folder / "nvidia-smi").write_text(f"#!/bin/sh\necho {driver}\n" if driver else "#!/bin/sh\nexit 9\n")
    fails = 'case "$*" in *--engines=cuda*) exit 1;; esac' if "wrong" in driver else ""
    (bin_folder / "python").write_text(f'#!/bin/sh\necho "$@"\n{fails}\n')
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    command = ["bash", str(scripts / "gpu_check.sh"), "--save=found.json", "--only=gibbs", "--durations=5"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == code and told in done.stdout + done.stderr
    if code == 2:
        assert done.stdout == "" and done.stderr.count("\n") == 1
    else:
        assert " and gibbs --durations=5" in done.stdout and "--output=found.json" in done.stdout
        assert done.stdout.endswith("FAILED: rates of cuda\n" if code else "rates are in found.json\n")
