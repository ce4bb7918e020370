"""The common part of the commands on a problem file: flags, fields of a sampler, reading, and a
summary.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from absl import flags

from sl_discs.commands.command import warn
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import one_device_per_core
from sl_discs.instances.formats import FORMATS, Instance, read_instances
from sl_discs.problems import Problem
from sl_discs.problems.from_file import problem_of
from sl_discs.problems.kind import KINDS, PENALTY, find_kind
from sl_discs.support.checks import join_names
from sl_discs.support.errors import InputError
from sl_discs.support.figures import check_matplotlib
from sl_discs.support.files import check_file
from sl_discs.support.terminal import printable


def define_flags(define: Any) -> None:
    """Adds the flags that describe a file and fields of a sampler; `define` as of `own_flags`."""
    help_text = (
        f"Problem to solve: {join_names([*KINDS, 'one of your own'])}. Required for a graph; "
        "known for a file of a model, and mis for a SAT formula."
    )
    define.string("problem", None, help_text)
    define_format(define)
    define.boolean("weights", False, "Use the weights of nodes in FILE, where problems have them.")
    define_weight(define)
    help_text = f"Penalty of a conflict, where there are any, at least 1; default: {PENALTY}."
    define.float("penalty", None, help_text)
    help_text = "A field of the sampler's config as NAME=VALUE, such as --field=sigma=4.0."
    define.multi_string("field", [], help_text)


def define_format(define: Any) -> None:
    """Adds the flag for the format of a file."""
    define.enum(
        "format", None, list(FORMATS), "Format of FILE; by default that of its header or suffix."
    )


def define_weight(define: Any) -> None:
    """Adds the flag for the name of weights in a file."""
    help_text = (
        "Attribute of FILE's edges (maxcut) or nodes (others) that is their weight, where they "
        "have attributes."
    )
    define.string("weight", None, help_text)


def opened(
    own: flags.FlagValues,
    path: Path,
    options_of: Callable,
    names: Collection[str],
    saved: list[str],
) -> tuple[Any, list[tuple[Problem, str]], float]:
    """Returns the options that the flags give, and what `read_problems` returns for the file.

    Flags are checked before the file is read; --plot needs matplotlib.

    Args:
      own: the command's flags, those of `define_flags` among them.
      path: the file.
      options_of: makes the options of their values, by name.
      names: of the flags that are options.
      saved: suffixes of the file that --save names.
    """
    one_device_per_core()
    keep_programs()
    for name, suffixes in {"save": saved, "plot": [".png"]}.items():
        target = own[name].value
        if target is None:
            continue
        if Path(target).suffix not in suffixes:
            raise InputError(
                f"--{name}={target}: the name of this file must end in {' or '.join(suffixes)}"
            )
        check_file(target)
    if own.plot is not None:
        check_matplotlib()
    if own.problem is not None:
        find_kind(own.problem)
    return options_of(**_arguments_of(own, names), progress=True), *read_problems(
        path, own.problem, own.format, own.weights, own.weight, own.penalty, own.time_limit
    )


def numbered(path: str | None, number: int, count: int) -> str | None:
    """Returns the file of one of `count` problems; None for None."""
    return (
        path
        if path is None or count == 1
        else str(Path(path).with_stem(f"{Path(path).stem}-{number}"))
    )


def _arguments_of(own: flags.FlagValues, names: Collection[str]) -> dict[str, Any]:
    """Returns the values of flags by name, and as `fields` those of --field=NAME=VALUE.

    InputError for another form, or for a field that has a flag of its own.
    """
    fields = {}
    for field in own.field:
        name, equals, value = field.partition("=")
        if not (name and equals):
            raise InputError(f"--field={field}: expected NAME=VALUE, such as --field=sigma=4.0")
        if name in names:
            raise InputError(f"--field={name}=...: use the flag --{name} instead")
        try:
            fields[name] = yaml.safe_load(value)
        # The last of numbers and dates such as 0x_.
        except (yaml.YAMLError, RecursionError, ValueError):
            raise InputError(f"--field={field}: {value!r} is not a number, word or list") from None
    return {name: own[name].value for name in names} | {"fields": fields}


def seconds(read_s: float, spent: Mapping[str, float], names: Mapping[str, str]) -> str:
    """Returns the parts of the wall time, from reading the source on, in words: `names` are those
    of `spent`.
    """
    parts = [f"{name} {spent[part]:.2f}" for part, name in names.items()]
    return f"seconds: {', '.join([f'reading {read_s:.2f}', *parts])}"


def read_problems(
    path: Path,
    kind: str | None,
    format: str | None,
    weights: bool,
    weight: str | None,
    penalty: float | None = None,
    time_limit: float | None = None,
) -> tuple[list[tuple[Problem, str]], float]:
    """The problems of a file, with a line on each, and the seconds that reading took; warns if
    these pass the limit.

    InputError if the file cannot be read, a graph comes without a problem, or there are no
    conflicts to penalise or weights of nodes to use.
    """
    begin = time.perf_counter()
    instances = read_instances(path, problem=kind, format=format, weight=weight)
    read_s = time.perf_counter() - begin
    if time_limit is not None and read_s > time_limit:
        warn(f"reading took {read_s:.1f} s, which --time_limit={time_limit:g} does not count")
    problems = []
    for instance in instances:
        problem = problem_of(instance, kind, penalty, weights, weight)
        problems.append((problem, _line_on(instance, problem)))
    return problems, read_s


def _count(count: int, of: str) -> str:
    return f"{count:,} {of}{'s' * (count != 1)}"


def _line_on(instance: Instance, problem: Problem) -> str:
    """Returns what was read, and which weights of it do not count."""
    content = instance.content
    kind = KINDS[problem.kind]
    _, variable, term = content.words
    of_variables = ""
    if "weights of nodes" in problem.source.coefficients:
        of_variables = " with weights"
    elif np.any(content.coefficients.get("weights of nodes", 1) != 1):
        where = "without --weights" if kind.weights_of_nodes else f"in {kind.name}"
        of_variables = f" (their weights do not count {where})"
    of_terms = ""
    if np.any(content.coefficients.get("weights", 1) != 1):
        of_terms = f" (their weights do not count in {kind.name})"
        if kind.weighted:
            of_terms = ", weighted"
    return printable(
        f"{problem.name}: {kind.name} of {instance.path.name} ({instance.format}), "
        f"{_count(content.num_variables, variable)}{of_variables}, "
        f"{_count(content.num_terms, term)}{of_terms}"
    )
