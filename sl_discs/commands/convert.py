"""Converts a file of a graph or quadratic model to another format.

sl-discs convert INPUT OUTPUT [--from=FORMAT] [--problem=PROBLEM] [--complement]

INPUT may be a graph, a SAT formula for its conflict graph, a quadratic model (in MatrixMarket with
--problem=qubo or ising) or an .npz archive, in one of the formats that --from names, plain or
compressed with gzip, bzip2 or xz. Its format is recognised by a header, or else by the suffix of
its name, and that of OUTPUT by its suffix: .npz for an archive, .clq, .col or .dimacs for DIMACS,
.rudy, .mc or .txt for rudy. Models can only be written to archives.

Output files number nodes from 1 (archives from 0) in the order of the input. Where the labels of
INPUT are not these numbers, the summary says which became which, or OUTPUT.labels lists them.
Weights are preserved exactly.
"""

import json
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from sl_discs.commands.command import Command, Given, own_flags, warn
from sl_discs.commands.problem_file import define_weight
from sl_discs.instances.archive import write_archive, write_forms
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import FORMATS, SUFFIXES, read_instances
from sl_discs.instances.graph import Graph, complement
from sl_discs.problems.kind import KINDS
from sl_discs.support.errors import InputError
from sl_discs.support.files import write_text
from sl_discs.support.terminal import say

FLAGS, define = own_flags()
define.string(
    "from", None, f"Format of INPUT, by default that of its header or suffix: {', '.join(FORMATS)}."
)
define.boolean("complement", False, "Write the complement graph.")

_GRAPH_WRITERS = {name: format.write for name, format in FORMATS.items() if format.write}
# What writes files of many, by what they hold.
_ARCHIVES: dict[type, Callable] = {Graph: write_archive, QuadraticForm: write_forms}
_WRITTEN = {
    suffix: name for suffix, name in SUFFIXES.items() if name in ("npz", *_GRAPH_WRITERS)
} | {".txt": "rudy"}
help_text = "The problem of INPUT, where its content is ambiguous."
define.enum("problem", None, list(KINDS), help_text)
define_weight(define)


def _convert(given: Given) -> int:
    source, target = given.arguments
    to = _WRITTEN.get(Path(target).suffix.lower())
    if to is None:
        raise InputError(
            f"{target}: the suffix of OUTPUT names its format; choose one of {', '.join(_WRITTEN)}"
        )
    instances = read_instances(
        source, problem=FLAGS.problem, format=FLAGS["from"].value, weight=FLAGS.weight
    )
    contents: list[Any] = [instance.content for instance in instances]
    content_type = type(contents[0])
    if content_type is not Graph and (
        to != "npz" or FLAGS.complement or content_type not in _ARCHIVES
    ):
        what = f"cannot be written as {to}; models are written as npz"
        if FLAGS.complement:
            what = "has no complement"
        raise InputError(
            f"{source}: {instances[0].format} holds a {contents[0].words[0]}, which {what}"
        )
    for remark in instances[0].remarks:
        warn(f"{source}: {remark}")
    if FLAGS.complement:
        contents = [complement(graph) for graph in contents]
    if to == "npz":
        _ARCHIVES[content_type](target, contents)
    elif len(contents) == 1:
        _GRAPH_WRITERS[to](target, contents[0])
    else:
        raise InputError(
            f"{source}: {len(contents)} graphs, but a {to} file holds one; write an .npz archive"
        )
    turned = ", complemented" if FLAGS.complement else ""
    labels = (
        _tell_labels(target, 0 if to == "npz" else 1, instances[0].labels)
        if len(instances) == 1
        else ""
    )
    say(
        f"{source} ({instances[0].format}{turned}): {_tell(contents, content_type)}; "
        f"saved in {target} ({to}){labels}"
    )
    return 0


def _tell_labels(target: str, first: int, labels: Sequence[Hashable]) -> str:
    """Says which numbers the labels have become, in the summary or in a file beside the target."""
    last = first + len(labels) - 1
    if list(labels) == list(range(first, last + 1)):
        return ""
    if isinstance(labels, range):
        return f"; labels {labels[0]} to {labels[-1]} became {first} to {last}"
    path = Path(f"{target}.labels")
    texts = (
        label if isinstance(label, int) else json.dumps(label, ensure_ascii=False)
        for label in labels
    )
    write_text(path, "".join(f"{number} {word}\n" for number, word in enumerate(texts, first)))
    return f"; {path} has the label of each number"


def _tell(contents: list[Any], content_type: Any) -> str:
    """Says how many graphs or models there are, their sizes, and which numbers they have."""
    what, variable, term = content_type.words
    parts = []
    if len(contents) != 1:
        parts.append(f"{len(contents)} {what}s")
    for sizes, name in (
        ([content.num_variables for content in contents], variable),
        ([content.num_terms for content in contents], term),
    ):
        low = min(sizes)
        high = max(sizes)
        parts.append(f"{low} {name}s" if low == high else f"{low} to {high} {name}s")
    parts += sorted({name for content in contents for name in content.coefficients})
    return ", ".join(parts)


main = Command("INPUT OUTPUT", __doc__, FLAGS, _convert)
