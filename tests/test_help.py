"""--help of every command: exit code 0, its usage, what it does, and its own flags with their meanings."""

import ast
import contextlib
import importlib
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest
from absl import flags

import sl_discs
from sl_discs.commands.main import COMMANDS, main
from sl_discs.discs_plugin import launch

PACKAGE = Path(sl_discs.__file__).parent


def commands():
    """What starts each command: `sl-discs NAME`, or a module, but for the program that a sweep's worker starts."""
    yield from (f"sl-discs {name}" for name in COMMANDS)
    for path in sorted(PACKAGE.glob("**/*.py")):
        if '__name__ == "__main__"' in path.read_text() and path.stem != "tied":
            yield "python -m " + ".".join(("sl_discs", *path.relative_to(PACKAGE).with_suffix("").parts))


@contextlib.contextmanager
def no_flags_of_others():
    """absl keeps one set of flags for a process; commands that were imported before have put theirs into it."""
    kept = dict(vars(flags.FLAGS))
    vars(flags.FLAGS).update(vars(flags.FlagValues()))
    importlib.reload(launch)  # defines flags that several commands have
    try:
        yield
    finally:
        vars(flags.FLAGS).clear()
        vars(flags.FLAGS).update(kept)


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", list(commands()))
def test_help_is_complete(command, flag, monkeypatch, capsys):
    name = command.split()[-1]
    module = COMMANDS[name][0] if name in COMMANDS else name
    source = PACKAGE.parent / (module.replace(".", "/") + ".py")
    monkeypatch.setattr(sys, "argv", [str(source), flag])
    with no_flags_of_others(), warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        warnings.simplefilter("ignore")  # of modules that were imported before they are run
        if name in COMMANDS:
            sys.exit(main(["sl-discs", name, flag]))
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    tree = ast.parse(source.read_text())
    assert out.startswith(f"usage: {command} ")
    assert ast.get_docstring(tree, clean=False).strip().removeprefix("Command: ")[1:] in out
    defined = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "").startswith("DEFINE_")
    }
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    assert defined <= set(listed) and not {"flagfile", "pdb"} & set(listed)
