"""What these tests share with those of the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from session import (  # noqa: F401 (pytest finds them here)
    programs_of_one_file,
    pytest_collection_finish,
    pytest_configure,
    pytest_runtest_protocol,
    pytest_sessionstart,
)


@pytest.fixture
def script(tmp_path):
    """Runs a script such as `benchmarks/rates.py` in a process and a folder of its own; returns what it
    prints.
    """

    def run(path, *arguments):
        command = [sys.executable, Path(__file__).parents[2] / path, *arguments]
        environment = os.environ | {"JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
