"""Command: turns a file of a graph into one of another format.

python -m sl_discs.convert INPUT OUTPUT [--from=FORMAT] [--to=rudy|dimacs|npz] [--complement]

INPUT may be rudy (Gset), DIMACS (.clq, .col), METIS, an edge list, MatrixMarket, a SAT formula (its conflict graph)
or an .npz archive, plain or compressed by gzip, bzip2 or xz. Its content says what it is, whatever its name.

Written files name nodes from 1 on in the order of the input's (0 on in archives). Weights read back bit by bit.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import flags

from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.instances.archive import write_archive
from sl_discs.instances.complement import complement
from sl_discs.instances.formats import READERS, Instance, dimacs, read_instances, rudy
from sl_discs.instances.graph import Graph

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
flags.DEFINE_string(
    "from", None, f"Format of INPUT, by default what its content says: {', '.join(READERS)}.", flag_values=FLAGS
)
flags.DEFINE_string(
    "to",
    None,
    "Format of OUTPUT, by default what its name says: npz (.npz), dimacs (.clq, .col, .dimacs) or rudy (.rudy, .mc, "
    ".txt).",
    flag_values=FLAGS,
)
flags.DEFINE_boolean(
    "complement", False, "Write the edges that are not there instead of those that are.", flag_values=FLAGS
)

_SUFFIXES = {
    ".npz": "npz",
    ".clq": "dimacs",
    ".col": "dimacs",
    ".dimacs": "dimacs",
    ".rudy": "rudy",
    ".mc": "rudy",
    ".txt": "rudy",
}
_WRITERS = {"rudy": rudy.write, "dimacs": dimacs.write}
_BAR_BYTES = 2**23


def main(argv: Sequence[str]) -> int:
    """Exit code 0 after a line about what was written, or 2 after one line about bad input."""
    if "--help" in argv:
        sys.stdout.write(f"{__doc__}\n{FLAGS.get_help()}\n")
        return 0
    try:
        paths = FLAGS(list(argv))[1:]
        if len(paths) != 2:
            raise InputError(f"{len(paths)} files were named; name an INPUT and an OUTPUT, and see --help")
        sys.stdout.write(_run(*paths) + "\n")
    except (InputError, flags.Error) as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
    finally:
        FLAGS.unparse_flags()
    return 0


def _run(source: str, target: str) -> str:
    """Converts; returns the summary."""
    to = _target_format(target)
    instances = _read(source)
    graphs = [_graph(instance) for instance in instances]
    if FLAGS.complement:
        graphs = [complement(graph) for graph in graphs]
    if to == "npz":
        write_archive(target, graphs)
    elif len(graphs) == 1:
        _WRITERS[to](target, graphs[0])
    else:
        raise InputError(f"{source}: {len(graphs)} graphs, but a {to} file holds one; write an .npz archive")
    return _summary(source, instances[0].format, graphs, target, to)


def _target_format(target: str) -> str:
    suffix = Path(target).suffix.lower()
    to = FLAGS.to or _SUFFIXES.get(suffix)
    if to is None:
        raise InputError(f"{target}: no format is known for {suffix or 'a name without suffix'!r}; give --to=FORMAT")
    if to not in ("npz", *_WRITERS):
        raise InputError(f"--to={to}: cannot be written; choose one of {', '.join(('npz', *_WRITERS))}")
    return to


def _read(source: str) -> list[Instance]:
    """Reads, with a progress bar if the file is large."""
    with contextlib.ExitStack() as stack:
        advance = None
        if Path(source).is_file() and (size := Path(source).stat().st_size) > _BAR_BYTES:
            bar = stack.enter_context(progress_bar(size, "B"))
            advance = lambda count: bar(Path(source).name, count)  # noqa: E731
        return read_instances(source, format=FLAGS["from"].value, progress=advance)


def _graph(instance: Instance) -> Graph:
    if not isinstance(instance.content, Graph):
        raise InputError(f"{instance.path}: {instance.format} holds a quadratic model; only graphs can be converted")
    return instance.content


def _summary(source: str, came_from: str, graphs: list[Graph], target: str, to: str) -> str:
    weights = [graph.weights for graph in graphs if graph.weights is not None and graph.num_edges]
    told = f"weights {min(map(np.min, weights)):g} to {max(map(np.max, weights)):g}" if weights else "no weights"
    nodes, edges = (_span([count(graph) for graph in graphs]) for count in (_num_nodes, _num_edges))
    several = f"{len(graphs)} graphs, " if len(graphs) != 1 else ""
    turned = ", complemented" if FLAGS.complement else ""
    return f"{source} ({came_from}{turned}): {several}{nodes} nodes, {edges} edges, {told}; saved in {target} ({to})"


def _span(counts: list[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _num_nodes(graph: Graph) -> int:
    return graph.num_nodes


def _num_edges(graph: Graph) -> int:
    return graph.num_edges


if __name__ == "__main__":
    sys.exit(main(sys.argv))
