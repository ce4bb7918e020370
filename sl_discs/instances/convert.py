"""Command: writes a dataset, from DISCS's own files or drawn, as one portable archive.

python -m sl_discs.instances.convert --problem=mis --graph_type=satlib --data_root=DIR --output=FILE.npz
"""

from __future__ import annotations

import sys

from absl import flags

from sl_discs.command import asks_for_help, help_page
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


def main(argv: list[str]) -> int:
    """Converts, and says in one line what was written; status 2 and one line of explanation on bad input."""
    if asks_for_help(argv):
        sys.stdout.write(help_page("python -m sl_discs.instances.convert", "", __doc__, FLAGS.get_help()))
        return 0
    try:
        if rest := FLAGS(argv)[1:]:
            raise InputError(f"unexpected argument {rest[0]!r}; every option is written --name=value")
        if not FLAGS.output.endswith(".npz"):
            raise InputError(f"{FLAGS.output}: an archive's name ends in .npz")
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
        sys.stdout.write(f"{FLAGS.output}: {count} graphs of {dataset.name} ({place})\n")
    except (InputError, flags.Error) as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
    finally:
        FLAGS.unparse_flags()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
