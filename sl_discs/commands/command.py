"""How every command starts: help, flags, and errors in flags and input.

The exit code is 0 after the help, 2 after a one-line message (without a traceback) about an error,
and otherwise that of the command.
"""

import contextlib
import dataclasses
import functools
import inspect
import logging
import re
import shlex
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from sl_discs.support.checks import join_names
from sl_discs.support.errors import RESUME_ME, InputError, Interrupted
from sl_discs.support.own_code import error_of_file, import_code
from sl_discs.support.terminal import open_closed_streams, say, tell

_HELP = ("--help", "-help", "-h", "-?", "--helpshort", "--helpfull")
_IMPORT = "import"


class _OwnFlags(flags.FlagValues):
    """Flags of a command, without absl's --flagfile, which reads any file or device to its end."""

    def read_flags_from_files(self, argv: Sequence[str], force_gnu: bool = True) -> list[str]:
        """Returns the arguments as they are."""
        return list(argv)


def own_flags() -> tuple[flags.FlagValues, types.SimpleNamespace]:
    """Returns a command's own flags with --import, and absl's functions that define more: `integer`
    and so on.

    Importing a command thus adds nothing to the flags of another one, or of the process.
    """
    own = _OwnFlags()
    kinds = "boolean", "enum", "float", "integer", "list", "multi_string", "string"
    define = {
        kind: functools.partial(getattr(flags, f"DEFINE_{kind}"), flag_values=own) for kind in kinds
    }
    help_text = (
        "Python files or modules with samplers or problems of your own (register_sampler, "
        "register_problem), separated by commas, imported first"
    )
    define["multi_string"](_IMPORT, [], help_text)
    return own, types.SimpleNamespace(**define)


def add_working_directory() -> None:
    """Makes `discs` importable, after all other places, if the working directory is a checkout."""
    if Path("discs", "samplers", "abstractsampler.py").is_file() and "" not in sys.path:
        sys.path.append("")


def asks_for_help(argv: Sequence[str]) -> bool:
    """Returns whether the arguments include a help flag; arguments after `--` belong to other
    programs.
    """
    return not set(_HELP).isdisjoint(_split(argv)[0])


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    end = argv.index("--") if "--" in argv else len(argv)
    return list(argv[:end]), list(argv[end + 1 :])


