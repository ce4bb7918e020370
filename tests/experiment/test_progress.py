"""A terminal has bars, a log a line early and one a minute, a short run in a log nothing."""

import io
import sys

import pytest

from sl_discs.support import terminal


@pytest.fixture
def at(monkeypatch):
    """Sets the time in seconds; what compiles takes the first `compiling` ones."""
    clock = {"now": 0.0, "compiling": 0.0}
    monkeypatch.setattr(terminal.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(terminal, "_compiled", lambda: min(clock["now"], clock["compiling"]))
    return lambda now, **more: clock.update(now=float(now), **more)


@pytest.mark.parametrize(
    ("resumed", "lines"),
    [
        (0, ["50 of 1,000 (5%), about 3 minutes", "350 of 1,000 (35%), about 2 minutes"]),
        (200, ["250 of 1,000 (25%), about 2 minutes", "550 of 1,000 (55%), about 90 seconds"]),
    ],
)
def test_a_log_has_a_line_a_minute(resumed, lines, at, capsys):
    """Of five steps a second; what was done before a resume does not count for the rate."""
    with terminal.progress_bar(1_000, "", "part 1 of 2") as advance:
        advance("gwg", resumed)
        for seconds in range(10, 90, 10):
            at(seconds)
            advance("gwg", 50, f"best {seconds}")
    said = [f"gwg, part 1 of 2: {line} left, best {s}" for line, s in zip(lines, (10, 70), strict=True)]
    assert capsys.readouterr().err.splitlines() == said


def test_a_terminal_has_bars_and_estimates_leave_out_compilation(at, monkeypatch, capsys):
    """100 s of compilation and 1 s a unit: a run of 100 units has about 90 s left after 10."""
    pytest.importorskip("tqdm")
    at(0, compiling=100.0)
    with terminal.progress_bar(100) as advance:
        for seconds, done in (0, 0), (110, 10):
            at(seconds)
            advance("gwg", done)
    assert "about 90 seconds left" in capsys.readouterr().err
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
