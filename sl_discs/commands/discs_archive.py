"""Command: writes a dataset, read from DISCS's own files or generated, as one portable archive.

sl-discs discs archive --problem=mis --graph_type=satlib --data_root=DIR --output=FILE.npz
"""

from __future__ import annotations

from collections.abc import Sequence

from sl_discs.command import own_flags, run_command, say
from sl_discs.errors import InputError
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import load_dataset

FLAGS, define = own_flags()
define.string("problem", None, "mis, maxcut or maxclique.", required=True)
define.string("graph_type", None, "Dataset, as DISCS names it.", required=True)
define.string("cfg_str", "_", "Configuration of the dataset, such as r-0.10; _ for none.")
define.string("data_root", None, "Folder of DISCS's data; without it, graphs are generated.")
define.string("output", None, "Archive to write.", required=True)
define.integer("num_instances", None, "Number of graphs; all by default.")
define.integer("data_seed", 0, "Seed of generated graphs.")


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
