"""The command of the study of laws, started as a program."""

import json
import os
import subprocess
import sys

import pytest


def run_study(cwd, *arguments):
    command = [sys.executable, "-m", "sl_discs", "study", "laws", *arguments]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_the_command(tmp_path):
    small = "--targets=strip-smoke", "--methods=gibbs,tempering", "--seeds=2", "--seconds=.01,.02", "--output=study"
    done = run_study(tmp_path, *small)
    assert done.returncode == 0, done.stderr
    assert "| gibbs |" in done.stdout and "saved study/laws.json" in done.stdout
    assert (tmp_path / "study" / "errors.png").exists()
    cells = {path: path.stat().st_mtime_ns for path in (tmp_path / "study" / "cells").rglob("*.json")}
    assert len(cells) == 8
    found = (tmp_path / "study" / "laws.json").read_bytes()
    [target] = json.loads(found)["targets"]
    assert [len(ones) for ones in target["plays"]["tempering"].values()] == [2, 2]
    again = run_study(tmp_path, *small)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in cells} == cells
    assert (tmp_path / "study" / "laws.json").read_bytes() == found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--targets=x", "--targets: 'x' is not available"),
        ("--methods=x", "--methods: 'x' is not available"),
        ("--seconds=0", "seconds is 0.0; expected a finite number above 0"),
        ("--seconds=x", "seconds are x"),
    ],
)
def test_wrong_flags_are_one_line(wrong, message, tmp_path, refusal):
    assert message in refusal("study", "laws", wrong, f"--output={tmp_path / 'study'}")
    assert list(tmp_path.iterdir()) == []
