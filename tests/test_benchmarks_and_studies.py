"""The scripts of benchmarks/ and studies/: their help, and that a wrong flag is one line and exit code 2."""

import importlib
import re
import sys
from pathlib import Path

import jax
import pytest
from absl import flags

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    path.stem: path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "studies")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__main__" in path.read_text()
}


@pytest.fixture
def run(capsys, monkeypatch):
    jax.devices()  # so that no script changes how many there are
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(name, *arguments):
        code = importlib.import_module(name).main([SCRIPTS[name], *arguments])
        return code, *capsys.readouterr()

    return run


def test_there_are_seven_benchmarks_and_eleven_studies_and_their_readmes_name_them():
    assert list(SCRIPTS) == [
        "covers",
        "discs_overhead",
        "localization",
        "networkx_functions",
        "rates",
        "sampling",
        "updates",
        "claim",
        "tilt",
        "convergence",
        "energy",
        "best_known",
        "field",
        "laws",
        "readings",
        "samplers",
        "theory",
        "verdicts",
    ]
    for path in SCRIPTS.values():
        assert f"python {path}" in (ROOT / Path(path).parts[0] / "README.md").read_text()


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_is_complete(name, run):
    code, out, err = run(name, "--help")
    assert code == 0 and err == "" and out.startswith(f"usage: python {SCRIPTS[name]} ")
    module = importlib.import_module(name)
    assert module.__doc__.strip() in out
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    assert set(module.FLAGS) and set(module.FLAGS) <= set(listed)
    assert not set(flags.FLAGS.flags_by_module_dict()) & set(SCRIPTS)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        *((name, "--no_such_flag=1", f"'no_such_flag'; see python {path} --help") for name, path in SCRIPTS.items()),
        ("rates", "--engines=gpu", "--engines: 'gpu' is not available; there are reference"),
        ("rates", "--samplers=gw", "--samplers: 'gw' is not available"),
        ("rates", "--cases=x", "--cases: 'x' is not available"),
        ("rates", "--seconds=3 --engines=cpu --samplers=gwg", "--seconds has no effect unless"),
        ("sampling", "--peers=x", "--peers: 'x' is not available"),
        ("updates", "--cases=x", "--cases: 'x' is not available"),
        ("networkx_functions", "--cases=x", "--cases: 'x' is not available"),
        ("localization", "--samplers=sl_gwg", "--samplers: 'sl_gwg' is not available"),
        ("laws", "--targets=x", "--targets: 'x' is not available"),
        ("laws", "--methods=x", "--methods: 'x' is not available"),
        ("laws", "--seconds=0", "seconds is 0.0; expected a finite number above 0"),
        ("laws", "--seconds=x", "seconds are x"),
        ("samplers", "--cases=x", "--cases: 'x' is not available"),
    ],
)
def test_wrong_flags_are_one_line(name, wrong, message, run):
    code, out, err = run(name, *wrong.split())
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
