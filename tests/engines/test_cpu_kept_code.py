"""Compiled loops on disk: found again, made anew where a file cannot be trusted, never in the way of a run."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="the CPU engine needs numba")

import numba

import sl_discs
from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.cpu import jit


def tripled(x):
    return 3 * x


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def call():
    """Calls the loop as a new process would; whether it was found, and not compiled."""
    function = jit.entered(tripled)
    assert function(14) == 42
    return bool(function.stats.cache_hits)


def test_code_is_found_again(folder):
    assert [call(), call()] == [False, True]
    assert len(list(folder.iterdir())) == 1


def test_loading_counts_as_compilation():
    """Time limits are without it: on a busy machine it takes a second in the first call of a process."""
    call()
    before = compile_seconds()
    assert call() and compile_seconds() > before


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: bytes(len(content)),
        lambda content: content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
        lambda content: pickle.dumps(print),
    ],
    ids=["emptied", "halved", "a byte short", "zeroed", "a bit flipped", "a pickle"],
)
def test_damaged_code_is_compiled_again(folder, damage, capfd):
    call()
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert [call(), call()] == [False, True]
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"warning: {file} is not used")


def test_code_under_another_name_does_not_count(folder):
    call()
    (file,) = folder.iterdir()
    other = jit.entered(lambda x: x)
    other._cache._name = lambda *_: "other.nbc"
    file.rename(folder / "other.nbc")
    assert other(14) == 14 and not other.stats.cache_hits


def test_a_constant_from_anywhere_in_the_package_is_never_stale(folder, tmp_path):
    """Constants are compiled in, so code with an earlier one must not be found; a new process finds the others."""
    package = tmp_path / "sl_discs"
    shutil.copytree(Path(sl_discs.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "models" / "loop.py").write_text(
        "from sl_discs.engines.cpu.jit import entered\nfrom sl_discs.problems.factor import FACTOR\n"
        "@entered\ndef times(x):\n    return FACTOR * x\n"
    )
    program = "from sl_discs.models.loop import times; print(times(14), sum(times.stats.cache_hits.values()))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(tmp_path)}
    said = []
    for factor in (3, 3, 4):
        (package / "problems" / "factor.py").write_text(f"FACTOR = {factor}\n")
        command = [sys.executable, "-B", "-c", program]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert said == [["42", "0"], ["42", "1"], ["56", "0"]]


def test_no_folder_no_code_kept(folder, capfd):
    """Nor is any put beside the source, where numba looks first."""
    folder.write_text("")
    assert [call(), call()] == [False, False]
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: no cache in ") and "SL_DISCS_CACHE" in line
    assert not list(Path(__file__).parent.rglob("*.nb[ic]"))
