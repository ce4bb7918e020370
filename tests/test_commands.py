"""`sl-discs`: its list of commands, the name that it does not know, and what starting it imports."""

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sl_discs
from sl_discs import own_code
from sl_discs.commands.main import COMMANDS, GROUPS, command_of, main
from sl_discs.experiment.progress import progress_bar
from sl_discs.terminal import tell

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(flag, capsys):
    assert main(["sl-discs", flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: sl-discs COMMAND") and not err
    for name, (_, words) in (one for commands in GROUPS.values() for one in commands.items()):
        assert f"  {name} " in out and words in out


def test_the_version(capsys):
    assert main(["sl-discs", "--version"]) == 0
    assert capsys.readouterr().out == f"sl-discs {sl_discs.__version__}\n"


def test_a_reader_that_has_left_costs_no_answers(tmp_path, monkeypatch, capfd):
    """As after `| head -1`."""
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    reading, writing = os.pipe()
    os.close(reading)
    saved = tmp_path / "answers.json"
    with os.fdopen(writing, "w") as nobody, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", nobody)
        assert main(["sl-discs", "--version"]) == 0
        assert main(["sl-discs", "solve", str(tmp_path / "g.edges"), "--problem=maxcut", f"--save={saved}"]) == 0
    assert main(["sl-discs", "check", str(tmp_path / "g.edges"), str(saved)]) == 0
    assert not capfd.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_on_a_full_disk_costs_no_answers(tmp_path, monkeypatch, capfd):
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    saved = tmp_path / "answers.json"
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(["sl-discs", "solve", str(tmp_path / "g.edges"), "--problem=maxcut", f"--save={saved}"]) == 0
    assert main(["sl-discs", "check", str(tmp_path / "g.edges"), str(saved)]) == 0
    said = "warning: the output cannot be written (No space left on device); the command continues\n"
    assert capfd.readouterr().err == said


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_closed_streams_cost_no_answers(tmp_path, closed):
    """A daemon's; what is written to a file must not be what was meant for the terminal."""
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    command = f"{sys.executable} -m sl_discs solve g.edges --problem=maxcut --save=answers.json {closed}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and not done.stderr
    [answer] = json.loads((tmp_path / "answers.json").read_text())["answers"]
    assert answer["value"] == 2


def test_lines_to_a_closed_error_stream_are_left_out(monkeypatch):
    for stream in (None, io.StringIO()):
        if stream is not None:
            stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
        tell("compiling")
        with progress_bar(3) as advance:
            advance("gwg", 3)


def test_names_outside_of_an_encoding_are_escaped(tmp_path):
    for name, shown in (("café", r"caf\xe9"), (os.fsdecode(b"caf\xe9"), r"caf\udce9")):
        (tmp_path / f"{name}.edges").write_text("0 1\n1 2\n2 0\n")
        flags = "--problem=maxcut", "--nopresolve", "--save=answers.json", "--plot=figure.png"
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
        command = [sys.executable, "-m", "sl_discs", "solve", f"{name}.edges", *flags]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"{shown}: maxcut of {shown}.edges" in done.stdout and "plot: figure.png" in done.stdout
        assert (tmp_path / "figure.png").exists()


_ON_A_SET = "--dataset=mis/er_density/r-0.10", "--sampler=gwg", "--trials=1", "--storage={0}/t", "--output={0}/o"
_EXPERIMENT = (
    "--config=configs/experiment/mis/er_density.py", "--model_config=configs/model/mis_config.py", "--samplers=gwg",
    "--config.experiment.save_root={0}/r", "--config.experiment.num_instances=1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("JAX_PLATFORMS", "cuda", "JAX_PLATFORMS is 'cuda', and JAX finds no such device here"),
        ("JAX_PLATFORMS", "tpu", "JAX_PLATFORMS is 'tpu', and JAX finds no such device here (Unable to initialize"),
        ("NUMBA_DISABLE_JIT", "1", "NUMBA_DISABLE_JIT is set"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("solve", "{0}/g.edges", "--problem=maxcut"),
        ("sample", "{0}/g.edges", "--problem=maxcut", "--temperature=1"),
        pytest.param(("run", *_EXPERIMENT), marks=pytest.mark.slow),
        pytest.param(("tune", *_ON_A_SET), marks=pytest.mark.slow),
    ],
    ids=lambda command: command[0],
)
def test_a_machine_that_lacks_what_the_environment_asks_for_is_told_so_in_one_line(
    tmp_path, variable, value, said, command
):
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n")
    arguments = [argument.format(tmp_path) for argument in command]
    done = subprocess.run(
        [sys.executable, "-m", "sl_discs", *arguments], cwd=ROOT, env=os.environ | {variable: value},
        capture_output=True, text=True,
    )  # fmt: skip
    if variable == "JAX_PLATFORMS" and done.returncode in (0, 1):
        pytest.skip("this machine has such a device")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr


def test_what_a_terminal_would_obey_is_escaped(tmp_path, capsys):
    """Of names, labels and messages: a file must not clear the screen, or add a line `verified`."""
    path = tmp_path / "a\x1b[2J\nverified.gml"
    labels = ["a\x1b[2Jb", "\x9b2J", "b\u202ec"]
    nodes = "".join(f'node [ id {k} label "{label}" ] ' for k, label in enumerate(labels))
    path.write_text(f"graph [ {nodes} edge [ source 0 target 1 ] ]", encoding="utf-8")
    said = []
    for arguments in (["solve"], ["sample", "--temperature=1"]):
        assert main(["sl-discs", *arguments, str(path), "--problem=mis"]) in (0, 1)
        said.append(capsys.readouterr().out)
    assert r"a\x1b[2Jb" in said[1] and r"\x9b2J" in said[1] and r"b\u202ec" in said[1]
    path.write_text('graph [ node [ id 0 label "\x1b[2J" ] node ]')
    assert main(["sl-discs", "solve", str(path), "--problem=mis"]) == 2
    said.append(capsys.readouterr().err)
    for text in said:
        assert r"a\x1b[2J" in text and text.replace("\n", "").isprintable()
        assert not any(line.startswith("verified") for line in text.splitlines())


def test_help_of_a_group_lists_its_commands(capsys):
    assert main(["sl-discs", "discs", "--help"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: sl-discs discs COMMAND") and not err
    assert "  archive " in out and "solve" not in out and "tune" not in out


def test_each_file_has_commands():
    """But for what several commands share."""
    files = {path.stem for path in (ROOT / "sl_discs" / "commands").glob("*.py")}
    assert files - {"__init__", "main", "problem_file"} == {place.split(".")[0] for place in COMMANDS.values()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["slove", "--help"], "unknown command 'slove'"),
        ([], "no command after sl-discs"),
        (["--seed=1"], "unknown command '--seed=1'"),
        (["discs"], "no command after sl-discs discs"),
        (["discs", "dta", "--help"], "unknown command 'discs dta'"),
    ],
)
def test_another_name_is_one_line_and_exit_code_2(arguments, said, capsys):
    assert main(["sl-discs", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error: {said}; expected ") and err.count("\n") == 1
    group = "discs " if "discs" in arguments else ""
    assert all(name.removeprefix(group).split()[0] in err for name in COMMANDS if name.startswith(group))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "list", "--retry"], "--retry has no effect in `sweep list`"),
        (["tune", "more"], "unexpected argument 'more'"),
    ],
)
def test_what_would_be_ignored_is_refused(arguments, said, capsys):
    assert main(["sl-discs", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error: {said}") and err.count("\n") == 1


def test_the_script_and_the_package_are_one_program():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert declared == {"sl-discs": f"{main.__module__}:{main.__name__}"}
    module = [sys.executable, "-X", "importtime", "-m", "sl_discs", "--help"]
    done = subprocess.run(module, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.startswith("usage: sl-discs COMMAND")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "sl_discs.commands.main" in imported and not imported & {"jax", "numba", "scipy", "networkx"}


def test_a_command_does_not_hide_the_function_of_its_name():
    """A module `sl_discs.solve` would take the function's place once it is imported."""
    for name in COMMANDS:
        command_of(name)
    assert callable(sl_discs.solve)
    root = {path.stem for path in Path(sl_discs.__file__).parent.glob("*") if path.suffix == ".py" or path.is_dir()}
    assert not root & set(sl_discs.__all__)


def test_a_config_that_is_not_there_is_one_plain_line(refusal):
    """As outside of the clone, where there is no folder configs/."""
    configs = {"config": "experiment/mis/er_density", "model_config": "model/mis_config"}
    for name, path in configs.items():
        others = [f"--{other}=configs/{configs[other]}.py" for other in configs if other != name]
        said = refusal("run", f"--{name}=elsewhere/{path}.py", *others, "--samplers=gwg")
        assert (
            f"--{name}: there is no file elsewhere/{path}.py in {ROOT}; the folder configs/ is in the clone" in said
        )


@pytest.mark.parametrize("name", ["run", "sweep", "tune", "reproduce", "solve", "sample"])
def test_every_command_imports_code_of_the_user(name, capsys):
    assert main(["sl-discs", *name.split(), "--import=none.py"]) == 2
    assert capsys.readouterr().err == "error: --import=none.py: there is no such file\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\ny = unknown", "line 2: NameError: name 'unknown' is not defined"),
        ("def f(:", "SyntaxError: invalid syntax (broken_code.py, line 1)"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
        ("from sl_discs.samplers import register_sampler as r\nr('gwg', dict)", "line 2: sampler 'gwg' is already"),
    ],
)
def test_code_that_cannot_be_imported_is_one_line_and_exit_code_2(code, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])  # which the folder is added to
    file = tmp_path / "broken_code.py"
    file.write_text(code)
    assert main(["sl-discs", "tune", f"--import={file}", "--dataset=mis/ertest/r-800", "--sampler=mine"]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error: --import={file}: {said}") and err.count("\n") == 1


def test_code_that_does_not_register_the_sampler_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(own_code, "_IMPORTED", {})
    file = tmp_path / "registers_nothing.py"
    file.write_text("")
    arguments = ["--config=configs/experiment/mis/er_density.py", "--model_config=configs/model/mis_config.py"]
    monkeypatch.chdir(ROOT)
    assert main(["sl-discs", "run", f"--import={file}", "--samplers=mine", *arguments]) == 2
    assert f"unknown sampler 'mine'; not registered by --import={file}; known: gwg, " in capsys.readouterr().err


def test_a_module_in_use_is_not_replaced(tmp_path, capsys):
    file = tmp_path / "numpy.py"
    file.touch()
    assert main(["sl-discs", "solve", f"--import={file}"]) == 2
    assert "there already is a module numpy; rename the file" in capsys.readouterr().err
