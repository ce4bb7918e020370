"""Command: writes a dataset, read from DISCS's own files or generated, as one portable archive.

sl-discs discs archive --problem=mis --graph_type=satlib --data_root=DIR --output=FILE.npz
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from sl_discs.command import run_command, say
from sl_discs.errors import InputError
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import load_dataset

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
flags.DEFINE_string("problem", None, "mis, maxcut or maxclique.", required=True, flag_values=FLAGS)
flags.DEFINE_string("graph_type", None, "Dataset, as DISCS names it.", required=True, flag_values=FLAGS)
flags.DEFINE_string("cfg_str", "_", "Configuration of the dataset, such as r-0.10; _ for none.", flag_values=FLAGS)
flags.DEFINE_string("data_root", None, "Folder of DISCS's data; without it, graphs are generated.", flag_values=FLAGS)
flags.DEFINE_string("output", None, "Archive to write.", required=True, flag_values=FLAGS)
flags.DEFINE_integer("num_instances", None, "Number of graphs; all by default.", flag_values=FLAGS)
flags.DEFINE_integer("data_seed", 0, "Seed of generated graphs.", flag_values=FLAGS)


def run(_) -> int:
    """Writes the archive, and prints a line about its contents."""
    if not FLAGS.output.endswith(".npz"):
        raise InputError(f"--output={FLAGS.output}: the name of an archive must end in .npz")
    dataset = load_dataset(
        FLAGS.problem,
        FLAGS.graph_type,
        FLAGS.cfg_str,
        FLAGS.data_root,
        num_instances=FLAGS.num_instances,
        data_seed=FLAGS.data_seed,
    )
    write_archive(FLAGS.output, dataset.graphs)
    count, place = len(dataset.graphs), f"{dataset.source}: {dataset.detail}"
    say(f"{FLAGS.output}: {count} graphs of {dataset.name} ({place})")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
