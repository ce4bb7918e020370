"""The common part of the commands on a problem file: flags, fields of a sampler, reading, and a summary."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from absl import flags

from sl_discs.command import warn
from sl_discs.errors import InputError, real
from sl_discs.experiment.figures import check_matplotlib
from sl_discs.files import check_file
from sl_discs.instances.formats import FORMATS, Instance, read_instances
from sl_discs.instances.graph import Graph
from sl_discs.problem_names import FORM_PROBLEMS, GRAPH_PROBLEMS
from sl_discs.problems import Problem
from sl_discs.problems.from_file import has_unused_weights, problem_of
from sl_discs.problems.graph_kind import GRAPH_KINDS
from sl_discs.problems.kind import PENALTY
from sl_discs.terminal import printable


class Read(NamedTuple):
    """A problem of a file, and information about its source, as (title, text)."""

    problem: Problem
    given: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return printable(f"{self.problem.name}: {self.problem.kind} of {', '.join(words for _, words in self.given)}")


def define_flags(define: Any) -> None:
    """Adds the flags that describe a file, and the fields of a sampler; `define` as of `own_flags`."""
    problems = [*GRAPH_PROBLEMS, *FORM_PROBLEMS]
    words = "Problem to solve. Required for a graph; known for a file of a model, and mis for a SAT formula."
    define.enum("problem", None, problems, words)
    define_format(define)
    define.boolean("weights", False, "Use the weights of nodes in FILE, in mis, maxclique and vertex_cover.")
    words = f"Penalty of a conflict in mis, maxclique and vertex_cover, at least 1; default: {PENALTY}."
    define.float("penalty", None, words)
    words = "A field of the sampler's config as NAME=VALUE, such as --field=sigma=4.0."
    define.multi_string("field", [], words)


def define_format(define: Any) -> None:
    """Adds the flag for the format of a file."""
    define.enum("format", None, list(FORMATS), "Format of FILE; by default that of its header or suffix.")


def the_file(paths: list[str]) -> Path:
    """The only file that was given; InputError for none, or several."""
    if len(paths) != 1:
        raise InputError(f"{len(paths)} files were given; give one FILE, see --help")
    return Path(paths[0])


def check_flags(own: flags.FlagValues, targets: dict[str, list[str]], figures: Collection[str]) -> None:
    """Checks the flags of `define_flags` and the files to be written, before a file is read.

    `targets` are suffixes of the flags that name a file to write; `figures` those of them that need matplotlib.
    """
    for name, suffixes in targets.items():
        target = own[name].value
        if target is not None and Path(target).suffix not in suffixes:
            raise InputError(f"--{name}={target}: the name of this file must end in {' or '.join(suffixes)}")
        if target is not None:
            check_file(target)
    if any(own[name].value is not None for name in figures):
        check_matplotlib()
    if own["penalty"].value is not None:
        real("penalty", own["penalty"].value, least=1)


def numbered(path: str | None, number: int, count: int) -> str | None:
    """Returns the file of one of `count` problems; None for None."""
    return path if path is None or count == 1 else str(Path(path).with_stem(f"{Path(path).stem}-{number}"))


def fields_of(given: list[str], flags_of_their_own: Collection[str]) -> dict[str, Any]:
    """The sampler's fields from NAME=VALUE; InputError for another form, or a flag of the command."""
    fields = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise InputError(f"--field={one}: expected NAME=VALUE, such as --field=sigma=4.0")
        if name in flags_of_their_own:
            raise InputError(f"--field={name}=...: use the flag --{name} instead")
        try:
            fields[name] = yaml.safe_load(value)
        except (yaml.YAMLError, RecursionError, ValueError):  # the last of numbers and dates such as 0x_
            raise InputError(f"--field={one}: {value!r} is not a number, word or list") from None
    return fields


def read_problems(
    path: Path,
    kind: str | None,
    format: str | None,
    penalty: float | None = None,
    time_limit: float | None = None,
    weights: bool = False,
) -> tuple[list[Read], float]:
    """The problems of a file, and the seconds that reading took; warns about these if there is a time limit.

    InputError if the file cannot be read, a graph comes without a problem, or there are no
    conflicts to penalise or weights of nodes to use.
    """
    begin = time.perf_counter()
    instances = read_instances(path, problem=kind, format=format)
    read_s = time.perf_counter() - begin
    if time_limit is not None and read_s > time_limit:
        warn(f"reading took {read_s:.1f} s, which --time_limit={time_limit:g} does not count")
    found = []
    for one in instances:
        problem = problem_of(one, kind, penalty, weights)
        found.append(Read(problem, _given(one, problem.kind, weights)))
    return found, read_s


def _given(instance: Instance, kind: str, of_nodes: bool) -> tuple[tuple[str, str], ...]:
    """What was read, and which weights of it do not count."""
    content = instance.content
    if isinstance(content, Graph):
        nodes = " with weights" if of_nodes else ""
        if not of_nodes and content.node_weights is not None and (content.node_weights != 1).any():
            where = "without --weights" if has_unused_weights(content, kind) else f"in {kind}"
            nodes = f" (their weights do not count {where})"
        edges = ""
        if content.weights is not None and (content.weights != 1).any():
            counts = kind in GRAPH_KINDS and GRAPH_KINDS[kind].weighted
            edges = ", weighted" if counts else f" (their weights do not count in {kind})"
        size = f"{content.num_nodes:,} nodes{nodes}, {content.num_edges:,} edges{edges}"
    else:
        size = f"{content.num_variables:,} variables, {len(content.couplings):,} quadratic terms"
    return ("file", f"{instance.path.name} ({instance.format})"), ("size", size)
