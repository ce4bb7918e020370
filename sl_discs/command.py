"""How every command starts: help, flags, and errors in flags and input.

The exit code is 0 after the help, 2 after a one-line message (without a traceback) about an error, and otherwise that
of the command.
"""

from __future__ import annotations

import functools
import inspect
import logging
import shlex
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from sl_discs.errors import InputError
from sl_discs.own_code import import_code

_HELP = ("--help", "-help", "-h", "-?", "--helpshort", "--helpfull")


_IMPORT = "import"


def own_flags() -> tuple[flags.FlagValues, types.SimpleNamespace]:
    """A command's own set of flags, and absl's functions that define flags in it, `DEFINE_integer` as `integer`.

    Importing a command thus adds nothing to the flags of another one, or of the process.
    """
    own = flags.FlagValues()
    kinds = "boolean", "enum", "float", "integer", "list", "multi_string", "string"
    return own, types.SimpleNamespace(
        **{kind: functools.partial(getattr(flags, f"DEFINE_{kind}"), flag_values=own) for kind in kinds}
    )


def asks_for_help(argv: Sequence[str]) -> bool:
    """Whether the arguments include a help flag; arguments after `--` belong to other programs."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    return not set(_HELP).isdisjoint(own)


def help_page(program: str, takes: str, words: str | None, listed_flags: str) -> str:
    """The text of --help.

    Args:
      program: its name, such as `sl-discs solve`.
      takes: the arguments before the flags, such as `FILE`; empty if there are none.
      words: the module's docstring.
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
    program: str = "sl-discs",
) -> int:
    """Runs a command of `sl-discs`, or a script, which has flags of its own and --import.

    Args:
      argv: name of the command, such as `discs data`, and its arguments.
      takes: the arguments before the flags; if empty, every argument that is not a flag is refused.
      words: the docstring of its module.
      own_flags: the command's flags, which are parsed here, after what --import names was imported: the flags' own
        config files, choices and defaults may need it.
      body: takes the arguments that are not flags and returns the exit code.
      foreign_help: for a command that starts another program: takes the arguments that are not its own flags and
        returns the list of that program's flags. The body gets the same arguments.
      program: what is typed before the name: `python` for a script.

    Returns:
      the body's exit code; 0 after the help, 2 after a one-line message about bad input, 130 after Ctrl-C.
    """
    program = f"{program} {argv[0]}"
    # JAX reports every accelerator that the machine lacks, and matplotlib every font list that it builds.
    for library in ("jax._src.xla_bridge", "jax._src.distributed", "matplotlib"):
        logging.getLogger(library).setLevel(logging.WARNING)
    try:
        _import_code(argv, own_flags)
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
    except OSError as error:
        if error.filename is None:
            raise
        # What is not asked for by name somewhere else: a name that is too long, a folder that cannot be searched.
        sys.stderr.write(f"error: {error.filename}: {error.strerror}; give another path\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; nothing more was saved\n")
        return 128 + signal.SIGINT
    finally:
        own_flags.unparse_flags()


def _import_code(argv: Sequence[str], own_flags: flags.FlagValues) -> None:
    """Adds the flag --import to the others, and imports what it names."""
    if _IMPORT not in own_flags:
        flags.DEFINE_multi_string(
            _IMPORT,
            [],
            "Python file or module with samplers of your own (register_sampler), imported before anything else; may "
            "be repeated, or list several, separated by commas.",
            flag_values=own_flags,
        )
    alone = flags.FlagValues()
    alone[_IMPORT] = own_flags[_IMPORT]
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    parse_flags(alone, own, known_only=True)
    for value in own_flags[_IMPORT].value or []:
        for given in filter(None, value.split(",")):
            import_code(given)
    own_flags[_IMPORT].unparse()


def _foreign_help(argv: Sequence[str], own_flags: flags.FlagValues, foreign_help) -> tuple[str, str]:
    """The list of another program's flags, and a note if it is not available."""
    try:
        asked = [argument for argument in argv if argument not in _HELP]
        return foreign_help(parse_flags(own_flags, asked, known_only=True)), ""
    except (InputError, flags.Error) as error:
        return "", f"\nnote: {error}\n"


def _in_flags(error: InputError, own_flags: flags.FlagValues) -> str:
    """The message with arguments of functions and fields of samplers named as the command's flags."""
    words = f"--{error}" if error.argument is not None and error.argument in own_flags else str(error)
    return words.replace("sampler_config.", "--field=") if "field" in own_flags else words


def parse_flags(values: flags.FlagValues, argv: Sequence[str], known_only: bool = False) -> list[str]:
    """Parses flags; returns the other arguments, without the program's name.

    Raises:
      flags.Error: a flag is wrong, or a config file raises an error.
    """
    try:
        return values(list(argv), known_only=known_only)[1:]
    except flags.Error:
        raise
    except Exception as error:  # of a config file, which is a program
        # An override of an unknown config field raises an error whose cause holds nothing but the name.
        held = error.args[0] if error.args else None
        field = held.args[0] if isinstance(held, KeyError) else None
        raise flags.Error(error_of_file(error) if field is None else f"a config has no field {field}") from error


def error_of_file(error: Exception) -> str:
    """In words, an error that a file of Python raised, with the line that did."""
    if isinstance(error, (OSError, ImportError, SyntaxError, ValueError)):
        return " ".join(str(error).split())
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}: {type(error).__name__}: {' '.join(str(error).split())}"


def refuse_flags(values: flags.FlagValues, names: Iterable[str], where: str) -> None:
    """Refuses flags that would be ignored.

    Args:
      values: the parsed flags.
      names: of the flags that have no effect.
      where: the context, such as `with --method=exact`.

    Raises:
      InputError: one of them was given.
    """
    for name in names:
        if values[name].present:
            raise InputError(f"--{name} has no effect {where}; leave it out")


def choice_before_flags(arguments: Sequence[str], choices: Iterable[str]) -> str:
    """The one word required before the flags; InputError for another, none or several."""
    if len(arguments) != 1 or arguments[0] not in choices:
        given = " ".join(arguments) or "nothing"
        raise InputError(f"expected one of {', '.join(choices)} before the options, not {given}")
    return arguments[0]


def check_choice(
    flag: str, chosen: Iterable[str], known: Iterable[str], absent: Mapping[str, str] | None = None
) -> None:
    """Checks that all names of a list flag are known.

    Args:
      flag: name of the flag, without dashes.
      chosen: the given names.
      known: the available names.
      absent: names that could be made available, and how.

    Raises:
      InputError: a name is not available.
    """
    unknown = [name for name in chosen if name not in known]
    if unknown:
        how = f"; it needs {absent[unknown[0]]}" if absent and unknown[0] in absent else ""
        raise InputError(f"--{flag}: {unknown[0]!r} is not available{how}; there are {', '.join(known)}")


def as_typed(argv: Sequence[str]) -> str:
    """The shell command that repeats a command, from its name and arguments as `run_command` takes them."""
    return shlex.join(["sl-discs", *argv[0].split(), *argv[1:]])


def warn(message: Any, *_: Any, **__: Any) -> None:
    """Prints a warning as one line, without its place in the code; a replacement of `warnings.showwarning`."""
    sys.stderr.write(f"warning: {message}\n")


def say(line: str) -> None:
    """Prints a line on standard output and flushes it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
