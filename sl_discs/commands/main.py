"""`sl-discs COMMAND ...`: lists the commands, and imports the one that is run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from sl_discs.command import asks_for_help
from sl_discs.problem_names import in_words

# In groups: name -> what it does. The command `bench rates` is the module `sl_discs.commands.bench_rates`, which has
# `main(argv) -> exit code`.
GROUPS = {
    "a problem in a file": {
        "solve": "find the best solution, verified",
        "check": "recount the answers that solve saved",
        "sample": "draw from the problem at a temperature, with evidence",
        "convert": "turn a file of a graph or model into another format",
    },
    "experiments with DISCS's configs": {
        "run": "one experiment: samplers compared on the instances of a dataset",
        "sweep": "the runs of a sweep file, shared by any number of workers",
        "tune": "search for a sampler's settings on training instances",
        "reproduce": "the paper's published numbers beside our own",
        "references": "strong cuts of the generated MaxCut sets, for percentages",
    },
    "studies": {
        "study laws": "where localization samples better than tempering, and where worse",
        "study convergence": "how fast Algorithm 1 converges to the law",
    },
    "speed": {
        "bench rates": "speed and quality on fixed cases, beside peers",
        "bench sampling": "draws a second at a temperature, beside peers",
        "bench growth": "cost of a step by the number of sites and the degree",
        "bench localization": "what localization adds to a step",
        "bench roofline": "how close a step comes to what the machine allows",
        "bench gpu": "whether the GPU engine is right and fast on this machine",
    },
    "a checkout of DISCS": {
        "discs main": "DISCS's own main program, with this project's samplers",
        "discs sweep": "the runs of a sweep file by DISCS itself",
        "discs plot": "a plotting script of DISCS, taught this project's samplers",
        "discs data": "write a dataset in DISCS's file formats",
        "discs archive": "write a dataset of DISCS's files as one archive",
        "discs overhead": "what localization adds to a step of DISCS's loop",
    },
}
COMMANDS = {name: words for commands in GROUPS.values() for name, words in commands.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that the first argument, or the first two, name.

    Args:
      argv: the program's name and its arguments; None: those of the process.

    Returns:
      the command's exit code; 0 after the help, 2 after one line about a command that does not exist.
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
    """The rest of the names that begin so."""
    return [name.removeprefix(before) for name in COMMANDS if name.startswith(before)]


def _help_page(before: str) -> str:
    """The list of commands whose names begin so: all, or those of one word such as `bench `."""
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
