"""Compiled loops: in long vectors; on disk found again, never stale, never beside the source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

import sl_discs
from sl_discs.engines.cpu import jit
from sl_discs.engines.cpu.arithmetic import product_of_odds


def tripled(x):
    return 3 * x


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    jit._folder.cache_clear()
    yield tmp_path / "cache"
    jit._folder.cache_clear()


def call():
    """Calls the loop as a new process would; whether it was found, and not compiled."""
    function = jit.entered(tripled)
    assert function(14) == 42
    return bool(function.stats.cache_hits)


def test_code_is_found_again(folder):
    assert [call(), call()] == [False, True]
    assert [file.suffix for file in sorted(folder.rglob("*.nb?"))] == [".nbc", ".nbi"]
    assert str(folder) == numba.config.CACHE_DIR  # as other packages have it


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


def test_loops_over_sites_use_the_longest_vectors_that_the_processor_has():
    """Goes red where a version of llvmlite or LLVM no longer takes the attribute."""
    if not llvm.get_host_cpu_features().get("avx512vl"):
        pytest.skip("this processor has no vectors of 512 bits")
    product = jit.from_python(product_of_odds)
    product(np.ones(64, np.float32), 0, 64, 0.5)
    for assembly in product.inspect_asm().values():
        assert "zmm" in assembly
