"""Command: measures how fast Algorithm 1 converges, on targets whose distribution is known.

sl-discs study convergence [--output=results/convergence]

It plots the error of the distribution that Algorithm 1 draws from against the number of levels, of sweeps per level
and of sites, with exact posterior means and with those of chains; fits rates; and compares variants of the algorithm.
Finished cells are kept in OUTPUT/cells, so that a stopped command continues where it left off.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.command import run_command
from sl_discs.studies import convergence

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_OUTPUT = flags.DEFINE_string(
    "output", "results/convergence", "Folder of the page, the figure and the cells.", flag_values=FLAGS
)


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""

    def body(_: list[str]) -> int:
        convergence.run(check_writable(_OUTPUT.value))
        return 0

    return run_command(argv, "", __doc__, FLAGS, body)
