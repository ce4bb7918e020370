"""XLA programs on disk: found again by JAX, and made anew where a file is damaged."""

import threading

import jax
import numpy as np
import pytest
from jax._src import compilation_cache

from sl_discs.engines import compiled


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation_cache, "_cache", None)
    # All tests share a cache of JAX's own.
    monkeypatch.setattr(compilation_cache, "is_persistent_cache_enabled", lambda: False)
    monkeypatch.setattr(compiled, "_LEAST_S", 0.0)
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    compiled.keep_programs()
    yield tmp_path / "cache"
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before)


@pytest.fixture
def found(monkeypatch):
    """Whether each program that JAX has asked for was there."""
    asked, get = [], compiled._Programs.get

    def noted(self, key):
        value = get(self, key)
        asked.append(value is not None)
        return value

    monkeypatch.setattr(compiled._Programs, "get", noted)
    return asked


def tripled():
    """Compiles as a new process would."""
    numbers = np.array([1, 2], np.float32)
    program = jax.jit(lambda x: 3 * x).lower(numbers).compile()
    assert program(numbers).tolist() == [3, 6]


def test_a_program_is_found_again(folder, found):
    tripled()
    tripled()
    assert found == [False, True]


def test_a_damaged_program_is_compiled_again(folder, found, capfd):
    tripled()
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    found.clear()
    tripled()
    tripled()
    assert found == [False, True]
    assert "is not used: its content does not match its digest" in capfd.readouterr().err


def test_a_folder_that_jax_was_given_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_cache", None)
    monkeypatch.setattr(compilation_cache, "is_persistent_cache_enabled", lambda: True)
    compiled.keep_programs()
    assert compilation_cache._cache is None


@pytest.mark.parametrize("takes_long", [False, True])
def test_a_long_compilation_says_so_once(takes_long, monkeypatch, capsys):
    """A long one here is one that ends after the timer has gone off."""
    said, say = threading.Semaphore(0), compiled._say_compiling
    say.cache_clear()
    monkeypatch.setattr(compiled, "_LONG_S", 0.01 if takes_long else 3600)
    monkeypatch.setattr(compiled, "_say_compiling", lambda: (say(), said.release()))
    for key in "first", "second":
        compiled.compiled((key, takes_long), said.acquire if takes_long else lambda: None)
    assert capsys.readouterr().err.count("compiling once for this machine") == takes_long
