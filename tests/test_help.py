"""--help of every command: exit code 0, its usage, what it does, and its own flags with their meanings."""

import inspect
import re

import pytest
from absl import flags

from sl_discs.commands.main import COMMANDS, command_of, main
from sl_discs.localization.schedule import Localization


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete(name, flag, capsys):
    assert main(["sl-discs", *name.split(), flag]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith(f"usage: sl-discs {name} ")
    assert not re.search(r"=\S+ {3,}--", out)  # a lost line break of an example
    command = command_of(name)
    assert command.words and inspect.cleandoc(command.words) in out
    listed = re.findall(r"^  --(?:\[no\])?(\w+): \S", out.partition("\nflags:\n")[2], re.MULTILINE)
    own = set(command.flags)
    assert own and own <= set(listed) and not {"flagfile", "pdb"} & set(listed)


@pytest.mark.parametrize("name", COMMANDS)
def test_chains_of_examples_are_long_enough_for_localized_samplers(name):
    for steps in re.findall(r"chain_length=(\d+)", command_of(name).words or ""):
        Localization().levels(int(steps))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_flag_is_one_line_and_exit_code_2(name, capsys):
    assert main(["sl-discs", *name.split(), "--no_such_flag=1"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert f"'no_such_flag'; see sl-discs {name} --help" in err or "package discs is not importable" in err


def test_commands_share_no_flags():
    """Importing a command adds nothing to the flags of the process, nor to those of another command."""
    sets = [command_of(name).flags for name in COMMANDS]
    assert len({id(one) for one in sets}) == len(COMMANDS)
    assert not [name for name in flags.FLAGS.flags_by_module_dict() if name.startswith("sl_discs.")]
