"""The command around DISCS's main module, on the stand-in, as a user runs it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError

STANDIN = Path(__file__).parent / "standin"
ROOT = Path(__file__).parents[2]
PAIRS = ("--model_config=discs/models/configs/pairs_config.py", "--config.experiment.chain_length=40")
LOCALIZED = "--sampler_config=./discs/samplers/configs/sl_onesite_config.py"


def run(cwd, *arguments, path=STANDIN):
    environment = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{ROOT}", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "sl_discs.discs_main", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)


def test_a_run_from_anywhere(tmp_path):
    fields = "--sampler_config.K=8", "--sampler_config.sigma=2.0", "--fixes"
    done = run(tmp_path, *PAIRS, LOCALIZED, *fields, "--run_local")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "discs/results/pairs/results.pkl"
    assert f"saved {path.relative_to(tmp_path)}: best ratio" in done.stdout and "took" in done.stdout
    assert pickle.loads(path.read_bytes())["best_ratio"].shape == (1,)
    assert "give equal results, the tilt changed no decision" in done.stdout


def test_a_copied_config_with_the_name_of_a_localized_sampler(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from ml_collections import ConfigDict\n\ndef get_config():\n    return ConfigDict({'name': 'sl_onesite'})\n"
    )
    fields = "--sampler_config.K=8", "--sampler_config.sigma=4"
    done = run(tmp_path, *PAIRS, "--sampler_config=mine.py", *fields, "--run_local")
    assert done.returncode == 0, done.stderr
    assert "give equal results, the tilt changed no decision" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (*PAIRS, "--sampler_config=discs/samplers/configs/sl_exchange_config.py"),
            "or sl_sldiscs_gwg_config.py for samplers of sl_discs",
        ),
        ((*PAIRS, LOCALIZED, "--sampler_config.sigma=-1.0"), "sampler_config.sigma is -1.0"),
        ((*PAIRS, LOCALIZED, "--nonsense=1"), "nonsense"),
    ],
)
def test_bad_input_is_one_line(tmp_path, arguments, message):
    done = run(tmp_path, *arguments)
    errors = [line for line in done.stderr.splitlines() if "rror" in line]
    assert done.returncode != 0 and message in done.stderr
    assert "Traceback" not in done.stderr and len(errors) <= 2


def test_without_discs(tmp_path):
    done = run(tmp_path, *PAIRS, LOCALIZED, path=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the package discs of google-research is not importable; clone https://")


def test_help_has_both_kinds_of_flags(tmp_path):
    done = run(tmp_path, "--helpfull")
    assert "--[no]fixes" in done.stdout and "--[no]run_local" in done.stdout


def test_configs_are_found(standin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "own.py"):
        (tmp_path / name).touch()
    arguments = launch.resolve_configs(
        ["main", "--model_config=mine.py", "-sampler_config", "discs/samplers/configs/sl_ball_config.py", "--x=1"]
    )
    assert arguments[1] == f"--config={standin}/discs/common/configs.py"
    assert arguments[2] == "--model_config=mine.py"
    assert arguments[3].endswith("config_file.py:discs.samplers.configs.sl_ball_config")
    assert arguments[4] == "--x=1"
    sampler = launch.resolve_configs(["main", "--config=mine.py", "--sampler_config=own.py"])[2]
    assert sampler.endswith("config_file.py:own.py")
    with pytest.raises(InputError, match=r"--config: there is no file nowhere\.py"):
        launch.resolve_configs(["main", "--config=nowhere.py"])