class Given(NamedTuple):
    """What a command was given besides its flags."""

    arguments: list[str]  # those that are not flags
    more: list[str]  # those after `--`, if the command passes them on
    typed: str  # the shell command that repeats it


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of `sl-discs`, or a script, which has flags of its own and --import.

    Called with its name, such as `discs data`, and its arguments, it returns the body's exit code;
    0 after the help, 2 after a one-line message about bad input, 75 if it continues when run again,
    130 after Ctrl-C.
    """

    takes: str  # the arguments before the flags, as FILE ANSWERS or the words of a choice, list|run
    words: str | None  # what it does, for --help
    # They are parsed after what --import names was imported: config files, choices and defaults may
    # need it.
    flags: flags.FlagValues
    body: Callable[[Given], int]  # does it, and returns the exit code
    _: dataclasses.KW_ONLY
    # Of a command that starts another program: takes the arguments that are not its own flags and
    # returns the list of that program's flags. The body gets the same arguments.
    foreign_help: Callable[[list[str]], str] | None = None
    passes_on: bool = False  # whether the arguments after `--` are for runs that it starts
    reads: Callable[[Sequence[str]], Sequence[str]] = tuple  # the arguments as they are read
    program: str = "sl-discs"  # what is typed before the name: `python` for a script

    def __call__(self, argv: Sequence[str]) -> int:
        """Runs the command; see the class."""
        open_closed_streams()
        add_working_directory()
        program = f"{self.program} {argv[0]}"
        own = self.flags
        typed = shlex.join([self.program, *argv[0].split(), *argv[1:]])
        # JAX reports every accelerator that the machine lacks, and matplotlib every font list that
        # it builds.
        for library in ("jax._src.xla_bridge", "jax._src.distributed", "matplotlib"):
            logging.getLogger(library).setLevel(logging.WARNING)
        try:
            argv, more = _split(argv) if self.passes_on else (argv, [])
            argv = [_with_home(argument) for argument in argv]
            _import_code(argv, own)
            argv = self.reads(argv)
            if asks_for_help(argv):
                say(self._help_page(argv))
                return 0
            arguments = parse_flags(own, argv, known_only=self.foreign_help is not None)
            if self.foreign_help is None:
                self._check(arguments)
            with warnings.catch_warnings():
                warnings.showwarning = warn
                return self.body(Given(arguments, more, typed))
        except (InputError, flags.Error) as error:
            message = (
                f"{_of_absl(error)}; see {program} --help"
                if isinstance(error, flags.Error)
                else _in_flags(error, own)
            )
            tell(f"error: {' '.join(message.split())}")
            return 2
        except OSError as error:
            if error.filename is None:
                raise
            # What is not asked for by name somewhere else: a name that is too long, a folder that
            # cannot be searched.
            tell(f"error: {error.filename}: {error.strerror}; give another path")
            return 2
        except Interrupted as interruption:
            tell(str(interruption))
            return RESUME_ME
        except KeyboardInterrupt:
            tell("\nstopped; what was saved before stays")
            return 128 + signal.SIGINT
        finally:
            forget_flags(own)

    def _check(self, arguments: list[str]) -> None:
        """Raises an InputError unless the arguments that are not flags are those that the command
        takes.
        """
        if arguments and not self.takes:
            raise InputError(
                f"unexpected argument {arguments[0]!r}; options are written as --name=value"
            )
        choices = self.takes.split("|")
        if len(arguments) != len(self.takes.split()) or (
            len(choices) > 1 and arguments[0] not in choices
        ):
            expected = join_names(choices) if len(choices) > 1 else self.takes
            raise InputError(
                f"give {expected} before the options{', not ' if arguments else ''}"
                f"{' '.join(arguments)}"
            )

    def _help_page(self, argv: Sequence[str]) -> str:
        listed = self.flags.get_help()
        note = ""
        if self.foreign_help is not None:
            try:
                asked = [argument for argument in argv if argument not in _HELP]
                foreign = self.foreign_help(parse_flags(self.flags, asked, known_only=True))
                listed = f"{foreign}\n{listed}"
            except (InputError, flags.Error) as error:  # the other program is not available
                note = f"\n\nnote: {error}"
        usage = " ".join(
            filter(None, ("usage:", self.program, argv[0], self.takes, "[--flag=value ...]"))
        )
        # Without the names of the modules that define the flags, and without absl's own.
        own = listed.partition("\nabsl.flags:\n")[0].splitlines()
        shown = "\n".join(line for line in own if line.startswith(" "))
        return f"{usage}\n\n{inspect.cleandoc(self.words or '')}\n\nflags:\n{shown}{note}"


def section_of(documented: Callable, title: str) -> dict[str, str]:
    """Returns a section of a docstring, such as `Args` or `Attributes`, as meanings by name."""
    text = inspect.getdoc(documented) or ""
    section = text.partition(f"{title}:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^  (\w+(?:, \w+)*): (.*(?:\n {4}.*)*)", section, re.MULTILINE)
    return {names: " ".join(meaning.split()) for names, meaning in entries}


class _Numbers(flags.ArgumentParser):
    """Reads a number, or several that are separated by commas."""

    syntactic_help = "a number, or several separated by commas"

    def parse(self, argument):
        try:
            numbers = tuple(map(float, str(argument).split(",")))
        except ValueError:
            raise ValueError("expected numbers, separated by commas") from None
        return numbers[0] if len(numbers) == 1 else numbers


# The annotations of arguments that a flag can give.
_PARSERS: dict[str, Callable[[], flags.ArgumentParser]] = {
    "float": flags.FloatParser,
    "int": flags.IntegerParser,
    "str": flags.ArgumentParser,
    "float | Sequence[float]": _Numbers,
    "tuple[float, float] | Mapping[str, object]": _Numbers,
}


def define_arguments(
    own: flags.FlagValues,
    function: Callable,
    known: Mapping[str, Iterable[str]] = types.MappingProxyType({}),
) -> list[str]:
    """Defines a flag for each argument of a function that a flag can give, and returns their names.

    Args:
      own: the command's flags.
      function: its signature has the defaults, and the section `Args` of its docstring the words,
        for a flag without what it says of Python.
      known: values of some arguments, which their words list.
    """
    meanings = section_of(function, "Args")
    names = []
    for name, argument in inspect.signature(function).parameters.items():
        annotation = argument.annotation.removesuffix(" | None")
        # Commands always show progress.
        if name == "progress" or annotation not in {"bool", *_PARSERS}:
            continue
        help_text = meanings[name].partition(" In Python ")[0].replace("None: ", "default: ")
        if name in known:
            help_text += f" Known: {', '.join(known[name])}."
        help_text = help_text[0].upper() + help_text[1:]
        if annotation == "bool":
            flags.DEFINE_boolean(name, argument.default, help_text, own)
        else:
            flags.DEFINE(_PARSERS[annotation](), name, argument.default, help_text, own)
        names.append(name)
    return names


def _import_code(argv: Sequence[str], own_flags: flags.FlagValues) -> None:
    """Imports what --import names, before the other flags are parsed."""
    alone = _OwnFlags()
    alone[_IMPORT] = own_flags[_IMPORT]
    parse_flags(alone, _split(argv)[0], known_only=True)
    for value in own_flags[_IMPORT].value or []:
        for source in filter(None, value.split(",")):
            import_code(source)
    own_flags[_IMPORT].unparse()


def _in_flags(error: InputError, own_flags: flags.FlagValues) -> str:
    """Returns the message with arguments of functions and fields of samplers named as the command's
    flags.
    """
    message = (
        f"--{error}" if error.argument is not None and error.argument in own_flags else str(error)
    )
    return message.replace("sampler_config.", "--field=") if "field" in own_flags else message


def parse_flags(
    values: flags.FlagValues, argv: Sequence[str], known_only: bool = False
) -> list[str]:
    """Parses flags; returns the other arguments, without the program's name. flags.Error if one is
    wrong.
    """
    try:
        with process_arguments(argv):
            return values(list(argv), known_only=known_only)[1:]
    except flags.Error:
        raise
    except (Exception, SystemExit) as error:  # of a config file, which is a program
        # An override of an unknown config field raises an error that holds nothing but the name,
        # and what is near.
        cause = error.args[0] if error.args and isinstance(error.args[0], KeyError) else error
        match = re.match(
            r"['\"]*(\w+)'(?:\s+Did you mean \"(\w+)\")?", str(cause.args[0]) if cause.args else ""
        )
        if not isinstance(cause, KeyError) or match is None:
            raise flags.Error(error_of_file(error)) from error
        field, near = match.groups()
        overrides = (
            argument.partition("=")[0] for argument in argv if "." in argument.partition("=")[0]
        )
        override = next((name for name in overrides if field in name.split(".")), "a config")
        hint = f", and {near!r} is the nearest" if near else ""
        raise flags.Error(f"{override}: there is no field {field!r}{hint}") from error


@contextlib.contextmanager
def process_arguments(argv: Sequence[str]) -> Iterator[None]:
    """Replaces the arguments of the process, among which config flags look for overrides of their
    fields.
    """
    before = sys.argv
    sys.argv = list(argv)
    try:
        yield
    finally:
        sys.argv = before


def forget_flags(values: flags.FlagValues) -> None:
    """Resets flags to their defaults, and deletes those that parsing defined for overrides of
    config fields.
    """
    values.unparse_flags()
    for name in [name for name in values if "." in name]:
        delattr(values, name)


def _with_home(argument: str) -> str:
    """Returns an argument `--name=~/path` with the home folder in it, for which shells do not put
    it there.
    """
    name, equals, value = argument.partition("=")
    if not (equals and value.startswith("~/")):
        return argument
    try:
        return f"{name}={Path(value).expanduser()}"
    except RuntimeError:
        raise InputError(f"{argument}: the home folder is not known; give the whole path") from None


def _of_absl(error: flags.Error) -> str:
    """Returns the message of absl about flags, those that are missing named alone."""
    missing = re.findall(r"flag --(\w+)=None: Flag --\w+ must have a value", str(error))
    if missing:
        return f"give {' and '.join(f'--{name}' for name in missing)}"
    return str(error).rstrip(".")


def refuse_flags(values: flags.FlagValues, names: Iterable[str], where: str) -> None:
    """Raises an InputError if a flag was given that would be ignored `where`, such as `with
    --method=exact`.
    """
    for name in names:
        if values[name].present:
            raise InputError(f"--{name} has no effect {where}; leave it out")


def warn(message: Any, *_: Any, **__: Any) -> None:
    """Prints a warning as one line, without its place in the code; a replacement of
    `warnings.showwarning`.
    """
    tell(f"warning: {' '.join(str(message).split())}")
