"""How every command starts: its help, its flags, mistakes in them, bad input.

Exit code 0 after the help; 2 and one line, without a traceback, after a mistake; otherwise what the command returns.
"""

from __future__ import annotations

import inspect
import logging
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from absl import flags

from sl_discs.errors import InputError

_HELP = ("--help", "-help", "-h", "-?", "--helpshort", "--helpfull")


def asks_for_help(argv: Sequence[str]) -> bool:
    """Whether a flag that asks for help is among the arguments; what follows `--` belongs to other programs."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    return not set(_HELP).isdisjoint(own)


def help_page(program: str, takes: str, words: str | None, listed_flags: str) -> str:
    """What --help prints.

    Args:
      program: how it is started, such as `sl-discs solve`.
      takes: what comes before the flags, such as `FILE`; empty where nothing does.
      words: docstring of the module.
      listed_flags: the flags and their meanings, as absl lists them.
    """
    usage = " ".join(part for part in ("usage:", program, takes, "[--flag=value ...]") if part)
    # Without the names of the modules that define them, and without absl's own.
    own = listed_flags.partition("\nabsl.flags:\n")[0].splitlines()
    shown = "\n".join(line for line in own if line.startswith(" "))
    words = (words or "").strip().removeprefix("Command: ")
    return f"{usage}\n\n{words[:1].upper()}{words[1:]}\n\nflags:\n{shown}\n"


def attributes_of(documented: type) -> str:
    """The section `Attributes` of a class's docstring: a field and its meaning in each paragraph."""
    section = (inspect.getdoc(documented) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    return section.replace("\n    ", " ")


def run_command(
    argv: Sequence[str],
    takes: str,
    words: str | None,
    own_flags: flags.FlagValues,
    body: Callable[[list[str]], int],
    foreign_help: Callable[[list[str]], str] | None = None,
) -> int:
    """Runs a command of `sl-discs`, which has flags of its own.

    Args:
      argv: name of the command, such as `bench rates`, and its arguments.
      takes: what comes before the flags; with nothing, every argument that is no flag is refused.
      words: docstring of its module.
      own_flags: are parsed while it runs.
      body: from the arguments that are no flags to the exit code.
      foreign_help: of a command that starts another program: from the arguments that are no flags of its own to the
        list of that program's flags. The body gets those arguments.

    Returns:
      the body's exit code; 0 after the help, 2 after one line about bad input, 130 after Ctrl-C.
    """
    program = f"sl-discs {argv[0]}"
    # JAX reports every accelerator that a machine does not have, matplotlib every font list that it makes.
    for library in ("jax._src.xla_bridge", "jax._src.distributed", "matplotlib"):
        logging.getLogger(library).setLevel(logging.WARNING)
    try:
        if asks_for_help(argv):
            listed, note = own_flags.get_help(), ""
            if foreign_help is not None:
                more, note = _foreign_help(argv, own_flags, foreign_help)
                listed = f"{more}\n{listed}"
            sys.stdout.write(help_page(program, takes, words, listed) + note)
            return 0
        arguments = parse_flags(own_flags, argv, known_only=foreign_help is not None)
        if arguments and not takes and foreign_help is None:
            raise InputError(f"unexpected argument {arguments[0]!r}; options are written as --name=value")
        with warnings.catch_warnings():
            warnings.showwarning = warn
            return body(arguments)
    except (InputError, flags.Error) as error:
        words = f"{error}; see {program} --help" if isinstance(error, flags.Error) else _in_flags(error, own_flags)
        sys.stderr.write(f"error: {' '.join(words.split())}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; nothing more was saved\n")
        return 128 + signal.SIGINT
    finally:
        own_flags.unparse_flags()


def _foreign_help(argv: Sequence[str], own_flags: flags.FlagValues, foreign_help) -> tuple[str, str]:
    """The list of another program's flags, and a note where it is not to be had."""
    try:
        asked = [argument for argument in argv if argument not in _HELP]
        return foreign_help(parse_flags(own_flags, asked, known_only=True)), ""
    except (InputError, flags.Error) as error:
        return "", f"\nnote: {error}\n"


def _in_flags(error: InputError, own_flags: flags.FlagValues) -> str:
    """The message with arguments of functions and fields of samplers as the command's flags have them."""
    words = f"--{error}" if error.argument is not None and error.argument in own_flags else str(error)
    return words.replace("sampler_config.", "--field=") if "field" in own_flags else words


def parse_flags(values: flags.FlagValues, argv: Sequence[str], known_only: bool = False) -> list[str]:
    """Parses flags; returns the other arguments, without the program's name.

    Raises:
      flags.Error: a mistake in them, also where a config file raises it.
    """
    try:
        return values(list(argv), known_only=known_only)[1:]
    except (AttributeError, KeyError, TypeError, ValueError, OSError, ImportError, SyntaxError) as error:
        # The error of an overridden field that a config does not have holds one that says no more than the name.
        held = error.args[0] if error.args else None
        words = f"a config has no field {held.args[0]}" if isinstance(held, KeyError) else str(error)
        raise flags.Error(words) from error


def refuse_flags(values: flags.FlagValues, names: Iterable[str], where: str) -> None:
    """Refuses flags that would be ignored.

    Args:
      values: the parsed flags.
      names: of those that mean nothing here.
      where: that is, such as `with --method=exact`.

    Raises:
      InputError: one of them was given.
    """
    for name in names:
        if values[name].present:
            raise InputError(f"--{name} means nothing {where}; leave it out")


def choice_before_flags(arguments: Sequence[str], choices: Iterable[str]) -> str:
    """The word that has to come before the flags; InputError for another, none or several."""
    if len(arguments) != 1 or arguments[0] not in choices:
        given = " ".join(arguments) or "nothing"
        raise InputError(f"expected one of {', '.join(choices)} before the options, not {given}")
    return arguments[0]


def as_typed(argv: Sequence[str]) -> str:
    """The line that repeats a command: its name and arguments as `run_command` takes them."""
    return shlex.join(["sl-discs", *argv[0].split(), *argv[1:]])


def warn(message: Any, *_: Any, **__: Any) -> None:
    """A warning as one line; in the place of `warnings.showwarning` it leaves out the place in the code."""
    sys.stderr.write(f"warning: {message}\n")


def say(line: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
