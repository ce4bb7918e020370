"""`sl-discs`: its commands and their help, and where output cannot be written."""

import inspect
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from absl import flags
from programs import call, python

import sl_discs
from sl_discs.commands.main import COMMANDS, GROUPS, command_of, main
from sl_discs.localization.schedule import Localization
from sl_discs.support.terminal import progress_bar, tell

ROOT = Path(__file__).parents[1]


def test_help_lists_the_commands(command):
    code, out, err = command("--help")
    assert code == 0 and out.startswith("usage: sl-discs COMMAND") and not err
    for name, (_, words) in (one for commands in GROUPS.values() for one in commands.items()):
        assert f"  {name} " in out and words in out
    _, out, _ = command("discs", "-h")
    assert out.startswith("usage: sl-discs discs COMMAND") and "solve" not in out
    assert command("--version") == (0, f"sl-discs {sl_discs.__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete_and_a_wrong_flag_is_one_line(name, command):
    code, out, err = command(*name.split(), "--help")
    assert code == 0 and err == "" and out.startswith(f"usage: sl-discs {name} ")
    assert not re.search(r"=\S+ {3,}--", out)  # a lost line break of an example
    found = command_of(name)
    assert found.words and inspect.cleandoc(found.words) in out
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    own = set(found.flags)
    assert own and own <= set(listed) and not {"flagfile", "pdb"} & set(listed)
    for steps in re.findall(r"chain_length=(\d+)", found.words):
        Localization().levels(int(steps))  # the example is long enough for localized samplers
    code, out, err = command(*name.split(), "--no_such_flag=1")
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1
    # Programs of DISCS are asked for their flags, if there is one and its script is named.
    others = ("discs of google-research is not importable", "the first argument names the script")
    assert "'no_such_flag'" in err or any(words in err for words in others)


def test_commands_share_no_flags():
    """Importing a command adds nothing to the flags of the process, nor to those of another
    command.
    """
    sets = [command_of(name).flags for name in COMMANDS]
    assert len({id(one) for one in sets}) == len(COMMANDS)
    assert not [name for name in flags.FLAGS.flags_by_module_dict() if name.startswith("sl_discs.")]


def test_no_file_hides_a_function():
    """A module `sl_discs.solve` would take the function's place once it is imported."""
    for name in COMMANDS:
        command_of(name)
    root = {path.stem for path in Path(sl_discs.__file__).parent.glob("*")}
    assert callable(sl_discs.solve) and not root & set(sl_discs.__all__)


def test_an_unknown_home_folder_is_said(monkeypatch, refusal):
    monkeypatch.setattr(os.path, "expanduser", str)
    assert refusal("solve", "g", "--save=~/a.json").startswith("error: --save=~/a.json: ")


def test_the_script_and_the_package_are_one_program():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert declared == {"sl-discs": f"{main.__module__}:{main.__name__}"}
    done = python("-X", "importtime", "-m", "sl_discs", "--help")
    assert done.stdout.startswith("usage: sl-discs COMMAND")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "sl_discs.commands.main" in imported
    assert not imported & {"jax", "numba", "scipy", "networkx"}


# Streams that cannot be written to.


@pytest.fixture
def triangle(tmp_path):
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    return tmp_path / "g.edges"


def run(folder, command, **environment):
    """Runs the program in a process of its own, as a shell does."""
    words = f"{sys.executable} -m sl_discs {command}"
    return call("sh", "-c", words, cwd=folder, **environment)


@pytest.mark.parametrize("reader", ["left", "full"])
def test_an_output_that_nobody_reads_costs_no_answers(triangle, monkeypatch, capfd, reader):
    """As after `| head -1`, or on a full disk."""
    if reader == "full" and not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    saved = triangle.with_name("answers.json")
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w") if reader == "left" else Path("/dev/full").open("w")  # noqa: SIM115
    solve = ["sl-discs", "solve", str(triangle), "--problem=maxcut", f"--save={saved}"]
    with stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(solve) == 0
    assert main(["sl-discs", "check", str(triangle), str(saved)]) == 0
    assert capfd.readouterr().err.count("warning: the output cannot") == (reader == "full")


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


def test_what_a_terminal_would_obey_is_escaped(tmp_path, command):
    """Of names, labels and messages: a file must not clear the screen, or add a line `verified`."""
    path = tmp_path / "a\x1b[2J\nverified.gml"
    labels = ["a\x1b[2Jb", "\x9b2J", "b\u202ec"]
    nodes = "".join(f'node [ id {k} label "{label}" ] ' for k, label in enumerate(labels))
    path.write_text(f"graph [ {nodes} edge [ source 0 target 1 ] ]", encoding="utf-8")
    _, out, _ = command("sample", path, "--problem=mis", "--temperature=1")
    assert r"a\x1b[2Jb" in out and r"\x9b2J" in out and r"b\u202ec" in out
    path.write_text('graph [ node [ id 0 label "\x1b[2J" ] node ]')
    _, _, err = command("solve", path, "--problem=mis")
    for text in (out, err):
        assert r"a\x1b[2J" in text and text.replace("\n", "").isprintable()
        assert not any(line.startswith("verified") for line in text.splitlines())


@pytest.mark.parametrize("name", ["JAX_PLATFORMS=cuda", "NUMBA_DISABLE_JIT=1"])
def test_a_machine_that_lacks_what_the_environment_asks_for(triangle, name):
    variable, _, value = name.partition("=")
    done = run(triangle.parent, "solve g.edges --problem=maxcut", **{variable: value})
    if variable == "JAX_PLATFORMS" and done.returncode in (0, 1):
        pytest.skip("this machine has such a device")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and variable in done.stderr


@pytest.mark.parametrize("name", ["run", "sweep", "reproduce", "solve", "sample"])
def test_every_command_imports_code_of_the_user(name, refusal):
    assert refusal(name, "--import=none.py").startswith("error: --import=none.py: ")
