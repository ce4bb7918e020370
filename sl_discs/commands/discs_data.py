r"""Command: writes a dataset, drawn or read, in DISCS's own file formats, and says how to run DISCS on it.

sl-discs discs data --model=mis --graph_type=er_density --cfg_str=r-0.10 --num_instances=8 --data_root=./sco

Without --source, random families are drawn from --data_seed. Exit code 2 and one line on bad input.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.command import refuse_flags, run_command, say
from sl_discs.errors import InputError
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.write_discs import writable_family, write_discs
from sl_discs.models.kinds import graph_kind

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
flags.DEFINE_string("model", None, "mis, maxcut or maxclique.", required=True, flag_values=FLAGS)
flags.DEFINE_string("graph_type", None, "Dataset, as DISCS names it.", required=True, flag_values=FLAGS)
flags.DEFINE_string("cfg_str", "_", "Which of several, as r-<value>; _ for none.", flag_values=FLAGS)
flags.DEFINE_string("data_root", "./sco", "Folder to write to; DISCS's own default.", flag_values=FLAGS)
flags.DEFINE_string(
    "source", None, "Folder of archives or DISCS's files to read instead of drawing.", flag_values=FLAGS
)
flags.DEFINE_integer("num_instances", None, "How many graphs; by default all from the first.", flag_values=FLAGS)
flags.DEFINE_integer("first_instance", 0, "Index of the first graph in the whole dataset.", flag_values=FLAGS)
flags.DEFINE_integer("data_seed", 0, "Seed of drawn graphs.", flag_values=FLAGS)
flags.DEFINE_boolean("overwrite", False, "Replace files of the same names.", flag_values=FLAGS)

# What DISCS's model configs fix, whatever the files hold and the flags say: the most nodes and edges of a graph, the
# number of graphs, and how many go into a batch. Keys: how the dataset's name begins and ends.
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
    "to have DISCS count for itself, copy the --config file below and add to its config: "
    "model=dict(max_num_nodes=0, max_num_edges=0, num_instances=0)"
)


def discs_flags(dataset: Dataset, data_root: Path) -> list[str]:
    """The flags, besides the sampler's, with which DISCS reads the dataset below `data_root`."""
    problem, graph_type, *cfg_str = dataset.name.split("/")
    return [
        f"--config=discs/experiment/configs/{problem}/{graph_type}.py",
        f"--model_config=discs/models/configs/{problem}_config.py",
        f"--model_config.graph_type={graph_type}",
        f"--model_config.cfg_str={cfg_str[0] if cfg_str else '_'}",
        f"--model_config.data_root={data_root.resolve()}",
    ]


def warnings(dataset: Dataset) -> list[str]:
    """Lines on what keeps DISCS from running on every graph or reporting it, and on what helps; or none."""
    name, written = dataset.name, len(dataset.graphs)
    fixed = next((_FIXED[ends] for ends in _FIXED if name.startswith(ends[0]) and name.endswith(ends[1])), None)
    if fixed is None:
        return []
    nodes, edges, count, batch = fixed
    found = []
    large = [graph.name for graph in dataset.graphs if graph.num_nodes > nodes or graph.num_edges > edges]
    if large:
        limits = f"the {nodes} nodes or {edges} edges that DISCS's config allows"
        found.append(f"{len(large)} graphs (first {large[0]}) have more than {limits}; it fails at their shape")
    padding = math.ceil(count / batch) - math.ceil(written / batch)
    if padding > 0:
        much = f"{count} graphs, {batch} a batch; after these {written} it would run {padding} batches of padding"
        found.append(f"DISCS's config says {much}, and it keeps the results of the last batch only")
    if padding < 0 and written % batch:
        found.append(f"DISCS's config says {count} graphs; it would leave out the last {written % batch} of these")
    return [*(f"warning: {text}" for text in found), f"remedy: {_REMEDY}"] if found else []


def summarize(dataset: Dataset, paths: Sequence[Path], data_root: Path) -> str:
    """What was written, what its references are, and how DISCS finds it; several lines."""
    nodes = [graph.num_nodes for graph in dataset.graphs]
    origin = f"{dataset.source}: {dataset.detail}"
    unknown = sum(not graph.reference for graph in dataset.graphs)
    if not graph_kind(dataset.problem).in_percent:
        reference = "DISCS takes 1 for every MIS graph: its ratios are sizes of sets"
    elif unknown:
        reference = f"unknown for {unknown} graphs, 1 was written: their ratios are absolute values"
    else:
        reference = "known for every graph"
    lines = [
        f"{dataset.name}: {len(nodes)} graphs of {min(nodes)}-{max(nodes)} nodes ({origin})",
        f"files: {paths[0]}" + (f" to {paths[-1].name} ({len(paths)} files)" if len(paths) > 1 else ""),
        f"reference objective: {reference}",
        *warnings(dataset),
        f"flags of DISCS: {shlex.join(discs_flags(dataset, data_root))}",
    ]
    return "\n".join(lines)


def run(_) -> int:
    """Writes the files that the flags ask for, and prints the summary."""
    family = writable_family(FLAGS.model, FLAGS.graph_type, FLAGS.cfg_str)
    if family.generator is None and not FLAGS.source:
        raise InputError(f"{family.name} is not random; give --source=FOLDER with {family.where()}")
    if FLAGS.source:
        refuse_flags(FLAGS, ["data_seed"], "with --source, whose graphs are read")
    dataset = load_dataset(
        FLAGS.model,
        FLAGS.graph_type,
        FLAGS.cfg_str,
        FLAGS.source,
        num_instances=FLAGS.num_instances,
        first=FLAGS.first_instance,
        data_seed=FLAGS.data_seed,
    )
    if FLAGS.source and dataset.source == "generated":
        raise InputError(f"{FLAGS.source}: neither {family.where()}; leave out --source to draw graphs")
    data_root = Path(FLAGS.data_root)
    say(summarize(dataset, write_discs(dataset, data_root, FLAGS.overwrite), data_root))
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0 after a summary, or 2 after one line about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
