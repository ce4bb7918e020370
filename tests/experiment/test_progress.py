"""A terminal has bars, a log a line a minute, a short run in a log nothing."""

import io
import sys

import pytest

from sl_discs.support import terminal


@pytest.fixture
def at(monkeypatch):
    """Sets the time in seconds."""
    clock = {"now": 0.0}
    monkeypatch.setattr("tqdm.std.time", lambda: clock["now"])
    return lambda now: clock.update(now=float(now))


@pytest.mark.parametrize(("resumed", "done"), [(0, (300, 600)), (200, (500, 800))])
def test_a_log_has_a_line_a_minute(resumed, done, at, capsys):
    """Of five steps a second; what was done before a resume does not count for the rate."""
    with terminal.progress_bar(2_000, "", "part 1 of 2") as advance:
        advance("gwg", resumed)
        for seconds in range(10, 130, 10):
            at(seconds)
            advance("gwg", 50, f"best {seconds}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line, count, seconds in zip(lines, done, (60, 120), strict=True):
        left = divmod((2_000 - count) // 5, 60)
        assert line.startswith("gwg, part 1 of 2: ")
        assert f" {left[0]:02d}:{left[1]:02d} left, best {seconds}" in line


def test_a_short_run_leaves_nothing_in_a_log(at, capsys):
    with terminal.progress_bar(100) as advance:
        for seconds in 0, 20:
            at(seconds)
            advance("gwg", 50)
    assert capsys.readouterr().err == ""


def test_estimates_forget_compilation(at, capsys):
    """After 100 s of compilation and 1 s a unit, the last line is off by less than a quarter."""
    with terminal.progress_bar(1_000) as advance:
        advance("gwg", 0)
        for unit in range(1, 901):
            at(100 + unit)
            advance("gwg", 1)
    last = capsys.readouterr().err.splitlines()[-1]
    done = int(last.split(": ")[1].split(" of ")[0])
    minutes, seconds = map(int, last.split(", ")[1].split(" left")[0].split(":"))
    assert 0.75 < (60 * minutes + seconds) / (1_000 - done) < 1.25


def test_a_terminal_has_bars(at, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    at(0)
    with terminal.progress_bar(100) as advance:
        advance("gwg", 0)
        assert "gwg" in stream.getvalue() and "compiling" in stream.getvalue()
        at(110)
        advance("gwg", 10)
        advance("sl_gwg", 20)
    last = stream.getvalue().replace("\n", "\r").split("\r")
    assert any("gwg" in line and "10" in line and "compiling" not in line for line in last)
    assert any(line.startswith("sl_gwg") for line in last)
