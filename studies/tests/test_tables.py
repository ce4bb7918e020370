"""The ages of the numbers on pages, which docs/tables.py counts in commits."""

import json
import subprocess
import sys
from pathlib import Path

import tables

from sl_discs.experiment import record

ROOT = Path(__file__).parents[2]


def test_an_unknown_name_is_named_with_those_there_are():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "tables.py", "--check=nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode == 1
        and "--check=nothing: no numbers of this name; there are rates, gpu" in done.stderr
    )


def test_the_age_of_a_measured_number_counts_the_commits_to_its_code(tmp_path, monkeypatch):
    def git(*words):
        given = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *given, *words], check=True, capture_output=True)

    def committed(name, text):
        (tmp_path / name).write_text(text)
        git("add", "-A")
        git("commit", "-m", name)

    git("init")
    committed("code.py", "1")
    made = {
        "commit": tables.git(tmp_path, "rev-parse", "HEAD"),
        "date": "2026-01-01",
        "machine": "m",
    }
    committed("numbers.json", json.dumps({"measured": made}))
    installed = tmp_path / "lib" / "sl_discs" / "experiment" / "record.py"
    installed.parent.mkdir(parents=True)
    monkeypatch.setattr(record, "__file__", str(installed))
    assert record.commit() == "unknown"  # the repository around it is another project's
    monkeypatch.setattr(record, "__file__", str(tmp_path / "sl_discs" / "experiment" / "record.py"))
    (tmp_path / "page.md").write_text("A page that was not there.")
    git("add", "page.md")
    assert not record.commit().endswith("+")  # pages are no code
    (tmp_path / "code.py").write_text("3")
    assert record.commit().endswith("+")
    git("checkout", "code.py")
    assert tables.age(tmp_path / "numbers.json", ["code.py"]) == (
        f"{made['commit']} of 2026-01-01, m; no later commit changed its code", True,
    )  # fmt: skip
    committed("code.py", "2")
    words, is_new = tables.age(tmp_path / "numbers.json", ["code.py"])
    assert words.endswith("m; 1 later commit changed its code") and not is_new
    assert tables.age(tmp_path / "numbers.json", ["other.py"])[1]
    committed("numbers.json", "{}")
    words, is_new = tables.age(tmp_path / "numbers.json", ["code.py"])
    assert words.startswith("no commit recorded; the file is from ") and not is_new
