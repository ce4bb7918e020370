"""A terminal has bars, a log a line a minute, a short run in a log nothing."""

import io
import sys

import pytest

from sl_discs.experiment import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_has_a_line_a_minute(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress_bar(1_000, label="host 1 of 2") as advance:
        for seconds in range(0, 150, 10):
            now[0] = float(seconds)
            advance("gwg", 50)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "gwg, host 1 of 2: 350 of 1,000 (35%) chain-steps",
        "gwg, host 1 of 2: 650 of 1,000 (65%) chain-steps",
    ]


def test_a_terminal_has_bars(monkeypatch):
    pytest.importorskip("tqdm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.progress_bar(None) as advance:
        advance("gwg", 0)
        assert "gwg" in stream.getvalue() and "compiling" in stream.getvalue()
        advance("gwg", 30)
        advance("sl_gwg", 10)
    last = stream.getvalue().replace("\n", "\r").split("\r")
    assert any("gwg" in line and "30" in line and "compiling" not in line for line in last)
    assert any(line.startswith("sl_gwg") for line in last)
