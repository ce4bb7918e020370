"""Sweep files of DISCS's form."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sl_discs.errors import InputError
from sl_discs.sweeps.sweep_file import combinations, discs_arguments, read_sweep

STANDIN = Path(__file__).parent / "standin"
ROOT = Path(__file__).parents[2]
SWEEP = """
from ml_collections import config_dict

def get_config():
    return config_dict.ConfigDict({
        "model": "pairs",
        "sampler": "ball",
        "sweep": [
            {"config.experiment.chain_length": [40, 60], "sampler_config.name": ["onesite"]},
            {"config.experiment.chain_length": [40], "sampler_config.patience": [1, 2]},
        ],
    })
"""


@pytest.fixture
def sweep_file(tmp_path):
    path = tmp_path / "pairs" / "small.py"
    path.parent.mkdir()
    path.write_text(SWEEP)
    return path


def test_names_folders_and_flags(sweep_file):
    assert combinations([{"a": [1, 2], "b": [3, 4]}, {"a": [5]}]) == [
        {"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}, {"a": 5}
    ]  # fmt: skip
    sweep = read_sweep(sweep_file)
    assert (sweep.name, len(sweep.runs)) == ("pairs-small", 4)
    assert sweep.folder(2) == "2_chain_length=60,name='onesite'"
    arguments = discs_arguments(sweep, 3, "./sco", Path("out"))
    assert "--sampler_config=discs/samplers/configs/ball_config.py" in arguments
    assert arguments[-3:] == [
        "--config.experiment.chain_length=40", "--sampler_config.patience=1", "--config.experiment.save_root=out"
    ]  # fmt: skip


def test_chosen_samplers_keep_the_settings_of_their_base(sweep_file):
    sweep = read_sweep(sweep_file, ["sl_onesite", "ball", "sl_ball"])
    names = [(settings["sampler_config.name"], settings.get("sampler_config.patience")) for settings in sweep.runs]
    assert names == [
        ("sl_onesite", None), ("sl_onesite", None), ("ball", 1), ("sl_ball", 1), ("ball", 2), ("sl_ball", 2)
    ]  # fmt: skip
    with pytest.raises(InputError, match="no settings for 'sl_nearby'; the sweep has ball, onesite"):
        read_sweep(sweep_file, ["sl_nearby"])


def test_a_localized_sampler_of_the_file_keeps_its_own_settings(sweep_file):
    sweep_file.write_text(SWEEP.replace('["onesite"]', '["onesite", "sl_ball"]'))
    sweep = read_sweep(sweep_file, ["sl_ball"])
    assert [set(settings) for settings in sweep.runs] == [
        {"config.experiment.chain_length", "sampler_config.name"}
    ] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "no get_config"),
        (SWEEP.replace('"model": "pairs",', ""), "no field 'model'"),
        (SWEEP.replace("sampler_config.patience", "patience"), "'patience' is not a flag of DISCS"),
        (SWEEP.replace("[1, 2]", "1"), "patience' is 1; expected a list"),
        (SWEEP.replace("[1, 2]", "[]").replace("[40, 60]", "[]"), "no runs"),
        (SWEEP.replace("ml_collections", "no_such_module"), "cannot be run"),
    ],
)
def test_files_that_are_no_sweeps(tmp_path, text, message):
    path = tmp_path / "sweep.py"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_sweep(path)


@pytest.mark.slow
def test_the_command(sweep_file, tmp_path):
    environment = os.environ | {"PYTHONPATH": f"{STANDIN}{os.pathsep}{ROOT}", "JAX_PLATFORMS": "cpu"}
    command = [
        sys.executable, "-m", "sl_discs", "discs", "sweep", f"--sweep={sweep_file}", "--samplers=onesite,sl_onesite",
    ]  # fmt: skip

    def run(*more):
        return subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )

    listed = run("--list")
    assert listed.returncode == 0 and listed.stdout.count("sl_discs.discs_main") == 4
    assert "[4/4]" in listed.stdout and "sl_onesite_config.py" in listed.stdout
    assert run("--only=1").returncode == 0
    done = run("--only=2", "--", "--sampler_config.K=8")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "discs-pairs-small" / "2_chain_length=40,name='sl_onesite'" / "results.pkl").is_file()
    assert re.search(
        r"\[2\] sl_onesite \d\.\d{4}, \[1\] onesite \d\.\d{4}: difference [+-]\d.* \(n = 1\)", done.stdout
    )
    failed = run("--only=2")  # 256 levels do not fit into 40 steps
    assert failed.returncode == 1 and "1 of the runs failed; --only=2 repeats them" in failed.stderr
    wrong = run("--only=9")
    assert wrong.returncode == 2 and "there is no run '9'" in wrong.stderr
