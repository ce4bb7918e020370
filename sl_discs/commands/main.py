"""`sl-discs COMMAND ...`: lists the commands, and imports and runs one of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from sl_discs.command import asks_for_help
from sl_discs.problem_names import in_words

# In groups: name -> description. The command `discs data` is the module `sl_discs.commands.discs_data`, which has
# `main(argv) -> exit code`.
GROUPS = {
    "a problem in a file": {
        "solve": "find the best solution, verified",
        "check": "recompute the values of answers that solve saved",
        "sample": "draw samples at a temperature, with evidence",
        "convert": "convert a file of a graph or model to another format",
    },
    "experiments with DISCS's configs": {
        "run": "one experiment: compare samplers on the instances of a dataset",
        "sweep": "perform the runs of a sweep file, here or on a Slurm cluster",
        "tune": "tune a sampler's settings on training instances",
        "reproduce": "compare the paper's published numbers with our own",
        "references": "search reference cuts of the generated MaxCut sets",
    },
    "a checkout of DISCS": {
        "discs main": "run DISCS's own main program with this package's samplers",
        "discs sweep": "perform the runs of a sweep file in DISCS itself",
        "discs plot": "run a plotting script of DISCS with this package's samplers",
        "discs data": "write a dataset in DISCS's file formats",
        "discs archive": "pack a dataset of DISCS's files into one archive",
        "discs overhead": "what localization adds to a step in DISCS's loop",
    },
}
COMMANDS = {name: words for commands in GROUPS.values() for name, words in commands.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command named by the first one or two arguments.

    Args:
      argv: the program's name and its arguments; None: those of the process.

    Returns:
      the command's exit code; 0 after the help, 2 after a one-line message about an unknown command.
    """
    arguments = list(sys.argv if argv is None else argv)[1:]
    for length in (1, 2):
        name = " ".join(arguments[:length])
        if name in COMMANDS:
            return importlib.import_module(module_of(name)).main([name, *arguments[length:]])
    before = "".join(f"{word} " for word in arguments[:1] if _names_after(f"{word} "))
    named = arguments[1:] if before else arguments
    if asks_for_help(named[:1]):
        sys.stdout.write(_help_page(before))
        return 0
    program = f"sl-discs {before}".strip()
    wrong = f"unknown command {before + named[0]!r}" if named else f"no command after {program}"
    expected = in_words(dict.fromkeys(name.split()[0] for name in _names_after(before)))
    sys.stderr.write(f"error: {wrong}; expected {expected}, and see {program} --help\n")
    return 2


def module_of(name: str) -> str:
    """The module of a command."""
    return f"sl_discs.commands.{name.replace(' ', '_')}"


def _names_after(before: str) -> list[str]:
    """The remainders of the names that begin so."""
    return [name.removeprefix(before) for name in COMMANDS if name.startswith(before)]


def _help_page(before: str) -> str:
    """The list of commands whose names begin so: all, or those of one word such as `discs `."""
    program = f"sl-discs {before}".strip()
    listed = [
        (group, {name.removeprefix(before): words for name, words in commands.items() if name.startswith(before)})
        for group, commands in GROUPS.items()
    ]
    width = max(len(name) for _, commands in listed for name in commands)
    parts = [
        "\n".join([f"{group}:", *(f"  {name:{width}}  {words}" for name, words in commands.items())])
        for group, commands in listed
        if commands
    ]
    page = "\n\n".join([f"usage: {program} COMMAND ...", *parts, f"{program} COMMAND --help describes a command."])
    return f"{page}\n"
