"""The budget of `sample` and `solve`: time without compilation, and interruption."""

import time

import pytest

from sl_discs.chains import budget
from sl_discs.chains.budget import Budget


@pytest.fixture
def clock(monkeypatch):
    """Seconds of the wall clock, and those of compilation among them."""
    now = {"wall": 100.0, "compiling": 7.0}
    monkeypatch.setattr(time, "perf_counter", lambda: now["wall"])
    monkeypatch.setattr(budget, "compile_seconds", lambda: now["compiling"])
    return now


def test_compilation_does_not_count(clock):
    of_run = Budget(10.0)
    half = of_run.after(0.5)
    clock["wall"] += 24.0
    clock["compiling"] += 20.0
    assert (of_run(), of_run.compiling(), of_run.left()) == (4.0, 20.0, 6.0)
    assert not half() and not of_run.is_over()
    clock["wall"] += 2.0
    assert of_run.left() == 4.0 and half() and not of_run.is_over()
    clock["wall"] += 4.0
    assert of_run.is_over() and not of_run.interrupted


def test_an_interruption_stands(clock):
    answers = iter([False, True])
    of_run = Budget(interrupt=lambda: next(answers))
    of_run.check_interrupt()
    with pytest.raises(KeyboardInterrupt):
        of_run.check_interrupt()
    clock["wall"] += 1e9
    assert of_run.is_over() and of_run.interrupted and of_run.left() == float("inf")
