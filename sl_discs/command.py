"""How every command starts: its help, mistakes in its flags, bad input.

Exit code 0 after the help; 2 and one line, without a traceback, after a mistake; otherwise what the command returns.
"""

from __future__ import annotations

import inspect
import logging
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from absl import app, flags

from sl_discs.errors import InputError

_HELP = ("--help", "-help", "-h", "-?", "--helpshort", "--helpfull")

Main = Callable[[Sequence[str]], int | None]


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
    name: str,
    takes: str,
    words: str | None,
    own_flags: flags.FlagValues,
    argv: Sequence[str],
    body: Callable[[list[str]], int],
) -> int:
    """Runs a command of `sl-discs`, which has flags of its own.

    Args:
      name: of the command.
      takes: what comes before the flags.
      words: docstring of its module.
      own_flags: are parsed while it runs.
      argv: name and arguments.
      body: from the arguments that are no flags to the exit code.

    Returns:
      the body's exit code; 0 after the help, 2 after one line about bad input, 130 after Ctrl-C.
    """
    if asks_for_help(argv):
        sys.stdout.write(help_page(f"sl-discs {name}", takes, words, own_flags.get_help()))
        return 0
    try:
        arguments = own_flags(list(argv))[1:]
        with warnings.catch_warnings():
            warnings.showwarning = warn
            return body(arguments)
    except (InputError, flags.Error) as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; nothing more was saved\n")
        return 128 + signal.SIGINT
    finally:
        own_flags.unparse_flags()


def warn(message: Any, *_: Any, **__: Any) -> None:
    """A warning as one line; in the place of `warnings.showwarning` it leaves out the place in the code."""
    sys.stderr.write(f"warning: {message}\n")


def say(line: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run_app(prepare: Callable[[list[str]], tuple[Main, list[str]]], takes: str = "") -> None:
    """Runs the module that was started as a program; ends the process with its exit code.

    Args:
      prepare: from the command line, imports what defines further flags, and returns the main function and the
        arguments to parse.
      takes: what comes before the flags, for the help.
    """
    # JAX reports every accelerator that a machine does not have, matplotlib every font list that it makes.
    for library in ("jax._src.xla_bridge", "jax._src.distributed", "matplotlib"):
        logging.getLogger(library).setLevel(logging.WARNING)
    if asks_for_help(sys.argv):
        _print_help(prepare, takes)
        raise SystemExit(0)
    try:
        main, argv = prepare(sys.argv)
    except (InputError, flags.Error) as error:
        sys.stderr.write(f"error: {error}; see --help\n")
        raise SystemExit(2) from None

    def guarded(arguments):
        try:
            return main(arguments)
        except InputError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2

    app.run(guarded, argv=argv, flags_parser=_parse_flags)


def _print_help(prepare, takes: str) -> None:
    """The help of the main module, with the flags that `prepare` adds, or why it could not add them."""
    note = ""
    try:
        prepare([argument for argument in sys.argv if argument not in _HELP])
    except (InputError, flags.Error) as error:
        note = f"\nnote: {error}\n"
    module = sys.modules["__main__"]
    name = module.__spec__.name if module.__spec__ else sys.argv[0]
    sys.stdout.write(help_page(f"python -m {name}", takes, module.__doc__, flags.FLAGS.main_module_help()) + note)


def _parse_flags(argv: Sequence[str]) -> list[str]:
    """Parses flags; a mistake in them is one line and exit code 2, also where a config file raises it."""
    try:
        return flags.FLAGS(list(argv))
    except (
        flags.Error, InputError, AttributeError, KeyError, TypeError, ValueError, OSError, ImportError, SyntaxError
    ) as error:  # fmt: skip
        # The error of an overridden field that a config does not have holds one that says no more than the name.
        held = error.args[0] if error.args else None
        words = f"a config has no field {held.args[0]}" if isinstance(held, KeyError) else str(error)
        sys.stderr.write(f"error: {' '.join(words.split())}; see --help\n")
        raise SystemExit(2) from None
