"""What all tests share: compiled native loops, and array arguments that are checked against their
annotations.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from compared import comparisons
from jaxtyping import install_import_hook
from limits import LIMIT_S, SLOW_LIMIT_S, ended_after
from llvmlite import binding

from sl_discs.support.cache import cache_folder

# Limits in tests are in steps or CPU-seconds, so that other work on the machine fails none. What
# still has seconds of wall time, such as the time-outs of processes, is ten minutes, and only ends
# what would never end.
hypothesis.settings.register_profile("sl_discs", deadline=None)
hypothesis.settings.load_profile("sl_discs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Sets the limit of the test, which all of its fixtures share."""
    is_long = any(item.get_closest_marker(name) for name in ("slow", "published"))
    with ended_after(SLOW_LIMIT_S if is_long else LIMIT_S):
        return (yield)


@pytest.fixture
def in_foreground():
    """Gives signals the actions of the foreground, also to processes that a test starts: scripts
    start what runs in the background with SIGINT ignored.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, action) for number, action in usual.items()}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.fixture
def limits_in_cpu_time(monkeypatch):
    """Counts time limits, and all that is measured for them, in CPU-seconds of the process."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)


LEAST = "jax_persistent_cache_min_compile_time_secs"
# A folder with more files of compiled code is begun anew; all tests need a tenth of them, in some
# 50 MB.
_MOST_KEPT = 50_000


def pytest_configure(config):
    """Has the native loops and XLA's programs compiled once, for all workers, commands and later
    runs of the tests.

    Nothing stale is found: loops are named by a digest of their sources, programs by all that they
    are compiled from, and the folder by the processor. `pytest --cache-clear` removes it.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    name = f"compiled-{hashlib.sha256(processor.encode()).hexdigest()[:16]}"
    folder = config.cache.mkdir(name) if config.pluginmanager.hasplugin("cacheprovider") else None
    if folder and sum(1 for _ in folder.rglob("*")) > _MOST_KEPT:
        shutil.rmtree(folder, ignore_errors=True)
    if folder is None or cache_folder(folder) is None:  # others could have written to it
        temporary = tempfile.TemporaryDirectory(prefix="sl_discs-compiled-")
        config.add_cleanup(temporary.cleanup)
        folder = temporary.name
    os.environ["NUMBA_CACHE_DIR"] = f"{folder}/loops"
    # For processes that tests begin; this one has read its environment already.
    for name, value in (("jax_compilation_cache_dir", f"{folder}/programs"), (LEAST, 0)):
        os.environ.setdefault(name.upper(), str(value))
        jax.config.update(name, value)


def pytest_report_header(config):
    """Says how long the comparison with the published numbers takes, where it is what was asked
    for.
    """
    words = (
        "published numbers: 33 CPU minutes, and a table at the end; SL_DISCS_CELLS=FOLDER "
        "keeps cells"
    )
    return words if config.getoption("markexpr") == "published" else None


def pytest_terminal_summary(terminalreporter):
    """Shows every comparison with a published number in one table, also those that workers made."""
    if lines := comparisons(terminalreporter.stats):
        terminalreporter.section("beside the published numbers")
        for line in lines:
            terminalreporter.write_line(line)


def pytest_sessionstart():
    """Opens JAX's devices, whose number commands choose in a process where they are not
    open yet.
    """
    jax.local_devices()


@pytest.fixture(scope="module", autouse=True)
def programs_of_one_file():
    """Has JAX forget the programs of a file of tests after it: those of all files would take
    gigabytes.
    """
    yield
    jax.clear_caches()


# Modules that compute on arrays. Those that hold what Numba compiles or what users call with wrong
# arguments, to be told so in words, are left out.
CHECKED = [
    *("samplers", "localization", "engines.program", "engines.reference", "experiment"),
    *(f"models.{name}" for name in ("exact_sums", "functions", "model", "quadratic", "terms")),
    *(f"solving.{name}" for name in ("result", "rounds")),
]
# Numbers are left out: the code checks settings itself, in words, and takes NumPy's numbers too.
NUMBERS = "beartype.FrozenDict({int: object, float: object})"
BEARTYPE = f"beartype.beartype(conf=beartype.BeartypeConf(hint_overrides={NUMBERS}))"
install_import_hook([f"sl_discs.{name}" for name in CHECKED], BEARTYPE)


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs `sl-discs` without a new process, which would import JAX again; its exit code, output
    and errors.
    """
    import jax

    from sl_discs.commands.main import main

    jax.devices()  # so that no command changes how many there are
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setattr(sys, "path", [*sys.path])

    def command(*arguments):
        code = main(["sl-discs", *map(str, arguments)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def refusal(command):
    """The one line with which a command refuses arguments."""

    def refusal(*arguments):
        code, out, err = command(*arguments)
        assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1, (
            code,
            out,
            err,
        )
        return err

    return refusal


@pytest.fixture
def script(tmp_path):
    """Runs a script such as `studies/laws.py` in a process and a folder of its own; returns what it
    prints.
    """

    def run(path, *arguments):
        command = [sys.executable, Path(__file__).parents[1] / path, *arguments]
        environment = os.environ | {"JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def edited():
    """Edits a file of `Result.save` or `Samples.save`: its arrays, or values in its JSON text."""

    def edit(path, changes):
        with np.load(path) as file:
            arrays = dict(file)
        text = json.loads(str(arrays["json"]))
        for name, change in changes.items():
            whole = arrays if name in arrays else text
            whole[name] = change(whole[name]) if callable(change) else change
        np.savez(path, **arrays | {"json": np.array(json.dumps(text))})
        return path

    return edit
