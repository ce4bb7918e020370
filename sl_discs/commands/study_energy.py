"""Command: compares training of energy-based models by a sampler and by its localized variant.

sl-discs study energy [--output=results/energy] [--seeds=3]

A restricted Boltzmann machine and a small convolutional energy are trained on scikit-learn's digits by persistent
contrastive divergence, with a base sampler and with its localized variant at equal steps. The page reports the
log-likelihood of held-out digits. Finished cells are kept in OUTPUT/cells, so that a stopped command continues where
it left off. It needs the extra energy.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.command import run_command
from sl_discs.studies import energy

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_OUTPUT = flags.DEFINE_string(
    "output", "results/energy", "Folder of the page, the figure and the cells.", flag_values=FLAGS
)
_SEEDS = flags.DEFINE_integer("seeds", energy.FULL.seeds, "Number of repetitions.", lower_bound=1, flag_values=FLAGS)


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""

    def body(_: list[str]) -> int:
        energy.run(check_writable(_OUTPUT.value), energy.FULL._replace(seeds=_SEEDS.value))
        return 0

    return run_command(argv, "", __doc__, FLAGS, body)
