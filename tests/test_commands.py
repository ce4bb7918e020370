"""`sl-discs`: its commands, their help, what they say to wrong input, and where output cannot be
written.
"""

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from absl import flags

import sl_discs
from sl_discs.commands.main import COMMANDS, GROUPS, command_of, main
from sl_discs.localization.schedule import Localization
from sl_discs.support.terminal import progress_bar, tell

ROOT = Path(__file__).parents[1]


def refused(capsys, said, *arguments):
    """Whether arguments are refused with exit code 2, in one line."""
    assert main(["sl-discs", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    return not out and err.startswith("error: ") and said in err and err.count("\n") == 1


# Help, and names.


def test_help_lists_the_commands(capsys):
    assert main(["sl-discs", "--help"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: sl-discs COMMAND") and not err
    for name, (_, words) in (one for commands in GROUPS.values() for one in commands.items()):
        assert f"  {name} " in out and words in out
    assert main(["sl-discs", "discs", "-h"]) == 0
    out = capsys.readouterr().out
    assert (
        out.startswith("usage: sl-discs discs COMMAND")
        and "  archive " in out
        and "solve" not in out
    )
    assert main(["sl-discs", "--version"]) == 0
    assert capsys.readouterr().out == f"sl-discs {sl_discs.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete(name, capsys):
    assert main(["sl-discs", *name.split(), "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith(f"usage: sl-discs {name} ")
    assert not re.search(r"=\S+ {3,}--", out)  # a lost line break of an example
    command = command_of(name)
    assert command.words and inspect.cleandoc(command.words) in out
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    own = set(command.flags)
    assert own and own <= set(listed) and not {"flagfile", "pdb"} & set(listed)
    for steps in re.findall(r"chain_length=(\d+)", command.words):
        Localization().levels(int(steps))  # the example is long enough for localized samplers
    assert main(["sl-discs", *name.split(), "--no_such_flag=1"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    # Programs of DISCS are asked for their flags, if there is one and its script is named.
    others = ("discs of google-research is not importable", "the first argument names the script")
    assert f"'no_such_flag'; see sl-discs {name} --help" in err or any(
        words in err for words in others
    )


def test_commands_share_no_flags():
    """Importing a command adds nothing to the flags of the process, nor to those of another
    command.
    """
    sets = [command_of(name).flags for name in COMMANDS]
    assert len({id(one) for one in sets}) == len(COMMANDS)
    assert not [name for name in flags.FLAGS.flags_by_module_dict() if name.startswith("sl_discs.")]


# Files that hold no command.
SHARED = {"__init__", "command", "launch", "main", "problem_file"}


def test_each_file_has_commands_that_hide_no_function():
    """A module `sl_discs.solve` would take the function's place once it is imported."""
    files = {path.stem for path in (ROOT / "sl_discs" / "commands").glob("*.py")}
    assert files - SHARED == {place.split(".")[0] for place in COMMANDS.values()}
    for name in COMMANDS:
        command_of(name)
    assert callable(sl_discs.solve)
    root = {
        path.stem
        for path in Path(sl_discs.__file__).parent.glob("*")
        if path.suffix == ".py" or path.is_dir()
    }
    assert not root & set(sl_discs.__all__)


def test_an_unknown_home_folder_is_said(monkeypatch, capsys):
    monkeypatch.setattr(os.path, "expanduser", str)
    assert refused(
        capsys, "--save=~/a.json: the home folder is not known", "solve", "g", "--save=~/a.json"
    )


def test_the_script_and_the_package_are_one_program():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert declared == {"sl-discs": f"{main.__module__}:{main.__name__}"}
    module = [sys.executable, "-X", "importtime", "-m", "sl_discs", "--help"]
    done = subprocess.run(module, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.startswith("usage: sl-discs COMMAND")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "sl_discs.commands.main" in imported and not imported & {
        "jax",
        "numba",
        "scipy",
        "networkx",
    }


# Streams that cannot be written to.


@pytest.fixture
def triangle(tmp_path):
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    return tmp_path / "g.edges"


def run(folder, command, **environment):
    """Runs the program in a process of its own."""
    return subprocess.run(
        f"{sys.executable} -m sl_discs {command}", shell=True, cwd=folder, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip


@pytest.mark.parametrize("reader", ["left", "full"])
def test_an_output_that_nobody_reads_costs_no_answers(triangle, monkeypatch, capfd, reader):
    """As after `| head -1`, or on a full disk."""
    if reader == "full" and not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    saved = triangle.with_name("answers.json")
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w") if reader == "left" else Path("/dev/full").open("w")  # noqa: SIM115
    with stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert (
            main(["sl-discs", "solve", str(triangle), "--problem=maxcut", f"--save={saved}"]) == 0
        )
    assert main(["sl-discs", "check", str(triangle), str(saved)]) == 0
    said = (
        "warning: the output cannot be written (No space left on device); the command continues\n"
    )
    assert capfd.readouterr().err == ("" if reader == "left" else said)


def test_closed_streams_cost_no_answers(triangle, monkeypatch):
    """A daemon's; what is written to a file must not be what was meant for the terminal."""
    done = run(triangle.parent, "solve g.edges --problem=maxcut --save=answers.json >&- 2>&- <&-")
    assert done.returncode == 0
    [answer] = json.loads(triangle.with_name("answers.json").read_text())["answers"]
    assert answer["value"] == 2
    monkeypatch.setattr(sys, "stderr", None)
    tell("compiling")
    with progress_bar(3) as advance:
        advance("gwg", 3)


def test_names_outside_of_an_encoding_are_escaped(triangle):
    triangle.rename(triangle.with_name("café.edges"))
    done = run(triangle.parent, "solve caf*.edges --problem=maxcut", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert r"caf\xe9: maxcut of caf\xe9.edges" in done.stdout


def test_what_a_terminal_would_obey_is_escaped(tmp_path, capsys):
    """Of names, labels and messages: a file must not clear the screen, or add a line `verified`."""
    path = tmp_path / "a\x1b[2J\nverified.gml"
    labels = ["a\x1b[2Jb", "\x9b2J", "b\u202ec"]
    nodes = "".join(f'node [ id {k} label "{label}" ] ' for k, label in enumerate(labels))
    path.write_text(f"graph [ {nodes} edge [ source 0 target 1 ] ]", encoding="utf-8")
    assert main(["sl-discs", "sample", str(path), "--problem=mis", "--temperature=1"]) in (0, 1)
    said = [capsys.readouterr().out]
    assert r"a\x1b[2Jb" in said[0] and r"\x9b2J" in said[0] and r"b\u202ec" in said[0]
    path.write_text('graph [ node [ id 0 label "\x1b[2J" ] node ]')
    assert main(["sl-discs", "solve", str(path), "--problem=mis"]) == 2
    said.append(capsys.readouterr().err)
    for text in said:
        assert r"a\x1b[2J" in text and text.replace("\n", "").isprintable()
        assert not any(line.startswith("verified") for line in text.splitlines())


# Machines, configs and code of the user.


@pytest.mark.parametrize(
    ("command", "variable", "value", "said"),
    [
        (
            "solve",
            "JAX_PLATFORMS",
            "cuda",
            "JAX_PLATFORMS is 'cuda', and JAX finds no such device here",
        ),
        ("solve", "NUMBA_DISABLE_JIT", "1", "NUMBA_DISABLE_JIT is set"),
    ],
)
def test_a_machine_that_lacks_what_the_environment_asks_for(
    triangle, variable, value, said, command
):
    done = run(triangle.parent, f"{command} g.edges --problem=maxcut", **{variable: value})
    if variable == "JAX_PLATFORMS" and done.returncode in (0, 1):
        pytest.skip("this machine has such a device")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr


def test_every_command_imports_code_of_the_user(capsys):
    for name in ("run", "sweep", "reproduce", "solve", "sample"):
        assert refused(
            capsys, "--import=none.py: there is no such file\n", name, "--import=none.py"
        )
