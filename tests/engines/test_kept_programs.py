"""XLA programs on disk: found again by JAX in the project's cache."""

import threading

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from sl_discs.engines import compiled

FOLDER, LEAST = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The project's cache, before anything is kept in it; all other tests share a folder that JAX was given."""
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "_LEAST_S", 0.0)
    monkeypatch.setattr(compiled, "_announces", False)
    before = {name: getattr(jax.config, name) for name in (FOLDER, LEAST)}
    jax.config.update(FOLDER, None)
    compilation_cache.reset_cache()
    yield tmp_path / "cache"
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_a_program_is_found_again(folder):
    compiled.keep_programs()
    hits, numbers = [], np.array([1, 2], np.float32)

    def note(event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            hits.append(event)

    jax.monitoring.register_event_listener(note)
    for found in (0, 1):
        program = jax.jit(lambda x: 3 * x).lower(numbers).compile()  # as a new process would
        assert program(numbers).tolist() == [3, 6]
        assert len(hits) == found
    assert len(list(folder.glob("xla-*/*-cache"))) == 1


def test_a_folder_that_jax_was_given_is_left_to_it(folder, tmp_path):
    jax.config.update(FOLDER, str(tmp_path / "other"))
    compiled.keep_programs()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "other") and not folder.exists()


def test_no_folder_no_programs_kept(folder, capfd):
    folder.write_text("")
    compiled.keep_programs()
    assert jax.config.jax_compilation_cache_dir is None and "no cache in" in capfd.readouterr().err


@pytest.mark.parametrize("takes_long", [False, True])
def test_a_long_compilation_says_so_once(takes_long, monkeypatch, capsys):
    """A long one here is one that ends after the timer has gone off."""
    compiled.keep_programs()
    said, say = threading.Semaphore(0), compiled._say_compiling
    say.cache_clear()
    monkeypatch.setattr(compiled, "_LONG_S", 0.01 if takes_long else 3600)
    monkeypatch.setattr(compiled, "_say_compiling", lambda: (say(), said.release()))
    for key in "first", "second":
        compiled.compiled((key, takes_long), said.acquire if takes_long else lambda: None)
    assert capsys.readouterr().err.count("compiling once for this machine") == takes_long
