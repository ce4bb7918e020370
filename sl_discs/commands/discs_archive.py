"""Command: writes a dataset, from DISCS's own files or drawn, as one portable archive.

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
flags.DEFINE_string("cfg_str", "_", "Which of several, as r-<value>; _ for none.", flag_values=FLAGS)
flags.DEFINE_string("data_root", None, "DISCS's data; without it, graphs are drawn.", flag_values=FLAGS)
flags.DEFINE_string("output", None, "Archive to write.", required=True, flag_values=FLAGS)
flags.DEFINE_integer("num_instances", None, "How many graphs; all by default.", flag_values=FLAGS)
flags.DEFINE_integer("data_seed", 0, "Seed of drawn graphs.", flag_values=FLAGS)


def run(_) -> int:
    """Writes the archive, and says in one line what is in it."""
    if not FLAGS.output.endswith(".npz"):
        raise InputError(f"--output={FLAGS.output}: an archive's name ends in .npz")
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
    """Exit code 0, or 2 after one line about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
