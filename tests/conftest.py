"""What the tests of the package share: fixtures, and array arguments that are checked against
their annotations.
"""

import gc
import json
import signal
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from compared import comparisons
from jaxtyping import install_import_hook
from session import (  # noqa: F401 (pytest finds them here)
    programs_of_one_file,
    pytest_collection_finish,
    pytest_configure,
    pytest_runtest_protocol,
    pytest_sessionstart,
)


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
def quickly_compiled():
    """Has XLA optimize little, which takes a third off the CPU time of tests whose programs run for
    a moment.
    """
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def limits_in_cpu_time(monkeypatch):
    """Counts time limits, and all that is measured for them, in CPU-seconds of the process.

    Nothing is searched for garbage, which takes up to a second at a time after many tests.
    """
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    gc.disable()
    yield
    gc.enable()


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


# Modules that compute on arrays. Those that hold what Numba compiles or what users call with wrong
# arguments, to be told so in words, are left out.
CHECKED = [
    *("samplers", "localization", "engines.program", "engines.reference", "experiment"),
    *(f"models.{name}" for name in ("exact_sums", "functions", "model", "quadratic", "terms")),
    *(f"solving.{name}" for name in ("result", "policy")),
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

    from sl_discs.commands.main import main

    jax.devices()  # so that no command changes how many there are
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setattr(sys, "path", [*sys.path])

    def command(*arguments):
        code = main(["sl-discs", *map(str, arguments)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def own_samplers(monkeypatch):
    """Has the samplers forgotten that a test registers: other tests look at what is registered."""
    from sl_discs.samplers import registry

    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


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
