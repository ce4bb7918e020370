"""Command: how fast Algorithm 1 converges, on targets whose law is known.

sl-discs study convergence [--output=results/convergence]

The error of the law that Algorithm 1 draws from, against its levels, its sweeps a level and the number of sites, with
exact posterior means and with those of chains; fitted rates; and variants of the algorithm, one line each. Finished
cells are kept in OUTPUT/cells, so that a command that was stopped goes on where it was.
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
    """Exit code 0, or 2 after one line about bad input."""

    def body(_: list[str]) -> int:
        convergence.run(check_writable(_OUTPUT.value))
        return 0

    return run_command(argv, "", __doc__, FLAGS, body)
