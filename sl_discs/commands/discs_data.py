r"""Writes a dataset, generated or read, in DISCS's own file formats, and prints how to run DISCS on
it.

sl-discs discs data --model=mis --graph_type=er_density --cfg_str=r-0.10 --num_instances=8
--data_root=./sco

Without --source, graphs of random families are generated from --data_seed.
"""

import math
import shlex
import types
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.commands.command import Command, own_flags, refuse_flags
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import load_dataset, writable_family, write_discs
from sl_discs.instances.graph import Dataset
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.support.errors import InputError
from sl_discs.support.terminal import say


def _dataset_flags(problem: str) -> tuple[flags.FlagValues, types.SimpleNamespace]:
    """Returns `own_flags` with those that choose instances of a dataset; `problem` is the name of
    the first one.
    """
    own, define = own_flags()
    define.string(problem, None, "mis, maxcut or maxclique.", required=True)
    define.string("graph_type", None, "Dataset, as DISCS names it.", required=True)
    define.string("cfg_str", "_", "Configuration of the dataset, such as r-0.10; _ for none.")
    define.integer("num_instances", None, "Number of graphs; by default all from the first on.")
    define.integer("data_seed", 0, "Seed of generated graphs.")
    return own, define


FLAGS, define = _dataset_flags("model")
define.string("data_root", "./sco", "Folder to write to; DISCS's own default.")
define.string(
    "source", None, "Folder of archives or DISCS's files to read instead of generating graphs."
)
define.integer("first_instance", 0, "Index of the first graph in the whole dataset.")
define.boolean("overwrite", False, "Replace files of the same names.")

# Limits that DISCS's model configs fix, whatever the files and flags say: nodes and edges of a
# graph, number of graphs, and graphs per batch. Keys: prefix and suffix of the dataset's name.
_FIXED = {
    ("mis/ertest", "r-800"): (800, 47885, 128, 128),
    ("mis/ertest", "r-10k"): (10915, 1190799, 16, 128),
    ("maxcut/er", "256-300"): (300, 6839, 1000, 128),
    ("maxcut/er", "512-600"): (600, 27132, 1000, 128),
    ("maxcut/er", "1024-1100"): (1100, 91239, 1000, 128),
    ("maxcut/ba", "256-300"): (300, 1184, 1000, 1024),
    ("maxcut/ba", "512-600"): (600, 2384, 1000, 1024),
    ("maxcut/ba", "1024-1100"): (1100, 4384, 1000, 1024),
    ("maxclique/rb", ""): (475, 90585, 500, 512),
    ("maxclique/twitter", ""): (247, 12174, 196, 200),
}
_REMEDY = (
    "sl-discs discs main reads these limits from files with another number of graphs than "
    "DISCS's config says; for DISCS alone, copy the --config file below and add to its config: "
    "model=dict(max_num_nodes=0, max_num_edges=0, num_instances=0)"
)


def discs_flags(dataset: Dataset, data_root: Path) -> list[str]:
    """Returns the flags, besides the sampler's, with which DISCS reads the dataset below
    `data_root`.
    """
    problem, graph_type, *cfg_str = dataset.name.split("/")
    return [
        f"--config=discs/experiment/configs/{problem}/{graph_type}.py",
        f"--model_config=discs/models/configs/{problem}_config.py",
        f"--model_config.graph_type={graph_type}",
        f"--model_config.cfg_str={cfg_str[0] if cfg_str else '_'}",
        f"--model_config.data_root={data_root.resolve()}",
    ]


def warnings(dataset: Dataset) -> list[str]:
    """Lines on what keeps DISCS from running on every graph or reporting it, and on the remedy; may
    be empty.
    """
    name = dataset.name
    written = len(dataset.graphs)
    fixed = next(
        (_FIXED[ends] for ends in _FIXED if name.startswith(ends[0]) and name.endswith(ends[1])),
        None,
    )
    if fixed is None:
        return []
    nodes, edges, count, batch = fixed
    lines = []
    large = [
        graph.name for graph in dataset.graphs if graph.num_nodes > nodes or graph.num_edges > edges
    ]
    if large:
        limits = f"the {nodes} nodes or {edges} edges that DISCS's config allows"
        lines.append(
            f"{len(large)} graphs (first {large[0]}) exceed {limits}; DISCS fails on their shape"
        )
    padding = math.ceil(count / batch) - math.ceil(written / batch)
    if padding > 0:
        much = (
            f"{count} graphs, {batch} a batch; after these {written} it would run {padding} "
            "batches of padding"
        )
        lines.append(f"DISCS's config says {much}, and it only keeps the results of the last batch")
    if padding < 0 and written % batch:
        lines.append(
            f"DISCS's config says {count} graphs; it would leave out the last {written % batch} of "
            "these"
        )
    return [*(f"warning: {text}" for text in lines), f"remedy: {_REMEDY}"] if lines else []


