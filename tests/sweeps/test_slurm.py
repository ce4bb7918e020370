"""Jobs on a real Slurm, where `sinfo` answers; docs/clusters.md sets up a node on one machine."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import programs
import pytest

ROOT = Path(__file__).parents[2]
# Half a minute of a core or more, as Slurm looks at time limits every 30 s.
RUN = (
    "--config=configs/experiment/maxcut/ba.py", "--model_config=configs/model/maxcut_config.py",
    "--model_config.cfg_str=r-ba-4-n-64-75", "--samplers=gwg,sl_gwg", "--engine=cpu",
    "--config.experiment.num_instances=4", "--config.experiment.batch_size=16",
    "--config.experiment.chain_length=700000", "--config.experiment.checkpoint_every_s=1",
)  # fmt: skip
SWEEP = """
from ml_collections import config_dict


def get_config():
    experiment = {"seed": [0, 1], "num_instances": [2], "batch_size": [4], "chain_length": [1200]}
    runs = {"sampler_config.name": ["gwg", "sl_gwg"], "model_config.cfg_str": ["r-ba-4-n-64-75"]}
    runs |= {f"config.experiment.{field}": values for field, values in experiment.items()}
    return config_dict.ConfigDict({"model": "maxcut", "graph_type": "ba", "sampler": "gwg", "sweep": [runs]})
"""


def slurm_answers():
    if shutil.which("sinfo") is None:
        return False
    return bool(subprocess.run(["sinfo", "--noheader"], capture_output=True).stdout)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not slurm_answers(), reason="there is no Slurm: sinfo does not answer"),
]


def call(*command, where=ROOT, **variables):
    done = programs.call(*command, cwd=where, **{"PYTHON": sys.executable} | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sl_discs(*arguments, **variables):
    return call(sys.executable, "-m", "sl_discs", *arguments, **variables)


def wait_until(condition):
    end = time.monotonic() + 1200
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)


def in_queue(job):
    # A job that is no longer known is an error.
    return bool(subprocess.run(["squeue", "--noheader", "-j", job], capture_output=True).stdout)


@pytest.fixture
def queue():
    """The jobs of a test, which are cancelled at its end."""
    jobs = []
    yield jobs
    for job in jobs:
        subprocess.run(["scancel", job], capture_output=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of one process's run."""
    folder = tmp_path_factory.mktemp("whole")
    sl_discs("run", *RUN, f"--config.experiment.save_root={folder}")
    return folder


@pytest.fixture
def submit(tmp_path, queue):
    """Submits the run from a clone whose environment is made, for which the tests' own Python
    stands; the job.
    """
    clone = tmp_path / "clone"
    for name in ("run_scripts", "configs"):
        shutil.copytree(ROOT / name, clone / name)
    shutil.copy(ROOT / "pyproject.toml", clone)
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (clone / ".venv" / "installed-run").write_text(
        call("sh", "-c", "cksum <pyproject.toml", where=clone)
    )

    def submit(folder, **variables):
        arguments = *RUN, f"--config.experiment.save_root={folder}"
        said = call(
            "bash", clone / "run_scripts" / "sbatch_run.sh", *arguments, where=clone, **variables
        )
        job = re.search(r"Submitted batch job (\d+)", said)[1]
        queue.append(job)
        return job

    def log(job):
        return (clone / "results" / "slurm" / f"sl_discs-{job}.out").read_text()

    submit.log = log
    return submit


def assert_bit_equal(one, other):
    for name in ("solutions.npz", "trajectory.npz"):
        with np.load(one / name) as first, np.load(other / name) as second:
            assert first.files == second.files
            assert all(first[key].tobytes() == second[key].tobytes() for key in first.files)


def test_a_sweep_and_its_table(tmp_path, queue):
    (tmp_path / "sweep.py").write_text(SWEEP)
    sweep = f"--sweep={tmp_path}/sweep.py", f"--save_root={tmp_path}/runs"
    said = sl_discs(
        "sweep",
        "run",
        *sweep,
        "--executor=slurm",
        "--slurm=--time=0:10:00 --cpus-per-task=1",
        "--parallel=2",
    )
    job = re.search(r"4 of 4 runs: Submitted batch job (\d+)", said)[1]
    queue.append(job)
    wait_until(lambda: not in_queue(job))
    assert "4 in total: 4 done" in sl_discs("sweep", "status", *sweep)
    sl_discs("sweep", "collect", *sweep)
    rows = json.loads((tmp_path / "runs" / "collect.json").read_text())["rows"]
    assert [(row["sampler"], row["seed"]) for row in rows] == [
        (s, k) for s in ("gwg", "sl_gwg") for k in (0, 1)
    ]
    assert "nothing to do" in sl_discs("sweep", "run", *sweep, "--executor=slurm")


def test_parts_of_which_one_is_requeued(tmp_path, submit, whole):
    folder = tmp_path / "parts"
    job = submit(folder, parts="2", slurm="--cpus-per-task=1 --time=30")
    wait_until(lambda: (folder / "parts" / "1-of-2" / "checkpoint").is_dir())
    call("scontrol", "requeue", f"{job}_1")
    wait_until(lambda: not in_queue(job))
    assert "waits until Slurm requeues" in submit.log(f"{job}_1")
    assert "continued: " in submit.log(f"{job}_1")
    assert_bit_equal(folder, whole)


def test_a_job_that_is_cancelled_stays_cancelled(tmp_path, submit):
    folder = tmp_path / "cancelled"
    job = submit(folder, slurm="--cpus-per-task=1 --time=30")
    wait_until(lambda: (folder / "checkpoint").is_dir())
    call("scancel", job)
    wait_until(lambda: not in_queue(job))
    assert "waits until Slurm requeues" in submit.log(job)
    assert not (folder / "results.json").exists()


def test_a_time_limit(tmp_path, submit, whole):
    """The signal comes up to half a minute after the start, since the limit is within 80 s from
    there on.
    """
    folder = tmp_path / "limit"
    job = submit(folder, slurm="--cpus-per-task=1 --time=1 --signal=B:USR1@50")
    wait_until(lambda: not in_queue(job))
    assert "goes back into the queue" in submit.log(job) and "continued: " in submit.log(job)
    assert_bit_equal(folder, whole)
