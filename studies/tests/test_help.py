"""The scripts of benchmarks/ and studies/: their help, and that a wrong flag is one line and exit
code 2.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    path.stem: path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "studies")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent.name != "tests" and "__main__" in path.read_text()
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_names_every_flag_and_a_wrong_one_is_one_line(name, capsys, monkeypatch):
    jax.devices()  # so that no script changes how many there are
    monkeypatch.setattr(sys, "path", [str((ROOT / SCRIPTS[name]).parent), *sys.path])
    assert (
        f"python {SCRIPTS[name]}" in (ROOT / Path(SCRIPTS[name]).parts[0] / "README.md").read_text()
    )
    module = importlib.import_module(name)

    def run(*arguments):
        return module.main([SCRIPTS[name], *arguments]), *capsys.readouterr()

    code, out, err = run("--help")
    assert code == 0 and err == "" and out.startswith(f"usage: python {SCRIPTS[name]} ")
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    assert set(module.FLAGS) and set(module.FLAGS) <= set(listed)
    code, out, err = run("--no_such_flag=1")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and f"'no_such_flag'; see python {SCRIPTS[name]} --help" in err
    if name in ("rates", "networkx_functions", "updates", "samplers"):
        code, out, err = run("--cases=x")
        assert code == 2 and out == "" and "--cases is 'x'" in err and err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_start_as_their_page_says(name):
    """Without the folders that pytest adds to the path."""
    command = [sys.executable, SCRIPTS[name], "--help"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode == 0
