"""`sl-discs COMMAND ...`: lists the commands, and imports the one that is run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from sl_discs.command import asks_for_help
from sl_discs.problem_names import in_words

# Name -> its module, which has `main(argv) -> exit code`, and what it does.
COMMANDS = {
    "solve": ("sl_discs.commands.solve", "find the best solution of the problem in a file, verified"),
    "sample": ("sl_discs.commands.sample", "draw from the problem in a file at a temperature, with evidence"),
    "convert": ("sl_discs.commands.convert", "turn a file of a graph or model into another format"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that the first argument names.

    Args:
      argv: the program's name and its arguments; None: those of the process.

    Returns:
      the command's exit code; 0 after the help, 2 after one line about a command that does not exist.
    """
    arguments = list(sys.argv if argv is None else argv)[1:]
    if asks_for_help(arguments[:1]):
        sys.stdout.write(_help_page())
        return 0
    if not arguments or arguments[0] not in COMMANDS:
        wrong = f"unknown command {arguments[0]!r}" if arguments else "no command"
        sys.stderr.write(f"error: {wrong}; expected {in_words(COMMANDS)}, and see sl-discs --help\n")
        return 2
    module, _ = COMMANDS[arguments[0]]
    return importlib.import_module(module).main(arguments)


def _help_page() -> str:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {words}" for name, (_, words) in COMMANDS.items())
    return f"usage: sl-discs COMMAND ...\n\ncommands:\n{listed}\n\nsl-discs COMMAND --help describes a command.\n"
