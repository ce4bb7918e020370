"""Compiled loops on disk: found again, made anew where a file cannot be trusted, never in the way of a run."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="the CPU engine needs numba")

import numba

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


def test_other_sources_have_other_code(folder, monkeypatch):
    call()
    monkeypatch.setattr(jit, "_version", lambda folder: "edited")
    assert [call(), call()] == [False, True]


def test_every_source_of_the_loops_counts():
    """What loops take from elsewhere in the package is in the digest: constants and fields are compiled in."""
    loops = [source.read_text() for source in Path(jit.__file__).parent.glob("*.py")]
    imported = {
        line.split()[1]
        for text in loops
        if any(decorator in text for decorator in ("@inlined", "@called", "@entered"))
        for line in text.splitlines()
        if line.startswith("from sl_discs")
    }
    elsewhere = {name for name in imported if not name.startswith(("sl_discs.engines.cpu", "sl_discs.samplers"))}
    assert elsewhere == {"sl_discs.keys", "sl_discs.localization.schedule"}


def test_no_folder_no_code_kept(folder, capfd):
    """Nor is any put beside the source, where numba looks first."""
    folder.write_text("")
    assert [call(), call()] == [False, False]
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: no cache in ") and "SL_DISCS_CACHE" in line
    assert not list(Path(__file__).parent.rglob("*.nb[ic]"))


def test_another_process_finds_the_code(folder):
    """The names of files depend on nothing of a process."""
    program = (
        "from sl_discs.engines.cpu import jit\n"
        "def tripled(x):\n    return 3 * x\n"
        "one = jit.entered(tripled)\none(2.5)\nprint(sum(one.stats.cache_hits.values()))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    said = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [done.stdout.strip() for done in said] == ["0", "1"]