def _graphs(count: int) -> str:
    return "1 graph" if count == 1 else f"{count} graphs"


def summarize(dataset: Dataset, paths: Sequence[Path], data_root: Path) -> str:
    """Several lines on the written files, their references, and the flags for DISCS."""
    nodes = [graph.num_nodes for graph in dataset.graphs]
    origin = f"{dataset.source}: {dataset.detail}"
    unknown = sum(not graph.reference for graph in dataset.graphs)
    if not graph_kind(dataset.problem).in_percent:
        reference = "DISCS uses 1 for every MIS graph, so its ratios are set sizes"
    elif unknown:
        reference = (
            f"unknown for {_graphs(unknown)}, with 1 as a placeholder, so their ratios are "
            "absolute values"
        )
    else:
        reference = "known for every graph"
    lines = [
        f"{dataset.name}: {_graphs(len(nodes))} of {min(nodes)}-{max(nodes)} nodes ({origin})",
        f"files: {paths[0]}"
        + (f" to {paths[-1].name} ({len(paths)} files)" if len(paths) > 1 else ""),
        f"reference objective: {reference}",
        *warnings(dataset),
        f"flags of DISCS: {shlex.join(discs_flags(dataset, data_root))}",
    ]
    return "\n".join(lines)


def _load(own: flags.FlagValues, problem: str, source: str | None, first: int = 0) -> Dataset:
    family = (problem, own.graph_type, own.cfg_str, source)
    count = own.num_instances
    return load_dataset(*family, num_instances=count, first=first, data_seed=own.data_seed)


def _data(_) -> int:
    family, _ = writable_family(FLAGS.model, FLAGS.graph_type, FLAGS.cfg_str)
    if family.generator is None and not FLAGS.source:
        raise InputError(
            f"{family.name} cannot be generated; give --source=FOLDER with {family.where()}"
        )
    if FLAGS.source:
        refuse_flags(FLAGS, ["data_seed"], "with --source, from which graphs are read")
    dataset = _load(FLAGS, FLAGS.model, FLAGS.source, FLAGS.first_instance)
    if FLAGS.source and dataset.source == "generated":
        raise InputError(
            f"{FLAGS.source}: neither {family.where()}; leave out --source to generate graphs"
        )
    data_root = Path(FLAGS.data_root)
    say(summarize(dataset, write_discs(dataset, data_root, FLAGS.overwrite), data_root))
    return 0


data = Command("", __doc__, FLAGS, _data)

ARCHIVE_FLAGS, define = _dataset_flags("problem")
define.string("data_root", None, "Folder of DISCS's data; without it, graphs are generated.")
define.string("output", None, "Archive to write.", required=True)


def _archive(_) -> int:
    """Writes a dataset, read from DISCS's own files or generated, as one portable archive.

    sl-discs discs archive --problem=mis --graph_type=satlib --data_root=DIR --output=FILE.npz
    """
    if not ARCHIVE_FLAGS.output.endswith(".npz"):
        raise InputError(
            f"--output={ARCHIVE_FLAGS.output}: the name of an archive must end in .npz"
        )
    dataset = _load(ARCHIVE_FLAGS, ARCHIVE_FLAGS.problem, ARCHIVE_FLAGS.data_root)
    write_archive(ARCHIVE_FLAGS.output, dataset.graphs)
    count = len(dataset.graphs)
    origin = f"{dataset.source}: {dataset.detail}"
    say(f"{ARCHIVE_FLAGS.output}: {count} graphs of {dataset.name} ({origin})")
    return 0


archive = Command("", _archive.__doc__, ARCHIVE_FLAGS, _archive)
