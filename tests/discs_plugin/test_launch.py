"""The commands around DISCS's main module and its sweep files, in DISCS, as a user runs them."""

import dataclasses
import functools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from programs import sl_discs

from sl_discs.commands.command import add_working_directory
from sl_discs.experiment.sweep_file import combinations, discs_arguments, read_sweep, with_overrides
from sl_discs.support.errors import InputError

ROOT = Path(__file__).parents[2]
SMALL = (
    "--model_config=discs/models/configs/bernoulli_config.py", "--model_config.shape=(8,)",
    "--config.experiment.chain_length=40", "--config.experiment.batch_size=4",
)  # fmt: skip
SWEEP = """
from ml_collections import config_dict

def get_config():
    return config_dict.ConfigDict({
        "model": "bernoulli",
        "sampler": "hammingball",
        "sweep": [
            {"config.experiment.chain_length": [40, 60], "sampler_config.name": ["randomwalk"]},
            {"config.experiment.chain_length": [40], "sampler_config.block_size": [1, 2]},
        ],
    })
"""


@pytest.fixture
def run(tmp_path, discs):
    """Runs `sl-discs discs ...` in a process and a folder of its own."""
    return functools.partial(sl_discs, "discs", cwd=tmp_path, path=[discs.parent])


def test_a_run_from_anywhere(run, tmp_path, discs):
    """With a config copied from DISCS, of which only the name was changed."""
    config = (discs / "samplers/configs/randomwalk_config.py").read_text()
    (tmp_path / "mine.py").write_text(config.replace("'randomwalk'", "'sl_randomwalk'"))
    done = run(
        "main",
        *SMALL,
        "-sampler_config",
        "mine.py",
        "--sampler_config.K=8",
        "--fixes",
        "--run_local",
    )
    assert done.returncode == 0, done.stderr
    path = tmp_path / "discs/results/bernoulli_hightemp/results.csv"
    assert (
        f"saved {path.relative_to(tmp_path)}: its effective sample size has no meaning"
        in done.stdout
    )
    assert "took" in done.stdout and "ESS" in path.read_text()


@pytest.fixture
def sweep_file(tmp_path):
    path = tmp_path / "bernoulli" / "small.py"
    path.parent.mkdir()
    path.write_text(SWEEP)
    return path


def test_runs_of_a_sweep_file(sweep_file):
    assert combinations([{"a": [1, 2], "b": [3, 4]}, {"a": [5]}]) == [
        {"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}, {"a": 5}
    ]  # fmt: skip
    sweep = read_sweep(sweep_file)
    assert (sweep.name, len(sweep.runs)) == ("bernoulli-small", 4)
    assert sweep.folder(2) == "2_chain_length=60,name='randomwalk'"
    with pytest.raises(InputError):
        with_overrides(sweep, {"config.experiment.chain_length": "50"})
    given = with_overrides(
        read_sweep(sweep_file, ["randomwalk"]),
        {"sampler_config.name": "other", "sampler_config.K": "8"},
    )
    assert given.folder(2) == "2_chain_length=60,name='other'"
    alone = dataclasses.replace(sweep, runs=sweep.runs[2:])
    assert (
        with_overrides(alone, {"config.experiment.chain_length": "50"}).folder(1)
        == "1_chain_length=50,block_size=1"
    )
    arguments = discs_arguments(sweep, 3, "./sco", Path("out"))
    assert "--sampler_config=discs/samplers/configs/hammingball_config.py" in arguments
    assert arguments[-3:] == [
        "--config.experiment.chain_length=40", "--sampler_config.block_size=1", "--config.experiment.save_root=out"
    ]  # fmt: skip


def test_chosen_samplers_keep_the_settings_of_their_base_or_their_own(sweep_file):
    sweep = read_sweep(sweep_file, ["sl_randomwalk", "hammingball", "sl_hammingball"])
    names = [
        (settings["sampler_config.name"], settings.get("sampler_config.block_size"))
        for settings in sweep.runs
    ]
    pairs = [(name, size) for size in (1, 2) for name in ("hammingball", "sl_hammingball")]
    assert names == [("sl_randomwalk", None), ("sl_randomwalk", None), *pairs]
    with pytest.raises(InputError):
        read_sweep(sweep_file, ["sl_nearby"])
    sweep_file.write_text(SWEEP.replace('["randomwalk"]', '["randomwalk", "sl_hammingball"]'))
    own = {"config.experiment.chain_length", "sampler_config.name"}
    assert [set(settings) for settings in read_sweep(sweep_file, ["sl_hammingball"]).runs] == [
        own
    ] * 2


def test_a_signal_to_a_sweep_ends_the_current_run(
    command, discs, sweep_file, tmp_path, monkeypatch
):
    """With a program in place of Python that never ends by itself."""
    pid, program = tmp_path / "pid", tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    def tell():
        while not pid.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=tell, daemon=True).start()
    code, _, err = command(
        "discs", "sweep", f"--sweep={sweep_file}", f"--save_root={tmp_path}", "--only=2,3,4"
    )
    assert code == 128 + signal.SIGTERM
    assert err == "stopped; --only=2,3,4 performs the runs that are left\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.slow
def test_the_command_of_sweeps(run, sweep_file, tmp_path):
    def sweep(*more):
        return run("sweep", f"--sweep={sweep_file}", "--samplers=randomwalk,sl_randomwalk", *more)

    listed = sweep("--list")
    assert listed.returncode == 0 and listed.stdout.count("sl_discs discs main") == 4
    assert "[4/4]" in listed.stdout and "sl_randomwalk_config.py" in listed.stdout
    assert sweep("--only=1").returncode == 0
    done = sweep("--only=2", "--", "--sampler_config.K=8")
    assert done.returncode == 0, done.stderr
    assert (
        tmp_path
        / "discs-bernoulli-small"
        / "2_chain_length=40,name='sl_randomwalk'"
        / "results.csv"
    ).is_file()
    failed = sweep("--only=2")  # 256 levels do not fit into 40 steps
    assert failed.returncode == 1 and "1 of the runs failed; --only=2 repeats them" in failed.stderr
    wrong = sweep("--only=9")
    assert wrong.returncode == 2 and "there is no run '9'" in wrong.stderr


def test_only_a_checkout_of_discs_makes_the_working_directory_importable(tmp_path, monkeypatch):
    """And only after all other places, so that none of its files takes the place of a module."""
    monkeypatch.setattr(sys, "path", ["first"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "discs" / "samplers").mkdir(parents=True)
    add_working_directory()
    assert sys.path == ["first"]
    (tmp_path / "discs" / "samplers" / "abstractsampler.py").touch()
    add_working_directory()
    assert sys.path == ["first", ""]
