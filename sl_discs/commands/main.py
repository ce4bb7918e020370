"""`sl-discs COMMAND ...`: lists the commands, and imports and runs one of them."""

import importlib
import sys
from collections.abc import Sequence

from sl_discs import __version__
from sl_discs.commands.command import Command, asks_for_help
from sl_discs.support.checks import join_names
from sl_discs.support.errors import InputError
from sl_discs.support.terminal import open_closed_streams, say, tell

# In groups: name -> where its `Command` is in this folder, as `file.attribute`, and a description.
GROUPS = {
    "a problem in a file": {
        "solve": ("solve.main", "find the best solution, verified"),
        "check": ("solve.check", "recompute the values of answers that solve saved"),
        "sample": ("sample.main", "draw samples at a temperature, with evidence"),
        "convert": ("convert.main", "convert a file of a graph or model to another format"),
    },
    "experiments with DISCS's configs": {
        "run": ("run.main", "one experiment: compare samplers on the instances of a dataset"),
        "sweep": ("sweep.main", "perform the runs of a sweep file, here or on a Slurm cluster"),
        "reproduce": ("reproduce.main", "compare the paper's published numbers with our own"),
    },
    "a checkout of DISCS": {
        "discs main": ("discs.main", "run DISCS's own main program with this package's samplers"),
        "discs sweep": ("discs.sweep", "perform the runs of a sweep file in DISCS itself"),
        "discs plot": ("discs.plot", "run a plotting script of DISCS with this package's samplers"),
        "discs data": (
            "discs_data.data",
            "write a dataset in DISCS's formats, or as an archive",
        ),
        "discs files": ("discs_data.files", "say which of the paper's sets DISCS's data has"),
    },
}
COMMANDS = {name: place for commands in GROUPS.values() for name, (place, _) in commands.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command named by the first one or two arguments.

    Args:
      argv: the program's name and its arguments; None: those of the process.

    Returns:
      the command's exit code; 0 after the help or the version, 2 after a one-line message about an
      unknown command.
    """
    open_closed_streams()
    arguments = list(sys.argv if argv is None else argv)[1:]
    if arguments == ["--version"]:
        say(f"sl-discs {__version__}")
        return 0
    for length in (1, 2):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            try:
                command = command_of(name)
            except InputError as error:  # of what its modules need
                tell(f"error: {error}")
                return 2
            return command([name, *arguments[length:]])
    before = "".join(f"{word} " for word in arguments[:1] if _names_after(f"{word} "))
    named = arguments[1:] if before else arguments
    if asks_for_help(named[:1]):
        say(_help_page(before))
        return 0
    program = f"sl-discs {before}".strip()
    wrong = f"unknown command {before + named[0]!r}" if named else f"no command after {program}"
    expected = join_names(dict.fromkeys(name.split()[0] for name in _names_after(before)))
    tell(f"error: {wrong}; expected {expected}, and see {program} --help")
    return 2


def command_of(name: str) -> Command:
    """Returns the command of a name, imported."""
    file, _, attribute = COMMANDS[name].partition(".")
    return getattr(importlib.import_module(f"sl_discs.commands.{file}"), attribute)


def _names_after(before: str) -> list[str]:
    return [name.removeprefix(before) for name in COMMANDS if name.startswith(before)]


def _help_page(before: str) -> str:
    """Returns the list of commands whose names begin so: all, or those of one word such as `discs
    `.
    """
    program = f"sl-discs {before}".strip()
    width = max(map(len, _names_after(before)))
    parts = [f"usage: {program} COMMAND ..."]
    for group, commands in GROUPS.items():
        listed = [(name, words) for name, (_, words) in commands.items() if name.startswith(before)]
        if listed:
            lines = [f"  {name.removeprefix(before):{width}}  {words}" for name, words in listed]
            parts.append("\n".join([f"{group}:", *lines]))
    return "\n\n".join(
        [
            *parts,
            f"{program} COMMAND --help describes a command, and sl-discs --version prints the "
            "version.",
        ]
    )
